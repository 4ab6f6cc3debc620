"""Conversion of sensor_msgs/Image, CompressedImage and CameraInfo: pure functions of any objects with their fields.

cv_bridge cannot be used: Debian's is compiled against numpy 1.
"""

import logging
import struct
from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from drivers.ros.connection.errors import DepthUnit
from robot_runtime.common import image_files
from robot_runtime.common.bounded import TooLarge
from robot_runtime.errors import DeviceFault
from robot_runtime.hal import Intrinsics

RAW, PACKED = "sensor_msgs/Image", "sensor_msgs/CompressedImage"

COMPRESSED, COMPRESSED_DEPTH = "/compressed", "/compressedDepth"
"""Suffixes of image_transport's topics."""

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

BROWN_MODELS = ("plumb_bob", "rational_polynomial")
FISHEYE_MODELS = ("equidistant", "fisheye")
"""Lens models of sensor_msgs/distortion_models.h, and OpenCV's name of the second kind."""

RECTIFY = "name rectified topics (image_proc's image_rect_color) in the robot's YAML and set camera.rectified"

UNIT_CHECK_SHARE = 0.01
"""Share of the pixels that must have a depth for a check of their unit."""

_DEPTH_HEADER = struct.Struct("<iff")

log = logging.getLogger(__name__)


def image_kind(topic: str) -> str:
    """Return the type of an image topic, by its name."""
    return PACKED if topic.endswith((COMPRESSED, COMPRESSED_DEPTH)) else RAW


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
    if hasattr(message, "format"):
        bgr = _decoded(bytes(message.data), cv2.IMREAD_COLOR)
        if bgr is None:
            raise DeviceFault(
                f"topic {topic}: an image ({message.format!r}) cannot be decoded",
                "publish or record the topic without compression, or as JPEG or PNG",
            )
        return np.asarray(cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB), np.uint8)
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


class DepthImages:
    """Converts the depth images of a topic, and notices those without a depth in the sensor's range.

    Args:
        topic: For messages.
        min_m: Shortest range of the sensor.
        max_m: Longest range.

    Attributes:
        count: Number of images with depths.
        out_of_range: Number of those without one in the range.
        median_m: Median depth of the newest of these.
    """

    def __init__(self, topic: str, min_m: float, max_m: float) -> None:
        self.topic, self._min_m, self._max_m = topic, min_m, max_m
        self.count = self.out_of_range = 0
        self.median_m = 0.0

    def convert(self, message: Any) -> tuple[NDArray[np.float32], float]:
        """Return depth in meters, float32 (H, W), 0 where there is none in the range; and the unit in meters.

        By its encoding, 16-bit integers are millimeters (unit 0.001), floats are meters (unit 0, continuous). A
        CompressedImage is unpacked before.

        Raises:
            DeviceFault: The encoding is another one.
            DepthUnit: No depth is in the range, and it is not that the robot stands before a wall: all are beyond it,
                or would be in it in another usual unit.
        """
        if hasattr(message, "format"):
            message = _unpacked_depth(message, self.topic)
        unit_m = DEPTH_UNITS_M.get(message.encoding)
        if unit_m is None:
            raise DeviceFault(
                f"topic {self.topic}: encoding {message.encoding!r} is not one of {', '.join(DEPTH_UNITS_M)}",
                "name the depth topic in the robot's YAML",
            )
        is_float = unit_m == 1.0
        raw = pixels(message, self.topic, "f4" if is_float else "u2", 1)[:, :, 0]
        depth_m = raw.astype(np.float32)
        if is_float:
            depth_m[~np.isfinite(depth_m)] = 0
        else:
            depth_m *= np.float32(unit_m)
        measured = depth_m > 0
        inside = measured & (depth_m >= self._min_m) & (depth_m <= self._max_m)
        if measured.sum() > UNIT_CHECK_SHARE * depth_m.size:
            self.count += 1
            if not inside.any():
                self._check_unit(float(np.median(depth_m[measured])), message.encoding)
        depth_m[~inside] = 0
        return depth_m, 0.0 if is_float else unit_m

    def finish(self) -> str:
        """Return how many images had no depth in the range, for people; empty if all had.

        Raises:
            DepthUnit: None had.
        """
        if self.out_of_range == self.count > 0:
            raise self._wrong_unit("")
        if not self.out_of_range:
            return ""
        return f"{self.out_of_range} of {self.count} depth images: {self._what()}"

    def _check_unit(self, median_m: float, encoding: str) -> None:
        self.out_of_range += 1
        self.median_m = median_m
        # Meters as integers are read 1000 times too small, millimeters as floats 1000 times too large.
        for factor, unit in ((1000.0, "meters"), (0.001, "millimeters")):
            if self._min_m <= median_m * factor <= self._max_m and (factor > 1) == (encoding != "32FC1"):
                raise self._wrong_unit(f": the values seem to be {unit}")
        if median_m > self._max_m:
            raise self._wrong_unit(f" by the encoding {encoding}")
        if self.out_of_range == 1:
            log.warning("topic %s: %s: an object close to the camera, or another unit", self.topic, self._what())

    def _what(self) -> str:
        reach = f"{self._min_m:g} to {self._max_m:g} m"
        return f"no depth is in the sensor's range of {reach}, the median is {self.median_m:g} m"

    def _wrong_unit(self, why: str) -> DepthUnit:
        return DepthUnit(
            f"topic {self.topic}: {self._what()}{why}",
            "make the camera driver publish millimeters as 16UC1 or meters as 32FC1; if the unit is right, correct "
            "camera.depth_min_m and depth_max_m in the robot's YAML",
        )


