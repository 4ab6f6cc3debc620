"""Wheel odometry of the simulated base."""

import math

import numpy as np

from robot_runtime.common.geometry import SE2, wrap_angle
from sim_bridge.noise.drift import Drift


class Odometry:
    """The integral of small distorted motions; without any error, and until wheels slip, the true motion itself.

    Args:
        drift: errors of the motions.
        pose: pose of the robot in ``map``.
        exact: whether the wheels measure all motion; slipping wheels do not.

    Attributes:
        pose: base_link in ``odom``, whose origin is the pose at the last :meth:`restart`.
    """

    def __init__(self, drift: Drift, pose: SE2, exact: bool = True) -> None:
        self._drift = drift
        self._exact = exact and drift.exact
        self.restart(pose, np.random.default_rng(0))

    def restart(self, pose: SE2, random: np.random.Generator) -> None:
        """Restart at a pose in ``map``, with errors drawn from ``random``."""
        self._drift.restart(random)
        self._start = self._seen = pose
        self._integrates = not self._exact
        self.pose = SE2()

    def update(self, pose: SE2, slipped_m: float = 0.0, slipped_rad: float = 0.0) -> None:
        """Update with the robot's pose in ``map``, less the motion since the last update that was slip."""
        self._integrates = self._integrates or bool(slipped_m or slipped_rad)
        if not self._integrates:
            self._seen = pose
            self.pose = moved_between(self._start, pose)
            return
        moved = moved_between(self._seen, pose)
        self._seen = pose
        half_rad = moved.yaw_rad / 2
        # Along the mean heading of this short arc; wheels do not measure sideways.
        forward_m = moved.x_m * math.cos(half_rad) + moved.y_m * math.sin(half_rad)
        forward_m, turn_rad = self._drift.distort(forward_m - slipped_m, moved.yaw_rad - slipped_rad)
        heading_rad = self.pose.yaw_rad + turn_rad / 2
        self.pose = SE2(
            self.pose.x_m + forward_m * math.cos(heading_rad),
            self.pose.y_m + forward_m * math.sin(heading_rad),
            wrap_angle(self.pose.yaw_rad + turn_rad),
        )


class Encoders:
    """Distance turned by each wheel in meters, derived from odometry; no placement ever resets it."""

    def __init__(self, separation_m: float) -> None:
        self.left_m = self.right_m = 0.0
        self._separation_m = separation_m
        self._odom = SE2()

    def restart(self) -> None:
        """Odometry restarts at zero."""
        self._odom = SE2()

    def update(self, odom: SE2) -> None:
        """Add the motion since the last odometry."""
        moved = moved_between(self._odom, odom)
        self._odom = odom
        half_rad = moved.yaw_rad / 2
        forward_m = moved.x_m * math.cos(half_rad) + moved.y_m * math.sin(half_rad)
        self.left_m += forward_m - moved.yaw_rad * self._separation_m / 2
        self.right_m += forward_m + moved.yaw_rad * self._separation_m / 2


def moved_between(start: SE2, end: SE2) -> SE2:
    """``end`` seen from ``start``, exactly zero where they are equal (``SE2.relative_to`` rounds)."""
    dx_m, dy_m = end.x_m - start.x_m, end.y_m - start.y_m
    cos, sin = math.cos(start.yaw_rad), math.sin(start.yaw_rad)
    return SE2(cos * dx_m + sin * dy_m, cos * dy_m - sin * dx_m, wrap_angle(end.yaw_rad - start.yaw_rad))
