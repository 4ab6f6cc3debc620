"""Decoding of compressed data of unknown origin, with a limit on what it unpacks to.

A megabyte of zeros compresses to a kilobyte: the size of a file says nothing about the memory that its content takes.
Every function here reads the size that the data state, or stops at the limit.
"""

from __future__ import annotations

import gzip
import io
import re
import struct
import zipfile
from collections.abc import Iterator
from typing import Any, BinaryIO

import cv2
import numpy as np
from numpy.typing import NDArray

MAX_RATIO = 100
"""Largest plausible compression: texts and depth images reach 30, hostile files 1000."""

FREE_BYTES = 1 << 26
"""What any data may unpack to, whatever its ratio."""

MAX_IMAGE_PIXELS = 1 << 25
"""Of a camera's image, a texture or a map: 33 megapixels, a map of 145 m by 145 m at 2.5 cm."""

_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_PNM = re.compile(rb"P[1-6]\s(?:\s|#[^\r\n]*[\r\n])*(\d{1,9})\s(?:\s|#[^\r\n]*[\r\n])*(\d{1,9})\s")


class TooLarge(ValueError):
    """Data that would unpack to more than the limit."""


def unpacked_limit(packed_bytes: int) -> int:
    """The largest size that compressed data of a length may unpack to."""
    return max(FREE_BYTES, MAX_RATIO * packed_bytes)


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
    try:
        return cv2.imdecode(np.frombuffer(data, np.uint8), flags)
    except cv2.error:
        return None


class GzipReader(io.RawIOBase):
    """The content of a gzip file, up to the limit for the file's length.

    Args:
        raw: positioned at the start.
        packed_bytes: length of the file.
    """

    def __init__(self, raw: BinaryIO, packed_bytes: int) -> None:
        super().__init__()
        self._file = gzip.GzipFile(fileobj=raw)
        self._left = unpacked_limit(packed_bytes)

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer. Raises ``TooLarge``, and what ``GzipFile`` raises for damaged files."""
        count = self._file.readinto(buffer)
        self._left -= count
        if self._left < 0:
            raise TooLarge(f"it unpacks to more than {MAX_RATIO} times its size")
        return count


def check_members(archive: zipfile.ZipFile, max_members: int, max_bytes: int) -> None:
    """Check the sizes that a zip states; zipfile reads no more of a member than is stated.

    Raises:
        TooLarge: too many members, or too large together or for their length in the file.
    """
    members = archive.infolist()
    if len(members) > max_members:
        raise TooLarge(f"{len(members)} members, at most {max_members} are read")
    size, packed = sum(member.file_size for member in members), sum(member.compress_size for member in members)
    limit = min(max_bytes, unpacked_limit(packed))
    if size > limit:
        raise TooLarge(f"it unpacks from {packed} to {size} bytes, at most {limit} are read")


def read_arrays(file: BinaryIO, max_arrays: int, max_bytes: int) -> dict[str, NDArray[Any]]:
    """The arrays of an ``.npz`` file by name, without pickles.

    Raises:
        ValueError: it is damaged, holds anything else than arrays, or is too large.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            check_members(archive, max_arrays, max_bytes)
            return {name.removesuffix(".npy"): _array(archive, name) for name in archive.namelist()}
    except TooLarge:
        raise
    except Exception as error:  # numpy, zipfile and zlib raise some ten kinds for damaged files
        raise ValueError(str(error)) from error


def _array(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    with archive.open(name) as member:
        array: NDArray[Any] = np.lib.format.read_array(member, allow_pickle=False)
        return array


def _image_size(data: bytes) -> tuple[int, int] | None:
    """Width and height in the header that the decoder reads; None for other formats."""
    if data.startswith(b"\x89PNG\r\n\x1a\n") and data[12:16] == b"IHDR" and len(data) >= 24:
        width, height = struct.unpack_from(">II", data, 16)
        return width, height
    if data.startswith(b"\xff\xd8"):
        return next(_jpeg_sizes(data), None)
    found = _PNM.match(data)
    return (int(found[1]), int(found[2])) if found else None


def _jpeg_sizes(data: bytes) -> Iterator[tuple[int, int]]:
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker, length = data[at + 1], int.from_bytes(data[at + 2 : at + 4], "big")
        if marker in _JPEG_FRAMES:
            height, width = struct.unpack_from(">HH", data, at + 5)
            yield width, height
        at += 1 if marker == 0xFF else 2 + length
