"""Wheel odometry of the simulated base."""

from __future__ import annotations

import math

import numpy as np

from robot_runtime.geometry import SE2, wrap_angle
from sim_bridge.noise import Drift


class Odometry:
    """Adds up small true motions, distorted; without drift it is the true motion itself and adds up nothing.

    Attributes:
        pose: base_link in ``odom``, which is where the robot was at the last :meth:`restart`.
    """

    def __init__(self, drift: Drift, pose: SE2) -> None:
        self._drift = drift
        self.restart(pose, np.random.default_rng(0))

    def restart(self, pose: SE2, random: np.random.Generator) -> None:
        """Begin anew at a pose in ``map``, with errors drawn from ``random``."""
        self._drift.restart(random)
        self._seen = pose
        self._to_odom = pose.inverse()
        self.pose = SE2()

    def update(self, pose: SE2) -> None:
        """The robot is now at ``pose`` in ``map``."""
        if self._drift.exact:
            self.pose = self._to_odom @ pose
            return
        moved = pose.relative_to(self._seen)
        self._seen = pose
        half_rad = moved.yaw_rad / 2
        # Along the mean heading of this short arc; wheels do not measure sideways.
        forward_m = moved.x_m * math.cos(half_rad) + moved.y_m * math.sin(half_rad)
        forward_m, turn_rad = self._drift.distort(forward_m, moved.yaw_rad)
        heading_rad = self.pose.yaw_rad + turn_rad / 2
        self.pose = SE2(
            self.pose.x_m + forward_m * math.cos(heading_rad),
            self.pose.y_m + forward_m * math.sin(heading_rad),
            wrap_angle(self.pose.yaw_rad + turn_rad),
        )
