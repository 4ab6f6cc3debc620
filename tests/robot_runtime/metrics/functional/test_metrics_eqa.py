"""EmbodiedQA's navigation and answer metrics."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robot_runtime.metrics.functional.eqa import (
    answer_accuracy,
    answer_rank,
    eqa_navigation,
    mean_rank,
    normalized_entropy,
)


class TestNavigation:
    def test_the_start_counts(self) -> None:
        found = eqa_navigation([1.0, 3.0], [True, False], stopped=False)
        assert (found.d_T, found.d_delta, found.d_min) == (3.0, -2.0, 1.0)
        assert (found.r_T, found.r_enter, found.stop) == (False, True, False)

    @given(st.lists(st.tuples(st.floats(0, 100), st.booleans()), min_size=1))
    def test_always(self, moments: list[tuple[float, bool]]) -> None:
        distances, rooms = zip(*moments, strict=True)
        found = eqa_navigation(distances, rooms, stopped=True)
        assert found.d_min <= min(distances[0], found.d_T)
        assert found.d_T + found.d_delta == pytest.approx(distances[0], abs=1e-9)
        assert found.r_enter or not found.r_T

    @pytest.mark.parametrize("bad", [[], [math.nan], [math.inf], [-1.0]])
    def test_no_distances(self, bad: list[float]) -> None:
        with pytest.raises(ValueError):
            eqa_navigation(bad, [True] * len(bad), True)
        with pytest.raises(ValueError):
            eqa_navigation([1.0], [True, False], True)


class TestAnswers:
    def test_ties(self) -> None:
        scores = [0.25] * 4
        assert [answer_rank(scores, 3, ties) for ties in ("best", "mean", "worst")] == [1, 2.5, 4]

    @given(st.permutations(range(6)), st.integers(0, 5))
    def test_without_ties_the_place_in_the_order(self, scores: list[int], truth: int) -> None:
        expected = sorted(scores, reverse=True).index(scores[truth]) + 1
        assert {answer_rank(scores, truth, ties) for ties in ("best", "mean", "worst")} == {expected}

    def test_means(self) -> None:
        assert (mean_rank([1, 3]), answer_accuracy([1, 3])) == (2.0, 0.5)

    @pytest.mark.parametrize(("scores", "truth"), [([], 0), ([1.0], 1), ([1.0], -1), ([1.0, math.nan], 0)])
    def test_no_answer(self, scores: Any, truth: int) -> None:
        with pytest.raises(ValueError):
            answer_rank(scores, truth)
        for mean in (mean_rank, answer_accuracy):
            with pytest.raises(ValueError):
                mean([])


class TestEntropy:
    def test_worked(self) -> None:
        assert normalized_entropy([9, 1]) == pytest.approx(0.46899559358928117)
        assert normalized_entropy([3, 3, 3]) == pytest.approx(1.0)
        assert normalized_entropy([3, 1]) == pytest.approx(0.8112781244591328)
        assert normalized_entropy([4, 1, 1]) == pytest.approx(0.7896900821428474)
        assert normalized_entropy([7]) == 0.0

    @given(st.lists(st.integers(1, 1000), min_size=2, max_size=20))
    def test_always(self, counts: list[int]) -> None:
        value = normalized_entropy(counts)
        assert 0 <= value <= 1
        assert normalized_entropy((10 * np.array(counts)).tolist()) == pytest.approx(value)

    @pytest.mark.parametrize("counts", [[], [0, 1], [math.nan, 1]])
    def test_no_counts(self, counts: Any) -> None:
        with pytest.raises(ValueError):
            normalized_entropy(counts)
