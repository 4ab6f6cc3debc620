"""Sequential tests: exact properties of martingales, published formulas, and figures of few simulated campaigns."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robot_runtime.errors import ConfigError
from robot_runtime.scoring.statistics.sequential import BettingProcess, SequentialPairedTest, stopping_times
from tests.benchmarks.runtime.campaign_statistics import unpaired_stopping_times

bounded = st.floats(-0.9, 0.9)


def capitals(sequences: np.ndarray, null: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Capital after each value of the bets up and down, (sequences, values)."""
    bets = BettingProcess(np.full(len(sequences), null))
    up, down = [], []
    for column in sequences.T:
        bets.add(column)
        up.append(np.exp(bets.up))
        down.append(np.exp(bets.down))
    return np.stack(up, axis=1), np.stack(down, axis=1)


class TestBettingProcess:
    @given(st.lists(st.sampled_from([-1.0, 0.0, 0.25, 1.0]), min_size=1, max_size=4, unique=True), st.data())
    def test_is_a_martingale_at_the_mean_and_keeps_villes_bound(self, values: list[float], data: st.DataObject) -> None:
        weights = data.draw(st.lists(st.integers(1, 5), min_size=len(values), max_size=len(values)))
        chances = np.array(weights) / sum(weights)
        sequences = np.array(list(product(range(len(values)), repeat=5)))
        probability = chances[sequences].prod(axis=1)
        mean = float(np.dot(chances, values))
        for capital in capitals(np.array(values)[sequences], mean):
            assert probability @ capital[:, -1] == pytest.approx(1)
            for alpha in (0.5, 0.2, 0.05):
                assert probability[capital.max(axis=1) >= 1 / alpha].sum() <= alpha + 1e-12

    def test_a_smaller_mean_than_the_null_makes_the_bet_on_more_a_supermartingale(self) -> None:
        sequences = np.array(list(product([-1.0, 1.0], repeat=8)))
        probability = np.where(sequences > 0, 0.4, 0.6).prod(axis=1)
        expected = probability @ capitals(sequences)[0]
        assert (np.diff(expected) <= 1e-12).all()
        assert expected[0] <= 1

    @given(st.lists(st.sampled_from([-1.0, 0.0, 1.0]), max_size=30))
    def test_of_successes_is_the_sign_test(self, differences: list[float]) -> None:
        bets = BettingProcess(0.0)
        wins = losses = 0
        expected = 1.0
        for difference in differences:
            p = max(0.5, (wins + 1.5) / (wins + losses + 2))
            p = min(p, 0.975)  # the largest stake
            expected *= {1.0: 2 * p, -1.0: 2 * (1 - p), 0.0: 1.0}[difference]
            wins, losses = wins + (difference > 0), losses + (difference < 0)
            bets.add(difference)
        assert math.exp(bets.up) == pytest.approx(expected)

    @given(st.lists(bounded, min_size=1, max_size=20), bounded)
    def test_mirrors(self, values: list[float], null: float) -> None:
        bets, mirrored = BettingProcess(null), BettingProcess(-null)
        for value in values:
            bets.add(value)
            mirrored.add(-value)
        assert bets.up == pytest.approx(mirrored.down)
        assert np.isfinite([bets.up, bets.down]).all()


