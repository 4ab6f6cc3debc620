"""Pairing of color and depth messages of one exposure: pure and bounded."""

import threading
from collections import OrderedDict, deque
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

from robot_runtime.common.clock import ns_to_seconds, seconds_to_ns

TOLERANCE = 0.45
"""Largest difference in frames: at half a frame, jitter decides which of two neighbors is nearer."""

INTERVALS = 9
"""Recent intervals of a stream from which its rate is known."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two messages of the same exposure.

    Attributes:
        stamp_ns: Of color.
        depth_ns: Of depth.
        color: The color message.
        depth: The depth message.
        unchanged_since_ns: Stamp of the first pair of an unbroken sequence with the same content.
    """

    stamp_ns: int
    depth_ns: int
    color: Any
    depth: Any
    unchanged_since_ns: int

    @property
    def first_ns(self) -> int:
        """The earlier stamp."""
        return min(self.stamp_ns, self.depth_ns)


class StampMatcher:
    """Finds the messages of two streams whose stamps differ by less than half a frame. Not thread-safe.

    Drivers that stamp color and depth of one capture by the device (Azure Kinect's) never give both the same stamp.

    Args:
        waiting: How many messages of each stream may wait for their counterpart; the oldest is dropped first.
        rate_hz: The camera's nominal rate; a stream that is faster has a shorter frame.

    Attributes:
        dropped: Number of messages without a counterpart.
        skews_ns: Stamp of depth minus that of color of the last pairs.
        nearest_ns: Smallest difference between stamps that was too large; None if there was none.
    """

    def __init__(self, waiting: int, rate_hz: float) -> None:
        self._waiting = waiting
        self._period_ns = seconds_to_ns(1 / rate_hz)
        self._single: tuple[OrderedDict[int, Any], OrderedDict[int, Any]] = (OrderedDict(), OrderedDict())
        self._recent: tuple[deque[int], deque[int]] = (deque(maxlen=INTERVALS + 1), deque(maxlen=INTERVALS + 1))
        self.dropped = 0
        self.skews_ns: deque[int] = deque(maxlen=1000)
        self.nearest_ns: int | None = None

    def add(self, stream: int, stamp_ns: int, message: Any) -> tuple[Any, Any, int] | None:
        """Add a message of stream 0 or 1.

        Returns:
            The matching messages of stream 0 and stream 1, and the stamp of the latter minus that of the former; None
            if there is no match.
        """
        own, other = self._single[stream], self._single[1 - stream]
        self._recent[stream].append(stamp_ns)
        at_ns = min(other, key=lambda waiting_ns: abs(waiting_ns - stamp_ns), default=None)
        apart_ns = None if at_ns is None else abs(at_ns - stamp_ns)
        if at_ns is None or apart_ns is None or (apart_ns and apart_ns >= self.tolerance_ns):
            if apart_ns is not None:
                self.nearest_ns = min(apart_ns, self.nearest_ns or apart_ns)
            own[stamp_ns] = message
            if len(own) > self._waiting:
                own.popitem(last=False)
                self.dropped += 1
            return None
        match = other.pop(at_ns)
        skew_ns = at_ns - stamp_ns if stream == 0 else stamp_ns - at_ns
        self.skews_ns.append(skew_ns)
        return (message, match, skew_ns) if stream == 0 else (match, message, skew_ns)

    @property
    def tolerance_ns(self) -> int:
        """Largest difference of a pair."""
        known = [recent for recent in self._recent if len(recent) > INTERVALS]
        periods_ns = (round(median(abs(b - a) for a, b in pairwise(recent))) for recent in known)
        return round(TOLERANCE * min((self._period_ns, *periods_ns)))

    @property
    def skew(self) -> str:
        """The difference of the stamps of the last pairs, for people; empty if all are equal."""
        if not any(self.skews_ns):
            return ""
        usual_s, largest_s = (ns_to_seconds(round(ns)) for ns in (median(self.skews_ns), max(map(abs, self.skews_ns))))
        return f"depth is stamped {usual_s:+.4f} s relative to its color image (median; largest {largest_s:.4f} s)"

    def no_pair(self, color: str, depth: str) -> tuple[str, str]:
        """Why no pair is found, and the remedy for the camera at hand.

        Args:
            color: Topic.
            depth: Topic.
        """
        allowed_s = ns_to_seconds(self.tolerance_ns)
        apart = "" if self.nearest_ns is None else f", the nearest are {ns_to_seconds(self.nearest_ns):.4f} s apart"
        names = f"{color} {depth}"
        how = "make the camera's driver publish color and depth of one capture at one rate"
        if any(name in names for name in ("k4a", "depth_to_rgb", "rgb_to_depth")):
            how = "set one fps for color and depth of the Azure Kinect's driver"
        elif "aligned_depth_to_color" in names:
            how = "set enable_sync:=true in the RealSense's launch file"
        message = f"no two images are less than half a frame ({allowed_s:.4f} s) apart{apart}"
        return message, f"{how}, and state its rate as camera.rate_hz in the robot's YAML"

    def clear(self) -> None:
        """Discard the waiting messages."""
        for side in (*self._single, *self._recent, self.skews_ns):
            side.clear()
        self.nearest_ns = None


class FramePairs:
    """The newest pairs of two streams; thread-safe.

    Args:
        waiting: As of :class:`StampMatcher`.
        rate_hz: As of :class:`StampMatcher`.
        stored: How many pairs are stored.

    Attributes:
        matcher: Finds the pairs.
    """

    def __init__(self, waiting: int, rate_hz: float, stored: int) -> None:
        self._lock = threading.Lock()
        self.matcher = StampMatcher(waiting, rate_hz)
        self._pairs: deque[Pair] = deque(maxlen=stored)

    def add_color(self, stamp_ns: int, message: Any) -> None:
        """Add a color image."""
        self._add(0, stamp_ns, message)

    def add_depth(self, stamp_ns: int, message: Any) -> None:
        """Add a depth image."""
        self._add(1, stamp_ns, message)

    def first_after(self, stamp_ns: int) -> Pair | None:
        """Return the oldest stored pair of which both images are of ``stamp_ns`` or later."""
        with self._lock:
            return next((pair for pair in self._pairs if pair.first_ns >= stamp_ns), None)

    def newest(self) -> Pair | None:
        """Return the newest pair."""
        with self._lock:
            return self._pairs[-1] if self._pairs else None

    def skew(self, least: int) -> str:
        """Return the pairs' skew as :class:`StampMatcher` describes it; empty while fewer than ``least`` are known."""
        with self._lock:
            return self.matcher.skew if len(self.matcher.skews_ns) >= least else ""

    def clear(self) -> None:
        """Discard everything: another connection, or another place."""
        with self._lock:
            self.matcher.clear()
            self._pairs.clear()

    def _add(self, stream: int, stamp_ns: int, message: Any) -> None:
        with self._lock:
            match = self.matcher.add(stream, stamp_ns, message)
            last = self._pairs[-1] if self._pairs else None
            if match is None:
                return
            color, depth, skew_ns = match
            color_ns = stamp_ns if stream == 0 else stamp_ns - skew_ns
            if last is not None and color_ns <= last.stamp_ns:
                return  # older than a pair that may have been read already
            same = last is not None and last.color.data == color.data and last.depth.data == depth.data
            since_ns = last.unchanged_since_ns if last is not None and same else color_ns
            self._pairs.append(Pair(color_ns, color_ns + skew_ns, color, depth, since_ns))
