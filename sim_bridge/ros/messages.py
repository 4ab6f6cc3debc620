"""ROS messages made of plain numbers, where making one takes more than naming its fields."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import genpy
import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from geometry_msgs.msg import Point, Pose, PoseStamped, Quaternion, TransformStamped, Vector3
from nav_msgs.msg import Odometry
from numpy.typing import NDArray
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import CameraInfo, Image, Imu, JointState
from std_msgs.msg import Header
from tf2_msgs.msg import TFMessage

from robot_runtime.common.clock import NS_PER_S
from robot_runtime.common.geometry import SE2
from robot_runtime.hal import Intrinsics, Velocity

DBL_MAX = sys.float_info.max
UNKNOWN = 1e10
"""kobuki_node's variance for what a wheel cannot measure."""


def clock(now_ns: int) -> Any:
    """For ``/clock``."""
    return Clock(genpy.Time(*divmod(now_ns, NS_PER_S)))


def header(stamp_ns: int, frame: str = "") -> Any:
    """A header; the sequence number is the publisher's business."""
    return Header(stamp=genpy.Time(*divmod(stamp_ns, NS_PER_S)), frame_id=frame)


def quaternion(yaw_rad: float) -> Any:
    """A turn about z."""
    return Quaternion(0.0, 0.0, math.sin(yaw_rad / 2), math.cos(yaw_rad / 2))


def pose_stamped(stamp_ns: int, frame: str, pose: SE2) -> Any:
    """A pose on the floor."""
    return PoseStamped(header(stamp_ns, frame), planar_pose(pose))


def planar_pose(pose: SE2) -> Any:
    """A pose on the floor, without a header."""
    return Pose(Point(pose.x_m, pose.y_m, 0.0), quaternion(pose.yaw_rad))


def planar_transform(stamp_ns: int, parent: str, child: str, pose: SE2) -> Any:
    """``child`` in ``parent``, both on the floor, as one tf message."""
    return transforms([transform(stamp_ns, parent, child, (pose.x_m, pose.y_m, 0.0), quaternion(pose.yaw_rad))])


def transform(stamp_ns: int, parent: str, child: str, xyz_m: Sequence[float], rotation: Any) -> Any:
    """``child`` in ``parent``."""
    message = TransformStamped(header=header(stamp_ns, parent), child_frame_id=child)
    message.transform.translation = Vector3(*xyz_m)
    message.transform.rotation = rotation
    return message


def transforms(several: Sequence[Any]) -> Any:
    """What goes to ``/tf`` and ``/tf_static``."""
    return TFMessage(list(several))


def odometry(stamp_ns: int, frames: tuple[str, str], pose: SE2, velocity: Velocity) -> Any:
    """As kobuki_node publishes it: constant covariances that mean nothing.

    Args:
        frames: odometry's and the base's.
    """
    message = Odometry(header=header(stamp_ns, frames[0]), child_frame_id=frames[1])
    message.pose.pose = planar_pose(pose)
    message.twist.twist.linear.x = velocity.linear_m_s
    message.twist.twist.angular.z = velocity.angular_rad_s
    for index, variance in ((0, 0.1), (7, 0.1), (35, 0.05), (14, UNKNOWN), (21, UNKNOWN), (28, UNKNOWN)):
        message.pose.covariance[index] = variance
    return message


def joint_state(stamp_ns: int, names: Sequence[str], position: Sequence[float], velocity: Sequence[float]) -> Any:
    """Joints in rad and rad/s."""
    return JointState(header(stamp_ns), list(names), list(position), list(velocity), [0.0] * len(names))


def imu(stamp_ns: int, frame: str, yaw_rad: float | None, rate_rad_s: float) -> Any:
    """As kobuki_node publishes it: heading and turn rate only; without a heading, what the raw gyro says."""
    message = Imu(header=header(stamp_ns, frame))
    message.angular_velocity.z = rate_rad_s
    if yaw_rad is not None:
        message.orientation = quaternion(yaw_rad)
        message.orientation_covariance = [DBL_MAX, 0, 0, 0, DBL_MAX, 0, 0, 0, 0.05]
        message.angular_velocity_covariance = [DBL_MAX, 0, 0, 0, DBL_MAX, 0, 0, 0, 0.05]
    return message


def image(stamp_ns: int, frame: str, encoding: str, pixels: NDArray[Any]) -> Any:
    """An image of (H, W) or (H, W, C), rows without padding."""
    height, width = pixels.shape[:2]
    pixels = np.ascontiguousarray(pixels)
    big_endian = int(sys.byteorder == "big")
    return Image(header(stamp_ns, frame), height, width, encoding, big_endian, pixels.strides[0], pixels.tobytes())


def camera_info(stamp_ns: int, frame: str, intrinsics: Intrinsics) -> Any:
    """An ideal pinhole, in the words of a camera that has been rectified."""
    fx, fy, cx, cy = intrinsics.fx, intrinsics.fy, intrinsics.cx, intrinsics.cy
    return CameraInfo(
        header=header(stamp_ns, frame),
        height=intrinsics.height,
        width=intrinsics.width,
        distortion_model="plumb_bob",
        D=[0.0] * 5,
        K=[fx, 0, cx, 0, fy, cy, 0, 0, 1],
        R=[1, 0, 0, 0, 1, 0, 0, 0, 1],
        P=[fx, 0, cx, 0, 0, fy, cy, 0, 0, 0, 1, 0],
    )


def diagnostics(stamp_ns: int, statuses: Mapping[str, tuple[int, str, Mapping[str, object]]]) -> Any:
    """Name -> (level, summary, values)."""
    return DiagnosticArray(
        header(stamp_ns),
        [
            DiagnosticStatus(level, name, summary, "", [KeyValue(key, str(value)) for key, value in values.items()])
            for name, (level, summary, values) in statuses.items()
        ],
    )
