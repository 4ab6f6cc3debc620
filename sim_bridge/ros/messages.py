"""Messages of the simulated robot, built by rospy's generated classes."""

import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

import genpy
import numpy as np
from numpy.typing import NDArray
from roslib.message import get_message_class
from sensor_msgs.msg import Imu

from drivers.ros_locobot.protocol import MessageFactory, yaw_quaternion
from robot_runtime.common.clock import NS_PER_S

UNKNOWN = 1e10
"""kobuki_node's variance for a quantity that a wheel cannot measure."""

KOBUKI_VARIANCES = (0.1, 0.1, UNKNOWN, UNKNOWN, UNKNOWN, 0.05)
"""Constant variances of kobuki_node's odometry: x, y, z, roll, pitch, yaw."""

_IMU_COVARIANCE = [sys.float_info.max, 0, 0, 0, sys.float_info.max, 0, 0, 0, 0.05]

_message_class = cache(get_message_class)


class RospyMessages(MessageFactory):
    """Messages of the robot's topics."""

    def make(self, kind: str, **fields: Any) -> Any:
        return _message_class(kind)(**fields)

    def time(self, stamp_ns: int) -> Any:
        return genpy.Time(*divmod(stamp_ns, NS_PER_S))

    def numbers(self, values: Sequence[float] | NDArray[np.float64]) -> list[float]:
        return list(values)

    def buffer(self, data: bytes) -> bytes:
        return data

    def imu(self, stamp_ns: int, frame: str, yaw_rad: float | None, rate_rad_s: float) -> Any:
        """Build a sensor_msgs/Imu as kobuki_node does; ``yaw_rad`` is None for the raw gyro."""
        message = Imu(header=self.header(stamp_ns, frame))
        message.angular_velocity.z = rate_rad_s
        if yaw_rad is not None:
            message.orientation = self.quaternion(*yaw_quaternion(yaw_rad))
            message.orientation_covariance = message.angular_velocity_covariance = _IMU_COVARIANCE
        return message


messages = RospyMessages()
