"""Conversion of ROS poses to planar ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drivers.ros_locobot.protocol import PLANAR_COVARIANCE
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import DeviceFault


def planar_pose(pose: Any, topic: str) -> SE2:
    """Project a geometry_msgs/Pose onto the floor. Raises ``DeviceFault``, naming the topic, if it is not a pose."""
    return planar(pose.position, pose.orientation, topic)


def planar(position: Any, q: Any, topic: str) -> SE2:
    """Project a position and a quaternion onto the floor. Raises ``DeviceFault``, naming the topic."""
    norm_squared = q.x * q.x + q.y * q.y + q.z * q.z + q.w * q.w
    if not (math.isfinite(position.x + position.y) and 0.5 < norm_squared < 2.0):
        raise DeviceFault(
            f"topic {topic}: not a pose: position ({position.x}, {position.y}), "
            f"quaternion ({q.x}, {q.y}, {q.z}, {q.w})",
            "check the node that publishes it",
        )
    yaw_rad = math.atan2(2 * (q.w * q.z + q.x * q.y), q.w * q.w + q.x * q.x - q.y * q.y - q.z * q.z)
    return SE2(position.x, position.y, yaw_rad)


def planar_covariance(covariance: Any) -> NDArray[np.float64]:
    """Return the covariance of (x, y, yaw), float64 (3, 3), of a ROS covariance of 36 numbers."""
    return np.array(covariance, float).reshape(6, 6)[PLANAR_COVARIANCE]
