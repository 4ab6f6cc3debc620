"""Segmentation of a drive: stand-stills, and the action of a task between two of them. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robot_runtime.actions.discrete import Action, Displacement, Magnitudes
from robot_runtime.common.clock import seconds_to_ns
from robot_runtime.common.geometry import wrap_angle

STILL_M = 0.002
STILL_RAD = math.radians(0.3)
HEAD_STILL_RAD = math.radians(0.8)
"""Accuracy with which the head's servos reach their goal."""

SETTLED = 0.2
"""Share of the limits above within which the robot has settled, so that an image shows the place."""


@dataclass(frozen=True, slots=True)
class StandStill:
    """Rows of odometry, both included, between which the robot stood still."""

    first: int
    last: int

    @property
    def middle(self) -> int:
        """The row at which the place is measured."""
        return (self.first + self.last) // 2


def find_stand_stills(
    stamps_ns: NDArray[np.int64], poses: NDArray[np.float64], head: NDArray[np.float64], min_rest_s: float
) -> list[StandStill]:
    """Return the intervals of at least ``min_rest_s`` in which neither base nor head moved.

    Args:
        stamps_ns: int64 (N,).
        poses: float64 (N, 3), x and y in meters, unwrapped yaw.
        head: float64 (N, 2), pan and tilt.
        min_rest_s: Shortest duration.
    """
    state = np.column_stack([poses / (STILL_M, STILL_M, STILL_RAD), head / HEAD_STILL_RAD])
    least_ns = seconds_to_ns(min_rest_s)
    found, first = [], 0
    while first < len(state):
        last = _still_until(state, first)
        if stamps_ns[last] - stamps_ns[first] >= least_ns:
            found.append(_settled(state, StandStill(first, last)))
            first = last + 1
        else:
            first += 1
    return found


def _still_until(state: NDArray[np.float64], first: int) -> int:
    """Return the last row up to which all stay within one unit of ``first``."""
    start, size = first, 64
    while start < len(state):
        moved = np.flatnonzero(np.abs(state[start : start + size] - state[first]).max(axis=1) > 1)
        if len(moved):
            return start + int(moved[0]) - 1
        start, size = start + size, 2 * size
    return len(state) - 1


def _settled(state: NDArray[np.float64], still: StandStill) -> StandStill:
    """Remove the first rows, in which the robot still came to rest."""
    middle = still.middle
    apart = np.abs(state[still.first : middle + 1] - state[middle]).max(axis=1)
    moving = np.flatnonzero(apart > SETTLED)
    return StandStill(still.first + int(moving[-1]) + 1, still.last) if len(moving) else still


@dataclass(frozen=True, slots=True)
class Motion:
    """Motion between two stand-stills, in the frame of the first: left and up positive."""

    forward_m: float
    left_m: float
    turn_rad: float
    pan_rad: float
    tilt_rad: float

    def __str__(self) -> str:
        turn, pan, tilt = (math.degrees(angle) for angle in (self.turn_rad, self.pan_rad, self.tilt_rad))
        return (
            f"{self.forward_m:.3f} m forward, {self.left_m:.3f} m to the left, turned {turn:.1f}°, "
            f"the head panned {pan:.1f}° and tilted {tilt:.1f}°"
        )

    @property
    def displacement(self) -> Displacement:
        """The components that actions have."""
        return Displacement(self.forward_m, self.turn_rad, self.tilt_rad)


def motion_between(before: Sequence[float], after: Sequence[float]) -> Motion:
    """Return the motion between two states (x_m, y_m, yaw_rad, pan_rad, tilt_rad)."""
    dx, dy, yaw = after[0] - before[0], after[1] - before[1], before[2]
    c, s = math.cos(yaw), math.sin(yaw)
    return Motion(
        c * dx + s * dy, -s * dx + c * dy, wrap_angle(after[2] - before[2]), after[3] - before[3], after[4] - before[4]
    )


@dataclass(frozen=True, slots=True)
class ActionSegmenter:
    """Assigns motions to actions.

    Attributes:
        actions: Of the task.
        magnitudes: Of the actions.
        tolerance: Share of an action's magnitude by which it may be missed, and up to which all other components count
            as zero.
    """

    actions: tuple[Action, ...]
    magnitudes: Magnitudes
    tolerance: float

    def is_still(self, motion: Motion) -> bool:
        """Whether the robot is where it was."""
        return self._near(motion, Displacement())

    def action(self, motion: Motion, bumped: bool) -> Action | None:
        """Return the action of a motion; None if it is not one.

        Args:
            motion: Between two stand-stills.
            bumped: Whether the bumper was pressed meanwhile: ``move_forward`` may then end early.
        """
        for action in self.actions:
            target = self.magnitudes.displacement(action)
            if target != Displacement() and self._near(motion, target):
                return action
        if bumped and Action.MOVE_FORWARD in self.actions:
            done_m = min(max(motion.forward_m, 0.0), self.magnitudes.forward_m)
            if self._near(motion, Displacement(forward_m=done_m)):
                return Action.MOVE_FORWARD
        return None

    def _near(self, motion: Motion, target: Displacement) -> bool:
        most_m = self.tolerance * self.magnitudes.forward_m
        most_turn_rad = math.radians(self.tolerance * self.magnitudes.turn_deg)
        most_tilt_rad = math.radians(self.tolerance * self.magnitudes.tilt_deg)
        return (
            math.hypot(motion.forward_m - target.forward_m, motion.left_m) <= most_m
            and abs(motion.turn_rad - target.turn_rad) <= most_turn_rad
            and abs(motion.tilt_rad - target.tilt_rad) <= most_tilt_rad
            and abs(motion.pan_rad) <= most_tilt_rad
        )


def waypoints(poses: NDArray[np.float64], every_m: float, every_rad: float) -> list[int]:
    """Return the first row, those ``every_m`` or ``every_rad`` after the one before, and the last row.

    Args:
        poses: float64 (N, 3), x and y in meters, unwrapped yaw.
        every_m: Straight distance.
        every_rad: Turn.
    """
    chosen = [0]
    for index in range(1, len(poses)):
        dx, dy, turn = poses[index] - poses[chosen[-1]]
        if dx * dx + dy * dy >= every_m * every_m or abs(turn) >= every_rad:
            chosen.append(index)
    if chosen[-1] != len(poses) - 1:
        chosen.append(len(poses) - 1)
    return chosen
