"""The steps of a drive: the actions of a task, or waypoints; each with the time window of its image."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from drivers.ros.bag.errors import NotAnAction
from drivers.ros.bag.images import TimeWindow
from drivers.ros.bag.motion_segments import (
    ActionSegmenter,
    Motion,
    StandStill,
    find_stand_stills,
    motion_between,
    waypoints,
)
from drivers.ros.bag.trajectory import RecordedDrive
from robot_runtime.actions.discrete import Action, Displacement
from robot_runtime.common.clock import ns_to_seconds, seconds_to_ns
from robot_runtime.hal import Zone
from robot_runtime.records import ActionResult, Outcome

WAYPOINT_WINDOW_S = 1.0
"""Time after a waypoint in which an image still shows it."""

LAST_WAYPOINT_S = 0.5
"""Time of the last waypoint before the end of the bag, so that an image follows it."""


@dataclass(frozen=True, slots=True)
class DrivenStep:
    """A step of the log to be made.

    Attributes:
        action: As in ``StepRecord``.
        result: As in ``StepRecord``.
        start_ns: As in ``StepRecord``.
        end_ns: As in ``StepRecord``.
        window: When its image is exposed.
    """

    action: Action | None
    result: ActionResult | None
    start_ns: int
    end_ns: int
    window: TimeWindow


@dataclass(frozen=True)
class DriveSection:
    """Rows of the base, both included, in which all streams of the bag overlap."""

    drive: RecordedDrive
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
        """Return the zones pressed in any of these rows of the section."""
        return self.drive.bumped(self.first + first, self.first + last)


def segment_actions(
    section: DriveSection, segmenter: ActionSegmenter, min_rest_s: float, stop: bool
) -> list[DrivenStep]:
    """Return the start, then an action for every motion between two stand-stills.

    Args:
        section: The drive.
        segmenter: Assigns motions to actions.
        min_rest_s: Shortest stand-still.
        stop: Whether the driver called stop at the last stand-still.

    Raises:
        NotAnAction: Names the time and the motion.
    """
    stamps_ns, states = section.stamps_ns, section.states
    stills = find_stand_stills(stamps_ns, states[:, :3], states[:, 3:], min_rest_s)
    if not stills:
        raise NotAnAction(
            f"from {_time(stamps_ns[0])} to {_time(stamps_ns[-1])} the robot never stood still for {min_rest_s:g} s",
            "drive one action at a time with a pause after each, or import without --task: a log without actions",
        )
    start_ns = int(stamps_ns[stills[0].first])
    steps = [DrivenStep(None, None, start_ns, start_ns, _window(stamps_ns, stills[0]))]
    before, left = states[stills[0].middle], stills[0].last
    for still in stills[1:]:
        motion = motion_between(before.tolist(), states[still.middle].tolist())
        if not segmenter.is_still(motion):
            steps.append(_step(section, segmenter, motion, left, still))
            before = states[still.middle]
        left = still.last
    if stop:
        window = steps[-1].window
        result = ActionResult(Outcome.REACHED, Displacement(), Displacement(), Zone.NONE, 0.0)
        steps.append(DrivenStep(Action.STOP, result, window.last_ns, window.last_ns, window))
    return steps


def _step(
    section: DriveSection, segmenter: ActionSegmenter, motion: Motion, left: int, still: StandStill
) -> DrivenStep:
    stamps_ns = section.stamps_ns
    start_ns, end_ns = int(stamps_ns[left]), int(stamps_ns[still.first])
    zones = section.bumped(left, still.first)
    action = segmenter.action(motion, bool(zones))
    if action is None:
        names = ", ".join(action.value for action in segmenter.actions)
        raise NotAnAction(
            f"between {_time(start_ns)} and {_time(end_ns)} the robot moved by {motion}: none of {names} "
            f"to within {segmenter.tolerance:.0%}",
            "drive one action at a time with a pause of --min-rest-s after each, allow more (--tolerance), "
            "or import without --task: a log without actions",
        )
    if action is not Action.MOVE_FORWARD:
        zones = Zone.NONE
    result = ActionResult(
        outcome=Outcome.CONTACT if zones else Outcome.REACHED,
        commanded=segmenter.magnitudes.displacement(action),
        measured=motion.displacement,
        contact=zones,
        duration_s=ns_to_seconds(end_ns - start_ns),
    )
    return DrivenStep(action, result, start_ns, end_ns, _window(stamps_ns, still))


def waypoint_steps(section: DriveSection, every_m: float, every_rad: float) -> list[DrivenStep]:
    """Return the start, then a step without action after every ``every_m`` or ``every_rad``."""
    stamps_ns = section.stamps_ns
    until = int(np.searchsorted(stamps_ns, stamps_ns[-1] - seconds_to_ns(LAST_WAYPOINT_S)))
    chosen = waypoints(section.drive.poses[section.first : section.first + until + 1], every_m, every_rad)
    steps = []
    for before, row in zip([0, *chosen], chosen, strict=False):
        stamp_ns = int(stamps_ns[row])
        window = TimeWindow(stamp_ns, stamp_ns + seconds_to_ns(WAYPOINT_WINDOW_S))
        steps.append(DrivenStep(None, None, int(stamps_ns[before]), stamp_ns, window))
    return steps


def _window(stamps_ns: NDArray[np.int64], still: StandStill) -> TimeWindow:
    return TimeWindow(int(stamps_ns[still.first]), int(stamps_ns[still.last]))


def _time(stamp_ns: int) -> str:
    return f"{ns_to_seconds(int(stamp_ns)):.3f} s"
