"""Forecast of when a supply that falls evenly, such as charge or disk space, is used up."""

from __future__ import annotations

from collections import deque

import numpy as np

WINDOW_S = 300.0
LEAST_S = 20.0
"""Of observation before a forecast is made."""

EVERY_S = 1.0


class Forecast:
    """Straight line through what was measured in the last :data:`WINDOW_S`.

    Args:
        limit: value at which the supply counts as used up.
    """

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._measured: deque[tuple[float, float]] = deque()

    def add(self, time_s: float, value: float) -> None:
        """Add a measurement; more than one per :data:`EVERY_S`, and values that are not a number, are left out."""
        if not np.isfinite(value) or (self._measured and 0 <= time_s - self._measured[-1][0] < EVERY_S):
            return
        if self._measured and time_s < self._measured[-1][0]:  # another clock
            self._measured.clear()
        self._measured.append((time_s, value))
        while time_s - self._measured[0][0] > WINDOW_S:
            self._measured.popleft()

    def left_s(self) -> float | None:
        """Seconds until the limit, 0 below it; None while the supply does not fall, or was observed for too short."""
        if not self._measured or self._measured[-1][0] - self._measured[0][0] < LEAST_S:
            return None
        times, values = np.array(self._measured).T
        slope, at_end = np.polyfit(times - times[-1], values, 1)
        if at_end <= self._limit:
            return 0.0
        return float((self._limit - at_end) / slope) if slope < 0 else None
