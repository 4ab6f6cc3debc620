"""Poses of ROS messages as the runtime has them: in the plane."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.geometry import SE2
from robot_runtime.errors import DeviceFault

_XYYAW = np.ix_((0, 1, 5), (0, 1, 5))


def planar_pose(pose: Any, topic: str) -> SE2:
    """A geometry_msgs/Pose seen from above.

    Raises:
        DeviceFault: naming the topic, if it is not a pose.
    """
    return planar(pose.position, pose.orientation, topic)


def planar(position: Any, q: Any, topic: str) -> SE2:
    """A position (x, y) and a quaternion seen from above. Raises ``DeviceFault`` naming the topic."""
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
    """(x, y, yaw) of a ROS covariance of (x, y, z, roll, pitch, yaw), float64 (3, 3)."""
    return np.array(covariance, float).reshape(6, 6)[_XYYAW]
