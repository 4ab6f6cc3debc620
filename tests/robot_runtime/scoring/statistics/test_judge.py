"""Judges with errors: thresholds, verdicts, and corrected shares that cover the truth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robot_runtime.scoring.statistics.judge import calibrate, corrected_share, corrected_success
from robot_runtime.verdicts import Judge


def test_a_judge_abstains_where_it_errs() -> None:
    scores = [0.1, 0.2, 0.3, 0.45, 0.5, 0.55, 0.7, 0.8, 0.9, 0.95]
    truth = [False, False, False, True, False, False, True, True, True, True]
    judge = calibrate(scores, truth, abstention=0.3)
    assert [judge.verdict(score) for score in scores] == [False] * 3 + [None] * 3 + [True] * 4
    assert (judge.positives, judge.true_positives, judge.negatives, judge.true_negatives) == (4, 4, 3, 3)
    sure = calibrate(scores, truth, abstention=0.0)
    assert None not in [sure.verdict(score) for score in scores]
    assert sure.true_positives + sure.true_negatives == 9


def test_the_share_is_corrected_for_both_errors() -> None:
    judge = Judge(0.5, 0.5, 10_000, 9_000, 10_000, 8_000)
    # Of 1000 episodes of which 600 succeeded, it calls 600 * 0.9 + 400 * 0.2 = 620 successes.
    found = corrected_share(620, 1000, judge)
    assert found.mean == pytest.approx(0.6, abs=0.005)
    assert found.low < 0.6 < found.high
    perfect = corrected_share(620, 1000, Judge(0.5, 0.5, 10_000, 10_000, 10_000, 10_000))
    assert perfect.high - perfect.low < found.high - found.low


def test_few_calibration_episodes_widen_the_interval() -> None:
    many, few = (corrected_share(60, 100, Judge(0.5, 0.5, n, n, n, n)) for n in (1000, 10))
    assert few.high - few.low > 1.2 * (many.high - many.low)


def test_the_interval_covers_the_truth() -> None:
    random, hits, runs = np.random.default_rng(0), 0, 800
    for _ in range(runs):
        judge = Judge(0.5, 0.5, 120, random.binomial(120, 0.93), 120, random.binomial(120, 0.9))
        yes = random.binomial(100, 0.4 * 0.93 + 0.6 * 0.1)
        found = corrected_share(yes, 100, judge)
        hits += found.low <= 0.4 <= found.high
    assert hits / runs == pytest.approx(0.95, abs=0.025)


@pytest.mark.parametrize(
    ("scores", "truth"), [([0.5], [True]), ([0.5, np.nan], [True, False]), ([1.5, 0.1], [True, False]), ([], [])]
)
def test_what_cannot_calibrate_is_refused(scores: list[float], truth: list[bool]) -> None:
    with pytest.raises(ValueError):
        calibrate(scores, truth)


def test_a_judge_that_says_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="says nothing"):
        corrected_share(5, 10, Judge(0.5, 0.5, 100, 40, 100, 40))


@given(st.integers(0, 50), st.integers(1, 50), st.integers(1, 60), st.integers(1, 60), st.data())
def test_intervals_are_in_order(yes: int, more: int, positives: int, negatives: int, data: st.DataObject) -> None:
    true_positives = data.draw(st.integers((positives * 3 + 3) // 4, positives))
    true_negatives = data.draw(st.integers((negatives * 3 + 3) // 4, negatives))
    found = corrected_share(yes, yes + more, Judge(0.5, 0.5, positives, true_positives, negatives, true_negatives))
    assert 0 <= found.low <= found.mean <= found.high <= 1


def test_episodes_that_failed_anyway_are_part_of_the_share() -> None:
    random, hits, runs = np.random.default_rng(1), 0, 800
    for _ in range(runs):
        judge = Judge(0.5, 0.5, 120, random.binomial(120, 0.93), 120, random.binomial(120, 0.9))
        near = random.binomial(100, 0.7)
        yes = random.binomial(near, 0.6 * 0.93 + 0.4 * 0.1)
        found = corrected_success(yes, near, 100 - near, judge)
        hits += found.low <= 0.7 * 0.6 <= found.high
    assert hits / runs == pytest.approx(0.95, abs=0.025)
