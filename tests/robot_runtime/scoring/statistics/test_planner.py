"""Forecasts of campaigns: the tilted pilot, power and hours against the test that they forecast."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robot_runtime.errors import ConfigError
from robot_runtime.scoring.statistics.planner import WorkTimes, forecast, power_table, tilted
from robot_runtime.scoring.statistics.sequential import stopping_times

MINUTE = WorkTimes((60.0,), placing_s=0.0)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=30), st.floats(-0.9, 0.9))
def test_a_tilted_pilot_has_the_mean_and_the_values_of_the_pilot(pilot: list[float], mean: float) -> None:
    values, chances = tilted(pilot, mean)
    assert set(values) == {*pilot, -1.0, 0.0, 1.0}
    assert chances.sum() == pytest.approx(1)
    assert (chances >= 0).all()
    assert chances @ values == pytest.approx(mean, abs=1e-6)


def test_forecasts_the_campaigns_from_which_the_pilot_was_drawn() -> None:
    random = np.random.default_rng(0)
    chances = {-1.0: 0.12, 0.0: 0.6, 1.0: 0.28}
    drawn = random.choice(list(chances), (600, 200), p=list(chances.values()))
    pairs, better = stopping_times(drawn, 0.05, "two")
    pilot = [value for value, chance in chances.items() for _ in range(round(100 * chance))]
    found = forecast(pilot, 0.16, MINUTE, campaigns=2000)
    assert found.pairs == pytest.approx(pairs.mean(), rel=0.06)
    assert found.power == pytest.approx((better == 1).mean(), abs=0.03)
    assert found.hours == pytest.approx(2 * found.pairs / 60)
    low, high = np.quantile(pairs, (0.1, 0.9))
    assert found.pairs_range == (pytest.approx(low, rel=0.1), pytest.approx(high, rel=0.1))


def test_a_larger_difference_needs_fewer_pairs_and_no_difference_is_rarely_found() -> None:
    none, small, large = power_table([-1, 0, 0, 0, 1] * 20, MINUTE, (0.0, 0.1, 0.3), campaigns=500)
    assert none.wrong <= 0.05
    assert none.power == 0
    assert none.pairs > small.pairs > large.pairs
    assert small.power < large.power
    mirrored = forecast([-1, 0, 0, 0, 1] * 20, -0.3, MINUTE, campaigns=500)
    assert mirrored.power == pytest.approx(large.power, abs=0.05)


def test_hours_count_placing_judging_repeated_episodes_and_whole_charges() -> None:
    times = WorkTimes((50.0, 70.0), 30.0, 10.0, battery_per_h=0.5, usable=0.5, charging_s=1800.0, repeated=0.2)
    hours = times.hours(np.array([12, 60]))  # 30 and 150 episodes: half an hour and 2.5 hours of driving
    assert hours == pytest.approx([30 * 100 / 3600, 150 * 100 / 3600 + 2 * 0.5])


@pytest.mark.parametrize(
    ("pilot", "difference"), [([], 0.1), ([1.5], 0.1), ([float("nan")], 0.1), ([0.1], 1.0), ([0.1], -1.0)]
)
def test_refuses_what_it_cannot_forecast(pilot: list[float], difference: float) -> None:
    with pytest.raises(ConfigError):
        forecast(pilot, difference, MINUTE)


@pytest.mark.parametrize("times", [{"episode_s": ()}, {"placing_s": -1.0}, {"usable": 0.0}, {"repeated": 1.0}])
def test_refuses_times_that_make_no_sense(times: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        WorkTimes(**({"episode_s": (60.0,)} | times))  # type: ignore[arg-type]
