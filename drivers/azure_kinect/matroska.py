"""Completeness check of Matroska files, because the SDK aborts the process on some incomplete ones.

A file is a sequence of elements: id, size, content (RFC 8794, RFC 9559). The elements of the first two levels are
traversed without their content.
"""

from pathlib import Path
from typing import BinaryIO

from robot_runtime.errors import DeviceFault

HEADER, SEGMENT, CLUSTER = 0x1A45DFA3, 0x18538067, 0x1F43B675
REQUIRED = {0x1549A966: "Info", 0x1654AE6B: "Tracks", 0x1C53BB6B: "Cues", CLUSTER: "Cluster"}
"""Elements that the SDK needs to play a recording; the index (Cues) is written last."""

RECORD_AGAIN = "record it again, with a program that closes its recordings"


def check_complete(path: Path) -> None:
    """Raise ``DeviceFault`` for a file that is unreadable, no Matroska file, truncated, or not closed."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            _check(file, size, path)
    except OSError as error:
        raise DeviceFault(f"{path}: cannot be read: {error.strerror}", "name a recording that exists") from error


def _check(file: BinaryIO, size: int, path: Path) -> None:
    first = _element(file)
    if first is None or first[0] != HEADER:
        raise DeviceFault(f"{path}: not a Matroska file", "name a recording of the Kinect SDK, as made by k4arecorder")
    file.seek(first[1])
    segment = _element(file)
    if segment is None or segment[0] != SEGMENT:
        raise DeviceFault(f"{path}: is cut off after {size} bytes", RECORD_AGAIN)
    end = segment[1]
    if end > size:
        raise DeviceFault(f"{path}: is cut off after {size} of {end} bytes", RECORD_AGAIN)
    missing = dict(REQUIRED)
    while file.tell() < end:
        element = _element(file)
        if element is None or element[1] > end:
            raise DeviceFault(f"{path}: is damaged at byte {file.tell()}", RECORD_AGAIN)
        missing.pop(element[0], None)
        file.seek(element[1])
    if CLUSTER in missing:
        raise DeviceFault(f"no captures in {path}", RECORD_AGAIN)
    if missing:
        raise DeviceFault(f"{path}: was not closed: it lacks {', '.join(missing.values())}", RECORD_AGAIN)


def _element(file: BinaryIO) -> tuple[int, int] | None:
    """Read the header of the next element and return its id and end; None if there is none."""
    identity, size = _number(file, keep_marker=True), _number(file, keep_marker=False)
    if identity is None or size is None:
        return None
    return identity, file.tell() + size


def _number(file: BinaryIO, keep_marker: bool) -> int | None:
    """Read a number of variable length: the leading zeros of its first byte are the number of further bytes."""
    head = file.read(1)
    if not head or head[0] == 0:
        return None
    more = 8 - head[0].bit_length()
    rest = file.read(more)
    if len(rest) < more:
        return None
    value = int.from_bytes(head + rest, "big")
    return value if keep_marker else value & ~(1 << (7 * (more + 1)))
