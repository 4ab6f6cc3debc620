"""Limit below which a battery counts as empty."""

from __future__ import annotations

import math

import pytest

from drivers.ros.base.sensors import LowVoltage
from robot_runtime.common.clock import NS_PER_S

TICK_NS = NS_PER_S // 50


def after(*voltages_v: float) -> bool:
    """Whether the battery is empty after these measurements, 20 ms apart."""
    low = LowVoltage(13.2)
    for number, voltage_v in enumerate(voltages_v):
        low.measured(voltage_v, number * TICK_NS)
    return low.empty


@pytest.mark.parametrize("dip", [1, 10, 50])
def test_a_dip_of_less_than_a_second_is_no_empty_battery(dip: int) -> None:
    assert not after(*[15.0] * 100, *[12.9] * dip)


def test_a_voltage_that_stays_low_is() -> None:
    assert after(*[15.0] * 100, *[12.9] * 51)
    assert after(*[12.9] * 51)


def test_one_good_measurement_starts_the_time_anew() -> None:
    assert not after(*[12.9] * 40, 13.2, *[12.9] * 40)
    assert not after(*[12.9] * 40, math.nan, *[12.9] * 40)


def test_nothing_is_kept_of_a_connection_that_has_ended() -> None:
    low = LowVoltage(13.2)
    low.measured(12.0, 0)
    low.clear()
    low.measured(12.0, 2 * NS_PER_S)
    assert not low.empty
