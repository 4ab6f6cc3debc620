"""What a drive consists of: the actions of a task, or waypoints; and when to look at each of their ends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from drivers.ros_locobot.bag.errors import NotAnAction
from drivers.ros_locobot.bag.images import TimeWindow
from drivers.ros_locobot.bag.motion_segments import (
    ActionSegmenter,
    Motion,
    StandStill,
    find_rests,
    moved_between,
    waypoints,
)
from drivers.ros_locobot.bag.trajectory import Drive
from robot_runtime.actions.discrete import Action, Displacement
from robot_runtime.common.clock import ns_to_seconds, seconds_to_ns
from robot_runtime.hal import Zone
from robot_runtime.records import ActionResult, Outcome

LOOK_S = 1.0
"""How long after a waypoint a picture still shows it."""

LAST_LOOK_S = 0.5
"""How long before the end of the bag the last waypoint lies, so that a picture follows it."""


@dataclass(frozen=True, slots=True)
class DrivenStep:
    """One step to be: its fields are ``StepRecord``'s, its picture is taken in ``look``."""

    action: Action | None
    result: ActionResult | None
    start_ns: int
    end_ns: int
    look: TimeWindow


@dataclass(frozen=True)
class DriveSection:
    """Rows of the base, both included, in which the bag has everything."""

    drive: Drive
    first: int
    last: int

    @property
    def stamps_ns(self) -> NDArray[np.int64]:
        """int64 (N,)."""
        return self.drive.base.stamps_ns[self.first : self.last + 1]

    @property
    def states(self) -> NDArray[np.float64]:
        """float64 (N, 5): x_m, y_m, unwrapped yaw_rad by odometry, pan_rad, tilt_rad."""
        poses = self.drive.poses[self.first : self.last + 1]
        return np.column_stack([poses, self.drive.head_angles(self.stamps_ns)])

    def bumped(self, first: int, last: int) -> Zone:
        """Zones pressed in any of these rows of the window."""
        return self.drive.bumped(self.first + first, self.first + last)


def segment_actions(
    window: DriveSection, recogniser: ActionSegmenter, min_rest_s: float, stop: bool
) -> list[DrivenStep]:
    """The start, then an action for every movement between two rests.

    Args:
        stop: whether the driver said stop where the robot rests last.

    Raises:
        NotAnAction: naming when, and what the robot did.
    """
    stamps_ns, states = window.stamps_ns, window.states
    rests = find_rests(stamps_ns, states[:, :3], states[:, 3:], min_rest_s)
    if not rests:
        raise NotAnAction(
            f"from {_at(stamps_ns[0])} to {_at(stamps_ns[-1])} the robot never stood still for {min_rest_s:g} s",
            "drive one action at a time with a pause after each, or import without --task: a log without actions",
        )
    began_ns = int(stamps_ns[rests[0].first])
    acts = [DrivenStep(None, None, began_ns, began_ns, _look(stamps_ns, rests[0]))]
    before, left = states[rests[0].middle], rests[0].last
    for rest in rests[1:]:
        moved = moved_between(before.tolist(), states[rest.middle].tolist())
        if not recogniser.is_nothing(moved):
            acts.append(_act(window, recogniser, moved, left, rest))
            before = states[rest.middle]
        left = rest.last
    if stop:
        look = acts[-1].look
        result = ActionResult(Outcome.REACHED, Displacement(), Displacement(), Zone.NONE, 0.0)
        acts.append(DrivenStep(Action.STOP, result, look.last_ns, look.last_ns, look))
    return acts


def _act(window: DriveSection, recogniser: ActionSegmenter, moved: Motion, left: int, rest: StandStill) -> DrivenStep:
    stamps_ns = window.stamps_ns
    start_ns, end_ns = int(stamps_ns[left]), int(stamps_ns[rest.first])
    zones = window.bumped(left, rest.first)
    action = recogniser.action(moved, bool(zones))
    if action is None:
        names = ", ".join(action.value for action in recogniser.actions)
        raise NotAnAction(
            f"between {_at(start_ns)} and {_at(end_ns)} the robot moved by {moved}: none of {names} "
            f"to within {recogniser.tolerance:.0%}",
            "drive one action at a time with a pause after each (--min-rest says how long), allow more (--tolerance), "
            "or import without --task: a log without actions",
        )
    if action is not Action.MOVE_FORWARD:
        zones = Zone.NONE
    result = ActionResult(
        outcome=Outcome.CONTACT if zones else Outcome.REACHED,
        commanded=recogniser.magnitudes.displacement(action),
        measured=moved.displacement,
        contact=zones,
        duration_s=ns_to_seconds(end_ns - start_ns),
    )
    return DrivenStep(action, result, start_ns, end_ns, _look(stamps_ns, rest))


def waypoint_steps(window: DriveSection, every_m: float, every_rad: float) -> list[DrivenStep]:
    """The start, then a step without action wherever the robot has come that far or turned by that much."""
    stamps_ns = window.stamps_ns
    until = int(np.searchsorted(stamps_ns, stamps_ns[-1] - seconds_to_ns(LAST_LOOK_S)))
    chosen = waypoints(window.drive.poses[window.first : window.first + until + 1], every_m, every_rad)
    acts = []
    for before, row in zip([0, *chosen], chosen, strict=False):
        stamp_ns = int(stamps_ns[row])
        acts.append(
            DrivenStep(
                None, None, int(stamps_ns[before]), stamp_ns, TimeWindow(stamp_ns, stamp_ns + seconds_to_ns(LOOK_S))
            )
        )
    return acts


def _look(stamps_ns: NDArray[np.int64], rest: StandStill) -> TimeWindow:
    return TimeWindow(int(stamps_ns[rest.first]), int(stamps_ns[rest.last]))


def _at(stamp_ns: int) -> str:
    """An instant in a message: seconds of the bag's stamps."""
    return f"{ns_to_seconds(int(stamp_ns)):.3f} s"