class TestPairedTest:
    def test_says_not_yet_then_decides_and_stays(self) -> None:
        test = SequentialPairedTest("success", max_pairs=40)
        assert math.isnan(test.interval.mean)
        decisions = [test.add(False, True) for _ in range(12)]
        assert decisions[0] == "continue"
        assert decisions[-1] == test.decision == "B"
        assert test.p_value < 0.05
        assert test.interval.low > 0
        for _ in range(28):
            test.add(True, False)
        assert test.decision == "B"
        assert test.pairs == 40

    @pytest.mark.parametrize(("sides", "decision"), [("one", "undecided"), ("two", "A")])
    def test_one_side_never_finds_a_better(self, sides: str, decision: str) -> None:
        test = SequentialPairedTest("spl", sides=sides, max_pairs=30)  # type: ignore[arg-type]
        for _ in range(30):
            test.add(0.9, 0.2)
        assert test.decision == decision
        assert test.interval.high == (1.0 if sides == "one" else pytest.approx(-0.5, abs=0.2))

    def test_of_a_metric_where_less_is_better(self) -> None:
        test = SequentialPairedTest("collisions", worst=20, best=0)
        for _ in range(30):
            test.add(11, 2)
        assert test.decision == "B"
        assert test.interval.mean == pytest.approx(-9)
        assert -13 < test.interval.low < -9 < test.interval.high < -5

    def test_its_interval_contains_zero_as_long_as_there_is_no_decision(self) -> None:
        random = np.random.default_rng(3)
        test = SequentialPairedTest("spl")
        for a, b in random.beta(2, 2, (150, 2)) * (0.8, 1.0):
            decision = test.add(a, b)
            interval = test.interval
            assert interval.low <= interval.mean <= interval.high
            assert (decision == "continue") == (interval.low < 0 < interval.high)
        assert decision == "B"

    @pytest.mark.parametrize(
        "options",
        [{"alpha": 0.0}, {"alpha": 1.0}, {"sides": "both"}, {"max_pairs": 0}, {"best": 0.0}, {"best": math.inf}],
    )
    def test_refuses_options_that_make_no_sense(self, options: dict[str, object]) -> None:
        with pytest.raises(ConfigError):
            SequentialPairedTest("spl", **options)  # type: ignore[arg-type]

    def test_refuses_scores_out_of_bounds_and_pairs_beyond_the_last(self) -> None:
        test = SequentialPairedTest("spl", max_pairs=1)
        for value in (1.1, -0.1, math.nan, math.inf):
            with pytest.raises(ConfigError, match="outside"):
                test.add(0.5, value)
        assert test.pairs == 0
        assert test.add(0, 0) == "undecided"
        with pytest.raises(ConfigError, match="all 1 pairs"):
            test.add(0, 1)

    def test_decides_as_many_campaigns_at_once_do(self) -> None:
        differences = np.random.default_rng(5).choice([-1.0, 0.0, 0.5, 1.0], (20, 60))
        pairs, better = stopping_times(differences, 0.1, "two")
        for row, number, side in zip(differences, pairs, better, strict=True):
            test = SequentialPairedTest("progress", 0.1, max_pairs=60)
            while test.decision == "continue":
                value = row[test.pairs]
                test.add(max(0, -value), max(0, value))
            assert (test.pairs, {"A": -1, "B": 1, "undecided": 0}[test.decision]) == (number, side)


def world(runs: int, rates: tuple[float, float], correlation: float, seed: int) -> np.ndarray:
    """Successes of two policies on the same starts, (2, runs, 500), by a probit model of their difficulty."""
    from scipy.special import ndtri

    random = np.random.default_rng(seed)
    own, difficulty = random.standard_normal((2, runs, 500)), random.standard_normal((runs, 500))
    latent = math.sqrt(correlation) * difficulty + math.sqrt(1 - correlation) * own
    return latent + ndtri(np.array(rates))[:, None, None] > 0


@pytest.mark.parametrize(("correlation", "paired", "unpaired"), [(0.0, 101, 105), (0.5, 62, 98), (0.8, 42, 90)])
def test_needs_as_many_pairs_as_the_reference(correlation: float, paired: float, unpaired: float) -> None:
    a, b = world(300, (0.5, 0.7), correlation, 1)
    pairs, better = stopping_times(b.astype(float) - a)
    episodes, found = unpaired_stopping_times(a, b)
    assert pairs.mean() == pytest.approx(paired, rel=0.15)
    assert episodes.mean() == pytest.approx(unpaired, rel=0.15)
    assert better.mean() > 0.97
    assert found.mean() > 0.97


def test_equal_policies_are_rarely_told_apart() -> None:
    a, b = world(1000, (0.6, 0.6), 0.5, 2)
    _, better = stopping_times(b.astype(float) - a, sides="two")
    _, found = unpaired_stopping_times(a, b)
    assert (better != 0).mean() < 0.05
    assert found.mean() < 0.05


def test_unpaired_e_variable_expects_at_most_one() -> None:
    """By enumeration of all outcomes of three episodes per policy: the bound of Ville for several levels."""
    outcomes = np.array(list(product([0, 1], repeat=6)))
    a, b = outcomes[:, :3], outcomes[:, 3:]
    for rate in (0.2, 0.5, 0.7):
        probability = np.where(outcomes, rate, 1 - rate).prod(axis=1)
        for alpha in (0.9, 0.7, 0.5):
            _, found = unpaired_stopping_times(a, b, alpha)
            assert probability[found].sum() <= alpha
    assert unpaired_stopping_times(a, b, 0.9)[1].any()
