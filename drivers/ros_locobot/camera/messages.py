"""Conversion of sensor_msgs/Image and CameraInfo: pure functions of any objects with their fields.

cv_bridge cannot be used: Debian's is compiled against numpy 1.
"""

from __future__ import annotations

import sys
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from drivers.ros_locobot.connection.errors import DepthUnit
from robot_runtime.errors import DeviceFault
from robot_runtime.hal import Intrinsics

COLOR_CHANNELS = {
    "rgb8": (3, (0, 1, 2)),
    "bgr8": (3, (2, 1, 0)),
    "rgba8": (4, (0, 1, 2)),
    "bgra8": (4, (2, 1, 0)),
    "8UC3": (3, (2, 1, 0)),  # OpenCV's order; Azure Kinect and others call BGRA 8UC4
    "8UC4": (4, (2, 1, 0)),
    "mono8": (1, (0, 0, 0)),
}
"""Channels of each encoding, and the indices of red, green and blue."""

DEPTH_UNITS_M = {"16UC1": 0.001, "mono16": 0.001, "32FC1": 1.0}
"""REP 118: integers are millimeters, floats are meters."""

UNIT_CHECK_SHARE = 0.01
"""Share of the pixels that must have a depth for a check of their unit."""


def pixels(message: Any, topic: str, dtype: str, channels: int) -> NDArray[Any]:
    """Return a read-only view (H, W, channels) of the message; rows may be padded, and data big-endian.

    Raises:
        DeviceFault: Names the topic, if the message is too short for its size.
    """
    kind = np.dtype(dtype).newbyteorder(">" if message.is_bigendian else "<")
    row_bytes = message.width * channels * kind.itemsize
    if not (message.width > 0 and message.height > 0 and message.step >= row_bytes) or (
        len(message.data) < message.step * message.height
    ):
        raise DeviceFault(
            f"topic {topic}: {message.width}x{message.height} {message.encoding} with step {message.step} "
            f"does not fit {len(message.data)} bytes",
            "check the camera driver and the network",
        )
    data = np.frombuffer(message.data, np.uint8, message.step * message.height).reshape(message.height, message.step)
    image: NDArray[Any] = data[:, :row_bytes].view(kind).reshape(message.height, message.width, channels)
    return image


def color_image(message: Any, topic: str) -> NDArray[np.uint8]:
    """Return RGB, uint8 (H, W, 3), a new array. Raises ``DeviceFault`` for an encoding that is not a color."""
    if message.encoding not in COLOR_CHANNELS:
        raise DeviceFault(
            f"topic {topic}: encoding {message.encoding!r} is not one of {', '.join(COLOR_CHANNELS)}",
            "configure the camera for rgb8, or name the color topic in the robot's YAML",
        )
    channels, order = COLOR_CHANNELS[message.encoding]
    image = pixels(message, topic, "u1", channels)
    if channels == 1:
        return np.repeat(image, 3, axis=2)
    rgb: NDArray[np.uint8] = np.ascontiguousarray(image[:, :, order])
    return rgb


def depth_image(message: Any, topic: str, min_m: float, max_m: float) -> tuple[NDArray[np.float32], float]:
    """Return depth in meters, float32 (H, W), 0 where there is none within ``[min_m, max_m]``; and the unit in meters.

    By its encoding, 16-bit integers are millimeters (unit 0.001), floats are meters (unit 0, continuous).

    Raises:
        DeviceFault: The encoding is another one.
        DepthUnit: The values cannot be in that unit: meters as integers, or millimeters as floats.
    """
    unit_m = DEPTH_UNITS_M.get(message.encoding)
    if unit_m is None:
        raise DeviceFault(
            f"topic {topic}: encoding {message.encoding!r} is not one of {', '.join(DEPTH_UNITS_M)}",
            "name the depth topic in the robot's YAML",
        )
    is_float = unit_m == 1.0
    raw = pixels(message, topic, "f4" if is_float else "u2", 1)[:, :, 0]
    depth_m = raw.astype(np.float32)
    if is_float:
        depth_m[~np.isfinite(depth_m)] = 0
    else:
        depth_m *= np.float32(unit_m)
    measured = depth_m > 0
    inside = measured & (depth_m >= min_m) & (depth_m <= max_m)
    if measured.sum() > UNIT_CHECK_SHARE * depth_m.size and not inside.any():
        _check_unit(depth_m[measured], message.encoding, topic, min_m, max_m)
    depth_m[~inside] = 0
    return depth_m, 0.0 if is_float else unit_m


def _check_unit(measured_m: NDArray[np.float32], encoding: str, topic: str, min_m: float, max_m: float) -> None:
    """Raise ``DepthUnit`` if depths outside the sensor's range would lie within it in the other unit."""
    median_m = float(np.median(measured_m))
    # Meters as integers are read 1000 times too small, millimeters as floats 1000 times too large.
    for factor, unit in ((1000.0, "meters"), (0.001, "millimeters")):
        if min_m <= median_m * factor <= max_m and (factor > 1) == (encoding != "32FC1"):
            raise DepthUnit(
                f"topic {topic}: the median depth is {median_m:g} m by the encoding {encoding}, "
                f"but the sensor measures {min_m:g} to {max_m:g} m: the values seem to be {unit}",
                "make the camera driver publish millimeters as 16UC1 or meters as 32FC1",
            )


def intrinsics(info: Any, topic: str, rectified: bool, max_distortion_px: float) -> Intrinsics:
    """Return the pinhole of a sensor_msgs/CameraInfo: its P for rectified images, else its K.

    Raises:
        DeviceFault: The camera is not calibrated, or its lens shifts a pixel by more than ``max_distortion_px``.
    """
    matrix = np.array(info.P if rectified else info.K, float).reshape(3, -1)
    fx, fy, cx, cy = matrix[0, 0], matrix[1, 1], matrix[0, 2], matrix[1, 2]
    if not (fx > 0 and fy > 0 and 0 < cx < info.width and 0 < cy < info.height):
        raise DeviceFault(
            f"topic {topic}: the camera is not calibrated", "calibrate it, and make its driver publish the calibration"
        )
    if not rectified:
        shift_px = _distortion_px(info)
        if shift_px > max_distortion_px:
            raise DeviceFault(
                f"topic {topic}: the lens ({info.distortion_model}) shifts pixels by up to {shift_px:.1f} px, "
                f"{max_distortion_px:g} px is allowed: policies were trained on an ideal pinhole",
                "name rectified topics (image_proc's image_rect_color) in the robot's YAML and set camera.rectified",
            )
    return Intrinsics(int(info.width), int(info.height), float(fx), float(fy), float(cx), float(cy))


def _distortion_px(info: Any) -> float:
    """Return the largest shift of a pixel on the image's border by the lens, in pixels."""
    coefficients = np.array(info.D, float)
    if not coefficients.any():
        return 0.0
    if info.distortion_model not in ("plumb_bob", "rational_polynomial"):
        return sys.float_info.max
    matrix = np.array(info.K, float).reshape(3, 3)
    across, down = np.linspace(0, info.width - 1, 20), np.linspace(0, info.height - 1, 20)
    border = np.array(
        [(x, y) for x in across for y in (0, info.height - 1)] + [(x, y) for y in down for x in (0, info.width - 1)]
    )
    rays = np.linalg.inv(matrix) @ np.vstack([border.T, np.ones(len(border))])
    bent, _ = cv2.projectPoints(rays.T.copy(), np.zeros(3), np.zeros(3), matrix, coefficients)
    return float(np.abs(bent[:, 0, :] - border).max())
