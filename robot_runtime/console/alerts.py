"""Conditions of a robot that need a person, before they end the run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

BATTERY_MINUTES, DISK_MINUTES = 15, 60
LEAST_BATTERY, LEAST_DISK_GB = 0.15, 1.0


def alerts(state: Mapping[str, Any]) -> dict[str, str]:
    """Kind of each condition that holds -> line for people.

    Args:
        state: state as :class:`robot_runtime.console.feed.Feed` sends it.
    """
    found: dict[str, str] = {}
    base, disk = state["base"], state["disk"]
    if base is None:
        found["base"] = "the base is silent"
    else:
        minutes, charge = base["battery_minutes"], base["battery_fraction"]
        if (minutes is not None and minutes < BATTERY_MINUTES) or (charge is not None and charge < LEAST_BATTERY):
            found["battery"] = f"battery {base['battery']}{_left(minutes)}"
    if state["e_stop"]:
        found["e_stop"] = "the emergency stop holds the wheels"
    if state["lost"]:
        found["lost"] = f"localization: {state['lost']}"
    if disk is not None:
        minutes = disk["minutes"]
        if disk["free_gb"] < LEAST_DISK_GB or (minutes is not None and minutes < DISK_MINUTES):
            found["disk"] = f"disk {disk['free_gb']} GB free{_left(minutes)}"
    if state["waits"]:
        found["waits"] = "the robot waits to be started" if state["stage"] == "placing" else "the run is paused"
    return found


def _left(minutes: int | None) -> str:
    return "" if minutes is None else f", {minutes} min left"
