"""Curve through timed poses: arcs from each to the next. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from robot_runtime.actions.timed import APART_M, TimedPoint
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.motion.leg import TURNING_M

ITERATIONS = 3
"""Projections onto an arc, each from the share that the one before found."""


@dataclass(frozen=True, slots=True)
class Arc:
    """A piece of a curve, in the robot's frame at an exposure.

    Attributes:
        begin_s: time of its beginning, after the exposure.
        end_s: time of its end.
        begin: pose at its beginning, along the arc: where a policy's heading differs, it is that of the way.
        forward_m: length, below 0 backward.
        turn_rad: turn.
    """

    begin_s: float
    end_s: float
    begin: SE2
    forward_m: float
    turn_rad: float

    def pose(self, share: float) -> SE2:
        """Pose where a share of it is done."""
        return self.begin.after_arc(share * self.forward_m, share * self.turn_rad)

    def project(self, robot: SE2) -> tuple[float, float]:
        """The nearest share, and the square of the distance from it; a radian counts as ``TURNING_M``."""
        square, share = self.forward_m**2 + (TURNING_M * self.turn_rad) ** 2, 1.0
        for _ in range(ITERATIONS if square else 0):
            off = robot.relative_to(self.pose(share))
            share += (off.x_m * self.forward_m + TURNING_M**2 * off.yaw_rad * self.turn_rad) / square
            share = min(max(share, 0.0), 1.0)
        off = robot.relative_to(self.pose(share))
        return share, off.x_m**2 + off.y_m**2 + (TURNING_M * off.yaw_rad) ** 2


def arcs(points: Sequence[TimedPoint]) -> list[Arc]:
    """The arcs from the robot's pose at the exposure through the poses of a trajectory, in the order of their times."""
    made, before_s, before = [], 0.0, SE2()
    for point in points:
        assert point.pose is not None
        moved, turn_rad = point.pose.relative_to(before), wrap_angle(point.pose.yaw_rad - before.yaw_rad)
        chord_m, half_rad = math.hypot(moved.x_m, moved.y_m), turn_rad / 2
        begin, forward_m = before, 0.0
        if chord_m > APART_M:
            way_rad = math.atan2(moved.y_m, moved.x_m)
            backward = abs(wrap_angle(way_rad - half_rad)) > math.pi / 2
            heading_rad = before.yaw_rad + way_rad + backward * math.pi - half_rad
            begin = SE2(before.x_m, before.y_m, wrap_angle(heading_rad))
            forward_m = math.copysign(chord_m * (half_rad / math.sin(half_rad) if half_rad else 1.0), 0.5 - backward)
        made.append(Arc(before_s, point.after_s, begin, forward_m, turn_rad))
        before_s, before = point.after_s, point.pose
    return made
