"""Odometry of a differential drive from the travel of its wheels, with a gyro's heading where there is one."""

import math


class DeadReckoning:
    """Pose of base_link in ``odom``, which begins at zero.

    Args:
        separation_m: distance between the wheels.

    Attributes:
        x_m: position.
        y_m: position.
        yaw_rad: heading, within -pi to pi.
    """

    def __init__(self, separation_m: float) -> None:
        self._separation_m = separation_m
        self.x_m = self.y_m = self.yaw_rad = 0.0

    def update(self, left_m: float, right_m: float, turn_rad: float | None = None) -> None:
        """Add a small motion.

        Args:
            left_m: way of the left wheel.
            right_m: way of the right wheel.
            turn_rad: turn that a gyro measured; None takes the wheels'.
        """
        forward_m = (left_m + right_m) / 2
        if turn_rad is None:
            turn_rad = (right_m - left_m) / self._separation_m
        heading_rad = self.yaw_rad + turn_rad / 2  # the chord of an arc lies along its mean heading
        self.x_m += forward_m * math.cos(heading_rad)
        self.y_m += forward_m * math.sin(heading_rad)
        self.yaw_rad = math.remainder(self.yaw_rad + turn_rad, 2 * math.pi)
