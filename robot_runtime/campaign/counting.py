"""Counting of runs: interventions and faults, their effect on a result, and what is compared by hash."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from robot_runtime.common import config
from robot_runtime.records import EndReason, EpisodeEnd
from robot_runtime.scoring.failure_causes import CONTACT_LIMIT

Counts = Literal["failure", "repeat", "ignore"]
"""Effect of an intervention or a fault on a run: it counts as failed, not at all (it is run again), or as scored."""

Kind = Literal[
    "help",
    "takeover",
    "battery_change",
    "e_stop",
    "contact_limit",
    "localization_lost",
    "device_fault",
    "policy_fault",
    "link_lost",
    "interrupted",
    "killed",
    "start",
    "damaged",
    "invalid",
    "other",
]
"""Interventions and faults. ``start``: the robot did not stand where the plan wants it; ``killed``: the log has no end;
``damaged``: the log cannot be read or scored; ``invalid``: a judge's word; the others are what their names say."""

STRICT: dict[Kind, Counts] = {
    "help": "failure",
    "takeover": "failure",
    "battery_change": "repeat",
    "e_stop": "failure",
    "contact_limit": "failure",
    "localization_lost": "failure",
    "device_fault": "repeat",
    "policy_fault": "failure",
    "link_lost": "repeat",
    "interrupted": "repeat",
    "killed": "repeat",
    "start": "repeat",
    "damaged": "repeat",
    "invalid": "repeat",
    "other": "repeat",
}
"""Strict rules: every help is a failure."""

LENIENT: dict[Kind, Counts] = STRICT | {
    "help": "ignore",
    "takeover": "ignore",
    "battery_change": "ignore",
    "e_stop": "repeat",
    "localization_lost": "repeat",
    "other": "ignore",
}
"""Lenient rules: nothing counts against a policy that it did not cause."""

LINK_LOST = "policy server:"
"""Beginning of an end's detail, as is ``CONTACT_LIMIT``; :mod:`robot_runtime.campaign.robot_process` writes both."""

_E_STOP = ("e_stop", "wheel_drop")


@dataclass(frozen=True)
class Counting(config.Strict):
    """Exceptions from :data:`STRICT` and :data:`LENIENT`, by kind."""

    strict: dict[Kind, Counts] = field(default_factory=dict)
    lenient: dict[Kind, Counts] = field(default_factory=dict)

    def rule(self, kind: Kind, view: Literal["strict", "lenient"]) -> Counts:
        """The effect of a kind."""
        return (STRICT | self.strict if view == "strict" else LENIENT | self.lenient)[kind]

    def repeated(self, kinds: Iterable[Kind]) -> Kind | None:
        """The first kind for which the strict or the lenient result needs another run; None for none."""
        repeating = (kind for kind in kinds if "repeat" in (self.rule(kind, "strict"), self.rule(kind, "lenient")))
        return next(repeating, None)


def kind_of(end: EpisodeEnd) -> Kind | None:
    """The intervention or fault with which an episode ended; None if policy or task ended it."""
    if end.reason is EndReason.LOCALIZATION_LOST:
        return "localization_lost"
    if end.reason is EndReason.FAULT:
        if end.detail.startswith(CONTACT_LIMIT):
            return "contact_limit"
        if end.detail.startswith(LINK_LOST):
            return "link_lost"
        return "policy_fault" if end.of_policy else "device_fault"
    if end.reason is EndReason.INTERRUPTED:
        if end.of_policy:
            return "policy_fault"
        return "e_stop" if any(word in end.detail for word in _E_STOP) else "interrupted"
    return None


def digest(value: Any) -> str:
    """SHA-256 of a JSON value, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def changed(here: Mapping[str, Any], there: Mapping[str, Any]) -> list[str]:
    """Names whose values differ between two mappings."""
    return sorted(name for name in {*here, *there} if here.get(name) != there.get(name))
