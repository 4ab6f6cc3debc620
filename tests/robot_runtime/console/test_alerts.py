"""Conditions that need a person, and forecasts of charge and disk space."""

from __future__ import annotations

import math
from typing import Any

import pytest

from robot_runtime.console.alerts import LEAST_S, Forecast, alerts

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
    ) == {"battery", "disk"}
    assert set(alerts(STATE | {"base": None})) == {"base"}


def test_an_even_fall_is_carried_on_to_the_limit() -> None:
    forecast = Forecast(limit=0.1)
    for second in range(60):
        forecast.add(float(second), 0.9 - 0.001 * second)
    assert forecast.left_s() == pytest.approx((0.9 - 0.055 - 0.1) / 0.001, rel=1e-6)


def test_nothing_is_forecast_of_what_is_new_rises_or_is_unknown() -> None:
    new, rising, unknown = Forecast(0.1), Forecast(0.1), Forecast(0.1)
    for second in range(60):
        if second < LEAST_S:
            new.add(float(second), 0.9 - 0.001 * second)
        rising.add(float(second), 0.5 + 0.001 * second)
        unknown.add(float(second), math.nan)
    assert [new.left_s(), rising.left_s(), unknown.left_s()] == [None, None, None]


def test_what_is_used_up_has_no_time_left_and_a_clock_that_begins_anew_is_noticed() -> None:
    forecast = Forecast(0.5)
    for second in range(60):
        forecast.add(1000.0 + second, 0.4 - 0.001 * second)
    assert forecast.left_s() == 0
    forecast.add(0.0, 0.9)
    assert forecast.left_s() is None
