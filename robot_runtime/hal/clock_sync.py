"""Synchronization of a device's clock with the robot's: offset and drift, from the arrivals of its messages.

A message arrives after its stamp by a delay that has a lower bound but no upper one. So the true relation of the
clocks, later by the least delay, is a line below all arrivals, and the best estimate of it is the highest such line:
the edge of the arrivals' lower convex hull that spans their middle (Moon, Skelly and Towsley, "Estimation and removal
of clock skew from network delay measurements", INFOCOM 1999). One late message, or a hundred, change nothing.
"""

from collections import deque
from itertools import pairwise

from robot_runtime.common.clock import NS_PER_S, seconds_to_ns

MAX_DRIFT_PPM = 200.0
"""Crystals are within 100 of each other; a steeper line comes of too few arrivals."""

WINDOW_S = 120.0
"""Drift follows temperature, over minutes."""

BUCKET_S = 1.0
"""In each interval of this length, only the least delayed arrival is used."""

JUMP_S = 1.0
"""An arrival that lies this far below the line means that the device has set its clock back; nothing else can."""

Point = tuple[int, int]


class ClockSync:
    """Maps a device's stamps to the robot's clock.

    Args:
        least_delay_s: shortest delay from a stamp to its arrival; ``calibrate latency`` measures it.
    """

    def __init__(self, least_delay_s: float = 0.0) -> None:
        self._least_delay_ns = seconds_to_ns(least_delay_s)
        self._arrivals: deque[Point] = deque()
        self._line: tuple[int, int, float] | None = None

    def add(self, device_ns: int, arrived_ns: int) -> None:
        """A message with this stamp of the device arrived then. The estimate restarts with the device."""
        if self._arrivals and (
            device_ns < self._arrivals[-1][0] or arrived_ns < self.to_clock_ns(device_ns) - _ns(JUMP_S)
        ):
            self._arrivals.clear()
        arrivals = self._arrivals
        if arrivals and device_ns // _ns(BUCKET_S) == arrivals[-1][0] // _ns(BUCKET_S):
            last_device_ns, last_arrived_ns = arrivals[-1]
            if arrived_ns - device_ns >= last_arrived_ns - last_device_ns:
                return
            arrivals.pop()
        arrivals.append((device_ns, arrived_ns))
        while device_ns - arrivals[0][0] > _ns(WINDOW_S):
            arrivals.popleft()
        self._line = None

    def to_clock_ns(self, device_ns: int) -> int:
        """Convert a stamp of the device to the robot's clock. Raises ``ValueError`` before the first :meth:`add`."""
        reference_ns, arrived_ns, drift = self._fit()
        since_ns = device_ns - reference_ns
        return arrived_ns + since_ns + round(drift * since_ns) - self._least_delay_ns

    @property
    def drift_ppm(self) -> float:
        """Rate by which the device's clock is slower than the robot's, parts per million; 0 until it is measured."""
        return self._fit()[2] * 1e6

    def _fit(self) -> tuple[int, int, float]:
        """A point of the line, and its slope less 1."""
        if self._line is None:
            if not self._arrivals:
                raise ValueError("no message of the device has arrived yet")
            self._line = _highest_line_below(list(self._arrivals))
        return self._line


def _highest_line_below(points: list[Point]) -> tuple[int, int, float]:
    """A point on the line, and its slope less 1, within the drift that clocks can have."""
    hull: list[Point] = []
    for point in points:
        while len(hull) > 1 and _lies_above(hull[-1], hull[-2], point):
            hull.pop()
        hull.append(point)
    middle_ns = sum(x for x, _ in points) / len(points)
    drift = 0.0
    for (x0, y0), (x1, y1) in pairwise(hull):
        drift = ((y1 - y0) - (x1 - x0)) / (x1 - x0)
        if x1 >= middle_ns:
            break
    limit = MAX_DRIFT_PPM * 1e-6
    drift = min(limit, max(-limit, drift))
    # With this slope the line touches the hull where arrivals are lowest along it.
    start_ns = points[0][0]
    x, y = min(hull, key=lambda point: point[1] - point[0] - drift * (point[0] - start_ns))
    return x, y, drift


def _lies_above(middle: Point, left: Point, right: Point) -> bool:
    """Whether ``middle`` lies on or above the line from ``left`` to ``right``; exact, in integers."""
    return (middle[1] - left[1]) * (right[0] - left[0]) >= (right[1] - left[1]) * (middle[0] - left[0])


def _ns(seconds: float) -> int:
    return round(seconds * NS_PER_S)
