"""Openers of policies whose name begins with a scheme: ``habitat:module:Class``, ``ws://host:port``.

A package adds a scheme by an entry point of its name, whose object is an instance of :class:`PolicyOpener`::

    [project.entry-points."robot_runtime.policy_openers"]
    omnivla = "omnivla_client.opener:OPENER"

``load_policy("omnivla://gpu:8888")`` then asks it.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from robot_runtime.common.plugins import Registry
from robot_runtime.policies.isolation import Isolation
from robot_runtime.policy import Policy


class PolicyOpener(ABC):
    """What a scheme means.

    Attributes:
        own_process: whether its policies run in processes of their own, and take an interpreter and a time limit.
    """

    own_process: ClassVar[bool] = False

    @abstractmethod
    def open(self, spec: str, isolation: Isolation | None, arguments: dict[str, Any]) -> Policy:
        """Load a policy.

        Args:
            spec: name of the policy, with the scheme.
            isolation: interpreter and time limit; None for the defaults, and without ``own_process``.
            arguments: arguments of the policy.

        Raises:
            PolicyError: there is no such policy, or it does not take these arguments.
        """

    def check(self, spec: str, arguments: Mapping[str, Any]) -> None:
        """Check what can be known of a policy without loading it or reaching a server. Raises ``PolicyError``."""

    def file(self, spec: str) -> Path | None:
        """The file or folder that the policy is read from; None if it has none here."""
        return None

    def content(self, spec: str) -> bytes | Path | None:
        """What tells one version of the policy from another: bytes, or the file that has them; None if nothing does."""
        return self.file(spec)


OPENERS: Registry[PolicyOpener] = Registry("robot_runtime.policy_openers", "scheme of policies", PolicyOpener)


def python_file(spec: str) -> Path | None:
    """The file in ``file.py:Class``, with or without a scheme; None for a module."""
    file = spec.rpartition(":")[0].rpartition(":")[2]
    return Path(file) if file.endswith(".py") else None
