"""First step at which two runs of an episode part, and the quantity that differs there."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from robot_runtime.common.geometry import wrap_angle
from robot_runtime.records import StepRecord
from robot_runtime.scoring.policy_agreement import logged_logits
from robot_runtime.scoring.reference_poses import known_pose

NEAR_TIE = 0.2
"""Difference of the two best logits below which differences of rendering may decide between two actions."""

WITHIN_M, WITHIN_DEG = 0.10, 10.0

Quantity = Literal["action", "contact", "outcome", "grab", "tilt", "position", "heading", "end"]
"""What may differ at a step, in the order of its tests: a later one may follow from an earlier one."""


@dataclass(frozen=True)
class Parting:
    """The first step at which a run differs from the reference.

    Attributes:
        index: index of the step.
        quantity: the first quantity that differs.
        detail: its values: ``turn_left instead of move_forward``.
        margin: difference of the two best logits of a decision that differs, in the run in which it is smaller; None
            for other quantities, and for policies that log no logits.
        drawn: whether the decision was drawn by chance, as policies with ``selection: sample`` do.
    """

    index: int
    quantity: Quantity
    detail: str
    margin: float | None = None
    drawn: bool = False

    @property
    def near_tie(self) -> bool:
        """Whether two actions were about equally good to the policy."""
        return self.margin is not None and self.margin < NEAR_TIE

    def __str__(self) -> str:
        text = f"step {self.index}: {self.detail}"
        if self.margin is not None:
            text += f"; {'near tie, ' if self.near_tie else ''}best logits {self.margin:.2f} apart"
        return f"{text}, drawn by chance" if self.drawn else text


def find_parting(
    reference: Sequence[StepRecord],
    run: Sequence[StepRecord],
    within_m: float = WITHIN_M,
    within_deg: float = WITHIN_DEG,
) -> Parting | None:
    """The first difference of two runs, in positions or in headings and tilts; None if there is none."""
    for ours, theirs in zip(run, reference, strict=False):
        found = _difference(ours, theirs, within_m, within_deg)
        if found is not None:
            return found
    if len(run) == len(reference):
        return None
    last = min(len(run), len(reference)) - 1
    return Parting(last + 1, "end", f"{'ended' if len(run) < len(reference) else 'not ended'} after {last} steps")


def _difference(ours: StepRecord, theirs: StepRecord, within_m: float, within_deg: float) -> Parting | None:
    index = theirs.index
    if ours.action is not theirs.action:
        names = [record.action.value if record.action is not None else "none" for record in (ours, theirs)]
        margins = [value for record in (ours, theirs) if (value := _margin(record)) is not None]
        drawn = theirs.policy_info.get("selection", {}).get("mode") == "sample"
        return Parting(index, "action", f"{names[0]} instead of {names[1]}", min(margins, default=None), drawn)
    if ours.result is not None and theirs.result is not None:
        if ours.result.collided != theirs.result.collided:
            return Parting(index, "contact", "a contact" if ours.result.collided else "no contact")
        if ours.result.outcome is not theirs.result.outcome:
            outcomes = (ours.result.outcome.value, theirs.result.outcome.value)
            return Parting(index, "outcome", "{} instead of {}".format(*outcomes))
    grabs = [record.state.grab and record.state.grab.outcome for record in (ours, theirs)]
    if grabs[0] is not grabs[1]:
        return Parting(index, "grab", "another outcome of grab_release")
    tilt_deg = math.degrees(abs(ours.head.tilt_rad - theirs.head.tilt_rad))
    if tilt_deg > within_deg:
        return Parting(index, "tilt", f"tilts {tilt_deg:.1f}° apart")
    poses = known_pose(ours), known_pose(theirs)
    if poses[0] is None or poses[1] is None:
        return None
    apart_m, turned_deg = poses[0].distance_to(poses[1]), math.degrees(wrap_angle(poses[0].yaw_rad - poses[1].yaw_rad))
    if apart_m > within_m:
        return Parting(index, "position", f"{apart_m:.2f} m apart")
    return Parting(index, "heading", f"{abs(turned_deg):.1f}° apart") if abs(turned_deg) > within_deg else None


def _margin(record: StepRecord) -> float | None:
    logits = logged_logits(record.policy_info)
    if logits is None or len(logits) < 2:
        return None
    second, best = np.partition(logits, -2)[-2:]
    return float(best - second)
