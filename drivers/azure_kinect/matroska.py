"""Whether a Matroska file is whole. The SDK ends the process when it opens some that are not, so that is seen first.

A file is a row of elements: a number that says what it is, its size, its content (RFC 8794, RFC 9559). Those of the
first two levels are walked over; what they hold is the SDK's to judge.
"""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from robot_runtime.errors import DeviceFault

HEADER, SEGMENT, CLUSTER = 0x1A45DFA3, 0x18538067, 0x1F43B675
REQUIRED = {0x1549A966: "Info", 0x1654AE6B: "Tracks", 0x1C53BB6B: "Cues", CLUSTER: "Cluster"}
"""Without these the SDK cannot play a recording; the index is what is written last."""

RECORD_AGAIN = "record it again, with a program that ends its recordings properly"


def check_complete(path: Path) -> None:
    """Raise ``DeviceFault`` for a file that cannot be read, is no Matroska file, is cut off, or was never ended."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            _check(file, size, path)
    except OSError as error:
        raise DeviceFault(f"{path}: cannot be read: {error.strerror}", "name a recording that exists") from error


def _check(file: BinaryIO, size: int, path: Path) -> None:
    first = _element(file)
    if first is None or first[0] != HEADER:
        raise DeviceFault(
            f"{path}: is no Matroska file", "name a recording made with the Kinect SDK, as k4arecorder does"
        )
    file.seek(first[1])
    segment = _element(file)
    if segment is None or segment[0] != SEGMENT:
        raise DeviceFault(f"{path}: is cut off after {size} bytes", RECORD_AGAIN)
    end = segment[1]
    if end > size:
        raise DeviceFault(f"{path}: is cut off: {size} of {end} bytes are there", RECORD_AGAIN)
    missing = dict(REQUIRED)
    while file.tell() < end:
        element = _element(file)
        if element is None or element[1] > end:
            raise DeviceFault(f"{path}: is damaged at byte {file.tell()}", RECORD_AGAIN)
        missing.pop(element[0], None)
        file.seek(element[1])
    if CLUSTER in missing:
        raise DeviceFault(f"{path}: holds no captures", RECORD_AGAIN)
    if missing:
        raise DeviceFault(f"{path}: was not ended: it lacks {', '.join(missing.values())}", RECORD_AGAIN)


def _element(file: BinaryIO) -> tuple[int, int] | None:
    """What the element here is, and where it ends, reading its head; None where there is none."""
    identity, size = _number(file, keep_marker=True), _number(file, keep_marker=False)
    if identity is None or size is None:
        return None
    return identity, file.tell() + size


def _number(file: BinaryIO, keep_marker: bool) -> int | None:
    """A number whose first byte says, by its leading zeros, how many bytes follow."""
    head = file.read(1)
    if not head or head[0] == 0:
        return None
    more = 8 - head[0].bit_length()
    rest = file.read(more)
    if len(rest) < more:
        return None
    value = int.from_bytes(head + rest, "big")
    return value if keep_marker else value & ~(1 << (7 * (more + 1)))
