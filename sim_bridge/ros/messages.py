"""Messages of the simulated robot, built by rospy's generated classes."""

import sys
from typing import Any

from sensor_msgs.msg import Imu

from drivers.ros.protocol import yaw_quaternion
from drivers.ros_locobot.messages import RospyMessages

_IMU_COVARIANCE = [sys.float_info.max, 0, 0, 0, sys.float_info.max, 0, 0, 0, 0.05]


class SimulatedMessages(RospyMessages):
    """Messages of the simulated robot's topics."""

    def imu(self, stamp_ns: int, frame: str, yaw_rad: float | None, rate_rad_s: float) -> Any:
        """Build a sensor_msgs/Imu as kobuki_node does; ``yaw_rad`` is None for the raw gyro."""
        message = Imu(header=self.header(stamp_ns, frame))
        message.angular_velocity.z = rate_rad_s
        if yaw_rad is not None:
            message.orientation = self.quaternion(*yaw_quaternion(yaw_rad))
            message.orientation_covariance = message.angular_velocity_covariance = _IMU_COVARIANCE
        return message


messages = SimulatedMessages()
