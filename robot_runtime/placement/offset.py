"""Offset of a robot from its goal, and the tolerance of a placement."""

from __future__ import annotations

import math
from dataclasses import dataclass

from robot_runtime.common import config
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.common.quantities import SmallMove, Timeout


@dataclass(frozen=True)
class Tolerance(config.Strict):
    """Largest accepted offset, and the time allowed for the placement."""

    within_m: SmallMove = 0.05
    within_deg: float = 5.0
    timeout_s: Timeout = 300.0

    def __post_init__(self) -> None:
        config.check_positive(self)

    @property
    def within_rad(self) -> float:
        """``within_deg`` in radians."""
        return math.radians(self.within_deg)


@dataclass(frozen=True, slots=True)
class Offset:
    """The robot's pose, and the goal in the robot's frame.

    Attributes:
        here: base_link in ``map``.
        ahead_m: distance of the goal ahead of the robot.
        left_m: distance of the goal to the robot's left.
        turn_rad: turn to the goal's heading, left positive.
    """

    here: SE2
    ahead_m: float
    left_m: float
    turn_rad: float

    @classmethod
    def of(cls, here: SE2, goal: SE2) -> Offset:
        """The offset of a pose from a goal."""
        relative = goal.relative_to(here)
        return cls(here, relative.x_m, relative.y_m, wrap_angle(goal.yaw_rad - here.yaw_rad))

    @property
    def distance_m(self) -> float:
        """Distance to the goal."""
        return math.hypot(self.ahead_m, self.left_m)

    def within(self, tolerance: Tolerance, share: float = 1.0) -> bool:
        """Whether the robot stands within a fraction of the tolerance."""
        return (
            self.distance_m <= share * tolerance.within_m and abs(self.turn_rad) <= share * tolerance.within_rad + 1e-9
        )

    def __str__(self) -> str:
        turn_deg = math.degrees(self.turn_rad)
        return (
            f"{100 * self.distance_m:.1f} cm and {abs(turn_deg):.1f}° off: "
            f"{100 * abs(self.ahead_m):.1f} cm {'ahead' if self.ahead_m >= 0 else 'back'}, "
            f"{100 * abs(self.left_m):.1f} cm {'left' if self.left_m >= 0 else 'right'}, "
            f"turn {abs(turn_deg):.1f}° {'left' if turn_deg >= 0 else 'right'}"
        )
