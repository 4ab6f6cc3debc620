"""Conditions that need a person."""

from __future__ import annotations

from typing import Any

from robot_runtime.console.alerts import alerts

BASE = {"battery": "80 %", "battery_fraction": 0.8, "battery_minutes": None}
DISK = {"free_gb": 50.0, "minutes": None}
STATE: dict[str, Any] = {"base": BASE, "e_stop": False, "lost": "", "disk": DISK, "waits": False, "stage": "running"}


def test_a_robot_that_is_well_needs_nobody() -> None:
    assert alerts(STATE) == {}
    unknown = BASE | {"battery_fraction": None}
    assert alerts(STATE | {"base": unknown, "disk": None}) == {}


def test_each_condition_is_named_before_it_ends_the_run() -> None:
    low = BASE | {"battery_minutes": 12}
    full = {"free_gb": 20.0, "minutes": 40}
    bad = STATE | {"base": low, "disk": full, "e_stop": True, "lost": "no tag", "waits": True, "stage": "placing"}
    found = alerts(bad)
    assert set(found) == {"battery", "disk", "e_stop", "lost", "waits"}
    assert "12 min" in found["battery"]
    assert "40 min" in found["disk"]
    assert set(
        alerts(STATE | {"base": BASE | {"battery_fraction": 0.1}, "disk": {"free_gb": 0.5, "minutes": None}})
    ) == {
        "battery",
        "disk",
    }
    assert set(alerts(STATE | {"base": None})) == {"base"}
