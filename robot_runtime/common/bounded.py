"""Decoding of compressed data of unknown origin, with a limit on what it unpacks to.

A megabyte of zeros compresses to a kilobyte: the size of a file says nothing about the memory that its content takes.
Every function here reads the size that the data state, or stops at the limit.
"""

import gzip
import io
import zipfile
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

MAX_RATIO = 100
"""Largest plausible compression: texts and depth images reach 30, hostile files 1000."""

FREE_BYTES = 1 << 26
"""Size that any data may unpack to, whatever its ratio."""


class TooLarge(ValueError):
    """Data that would unpack to more than the limit."""


def unpacked_limit(packed_bytes: int) -> int:
    """The largest size that compressed data of a length may unpack to."""
    return max(FREE_BYTES, MAX_RATIO * packed_bytes)


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
