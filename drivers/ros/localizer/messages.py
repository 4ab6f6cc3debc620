"""Conversion of ROS poses to planar ones."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drivers.ros.options import LocalizerOptions
from drivers.ros.protocol import PLANAR_COVARIANCE
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import DeviceFault
from robot_runtime.hal.pose_checks import implausible


def planar_pose(pose: Any) -> tuple[SE2, str]:
    """Project a geometry_msgs/Pose onto the floor; see :func:`planar`."""
    return planar(pose.position, pose.orientation)


def odometry_pose(message: Any) -> tuple[SE2, str]:
    """Return the pose of a nav_msgs/Odometry, and why the message is unusable; empty if it is usable."""
    pose, why = planar_pose(message.pose.pose)
    twist = message.twist.twist
    if not (why or math.isfinite(twist.linear.x + twist.angular.z)):
        why = f"its velocity is ({twist.linear.x} m/s, {twist.angular.z} rad/s)"
    return pose, why


def planar(position: Any, q: Any) -> tuple[SE2, str]:
    """Project a position and a quaternion onto the floor.

    Returns:
        The pose, and why it is not that of a robot (``hal.pose_checks.implausible``); empty if it is.
    """
    return implausible((position.x, position.y, position.z), (q.x, q.y, q.z, q.w))


def check_pose_frame(frame_id: str, options: LocalizerOptions) -> None:
    """Raise ``DeviceFault`` unless poses are in the frame of the options."""
    found = frame_id.lstrip("/")
    if found != options.map_frame:
        raise DeviceFault(
            f"topic {options.topic}: poses are in frame {found!r}, not {options.map_frame!r}",
            "set map_frame in the robot's YAML if that frame is the map, else transform the poses",
        )


def planar_covariance(covariance: Any) -> NDArray[np.float64]:
    """Return the covariance of (x, y, yaw), float64 (3, 3), of a ROS covariance of 36 numbers."""
    return np.array(covariance, float).reshape(6, 6)[PLANAR_COVARIANCE]
