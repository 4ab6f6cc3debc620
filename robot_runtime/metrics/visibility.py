"""Visibility of objects as RoboTHOR defines it, from a robot's depth image, pose and camera angles, and object boxes.

THOR calls an object visible if it is in the frame, not occluded, and within ``visibilityDistance`` of the agent's
vertical axis (a cylinder, not a ball about the camera). Here a pixel sees an object if the point that it measured lies
in the object's oriented box; so one rule scores simulated and real robots, from the log alone.
"""

import math

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.geometry import SE2, optical_axes
from robot_runtime.hal import HeadState, Intrinsics
from robot_runtime.scenes.scene import SceneObject

BOX_MARGIN_M = 0.02
"""Margin of boxes to the sides and above, for errors of depth, pose and object list. Below, boxes shrink by up to as
much, because otherwise points of a table would count as points of the mug on it."""


def points_in_map(
    depth_m: NDArray[np.float32], intrinsics: Intrinsics, mount: tuple[float, float, float], head: HeadState, pose: SE2
) -> NDArray[np.float64]:
    """The measured points of a depth image.

    Args:
        depth_m: (H, W) along the optical axis; holes are 0 or not finite.
        intrinsics: intrinsics of the depth image.
        mount: the camera's optical center in base_link.
        head: pan and tilt of the camera.
        pose: pose of base_link in map.

    Returns:
        float64 (N, 3) in map, N <= H * W.
    """
    rows, columns = np.nonzero(np.isfinite(depth_m) & (depth_m > 0))
    z = depth_m[rows, columns].astype(np.float64)
    optical = np.stack(
        [(columns - intrinsics.cx) / intrinsics.fx * z, (rows - intrinsics.cy) / intrinsics.fy * z, z], axis=-1
    )
    in_base = optical @ optical_axes(head.pan_rad, head.tilt_rad).T + mount
    return np.asarray(_turned(in_base, pose.yaw_rad) + np.array([pose.x_m, pose.y_m, 0.0]))


def visible_pixels(
    points: NDArray[np.float64], item: SceneObject, pose: SE2, distance_m: float, margin_m: float = BOX_MARGIN_M
) -> int:
    """Number of pixels that show an object near the robot's axis.

    Args:
        points: (N, 3) in map, see :func:`points_in_map`.
        item: the object.
        pose: pose of base_link in map.
        distance_m: points farther from the vertical axis through ``pose`` do not count.
        margin_m: margin of the box, see :data:`BOX_MARGIN_M`.
    """
    in_box = _turned(points - item.center, -math.radians(item.yaw_deg))
    half = np.array(item.size) / 2
    low, high = -half - margin_m, half + margin_m
    low[2] = -half[2] + min(margin_m, half[2] / 2)
    near = np.hypot(points[:, 0] - pose.x_m, points[:, 1] - pose.y_m) <= distance_m
    return int(np.count_nonzero(near & (in_box >= low).all(axis=1) & (in_box <= high).all(axis=1)))


def _turned(points: NDArray[np.float64], yaw_rad: float) -> NDArray[np.float64]:
    c, s = math.cos(yaw_rad), math.sin(yaw_rad)
    return np.asarray(points @ np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]]))
