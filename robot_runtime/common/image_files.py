"""Decoding of PNG, JPEG and PNM images of unknown origin, whose size is read from the header first."""

import re
import struct
from collections.abc import Iterator
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.bounded import TooLarge

MAX_IMAGE_PIXELS = 1 << 25
"""Pixels of the largest image, texture or map: 33 megapixels, a map of 145 m by 145 m at 2.5 cm."""

_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_TEXT_PNM = (b"P1", b"P2", b"P3")
_PNM = re.compile(rb"P[1-6]\s(?:\s|#[^\r\n]*[\r\n])*(\d{1,9})\s(?:\s|#[^\r\n]*[\r\n])*(\d{1,9})\s")


def decode_image(data: bytes, flags: int) -> NDArray[Any] | None:
    """``cv2.imdecode`` of a PNG, JPEG or PNM image; None for anything else, or a damaged one.

    Raises:
        TooLarge: the image has more than ``MAX_IMAGE_PIXELS``.
    """
    size = _image_size(data)
    if size is None:
        return None
    if size[0] * size[1] > MAX_IMAGE_PIXELS:
        raise TooLarge(f"{size[0]}x{size[1]} pixels, at most {MAX_IMAGE_PIXELS} are read")
    if data[:2] in _TEXT_PNM:
        data += b"\n"  # without a white space behind it, the decoder misses the last number
    try:
        return cv2.imdecode(np.frombuffer(data, np.uint8), flags)
    except cv2.error:
        return None


def _image_size(data: bytes) -> tuple[int, int] | None:
    """Width and height in the header that the decoder reads; None for other formats."""
    if data.startswith(b"\x89PNG\r\n\x1a\n") and data[12:16] == b"IHDR" and len(data) >= 24:
        width, height = struct.unpack_from(">II", data, 16)
        return width, height
    if data.startswith(b"\xff\xd8"):
        return next(_jpeg_sizes(data), None)
    match = _PNM.match(data)
    return (int(match[1]), int(match[2])) if match else None


def _jpeg_sizes(data: bytes) -> Iterator[tuple[int, int]]:
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker, length = data[at + 1], int.from_bytes(data[at + 2 : at + 4], "big")
        if marker in _JPEG_FRAMES:
            height, width = struct.unpack_from(">HH", data, at + 5)
            yield width, height
        at += 1 if marker == 0xFF else 2 + length
