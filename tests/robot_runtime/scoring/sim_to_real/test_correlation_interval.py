"""The interval of a sim-vs-real correlation holds the truth as often as it says, where a bootstrap does not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from robot_runtime.scoring.sim_to_real.correlation import correlation_interval
from robot_runtime.scoring.statistics.hypothesis_tests import srcc

Floats = NDArray[np.float64]


def campaign(skills: Floats, episodes: int, random: np.random.Generator) -> Floats:
    """Successes (worlds, policies, episodes) by skill, and by episodes that are hard for all or for some."""
    hardness = random.normal(0, 1.5, episodes) + random.normal(0, 1, (skills.shape[1], episodes))
    chances = 1 / (1 + np.exp(hardness - skills[:, :, None]))
    return (random.random(chances.shape) < chances).astype(float)


@pytest.mark.parametrize(("alike", "episodes"), [(0.0, 25), (0.97, 10), (0.97, 25), (1.0, 25)])
def test_95_percent_intervals_hold_the_truth_of_95_campaigns_in_100(alike: float, episodes: int) -> None:
    random = np.random.default_rng(7)
    held, repeats = 0, 100
    for _ in range(repeats):
        first, second = random.normal(0, 1.5, (2, 6))
        skills = np.stack((first, alike * first + np.sqrt(1 - alike**2) * second))
        truth = srcc(*campaign(skills, 10_000, random).mean(axis=2))
        found = correlation_interval(*campaign(skills, episodes, random), draws=400)
        held += found.low - 0.005 <= truth <= found.high + 0.005
    assert held / repeats >= 0.9


@settings(max_examples=25, deadline=None)
@given(st.integers(3, 8), st.integers(1, 12), st.integers(0, 10_000))
def test_an_interval_holds_its_own_coefficient_and_repeats_itself(policies: int, episodes: int, seed: int) -> None:
    simulated, real = np.random.default_rng(seed).random((2, policies, episodes))
    found = correlation_interval(simulated, real, draws=200)
    assert -1 <= found.low <= found.mean <= found.high <= 1
    assert found.mean == pytest.approx(srcc(simulated.mean(axis=1), real.mean(axis=1)), abs=1e-12)
    assert found == correlation_interval(simulated, real, draws=200)


def test_worlds_that_are_one_may_be_one_and_opposites_may_be_opposite() -> None:
    values = np.linspace(0.1, 0.9, 5)[:, None] + np.zeros(20)
    assert correlation_interval(values, values).high == 1.0
    assert correlation_interval(values, 1 - values).low == -1.0


def test_two_worlds_that_agree_by_luck_are_not_known_to_agree() -> None:
    random = np.random.default_rng(9)
    values = campaign(random.normal(0, 1.5, (2, 5)), 3, random)[0]
    found = correlation_interval(values, values)
    assert found.mean == found.high == pytest.approx(1.0)
    assert found.low < 0.9


def test_more_episodes_narrow_it() -> None:
    random = np.random.default_rng(1)
    skills = random.normal(0, 1.5, (2, 6))
    few, many = (correlation_interval(*campaign(skills, episodes, random)) for episodes in (10, 400))
    assert many.high - many.low < (few.high - few.low) / 2


def test_what_a_further_campaign_will_show_is_less_sure() -> None:
    random = np.random.default_rng(4)
    values = campaign(random.normal(0, 1.5, (2, 6)), 30, random)
    known, same, large = (correlation_interval(*values, further=further) for further in (None, 1, 1e9))
    assert same.low < known.low < known.high < same.high
    assert (large.low, large.high) == pytest.approx((known.low, known.high), abs=1e-6)


def test_policies_may_have_run_different_episodes() -> None:
    random = np.random.default_rng(2)
    values = campaign(random.normal(0, 1.5, (2, 4)), 30, random)
    values[:, 1, 20:] = np.nan
    found = correlation_interval(*values)
    assert found.mean == pytest.approx(srcc(*np.nanmean(values, axis=2)), abs=1e-12)


@pytest.mark.parametrize(
    ("simulated", "real", "message"),
    [
        ([[1, 0], [0, 0]], [[1, 0], [1, 1]], "3 methods"),
        ([[1, 1]] * 3, [[1, 0], [1, 1], [0, 0]], "all methods score the same"),
        ([[1, 1]] * 3, [[1, 0, 1]] * 3, "the same policies and episodes"),
        ([[1, 1], [1, 0], [float("nan")] * 2], [[1, 1], [1, 0], [float("nan")] * 2], "no episode"),
    ],
)
def test_without_a_correlation_there_is_no_interval(
    simulated: list[list[float]], real: list[list[float]], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        correlation_interval(simulated, real)
