"""True state of the fake robot, and its exact kinematics."""

import math
from dataclasses import dataclass

from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.hal import Velocity, Zone

_ORIGIN = SE2()


@dataclass
class GroundTruth:
    """True state of the world.

    Attributes:
        wall_x_m: a wall along the line x = ``wall_x_m`` in ``map``, the robot on its lower side; None for open space.
        pose: base_link in ``map``.
        odom: base_link in ``odom``: the same motion without placements.
        pan_rad: pan angle of the camera, left positive.
        tilt_rad: tilt angle of the camera, up positive.
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
        """Move for a time, at most to the wall, and return the true mean velocity.

        A robot that meets the wall stops there: it neither slides nor continues to turn.
        """
        forward_m, turn_rad = velocity.linear_m_s * seconds, velocity.angular_rad_s * seconds
        ahead = self.pose.after_arc(forward_m, turn_rad)
        if ahead.x_m > self.max_x_m and ahead.x_m > self.pose.x_m:
            free = max(0.0, (self.max_x_m - self.pose.x_m) / (ahead.x_m - self.pose.x_m))
            velocity = Velocity(velocity.linear_m_s * free, velocity.angular_rad_s * free)
            forward_m, turn_rad = forward_m * free, turn_rad * free
            ahead = self.pose.after_arc(forward_m, turn_rad)
        self.pose = ahead
        self.odom = self.odom.after_arc(forward_m, turn_rad)
        return velocity

    def pressed_zone(self) -> Zone:
        """Return the bumper zone that touches the wall; the robot's back has no bumper."""
        if self.pose.x_m < self.max_x_m - _TOUCH_M:
            return Zone.NONE
        bearing_deg = math.degrees(wrap_angle(-self.pose.yaw_rad))
        if abs(bearing_deg) <= 30:
            return Zone.CENTER
        if abs(bearing_deg) <= 90:
            return Zone.LEFT if bearing_deg > 0 else Zone.RIGHT
        return Zone.NONE


_TOUCH_M = 1e-4
"""Travel of the bumper: more than the deviation of an arc from its chord in a clock step."""
