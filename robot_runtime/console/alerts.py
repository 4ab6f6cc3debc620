"""Conditions of a robot that need a person before they end the run, and linear depletion forecasts (battery, disk)."""

from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np

BATTERY_MINUTES, DISK_MINUTES = 15, 60
LEAST_BATTERY, LEAST_DISK_GB = 0.15, 1.0
WINDOW_S = 300.0
LEAST_S = 20.0
"""Duration of the observation before a forecast is made."""

EVERY_S = 5.0


def alerts(state: Mapping[str, Any]) -> dict[str, str]:
    """Kind of each condition that holds -> line for people.

    Args:
        state: state as :class:`robot_runtime.console.feed.Feed` sends it.
    """
    lines: dict[str, str] = {}
    base, disk = state["base"], state["disk"]
    if base is None:
        lines["base"] = "the base does not report"
    else:
        minutes, charge = base["battery_minutes"], base["battery_fraction"]
        if (minutes is not None and minutes < BATTERY_MINUTES) or (charge is not None and charge < LEAST_BATTERY):
            lines["battery"] = f"battery {base['battery']}{_left(minutes)}"
    if state["e_stop"]:
        why = state.get("stop_reason")
        lines["e_stop"] = "the emergency stop holds the wheels" + (f": {why}" if why else "")
    if state["lost"]:
        lines["lost"] = f"the robot does not know where it is: {state['lost']}"
    if disk is not None:
        minutes = disk["minutes"]
        if disk["free_gb"] < LEAST_DISK_GB or (minutes is not None and minutes < DISK_MINUTES):
            lines["disk"] = f"disk {disk['free_gb']} GB free{_left(minutes)}"
    if state["waits"]:
        lines["waits"] = (
            "the robot waits: press Start" if state["stage"] == "placing" else "the run is paused: press Go on"
        )
    return lines


def _left(minutes: int | None) -> str:
    return "" if minutes is None else f", {minutes} min left"


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
