"""Each metric against numbers worked by hand, and against the worked cases beside the checkout where they are."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robot_runtime.scoring.intervals import bootstrap_mean, wilson
from robot_runtime.scoring.metrics.collisions import collisions
from robot_runtime.scoring.metrics.path import path_length
from robot_runtime.scoring.metrics.spl import soft_spl, spl
from robot_runtime.scoring.metrics.success import distance_to_goal, success

lengths = st.floats(0, 1e6)


class TestPathLength:
    def test_worked(self) -> None:
        assert path_length([(0, 0), (3, 4), (3, 5)]) == 6.0
        assert path_length([(0, 0, 9), (3, 4, 0)], axes=(0, 1)) == 5.0
        assert path_length([(7, 7)]) == 0.0

    @pytest.mark.parametrize("points", [[], [1.0, 2.0], [(0, math.nan), (1, 1)]])
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
        with pytest.raises(ValueError, match="although no way leads"):
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


def test_collisions() -> None:
    assert collisions([]).rate == 0
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


# --- the worked cases that come with the metrics' definitions --------------------------------------------------------


def _success(stopped: bool, distance: float, case: dict[str, Any]) -> float:
    return float(success(stopped, distance, case.get("d_th", case.get("radius", 1.0)), not case.get("strict", True)))


CASES: dict[str, Any] = {
    "path_length": lambda x: path_length(x["Q"], (0, 2) if x.get("d") == "planar" else None),
    "success_rate": lambda x: _success(True, distance_to_goal(x["Q"][-1], [x["R"][-1]]), {"strict": False, **x}),
    "goal_success": lambda x: _success(x["stopped"], distance_to_goal(x["pos"], x["goals"]), x),
    "distance_to_goal": lambda x: distance_to_goal(x["pos"], x["goals"]),
    "spl": lambda x: spl(x["success"], x["shortest"], x["travelled"], x.get("zero", "one_if_still")),
    "soft_spl": lambda x: soft_spl(x["d_start"], x["d_end"], x["travelled"]),
    "collisions": lambda x: {
        "count": collisions(x["flags"]).count,
        "is_collision": collisions(x["flags"]).last,
        "rate": collisions(x["flags"]).rate,
    },
    "wilson": lambda x: [wilson(x["k"], x["n"]).low, wilson(x["k"], x["n"]).high],
    "bootstrap_ci": lambda x: [
        getattr(bootstrap_mean(x["values"], resamples=x["n"]), name) for name in ("mean", "low", "high")
    ],
}


@pytest.mark.parametrize("metric", CASES)
def test_worked_cases(metric: str) -> None:
    path = Path(__file__).resolve().parents[3] / "shared" / "reference" / "metrics_cases.json"
    if not path.is_file():
        pytest.skip(f"the worked cases are not at {path}")
    cases = [case for case in json.loads(path.read_text())["cases"] if case["metric"] == metric]
    assert cases
    for case in cases:
        expected = math.nan if case["expected"] == "nan" else case["expected"]
        assert CASES[metric](case["inputs"]) == pytest.approx(expected, abs=case["tol"], nan_ok=True), case["id"]
