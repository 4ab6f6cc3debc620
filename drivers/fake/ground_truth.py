"""Where the fake robot really is, and the exact kinematics that move it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.hal import Velocity, Zone

_ORIGIN = SE2()


@dataclass
class GroundTruth:
    """The state of the world.

    Attributes:
        radius_m: of the robot.
        wall_x_m: a wall along the line x = ``wall_x_m`` in ``map``, the robot on its lower side; None for open space.
        pose: base_link in ``map``.
        odom: base_link in ``odom``: the same motion, but not moved by the placer.
        pan_rad, tilt_rad: of the camera, left and up positive.
    """

    radius_m: float
    wall_x_m: float | None
    pose: SE2 = _ORIGIN
    odom: SE2 = _ORIGIN
    pan_rad: float = 0.0
    tilt_rad: float = 0.0

    @property
    def max_x_m(self) -> float:
        """The largest x at which the robot stands clear of the wall."""
        return math.inf if self.wall_x_m is None else self.wall_x_m - self.radius_m

    def drive(self, velocity: Velocity, seconds: float) -> Velocity:
        """Move for a time, as far as the wall lets the robot, and return the mean velocity that it really had.

        A robot that meets the wall on the way holds where it touches: it neither slides nor turns on.
        """
        step = arc(velocity, seconds)
        ahead = self.pose @ step
        if ahead.x_m > self.max_x_m and ahead.x_m > self.pose.x_m:
            free = max(0.0, (self.max_x_m - self.pose.x_m) / (ahead.x_m - self.pose.x_m))
            velocity = Velocity(velocity.linear_m_s * free, velocity.angular_rad_s * free)
            step = arc(velocity, seconds)
        self.pose = self.pose @ step
        self.odom = self.odom @ step
        return velocity

    def pressed_zone(self) -> Zone:
        """The bumper zone that is against the wall, if it is one: the robot's back has no bumper."""
        if self.pose.x_m < self.max_x_m - _TOUCH_M:
            return Zone.NONE
        bearing_deg = math.degrees(wrap_angle(-self.pose.yaw_rad))
        if abs(bearing_deg) <= 30:
            return Zone.CENTER
        if abs(bearing_deg) <= 90:
            return Zone.LEFT if bearing_deg > 0 else Zone.RIGHT
        return Zone.NONE


_TOUCH_M = 1e-4
"""Travel of the bumper: more than one clock step's arc deviates from its chord."""


def arc(velocity: Velocity, seconds: float) -> SE2:
    """The displacement, in the starting frame, of driving at constant velocity: exact, a circular arc."""
    half_rad = velocity.angular_rad_s * seconds / 2
    chord_m = velocity.linear_m_s * seconds * (math.sin(half_rad) / half_rad if half_rad else 1.0)
    return SE2(chord_m * math.cos(half_rad), chord_m * math.sin(half_rad), 2 * half_rad)
