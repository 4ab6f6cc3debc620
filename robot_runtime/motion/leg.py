"""One leg of a motion, an arc from rest to rest, and the speed with which it is covered. Pure."""

import math
from dataclasses import dataclass

from robot_runtime.common.geometry import SE2, arc_end

TURNING_M = 0.2
"""Radius of an arc below which the heading shows better than the position how much of it is done."""


@dataclass(frozen=True, slots=True)
class Leg:
    """One arc, or a straight line, or a turn on the spot: what to cover, and the limits on the way. Limits are > 0.

    Speeds along a leg are in shares of it per second.
    """

    forward_m: float
    turn_rad: float
    linear_m_s: float
    angular_rad_s: float
    linear_accel_m_s2: float
    angular_accel_rad_s2: float

    @property
    def speed_1_s(self) -> float:
        """Largest speed along it."""
        return self._least(self.linear_m_s, self.angular_rad_s)

    @property
    def accel_1_s2(self) -> float:
        """Largest acceleration along it."""
        return self._least(self.linear_accel_m_s2, self.angular_accel_rad_s2)

    @property
    def duration_s(self) -> float:
        """The least time from rest to rest that the limits allow: a trapezoid of speed, or a triangle."""
        speed_1_s, accel_1_s2 = self.speed_1_s, self.accel_1_s2
        if speed_1_s**2 >= accel_1_s2:
            return 2 / math.sqrt(accel_1_s2)
        return 1 / speed_1_s + speed_1_s / accel_1_s2

    def _least(self, linear: float, angular: float) -> float:
        forward, turn = abs(self.forward_m), abs(self.turn_rad)
        return min(limit / way for limit, way in ((linear, forward), (angular, turn)) if way)

    def wheels_m(self, separation_m: float) -> tuple[float, float]:
        """Distances that the left and the right wheel cover, meters."""
        half_m = self.turn_rad * separation_m / 2
        return self.forward_m - half_m, self.forward_m + half_m

    def pose(self, share: float) -> SE2:
        """Pose of the robot when that share is done, in the frame of the leg's start."""
        return SE2.arc(self.forward_m * share, self.turn_rad * share)

    def share(self, pose: SE2, near: float) -> float:
        """The share that is done at a pose, seen from where the leg begins.

        Args:
            pose: pose of the robot.
            near: a share that is not far from it.
        """
        forward_m, turn_rad = self.forward_m, self.turn_rad
        if abs(forward_m) < TURNING_M * abs(turn_rad):
            return near + math.remainder(pose.yaw_rad - turn_rad * near, 2 * math.pi) / turn_rad
        ahead_rad = turn_rad * near
        x_m, y_m = arc_end(forward_m * near, ahead_rad)
        along_m = (pose.x_m - x_m) * math.cos(ahead_rad) + (pose.y_m - y_m) * math.sin(ahead_rad)
        return near + along_m / forward_m


def braking_speed(left: float, speed: float, accel: float, period_s: float) -> float:
    """The speed at the end of the next period from which constant braking ends where nothing is left.

    Args:
        left: distance that is left; the result has the unit of ``left`` per second.
        speed: speed at the beginning of the period.
        accel: deceleration of braking.
        period_s: the speed changes linearly during it.

    Returns:
        At least 0, also where the distance is too short.
    """
    half = accel * period_s / 2
    square = half * half + 2 * accel * (left - speed * period_s / 2)
    return max(0.0, math.sqrt(square) - half) if square > 0 else 0.0


def approach_speed(left: float, accel: float, tail_s: float) -> float:
    """The speed at a distance from the end that brakes at most by ``accel`` and ends in an exponential.

    A delay that the model does not know of may be as long as ``tail_s``: the speed falls with the distance, so that
    what the delay adds to the distance vanishes with it.
    """
    if left <= 0:
        return 0.0
    tail = accel * tail_s**2
    return left / tail_s if left <= tail else math.sqrt(2 * accel * (left - tail / 2))
