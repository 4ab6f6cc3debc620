"""Lossless serialization of camera frames.

Color is PNG without compression of its own, or pixels as they are in the log of a stream. Depth in integer millimeters
becomes 16-bit integers; any other depth stays 32-bit float. What is compressed is compressed with its chunk.
"""

import struct
import zlib
from typing import Any

import cv2
import numpy as np
from foxglove_schemas_protobuf.CompressedImage_pb2 import CompressedImage
from foxglove_schemas_protobuf.RawImage_pb2 import RawImage
from google.protobuf.timestamp_pb2 import Timestamp
from numpy.typing import NDArray

from robot_runtime.common import image_files
from robot_runtime.common.clock import NS_PER_S
from robot_runtime.hal import RgbdFrame
from robot_runtime.recording.mcap_writer import Buffer
from robot_runtime.recording.ros2_messages import Image, is_cdr


def timestamp(stamp_ns: int) -> Timestamp:
    """A stamp of the robot's clock as a protobuf timestamp (not a time of day)."""
    return Timestamp(seconds=stamp_ns // NS_PER_S, nanos=stamp_ns % NS_PER_S)


_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_UP = 2
_RGB_OF_8_BITS = bytes([8, 2, 0, 0, 0])  # and DEFLATE, the five filters, not interlaced
_ZLIB_HEADER = b"\x78\x01"
_STORED_BYTES = (1 << 16) - 1


def encode_png(rgb: NDArray[np.uint8]) -> list[bytes | memoryview]:
    """Encode uint8 (H, W, 3) fast; returns parts of the PNG, which are copied once when they are joined.

    A PNG's own compression (DEFLATE) takes several times as long as the chunk's (Zstandard). So pixels are predicted
    from the row above, as PNG's filter "Up" does, and the differences are in DEFLATE's stored blocks; Zstandard makes
    them smaller. Any PNG decoder reads the result.
    """
    height, width, _ = rgb.shape
    rows = rgb.reshape(height, -1)
    filtered = np.empty((height, 1 + rows.shape[1]), np.uint8)
    filtered[:, 0] = _UP
    filtered[0, 1:] = rows[0]
    np.subtract(rows[1:], rows[:-1], out=filtered[1:, 1:])
    header = struct.pack(">II", width, height) + _RGB_OF_8_BITS
    return [_SIGNATURE, *_chunk(b"IHDR", header), *_chunk(b"IDAT", *_stored(filtered.reshape(-1))), *_chunk(b"IEND")]


def _stored(data: NDArray[np.uint8]) -> list[bytes | memoryview]:
    """A zlib stream of stored blocks."""
    view = data.data
    parts: list[bytes | memoryview] = [_ZLIB_HEADER]
    for start in range(0, len(view), _STORED_BYTES):
        block = view[start : start + _STORED_BYTES]
        is_last = start + _STORED_BYTES >= len(view)
        parts += (struct.pack("<BHH", is_last, len(block), len(block) ^ 0xFFFF), block)
    return [*parts, struct.pack(">I", zlib.adler32(view))]


def _chunk(kind: bytes, *parts: bytes | memoryview) -> list[bytes | memoryview]:
    checksum = zlib.crc32(kind)
    for part in parts:
        checksum = zlib.crc32(part, checksum)
    return [struct.pack(">I", sum(map(len, parts))), kind, *parts, struct.pack(">I", checksum)]


CAMERA_FRAME = "camera"
"""Frame of the images: the camera's optical frame, x right, y down, z forward."""

_MILLIMETER = np.float32(0.001)
_PNG_FIELD = bytes([CompressedImage.DESCRIPTOR.fields_by_name["data"].number << 3 | 2])
_RGB = "rgb8"


def encode_rgb(frame: RgbdFrame) -> list[Buffer]:
    """Encode the color image as a serialized message with a PNG, in parts."""
    png = encode_png(frame.rgb)
    message = CompressedImage(timestamp=timestamp(frame.stamp_ns), frame_id=CAMERA_FRAME, format="png")
    # A message is its fields in any order: so the image is not copied into it and out again.
    return [message.SerializeToString(), _PNG_FIELD, _varint(sum(map(len, png))), *png]


def encode_streamed_rgb(frame: RgbdFrame) -> tuple[Buffer, Buffer]:
    """Encode the color image as a serialized message with its pixels, in parts."""
    height, width, _ = frame.rgb.shape
    pixels = np.ascontiguousarray(frame.rgb).data.cast("B")
    return Image(frame.stamp_ns, CAMERA_FRAME, height, width, _RGB, 3 * width, pixels).parts()


def decode_rgb(data: bytes) -> NDArray[np.uint8]:
    """uint8 (H, W, 3) RGB of a serialized message. Raises ``ValueError`` if it is not such an image, or too large."""
    if is_cdr(data):
        message = Image.from_bytes(data)
        if message.encoding != _RGB:
            raise ValueError(f"the color image has encoding {message.encoding!r}")
        return np.frombuffer(message.data, np.uint8).reshape(message.height, message.width, 3)
    bgr = image_files.decode_image(CompressedImage.FromString(data).data, cv2.IMREAD_COLOR)
    if bgr is None:
        raise ValueError("the color image is not a PNG")
    return np.asarray(cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB), np.uint8)


