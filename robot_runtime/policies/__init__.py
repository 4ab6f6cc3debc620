"""Policies and agents: what turns observations into actions."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

from robot_runtime.errors import PolicyError
from robot_runtime.policies.package.files import is_package
from robot_runtime.policies.package.policy import load_package_policy
from robot_runtime.policies.policy import Policy
from robot_runtime.policies.python import load_python

AGENTS: dict[str, str] = {
    "random": "robot_runtime.policies.baselines:Random",
    "random-actions": "robot_runtime.policies.baselines:RandomActions",
    "forward-only": "robot_runtime.policies.baselines:ForwardOnly",
    "goal-follower": "robot_runtime.policies.baselines:GoalFollower",
    "oracle": "robot_runtime.policies.oracle:Oracle",
    "classical": "robot_runtime.policies.classical.agent:Classical",
}
"""The agents that ship with the runtime: name -> ``module:Class``."""


def load_policy(name: str, /, **arguments: Any) -> Policy:
    """An agent of :data:`AGENTS`, or one of the user's own.

    Args:
        name: a name of ``AGENTS``, ``package.module:Class``, ``path/to/file.py:Class``, or a policy
            package's path.
        arguments: handed to its constructor; of a package see
            :func:`robot_runtime.policies.package.policy.load_package_policy`.

    Raises:
        PolicyError: there is no such agent, it cannot be imported, or it does not take these arguments.
        RuntimeFault: of a package: see there.
    """
    if name in AGENTS:
        return load_python(AGENTS[name], **arguments)
    if is_package(path := Path(name)):
        return load_package_policy(path, **arguments)
    if ":" in name:
        return load_python(name, **arguments)
    close = difflib.get_close_matches(name, AGENTS, n=1)
    raise PolicyError(
        f"there is no agent {name!r}",
        f"did you mean {close[0]!r}?" if close else f"use one of {', '.join(AGENTS)}, module:Class or file.py:Class",
    )
