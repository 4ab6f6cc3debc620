"""Frames from a stream of bytes that may start anywhere, be split, or contain noise. Pure."""

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

FrameEnd = Callable[[bytearray, int], "int | None"]
"""Given a buffer and the index of a sync sequence in it: the index after the frame that begins there, with a right
checksum; 0 if there is none; None if more bytes are needed to decide."""


class FrameScanner(Generic[T]):
    """Scanner for the contents of frames in bytes that may start anywhere, be split, or contain noise.

    Bytes are a frame only if all of it, with the right checksum, follows the sync sequence. After an invalid frame the
    search continues at its second byte, so noise neither hides nor delays a valid frame behind it.

    Args:
        sync: bytes with which every frame begins.
        end_of: decides whether a frame begins at an index, and where it ends.
        content_of: the content of a complete frame.

    Attributes:
        skipped: number of bytes so far that belonged to no frame.
    """

    def __init__(self, sync: bytes, end_of: FrameEnd, content_of: Callable[[bytes], T]) -> None:
        self.skipped = 0
        self._sync, self._end_of, self._content_of = sync, end_of, content_of
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[T]:
        """Return the contents of the frames completed by these bytes, in order."""
        buffer = self._buffer
        buffer += data
        contents: list[T] = []
        at = unread_from = 0
        waiting: int | None = None
        while (at := buffer.find(self._sync, at)) >= 0:
            end = self._end_of(buffer, at)
            if end is None:
                waiting = at if waiting is None else waiting
            elif end:
                contents.append(self._content_of(bytes(buffer[at:end])))
                self.skipped += at - unread_from
                at = unread_from = end
                waiting = None
                continue
            at += 1
        if waiting is None:
            waiting = max(len(buffer) - self._begun(), unread_from)
        self.skipped += waiting - unread_from
        del buffer[:waiting]
        return contents

    def _begun(self) -> int:
        """Return how many bytes at the end of the buffer may be the beginning of a sync sequence."""
        lengths = range(len(self._sync) - 1, 0, -1)
        return next((length for length in lengths if self._buffer.endswith(self._sync[:length])), 0)