def _unpacked_depth(packed: Any, topic: str) -> Any:
    """Return a depth image of image_transport without compression, with the fields of a sensor_msgs/Image.

    It is a PNG of 16 bits. In ``compressedDepth`` a header of 12 bytes precedes it (compressed_depth_image_transport):
    format, then A and B, with which depths in meters are stored as ``A / depth + B``.

    Raises:
        DeviceFault: Neither; names the format.
    """
    data, encoding = bytes(packed.data), packed.format.split(";")[0].strip()
    has_header = "compressedDepth" in packed.format or topic.endswith(COMPRESSED_DEPTH)
    pixels = _decoded(data[_DEPTH_HEADER.size if has_header else 0 :], cv2.IMREAD_UNCHANGED)
    is_quantized = encoding == "32FC1" and has_header and len(data) > _DEPTH_HEADER.size
    if pixels is None or pixels.dtype != np.uint16 or pixels.ndim != 2 or (encoding == "32FC1") != is_quantized:
        raise DeviceFault(
            f"topic {topic}: a depth image ({packed.format!r}) is not a PNG of 16 bits",
            "publish or record the depth topic without compression, or with image_transport's PNG: other formats lose "
            "depth",
        )
    dtype, depth = "<u2", pixels
    if is_quantized:
        _, a, b = _DEPTH_HEADER.unpack_from(data)
        dtype, depth = "<f4", np.zeros(pixels.shape, "<f4")
        np.divide(a, pixels - np.float32(b), out=depth, where=pixels > 0)
    (height, width), data = pixels.shape, depth.astype(dtype).tobytes()
    encoding, step = ("32FC1", 4 * width) if is_quantized else ("16UC1", 2 * width)
    return SimpleNamespace(height=height, width=width, encoding=encoding, step=step, data=data, is_bigendian=0)


def _decoded(data: bytes, flags: int) -> NDArray[Any] | None:
    """Return the pixels of a PNG or JPEG; None for anything else, or for more pixels than any camera has."""
    try:
        return image_files.decode_image(data, flags)
    except TooLarge:
        return None


def intrinsics(info: Any, topic: str, rectified: bool, max_distortion_px: float) -> Intrinsics:
    """Return the pinhole of a sensor_msgs/CameraInfo: its P for rectified images, else its K.

    Raises:
        DeviceFault: The camera is not calibrated, its lens model is unknown, or the lens shifts a pixel by more than
            ``max_distortion_px``.
    """
    matrix = np.array(_field(info, "P" if rectified else "K"), float).reshape(3, -1)
    fx, fy, cx, cy = matrix[0, 0], matrix[1, 1], matrix[0, 2], matrix[1, 2]
    if not (fx > 0 and fy > 0 and 0 < cx < info.width and 0 < cy < info.height):
        raise DeviceFault(
            f"topic {topic}: the camera is not calibrated", "calibrate it, and make its driver publish the calibration"
        )
    if not rectified:
        shift_px = _distortion_px(info, topic)
        if shift_px > max_distortion_px:
            raise DeviceFault(
                f"topic {topic}: the lens ({info.distortion_model}) shifts pixels by up to {shift_px:.1f} px, "
                f"{max_distortion_px:g} px is allowed: policies were trained on an ideal pinhole",
                RECTIFY,
            )
    return Intrinsics(int(info.width), int(info.height), float(fx), float(fy), float(cx), float(cy))


def _field(info: Any, name: str) -> Any:
    """Return a field that ROS 2 writes in lower case."""
    return getattr(info, name) if hasattr(info, name) else getattr(info, name.lower())


def _distortion_px(info: Any, topic: str) -> float:
    """Return the largest shift of a pixel on the image's border by the lens, in pixels. Raises ``DeviceFault``."""
    coefficients, model = np.array(_field(info, "D"), float), info.distortion_model
    is_fisheye = model in FISHEYE_MODELS
    if model not in (*BROWN_MODELS, *FISHEYE_MODELS) and (model or coefficients.any()):
        raise DeviceFault(
            f"topic {topic}: the lens model {model!r} is not one of {', '.join(BROWN_MODELS + FISHEYE_MODELS)}", RECTIFY
        )
    if not coefficients.any() and not is_fisheye:
        return 0.0
    matrix = np.array(_field(info, "K"), float).reshape(3, 3)
    across, down = np.linspace(0, info.width - 1, 20), np.linspace(0, info.height - 1, 20)
    border = np.array(
        [(x, y) for x in across for y in (0, info.height - 1)] + [(x, y) for y in down for x in (0, info.width - 1)]
    )
    rays = np.linalg.inv(matrix) @ np.vstack([border.T, np.ones(len(border))])
    points, no_turn = rays.T.copy()[:, None, :], np.zeros(3)
    if is_fisheye:
        four = np.zeros(4)
        four[: len(coefficients)] = coefficients[:4]
        bent, _ = cv2.fisheye.projectPoints(points, no_turn, no_turn, matrix, four)
    else:
        bent, _ = cv2.projectPoints(points, no_turn, no_turn, matrix, coefficients)
    return float(np.abs(bent.reshape(-1, 2) - border).max())
