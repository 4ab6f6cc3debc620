"""Cohen's kappa: a published example, symmetry, bounds and coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from robot_runtime.scoring.statistics.agreement import agreement, agreement_lines


def judged(both: int, first: int, second: int, neither: int) -> tuple[list[bool], list[bool]]:
    a = [True] * (both + first) + [False] * (second + neither)
    b = [True] * both + [False] * first + [True] * second + [False] * neither
    return a, b


def test_of_a_published_table() -> None:
    """Grants of two readers: 20 yes-yes, 15 no-no, 5 and 10 disagreements: 0.4."""
    found = agreement(*judged(20, 5, 10, 15))
    assert (found.episodes, found.disagreements) == (50, 15)
    assert found.kappa.mean == pytest.approx(0.4)
    assert 0.1 < found.kappa.low < 0.2
    assert 0.6 < found.kappa.high < 0.7


@example([(False, False)] * 8 + [(True, True)])  # whose shares do not add up to 1 exactly
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40))
def test_is_symmetric_and_bounded(pairs: list[tuple[bool, bool]]) -> None:
    first, second = zip(*pairs, strict=True)
    found, swapped = agreement(first, second), agreement(second, first)
    assert found.disagreements == swapped.disagreements
    if math.isnan(found.kappa.mean):
        assert len({*first, *second}) == 1
    else:
        assert found.kappa.mean == pytest.approx(swapped.kappa.mean)
        assert -1 <= found.kappa.mean <= 1
        if not found.disagreements or 1 in (len({*first}), len({*second})):
            assert math.isnan(found.kappa.low)
        else:
            assert found.kappa.low <= found.kappa.mean <= found.kappa.high


def test_its_interval_contains_the_true_value_in_about_95_percent() -> None:
    random = np.random.default_rng(0)
    chances = np.array([0.5, 0.08, 0.07, 0.35])
    observed, expected = 0.85, 0.58 * 0.57 + 0.42 * 0.43
    true = (observed - expected) / (1 - expected)
    inside = 0
    for counts in random.multinomial(120, chances, 400):
        kappa = agreement(*judged(*counts.tolist())).kappa
        inside += kappa.low <= true <= kappa.high
    assert 0.92 <= inside / 400 <= 0.98


def test_judges_who_never_disagree() -> None:
    found = agreement([True, False], [True, False])
    assert (found.disagreements, found.kappa.mean) == (0, 1)
    assert math.isnan(found.kappa.low)


def test_a_judge_who_always_says_yes_has_no_interval() -> None:
    found = agreement([True] * 4, [True, False, True, True])
    assert (found.disagreements, found.kappa.mean) == (1, 0)
    assert math.isnan(found.kappa.low)


def test_refuses_nothing_and_different_lengths() -> None:
    with pytest.raises(ValueError):
        agreement([], [])
    with pytest.raises(ValueError):
        agreement([True], [])


def test_sentences_of_each_two_judges() -> None:
    episodes = [{"Ada": True, "Bob": False}, {"Bob": True, "Ada": True}, {"Ada": False, "Bob": False, "Eve": False}]
    first, *others = agreement_lines([*episodes, {}, {"Ada": True}])
    assert first.startswith("3 episodes judged by Ada and Bob: they disagree on 1, Cohen's κ 0.40 [")
    assert [line.split(":")[0] for line in others] == [
        "1 episode judged by Ada and Eve",
        "1 episode judged by Bob and Eve",
    ]
    assert all(line.endswith("κ not defined: both always judged alike") for line in others)
