"""Policies and agents: what turns observations into actions."""

from __future__ import annotations

import difflib
import inspect
from pathlib import Path
from typing import Any

from robot_runtime.errors import ConfigError, PolicyError
from robot_runtime.policies.agents import INTERFACES
from robot_runtime.policies.agents.policy import AgentPolicy
from robot_runtime.policies.agents.process import Isolation
from robot_runtime.policies.package.files import is_package
from robot_runtime.policies.package.policy import load_package_policy
from robot_runtime.policies.policy import Policy
from robot_runtime.policies.python import load_python

AGENTS: dict[str, str] = {
    "pointnav-depth": "robot_runtime.policies.shipped:pointnav_depth",
    "random": "robot_runtime.policies.baselines:Random",
    "random-actions": "robot_runtime.policies.baselines:RandomActions",
    "forward-only": "robot_runtime.policies.baselines:ForwardOnly",
    "goal-follower": "robot_runtime.policies.baselines:GoalFollower",
    "oracle": "robot_runtime.policies.oracle:Oracle",
    "classical": "robot_runtime.policies.classical.agent:Classical",
}
"""The agents that ship with the runtime: name -> ``module:Class``."""


def has_own_process(name: str) -> bool:
    """Whether it names an unmodified agent by its kind."""
    kind, _, spec = name.partition(":")
    return kind in INTERFACES and bool(spec)


def is_remote(name: str) -> bool:
    """Whether it names a policy server."""
    return name.startswith(("ws://", "wss://"))


def load_policy(name: str, isolation: Isolation | None = None, /, **arguments: Any) -> Policy:
    """An agent of :data:`AGENTS`, or one of the user's own.

    Args:
        name: one of

            ==============================  ===================================================================
            a name of ``AGENTS``            an agent that ships
            ``module:Class``, ``x.py:Class``  a :class:`Policy` or an agent of Habitat's kind, within the runtime
            ``habitat:module:Class``        an unmodified agent in a process of its own; ``habitat`` or another
                                            of ``agents.INTERFACES``
            ``ws://host:port``              a policy server (:mod:`robot_runtime.policies.remote`)
            a path                          a policy package
            ==============================  ===================================================================

        isolation: of an agent in a process of its own; None for the defaults.
        arguments: handed to its constructor; of a package see
            :func:`robot_runtime.policies.package.policy.load_package_policy`, of a server
            :class:`robot_runtime.policies.remote.client.RemotePolicy`.

    Raises:
        PolicyError: there is no such agent, it cannot be imported, or it does not take these arguments.
        ConfigError: ``isolation`` is given for one that has no process of its own.
        RuntimeFault: of a package: see there.
    """
    if has_own_process(name):
        kind, _, spec = name.partition(":")
        return AgentPolicy(INTERFACES[kind], spec, arguments, isolation)
    if isolation is not None:
        raise ConfigError(
            f"agent {name!r} runs within the runtime: it has no interpreter and no time limit of its own",
            f"name its kind, as in habitat:{name}: {', '.join(INTERFACES)}",
        )
    if name in AGENTS:
        return load_python(AGENTS[name], **arguments)
    if is_remote(name):
        return _remote(name, **arguments)
    if is_package(path := Path(name)):
        return load_package_policy(path, **arguments)
    if ":" in name:
        return load_python(name, **arguments)
    close = difflib.get_close_matches(name, AGENTS, n=1)
    raise PolicyError(
        f"there is no agent {name!r}",
        f"did you mean {close[0]!r}?" if close else f"use one of {', '.join(AGENTS)}, module:Class or file.py:Class",
    )


def _remote(url: str, **arguments: Any) -> Policy:
    try:
        from robot_runtime.policies.remote.client import RemotePolicy
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"{url}: remote policies need {error.name!r}", "pip install 'robot-runtime[remote]'"
        ) from error
    known = list(inspect.signature(RemotePolicy).parameters)[1:]
    unknown = [name for name in arguments if name not in known]
    if unknown:
        raise ConfigError(f"{url}: a remote policy has no argument {', '.join(unknown)}", f"use {', '.join(known)}")
    return RemotePolicy(url, **arguments)
