"""The scheme ``gates:``: the agent of this package by the distance at which it stops, as in ``gates:0.3``."""

from collections.abc import Mapping
from typing import Any

from robot_runtime.errors import PolicyError
from robot_runtime.policies import load_policy
from robot_runtime.policies.isolation import Isolation
from robot_runtime.policies.openers import PolicyOpener
from robot_runtime.policy import Policy


def _near_m(spec: str) -> float:
    try:
        return float(spec.partition(":")[2])
    except ValueError:
        raise PolicyError(f"policy {spec!r}: not a distance in meters", "write for example gates:0.3") from None


class GateOpener(PolicyOpener):
    """Opener of ``gates:DISTANCE``."""

    def open(self, spec: str, isolation: Isolation | None, arguments: dict[str, Any]) -> Policy:
        return load_policy("gate-follower", near_m=_near_m(spec), **arguments)

    def check(self, spec: str, arguments: Mapping[str, Any]) -> None:
        _near_m(spec)


OPENER = GateOpener()
