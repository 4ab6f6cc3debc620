"""Where a drive rests, and which action of a task lies between two rests. Pure."""

from __future__ import annotations

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
"""As near as the head's servos come to their goal."""


SETTLED = 0.2
"""Share of the limits above within which the robot has settled, and is worth a picture."""


@dataclass(frozen=True, slots=True)
class StandStill:
    """Rows of odometry, both included, between which the robot stood still; ``middle`` is the one to measure at."""

    first: int
    last: int

    @property
    def middle(self) -> int:
        return (self.first + self.last) // 2


def find_rests(
    stamps_ns: NDArray[np.int64], poses: NDArray[np.float64], head: NDArray[np.float64], min_rest_s: float
) -> list[StandStill]:
    """The stretches of at least ``min_rest_s`` in which neither base nor head moved.

    Args:
        stamps_ns: int64 (N,). poses: float64 (N, 3), x and y in metres, unwrapped yaw. head: float64 (N, 2), pan, tilt.
    """
    state = np.column_stack([poses / (STILL_M, STILL_M, STILL_RAD), head / HEAD_STILL_RAD])
    least_ns = seconds_to_ns(min_rest_s)
    rests, first = [], 0
    while first < len(state):
        last = _still_until(state, first)
        if stamps_ns[last] - stamps_ns[first] >= least_ns:
            rests.append(_settled(state, StandStill(first, last)))
            first = last + 1
        else:
            first += 1
    return rests


def _still_until(state: NDArray[np.float64], first: int) -> int:
    """The last row up to which all stay within one unit of ``first``."""
    start, size = first, 64
    while start < len(state):
        moved = np.flatnonzero(np.abs(state[start : start + size] - state[first]).max(axis=1) > 1)
        if len(moved):
            return start + int(moved[0]) - 1
        start, size = start + size, 2 * size
    return len(state) - 1


def _settled(state: NDArray[np.float64], rest: StandStill) -> StandStill:
    """Without the first rows, in which the robot still came to rest."""
    middle = rest.middle
    apart = np.abs(state[rest.first : middle + 1] - state[middle]).max(axis=1)
    moving = np.flatnonzero(apart > SETTLED)
    return StandStill(rest.first + int(moving[-1]) + 1, rest.last) if len(moving) else rest


@dataclass(frozen=True, slots=True)
class Motion:
    """From one rest to another, in the frame of the first: metres, radians (left positive), tilt up positive."""

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
        """Without what no action asks for."""
        return Displacement(self.forward_m, self.turn_rad, self.tilt_rad)


def moved_between(before: Sequence[float], after: Sequence[float]) -> Motion:
    """Between two states (x_m, y_m, yaw_rad, pan_rad, tilt_rad)."""
    dx, dy, yaw = after[0] - before[0], after[1] - before[1], before[2]
    c, s = math.cos(yaw), math.sin(yaw)
    return Motion(
        c * dx + s * dy,
        -s * dx + c * dy,
        wrap_angle(after[2] - before[2]),
        after[3] - before[3],
        after[4] - before[4],
    )


@dataclass(frozen=True, slots=True)
class ActionSegmenter:
    """Which action a movement was.

    Attributes:
        tolerance: share of an action's magnitude by which it may be missed, and up to which anything else counts as
            not having moved.
    """

    actions: tuple[Action, ...]
    magnitudes: Magnitudes
    tolerance: float

    def is_nothing(self, moved: Motion) -> bool:
        """Whether the robot is where it was."""
        return self._near(moved, Displacement())

    def action(self, moved: Motion, bumped: bool) -> Action | None:
        """The action; None if it is none.

        Args:
            bumped: whether a bumper was pressed on the way: ``move_forward`` may then end early.
        """
        for action in self.actions:
            wanted = self.magnitudes.displacement(action)
            if wanted != Displacement() and self._near(moved, wanted):
                return action
        if bumped and Action.MOVE_FORWARD in self.actions:
            done_m = min(max(moved.forward_m, 0.0), self.magnitudes.forward_m)
            if self._near(moved, Displacement(forward_m=done_m)):
                return Action.MOVE_FORWARD
        return None

    def _near(self, moved: Motion, wanted: Displacement) -> bool:
        most_m = self.tolerance * self.magnitudes.forward_m
        most_turn_rad = math.radians(self.tolerance * self.magnitudes.turn_deg)
        most_tilt_rad = math.radians(self.tolerance * self.magnitudes.tilt_deg)
        return (
            math.hypot(moved.forward_m - wanted.forward_m, moved.left_m) <= most_m
            and abs(moved.turn_rad - wanted.turn_rad) <= most_turn_rad
            and abs(moved.tilt_rad - wanted.tilt_rad) <= most_tilt_rad
            and abs(moved.pan_rad) <= most_tilt_rad
        )


def waypoints(poses: NDArray[np.float64], every_m: float, every_rad: float) -> list[int]:
    """Rows at which the robot has come ``every_m`` far or turned by ``every_rad`` since the one before; first and last
    are among them.

    Args:
        poses: float64 (N, 3), x and y in metres, unwrapped yaw.
    """
    chosen = [0]
    for index in range(1, len(poses)):
        dx, dy, turn = poses[index] - poses[chosen[-1]]
        if dx * dx + dy * dy >= every_m * every_m or abs(turn) >= every_rad:
            chosen.append(index)
    if chosen[-1] != len(poses) - 1:
        chosen.append(len(poses) - 1)
    return chosen
