"""Control variates: exact agreement with known cases, validity for wrong simulations, and widths."""

from __future__ import annotations

import math

import numpy as np
import pytest

from robot_runtime.scoring.statistics.control_variate import ControlVariate, control_variate
from robot_runtime.scoring.statistics.intervals import Interval, wilson


def width(interval: Interval) -> float:
    return interval.high - interval.low


def worlds(agreement: float, count: int = 150, each: int = 30, seed: int = 0) -> ControlVariate:
    """Successes at 0.6 in both worlds; a twin has the real outcome with this probability, and else an own one."""
    random = np.random.default_rng(seed)
    real, own = random.random((2, count)) < 0.6
    simulated = np.where(random.random(count) < agreement, real, own)
    return control_variate(
        real.astype(float), simulated.astype(float), (random.random(count * each) < 0.6).astype(float)
    )


def test_without_further_starts_it_is_wilsons_interval() -> None:
    real = [1.0, 0.0, 1.0, 1.0, 0.0]
    found = control_variate(real, real, [1.0, 0.0])
    expected = wilson(3, 5, 0.95)
    for interval in (found.without, found.adjusted):
        assert interval.low == pytest.approx(expected.low)
        assert interval.high == pytest.approx(expected.high)
    assert found.further == 0
    assert found.weight == 0
    assert found.adjusted_any_time == found.without_any_time


def test_narrows_with_correlation() -> None:
    found = worlds(0.8)
    assert found.correlation == pytest.approx(0.8, abs=0.1)
    assert found.weight == pytest.approx(0.8, abs=0.12)
    assert width(found.adjusted) < 0.72 * width(found.without)
    assert width(found.adjusted_any_time) < 0.8 * width(found.without_any_time)
    assert width(found.adjusted_any_time) > width(found.adjusted)


def test_a_simulation_that_knows_nothing_hardly_widens() -> None:
    found = [worlds(0.0, seed=seed) for seed in range(5)]
    assert np.mean([width(one.adjusted) / width(one.without) for one in found]) < 1.02
    assert np.mean([width(one.adjusted_any_time) / width(one.without_any_time) for one in found]) < 1.02


def test_the_weight_comes_from_earlier_episodes_alone() -> None:
    """The last pair of values changes neither the weight of its own episode nor the mean of the others."""
    random = np.random.default_rng(1)
    real, simulated, further = random.random(20), random.random(20), random.random(200)
    first = control_variate(real, simulated, further)
    changed = control_variate([*real[:-1], 1.0], simulated, further)
    assert changed.adjusted.mean - first.adjusted.mean == pytest.approx((1.0 - real[-1]) / 20)


@pytest.mark.parametrize(("rate", "simulated_rate"), [(0.6, 0.9), (0.3, 0.8)])
def test_a_biased_simulation_does_not_move_the_mean(rate: float, simulated_rate: float) -> None:
    """Mean over many realities of the adjusted mean, with twins that succeed where the robot does, and elsewhere."""
    random = np.random.default_rng(2)
    means = []
    for _ in range(60):
        latent = random.random(60)
        further = (random.random(600) < simulated_rate).astype(float)
        found = control_variate((latent < rate) * 1.0, (latent < simulated_rate) * 1.0, further)
        means.append(found.adjusted.mean)
    assert np.mean(means) == pytest.approx(rate, abs=3.5 * np.std(means) / math.sqrt(60))


def test_starts_that_were_not_simulated_count_without_a_twin() -> None:
    nan = math.nan
    found = control_variate([1.0, 0.0, 1.0], [nan, nan, nan], [0.0] * 9)
    assert (found.real, found.twins, found.further) == (3, 0, 3)
    assert found.adjusted == found.without
    assert math.isnan(found.correlation)


def test_planned_episodes_divide_the_further_starts() -> None:
    assert control_variate([1.0, 0.0], [1.0, 0.0], [0.5] * 100).further == 50
    assert control_variate([1.0, 0.0], [1.0, 0.0], [0.5] * 100, planned=20).further == 5


@pytest.mark.parametrize(
    ("real", "simulated", "further"),
    [([], [], []), ([1.0], [], []), ([1.5], [1.0], []), ([1.0], [-1.0], []), ([1.0], [1.0], [2.0])],
)
def test_refuses_values_it_cannot_bound(real: list[float], simulated: list[float], further: list[float]) -> None:
    with pytest.raises(ValueError):
        control_variate(real, simulated, further)
