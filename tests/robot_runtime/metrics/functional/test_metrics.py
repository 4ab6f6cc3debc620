"""Metrics of one path, SPL, SoftSPL, SCT, collisions and intervals, against numbers computed by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robot_runtime.actions.discrete import Action
from robot_runtime.metrics.functional.distances import Euclidean
from robot_runtime.metrics.functional.path import (
    episode_length,
    navigation_error,
    oracle_navigation_error,
    path_length,
    without_repeats,
)
from robot_runtime.metrics.functional.spl import sct, soft_spl, spl
from robot_runtime.metrics.functional.success import collisions, distance_to_goal, success, visible_success
from robot_runtime.scoring.statistics.intervals import bootstrap_mean, wilson

lengths = st.floats(0, 1e6)


class TestPathLength:
    def test_worked(self) -> None:
        assert path_length([(0, 0), (3, 4), (3, 5)]) == 6.0
        assert path_length([(0, 0, 9), (3, 4, 0)], Euclidean((0, 1))) == 5.0
        assert path_length([(7, 7)]) == 0.0

    def test_errors_are_of_nodes_not_of_segments(self) -> None:
        reference, path = [(0, 0), (3, 0)], [(0, 0), (4, 0), (0, 0)]
        assert navigation_error(reference, path) == 3.0
        assert oracle_navigation_error(reference, path) == 1.0

    def test_repeats(self) -> None:
        path = [(0, 0), (0, 0), (1, 0), (1, 0.1), (0, 0)]
        assert without_repeats(path).tolist() == [[0, 0], [1, 0], [1, 0.1], [0, 0]]
        assert without_repeats(path, 0.2).tolist() == [[0, 0], [1, 0], [0, 0]]
        assert len(without_repeats([(0, i * 0.1) for i in range(11)], 0.25)) == 4  # creeping is movement all the same

    def test_length_in_actions(self) -> None:
        actions = ["MoveAhead", "Stop"]
        assert (episode_length(actions), episode_length(actions, count_stop=False)) == (2, 1)
        assert episode_length([Action.MOVE_FORWARD, Action.STOP], count_stop=False) == 1

    @pytest.mark.parametrize("points", [[], [1.0, 2.0], [(0, math.nan), (1, 1)], [(0, 0), (math.inf, 1)], [()]])
    def test_no_path(self, points: Any) -> None:
        with pytest.raises(ValueError):
            path_length(points)

    def test_noise_at_action_ends_adds_centimetres_but_at_10_hz_metres(self) -> None:
        """5 m in 60 s with 2 cm of white noise: sampled at 10 Hz 17 m too long, at 20 action ends less than 10 cm."""
        random = np.random.default_rng(0)
        line = np.stack([np.linspace(0, 5, 601), np.zeros(601)], axis=1)
        noisy = line + random.normal(0, 0.02, line.shape)
        assert path_length(noisy) > 15
        assert path_length(noisy[::30]) == pytest.approx(5.0, abs=0.1)


class TestSuccess:
    @pytest.mark.parametrize(
        ("stopped", "distance_m", "inclusive", "expected"),
        [
            (True, 0.19, False, True),
            (True, 0.2, False, False),
            (True, 0.2, True, True),
            (True, math.inf, True, False),
            (False, 0.0, True, False),
        ],
    )
    def test_rules(self, stopped: bool, distance_m: float, inclusive: bool, expected: bool) -> None:
        assert success(stopped, distance_m, 0.2, inclusive) is expected

    @pytest.mark.parametrize("distance_m", [math.nan, -0.1])
    def test_no_distance(self, distance_m: float) -> None:
        with pytest.raises(ValueError, match="distance"):
            success(True, distance_m, 0.2)

    def test_distance_to_the_nearest(self) -> None:
        assert distance_to_goal((0, 0), [(3, 4), (0, 2)]) == 2.0
        assert distance_to_goal((0, 0), []) == math.inf
        with pytest.raises(ValueError, match="finite"):
            distance_to_goal((0, math.nan), [(1, 1)])

    def test_visible(self) -> None:
        assert visible_success(True, True)
        assert not visible_success(True, False)
        assert not visible_success(False, True)


class TestSpl:
    def test_worked(self) -> None:
        assert spl(True, 5, 8) == 0.625
        assert spl(True, 5, 4) == 1.0  # shorter than the shortest: l ends at a view point, p is sampled
        assert spl(False, 5, 5) == 0.0
        assert soft_spl(10, 4, 12) == pytest.approx(0.5)
        assert soft_spl(10, 12, 2) == 0.0

    @pytest.mark.parametrize(("zero", "still"), [("one_if_still", 1.0), ("zero", 0.0), ("nan", math.nan)])
    def test_start_at_the_goal(self, zero: Any, still: float) -> None:
        assert spl(True, 0, 0, zero) == pytest.approx(still, nan_ok=True)
        assert spl(True, 0, 0.25, zero) == 0.0
        assert soft_spl(0, 0, 0, zero) == pytest.approx(still, nan_ok=True)
        assert soft_spl(0, 1, 1, zero) == 0.0

    def test_start_at_the_goal_as_an_error(self) -> None:
        with pytest.raises(ZeroDivisionError):
            spl(True, 0, 0, "error")
        assert spl(True, 0, 1, "error") == 0.0

    def test_no_way(self) -> None:
        assert spl(False, math.inf, 3) == 0.0
        assert soft_spl(math.inf, math.inf, 3) == 0.0
        assert soft_spl(3, math.inf, 3) == 0.0
        with pytest.raises(ValueError, match="succeeded"):
            spl(True, math.inf, 3)

    @pytest.mark.parametrize("bad", [(-1, 1), (1, -1), (math.nan, 1), (1, math.nan), (1, math.inf)])
    def test_no_length(self, bad: tuple[float, float]) -> None:
        with pytest.raises(ValueError, match="length"):
            spl(True, *bad)
        with pytest.raises(ValueError, match="length"):
            soft_spl(bad[0], 0.0, bad[1])
        with pytest.raises(ValueError, match="length"):
            soft_spl(1.0, math.nan, 1.0)

    @given(lengths, lengths, lengths)
    def test_between_zero_and_one_and_soft_reaches_hard_at_the_goal(self, start: float, end: float, way: float) -> None:
        assert 0 <= soft_spl(start, end, way) <= 1
        assert soft_spl(start, 0, way) == pytest.approx(spl(True, start, way))


def test_sct_is_spl_of_times() -> None:
    assert (sct(True, 10, 25), sct(True, 10, 9), sct(False, 10, 10)) == (0.4, 1.0, 0.0)


def test_collisions() -> None:
    assert collisions([]).rate == 0
    assert collisions(np.array([True, False])).last is False
    found = collisions([False, True, True])
    assert (found.count, found.last, found.rate) == (2, True, 2 / 3)


class TestIntervals:
    def test_wilson_is_honest_at_the_ends(self) -> None:
        none, all_of_them = wilson(0, 10), wilson(10, 10)
        assert (none.low, none.high) == (0.0, pytest.approx(0.2775, abs=1e-4))
        assert (all_of_them.low, all_of_them.high) == (pytest.approx(0.7225, abs=1e-4), 1.0)

    def test_bootstrap_has_its_level(self) -> None:
        """SPL of a coin toss at 30 episodes: published width 0.30; the interval covers the truth 9 times of 10."""
        random = np.random.default_rng(1)
        samples = random.integers(0, 2, (200, 30)) * 0.8
        found = [bootstrap_mean(sample.tolist(), resamples=2000) for sample in samples]
        assert np.mean([i.high - i.low for i in found]) == pytest.approx(0.28, abs=0.03)
        assert np.mean([i.low <= 0.4 <= i.high for i in found]) > 0.9

    def test_bootstrap_depends_on_values_and_seed_only(self) -> None:
        values = np.random.default_rng(0).random(50).tolist()
        assert bootstrap_mean(values, seed=1) == bootstrap_mean(values, seed=1) != bootstrap_mean(values, seed=2)

    def test_many_episodes_fit_in_memory(self) -> None:
        assert bootstrap_mean([0.0, 1.0] * 3000, resamples=1500).mean == 0.5

    def test_clusters_widen_the_interval_of_alike_episodes(self) -> None:
        """20 scenes whose level varies, 10 episodes each: by episode the interval misses the truth far too often."""
        random = np.random.default_rng(2)
        scenes = np.repeat(np.arange(20), 10)
        hits = {"episodes": 0, "scenes": 0}
        for _ in range(200):
            values = random.normal(0.5, 0.2, 20)[scenes] + random.normal(0, 0.1, 200)
            for name, clusters in (("episodes", None), ("scenes", scenes.tolist())):
                interval = bootstrap_mean(values.tolist(), resamples=400, clusters=clusters)
                hits[name] += interval.low <= 0.5 <= interval.high
        assert hits["scenes"] / 200 > 0.88
        assert hits["episodes"] / 200 < 0.6

    def test_clusters_of_one_episode_change_nothing(self) -> None:
        values = np.random.default_rng(0).random(50).tolist()
        assert bootstrap_mean(values, clusters=range(50)).low == pytest.approx(bootstrap_mean(values).low)

    def test_the_mean_of_clusters_is_that_of_episodes(self) -> None:
        assert bootstrap_mean([1, 1, 1, 0], clusters=["a", "a", "a", "b"]).mean == 0.75
        for clusters in (["a"] * 4, ["a", "b"]):
            with pytest.raises(ValueError, match="cluster"):
                bootstrap_mean([1, 1, 1, 0], clusters=clusters)

    @pytest.mark.parametrize("rate", [0.02, 0.5, 0.9])
    def test_wilson_covers(self, rate: float) -> None:
        found = [wilson(int(k), 50) for k in np.random.default_rng(3).binomial(50, rate, 1000)]
        assert 0.92 < np.mean([i.low <= rate <= i.high for i in found]) <= 1

    def test_infinite(self) -> None:
        assert bootstrap_mean([1.0, math.inf]).high == math.inf

    @given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
    def test_the_mean_lies_inside(self, values: list[float]) -> None:
        interval = bootstrap_mean(values, resamples=100)
        assert interval.low <= interval.mean <= interval.high

    @given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
    def test_wilson_holds_the_rate(self, counts: tuple[int, int]) -> None:
        interval = wilson(*counts)
        assert 0 <= interval.low <= interval.mean <= interval.high <= 1

    def test_bad_input(self) -> None:
        for values in ([], [math.nan]):
            with pytest.raises(ValueError):
                bootstrap_mean(values)
        for counts in ((2, 1), (-1, 1), (0, 0)):
            with pytest.raises(ValueError):
                wilson(*counts)
        with pytest.raises(ValueError, match="confidence"):
            wilson(1, 2, confidence=95)
