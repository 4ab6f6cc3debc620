"""Colour and depth of one exposure: messages of equal stamp, pure and bounded."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Pair:
    """Two messages of one stamp, and a number that stays the same while the content of both does."""

    stamp_ns: int
    color: Any
    depth: Any
    content: int


class ExactPairs:
    """Pairs the newest of two streams by equal stamps; thread-safe.

    Args:
        waiting: how many messages of each stream may wait for their other half; the oldest goes first.
        kept: how many pairs can still be asked for.
    """

    def __init__(self, waiting: int, kept: int) -> None:
        self._waiting = waiting
        self._lock = threading.Lock()
        self._single: tuple[OrderedDict[int, Any], OrderedDict[int, Any]] = (OrderedDict(), OrderedDict())
        self._pairs: deque[Pair] = deque(maxlen=kept)
        self.dropped = 0
        """Messages that never found their other half."""

    def add_color(self, stamp_ns: int, message: Any) -> None:
        """A colour image has arrived."""
        self._add(0, stamp_ns, message)

    def add_depth(self, stamp_ns: int, message: Any) -> None:
        """A depth image has arrived."""
        self._add(1, stamp_ns, message)

    def first_after(self, stamp_ns: int) -> Pair | None:
        """The oldest kept pair of ``stamp_ns`` or later."""
        with self._lock:
            return next((pair for pair in self._pairs if pair.stamp_ns >= stamp_ns), None)

    def newest(self) -> Pair | None:
        """The newest pair."""
        with self._lock:
            return self._pairs[-1] if self._pairs else None

    def clear(self) -> None:
        """Forget everything: another connection, or another place."""
        with self._lock:
            for side in self._single:
                side.clear()
            self._pairs.clear()

    def _add(self, side: int, stamp_ns: int, message: Any) -> None:
        with self._lock:
            own, other = self._single[side], self._single[1 - side]
            match = other.pop(stamp_ns, None)
            if match is None:
                own[stamp_ns] = message
                if len(own) > self._waiting:
                    own.popitem(last=False)
                    self.dropped += 1
                return
            color, depth = (message, match) if side == 0 else (match, message)
            self._insert(stamp_ns, color, depth)

    def _insert(self, stamp_ns: int, color: Any, depth: Any) -> None:
        last = self._pairs[-1] if self._pairs else None
        if last is not None and stamp_ns <= last.stamp_ns:
            return  # older than what readers may have seen already
        same = last is not None and last.color.data == color.data and last.depth.data == depth.data
        content = last.content if last is not None and same else stamp_ns
        self._pairs.append(Pair(stamp_ns, color, depth, content))
