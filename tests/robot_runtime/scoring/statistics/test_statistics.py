"""Hypothesis tests, sample sizes and sim-vs-real correlation."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robot_runtime.scoring.statistics.hypothesis_tests import (
    further_episodes,
    paired_permutation_test,
    rank_reversals,
    spl_variance,
    srcc,
)

scores = st.floats(0, 1)


class TestPaired:
    @given(st.lists(st.tuples(scores, scores), min_size=1, max_size=8))
    def test_counts_every_sign(self, pairs: list[tuple[float, float]]) -> None:
        a, b = np.array(pairs).T
        differences = a - b
        sums = [abs(float(np.dot(signs, differences))) for signs in product((1, -1), repeat=len(pairs))]
        observed = abs(float(differences.sum()))
        found = paired_permutation_test(a, b)
        assert found.exact
        assert found.p_value == pytest.approx(np.mean([s >= observed - 1e-12 * sum(abs(differences)) for s in sums]))
        assert paired_permutation_test(b, a).p_value == pytest.approx(found.p_value)

    def test_worked(self) -> None:
        """All of five episodes better: 2 of 32 sign patterns are as extreme."""
        found = paired_permutation_test([1, 1, 1, 1, 1], [0] * 5)
        assert (found.p_value, found.difference, found.episodes, found.units) == (2 / 32, 1.0, 5, 5)
        assert paired_permutation_test([0.5, 1], [0.5, 1]).p_value == 1.0

    def test_drawn_signs_agree_with_all_signs(self) -> None:
        """17 units are drawn, 16 counted; one more that hardly differs changes hardly anything."""
        random = np.random.default_rng(0)
        differences = random.normal(0.3, 1, 16)
        all_of_them = paired_permutation_test(differences, np.zeros(16))
        drawn = paired_permutation_test([*differences, 1e-9], np.zeros(17))
        assert (all_of_them.exact, drawn.exact) == (True, False)
        assert drawn.p_value == pytest.approx(all_of_them.p_value, abs=0.01)

    def test_false_alarms_are_as_rare_as_promised(self) -> None:
        random = np.random.default_rng(1)
        found = [
            paired_permutation_test(random.random(30) ** 3, random.random(30) ** 3, permutations=500).p_value
            for _ in range(400)
        ]
        assert np.mean(np.array(found) <= 0.05) == pytest.approx(0.05, abs=0.03)

    def test_clusters_change_sign_together(self) -> None:
        """The same difference in 10 episodes of 2 scenes is 2 observations, not 10."""
        a, b = np.ones(10), np.zeros(10)
        assert paired_permutation_test(a, b).p_value == 2 / 1024
        found = paired_permutation_test(a, b, clusters=[0] * 5 + [1] * 5)
        assert (found.p_value, found.units) == (0.5, 2)

    @pytest.mark.parametrize(
        ("a", "b", "clusters"),
        [([], [], None), ([1], [1, 2], None), ([math.nan], [1], None), ([1, 2], [3, 4], [0, 0]), ([1, 2], [3, 4], [0])],
    )
    def test_no_pairs(self, a: Any, b: Any, clusters: Any) -> None:
        with pytest.raises(ValueError):
            paired_permutation_test(a, b, clusters)


class TestFurtherEpisodes:
    def test_that_many_find_the_difference_four_times_of_five(self) -> None:
        random = np.random.default_rng(2)
        effect, spread = 0.1, 0.3
        a = random.normal(0, spread, 4000)
        a += effect - a.mean()
        more = further_episodes(a[:2000], np.zeros(2000), difference=effect)
        assert more == 0  # 2,000 suffice
        pilot = spread * math.sqrt(20 / 19) * np.array([1, -1] * 10) * math.sqrt(19 / 20)
        more = further_episodes(pilot + effect, np.zeros(20))
        assert more is not None
        assert 20 + more == pytest.approx((1.96 + 0.8416) ** 2 * spread**2 * 20 / 19 / effect**2, abs=1)
        found = [
            paired_permutation_test(
                random.normal(effect, spread, 20 + more), np.zeros(20 + more), permutations=400
            ).p_value
            for _ in range(300)
        ]
        assert np.mean(np.array(found) <= 0.05) == pytest.approx(0.8, abs=0.08)

    def test_alike_episodes_need_more(self) -> None:
        random = np.random.default_rng(3)
        scenes = np.repeat(np.arange(10), 10)
        a = 0.05 + random.normal(0, 0.3, 10)[scenes] + random.normal(0, 0.1, 100)
        alone, clustered = (further_episodes(a, np.zeros(100), c, difference=0.05) for c in (None, scenes.tolist()))
        assert alone is not None
        assert clustered is not None
        assert clustered > 4 * alone

    def test_no_number_suffices(self) -> None:
        assert further_episodes([1, 0], [0, 1]) is None
        assert further_episodes([1, 1], [0, 0]) is None  # nothing varies: the pairs say nothing about the spread
        for options in ({"alpha": 0.0}, {"power": 1.0}):
            with pytest.raises(ValueError):
                further_episodes([1, 0], [0, 0], **options)
        with pytest.raises(ValueError, match="one pair"):
            further_episodes([1], [0])


class TestSimVersusReal:
    @given(st.lists(st.tuples(scores, scores), min_size=3, max_size=10))
    def test_is_pearson(self, pairs: list[tuple[float, float]]) -> None:
        s, r = (np.round(side, 3) for side in np.array(pairs).T)
        if np.ptp(s) == 0 or np.ptp(r) == 0:
            with pytest.raises(ValueError, match="undefined"):
                srcc(s, r)
        else:
            assert srcc(s, r) == pytest.approx(np.corrcoef(s, r)[0, 1], abs=1e-9)

    def test_reversals(self) -> None:
        assert rank_reversals([1, 2, 3], [1, 3, 2]) == [(1, 2)]
        assert rank_reversals([1, 2, 3], [3, 2, 1]) == [(0, 1), (0, 2), (1, 2)]
        assert rank_reversals([1, 1, 2], [2, 1, 2]) == []  # ties reverse nothing

    @pytest.mark.parametrize(
        ("s", "r"), [([1, 2], [1, 2]), ([1, 2, 3], [1, 2]), ([1, 2, math.nan], [1, 2, 3]), ([], [])]
    )
    def test_too_little(self, s: Any, r: Any) -> None:
        with pytest.raises(ValueError):
            srcc(s, r)


def test_spl_variance_against_coin_tosses() -> None:
    one, of_mean = spl_variance(0.5, 0.8, 100)
    tosses = 0.8 * np.random.default_rng(4).integers(0, 2, (5000, 100))
    assert one == pytest.approx(tosses.var(), rel=0.01)
    assert of_mean == pytest.approx(tosses.mean(axis=1).var(), rel=0.1)
    with pytest.raises(ValueError):
        spl_variance(1.5, 0.8, 100)
