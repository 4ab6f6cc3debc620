"""Pairing of color and depth messages with equal stamps: pure and bounded."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Pair:
    """Two messages of the same exposure.

    Attributes:
        stamp_ns: Of both.
        color: The color message.
        depth: The depth message.
        unchanged_since_ns: Stamp of the first pair of an unbroken sequence with the same content.
    """

    stamp_ns: int
    color: Any
    depth: Any
    unchanged_since_ns: int


class StampMatcher:
    """Finds the messages of two streams that have equal stamps. Not thread-safe.

    Args:
        waiting: How many messages of each stream may wait for their counterpart; the oldest is dropped first.

    Attributes:
        dropped: Number of messages without a counterpart.
    """

    def __init__(self, waiting: int) -> None:
        self._waiting = waiting
        self._single: tuple[OrderedDict[int, Any], OrderedDict[int, Any]] = (OrderedDict(), OrderedDict())
        self.dropped = 0

    def add(self, stream: int, stamp_ns: int, message: Any) -> tuple[Any, Any] | None:
        """Add a message of stream 0 or 1; return the matching messages (stream 0, stream 1), if there are any."""
        own, other = self._single[stream], self._single[1 - stream]
        match = other.pop(stamp_ns, None)
        if match is None:
            own[stamp_ns] = message
            if len(own) > self._waiting:
                own.popitem(last=False)
                self.dropped += 1
            return None
        return (message, match) if stream == 0 else (match, message)

    def clear(self) -> None:
        """Discard the waiting messages."""
        for side in self._single:
            side.clear()


class ExactPairs:
    """The newest pairs of two streams; thread-safe.

    Args:
        waiting: As of :class:`StampMatcher`.
        stored: How many pairs are stored.
    """

    def __init__(self, waiting: int, stored: int) -> None:
        self._lock = threading.Lock()
        self._matcher = StampMatcher(waiting)
        self._pairs: deque[Pair] = deque(maxlen=stored)

    @property
    def dropped(self) -> int:
        """Number of messages without a counterpart."""
        return self._matcher.dropped

    def add_color(self, stamp_ns: int, message: Any) -> None:
        """Add a color image."""
        self._add(0, stamp_ns, message)

    def add_depth(self, stamp_ns: int, message: Any) -> None:
        """Add a depth image."""
        self._add(1, stamp_ns, message)

    def first_after(self, stamp_ns: int) -> Pair | None:
        """Return the oldest stored pair of ``stamp_ns`` or later."""
        with self._lock:
            return next((pair for pair in self._pairs if pair.stamp_ns >= stamp_ns), None)

    def newest(self) -> Pair | None:
        """Return the newest pair."""
        with self._lock:
            return self._pairs[-1] if self._pairs else None

    def clear(self) -> None:
        """Discard everything: another connection, or another place."""
        with self._lock:
            self._matcher.clear()
            self._pairs.clear()

    def _add(self, stream: int, stamp_ns: int, message: Any) -> None:
        with self._lock:
            match = self._matcher.add(stream, stamp_ns, message)
            last = self._pairs[-1] if self._pairs else None
            if match is None or (last is not None and stamp_ns <= last.stamp_ns):
                return  # no counterpart yet, or older than a pair that may have been read already
            color, depth = match
            same = last is not None and last.color.data == color.data and last.depth.data == depth.data
            self._pairs.append(
                Pair(stamp_ns, color, depth, last.unchanged_since_ns if last is not None and same else stamp_ns)
            )
