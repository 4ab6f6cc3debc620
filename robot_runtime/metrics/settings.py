"""Rules of scoring: the choices that metrics depend on."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from robot_runtime.metrics.functional.spl import ZeroRule
from robot_runtime.metrics.visibility import BOX_MARGIN_M

RefereeRule = Literal["logged", "smoothed"]

Metrics = dict[str, float | bool | int | None]


@dataclass(frozen=True)
class Rules:
    """Choices in which published scorers differ; the defaults are habitat-lab's where it has a rule.

    Attributes:
        shortest_path: source of SPL's l: the scene's map, from the referee's pose at the start, or the dataset.
        zero_path: SPL of an episode that starts at its goal.
        box_margin_m: margin of object boxes, for the success rule ``visible``.
        reference: reference of a followed route: the follower's positions where the dataset has them (as VLN-CE does),
            else the nodes of the reference path; or always the nodes.
        referee: scored poses: the referee's during the run, or its trajectory smoothed afterwards
            (:mod:`robot_runtime.scoring.reference_poses`).
        verdicts: whether verdicts of people and judges count, see :mod:`robot_runtime.verdicts`.
        policy_faults: whether an episode that the policy broke (``EpisodeEnd.of_policy``) has no score, or has failed,
            as in every challenge.
    """

    shortest_path: Literal["map", "dataset"] = "map"
    zero_path: ZeroRule = "one_if_still"
    box_margin_m: float = BOX_MARGIN_M
    reference: Literal["densest", "nodes"] = "densest"
    referee: RefereeRule = "logged"
    verdicts: Literal["use", "ignore"] = "use"
    policy_faults: Literal["unscored", "failure"] = "unscored"

    def choices(self) -> dict[str, Any]:
        """The rules by their names in files of scores, where ``verdicts`` is ``evidence``."""
        return {"evidence" if name == "verdicts" else name: rule for name, rule in asdict(self).items()}