def encode_depth(frame: RgbdFrame, unit_m: float) -> Image:
    """Encode depth: millimeters (16UC1) if ``unit_m`` is 0.001 and every value is one, else meters (32FC1)."""
    depth_m = np.ascontiguousarray(frame.depth_m, np.float32)
    millimeters = _whole_millimeters(depth_m) if unit_m == float("0.001") else None
    if millimeters is not None:
        return _depth(frame.stamp_ns, "16UC1", millimeters)
    return _depth(frame.stamp_ns, "32FC1", depth_m)


def _whole_millimeters(depth_m: NDArray[np.float32]) -> NDArray[np.uint16] | None:
    """Depth as 16-bit integers; None if a value is not an integer number of millimeters."""
    with np.errstate(invalid="ignore"):
        scaled = depth_m * np.float32(1000)
        millimeters = np.rint(scaled, out=scaled).astype(np.uint16)
    exact = np.multiply(millimeters, _MILLIMETER, out=scaled)
    return millimeters if np.array_equal(exact, depth_m) else None


def decode_depth(data: bytes) -> NDArray[np.float32]:
    """float32 (H, W) meters of a serialized message. Raises ``ValueError`` for an unknown encoding."""
    # The first logs have Foxglove's RawImage.
    message = Image.from_bytes(data) if is_cdr(data) else RawImage.FromString(data)
    if message.encoding == "16UC1":
        return np.asarray(_pixels(message, np.uint16) * _MILLIMETER, np.float32)
    if message.encoding == "32FC1":
        return np.array(_pixels(message, np.float32), np.float32)
    raise ValueError(f"the depth image has encoding {message.encoding!r}")


def encode_semantic(stamp_ns: int, semantic: NDArray[np.int32]) -> RawImage:
    """Encode object indices as 16UC1: 0 for none, else index + 1.

    Raises:
        ValueError: an index does not fit 16 bits.
    """
    if semantic.size and not -1 <= semantic.min() <= semantic.max() < np.iinfo(np.uint16).max:
        raise ValueError(f"object indices {semantic.min()}..{semantic.max()} do not fit 16 bits")
    return _raw(stamp_ns, "16UC1", (semantic + 1).astype(np.uint16))


def decode_semantic(data: bytes) -> NDArray[np.int32]:
    """int32 (H, W) object indices of a serialized message, -1 for none."""
    return _pixels(RawImage.FromString(data), np.uint16).astype(np.int32) - 1


def _depth(stamp_ns: int, encoding: str, pixels: NDArray[Any]) -> Image:
    height, width = pixels.shape
    data = np.ascontiguousarray(pixels).data.cast("B")  # not copied: the chunk is written before the step returns
    return Image(stamp_ns, CAMERA_FRAME, height, width, encoding, width * pixels.itemsize, data)


def _raw(stamp_ns: int, encoding: str, pixels: NDArray[Any]) -> RawImage:
    height, width = pixels.shape
    return RawImage(
        timestamp=timestamp(stamp_ns),
        frame_id=CAMERA_FRAME,
        width=width,
        height=height,
        encoding=encoding,
        step=width * pixels.itemsize,
        data=pixels.tobytes(),
    )


def _varint(number: int) -> bytes:
    """A number as protobuf writes lengths: seven bits per byte, the lowest first."""
    groups = [number >> shift & 0x7F for shift in range(0, max(1, number.bit_length()), 7)]
    return bytes([*(group | 0x80 for group in groups[:-1]), groups[-1]])


def _pixels(message: Image | RawImage, dtype: type[np.generic]) -> NDArray[Any]:
    return np.frombuffer(message.data, dtype).reshape(message.height, message.width)
