"""DTW against all warpings, and nDTW and SDTW against numbers computed by hand."""

from __future__ import annotations

import math
import subprocess
import sys
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from robot_runtime.metrics.functional.distances import Euclidean, Graph, Pairwise
from robot_runtime.metrics.functional.dtw import dtw, dtw_alignment, ndtw, sdtw, sdtw_as_printed

LINE = [(0, 0), (1, 0), (2, 0), (3, 0)]
BESIDE = [(0, 1), (1, 1), (2, 1), (3, 1)]
STRAIGHT = Pairwise(lambda a, b: float(np.linalg.norm(a - b)))


def by_definition(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """The cheapest of all warpings, each followed to its end."""

    @cache
    def best(i: int, j: int) -> float:
        here = float(np.linalg.norm(a[i] - b[j]))
        if i == len(a) - 1 and j == len(b) - 1:
            return here
        steps = ((i + 1, j), (i, j + 1), (i + 1, j + 1))
        return here + min(best(*step) for step in steps if step[0] < len(a) and step[1] < len(b))

    return best(0, 0)


@st.composite
def two_paths(draw: st.DrawFn) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    axes = draw(st.integers(1, 3))
    points = st.lists(st.floats(-50, 50), min_size=axes, max_size=axes)
    return tuple(np.array(draw(st.lists(points, min_size=1, max_size=9))) for _ in range(2))  # type: ignore[return-value]


@given(two_paths())
@settings(max_examples=200)
def test_is_the_best_of_all_warpings(paths: tuple[NDArray[np.float64], NDArray[np.float64]]) -> None:
    a, b = paths
    expected = pytest.approx(by_definition(a, b), rel=1e-12, abs=1e-12)
    assert dtw(a, b) == expected
    assert dtw(a, b, STRAIGHT) == expected


@given(two_paths())
def test_the_alignment_costs_what_it_says(paths: tuple[NDArray[np.float64], NDArray[np.float64]]) -> None:
    a, b = paths
    for distance in (Euclidean(), STRAIGHT):
        cost, pairs = dtw_alignment(a, b, distance)
        assert cost == pytest.approx(dtw(a, b), rel=1e-12, abs=1e-12)
        assert cost == pytest.approx(sum(np.linalg.norm(a[i] - b[j]) for i, j in pairs), rel=1e-12, abs=1e-12)
        assert pairs[0].tolist() == [0, 0]
        assert pairs[-1].tolist() == [len(a) - 1, len(b) - 1]
        assert {tuple(after - before) for before, after in pairwise(pairs)} <= {(1, 1), (1, 0), (0, 1)}


@given(two_paths(), st.floats(0.01, 100), st.floats(-10, 10))
def test_properties(paths: tuple[NDArray[np.float64], NDArray[np.float64]], scale: float, shift: float) -> None:
    a, b = paths
    cost = dtw(a, b)
    assert dtw(b, a) == pytest.approx(cost, rel=1e-12)
    assert dtw(a[::-1], b[::-1]) == pytest.approx(cost, rel=1e-9, abs=1e-9)
    assert dtw(a * scale + shift, b * scale + shift) == pytest.approx(cost * scale, rel=1e-6, abs=1e-9)
    assert dtw(a, a) == 0
    assert dtw(np.repeat(a, 3, axis=0), a) == 0  # repeats of a matched node are free
    assert cost >= max(np.linalg.norm(a[0] - b[0]), np.linalg.norm(a[-1] - b[-1]))
    assert cost >= np.linalg.norm(a[:, None] - b[None], axis=2).min(axis=1).sum() - 1e-9
    assert 0 <= ndtw(a, b, 3.0) <= 1
    assert ndtw(a, b, 3.0) <= ndtw(a, b, 4.0)


def test_of_equal_warpings_the_shortest() -> None:
    assert dtw_alignment(LINE, LINE)[1].tolist() == [[0, 0], [1, 1], [2, 2], [3, 3]]
    assert dtw_alignment([(0.0,)], [(0.0,)] * 3)[1].tolist() == [[0, 0], [0, 1], [0, 2]]


@pytest.mark.slow
def test_long_paths_need_no_matrix() -> None:
    """A matrix of 20,000 x 20,000 distances would take 3.2 GB."""
    path = np.cumsum(np.random.default_rng(0).normal(size=(20_000, 2)), axis=0)
    assert dtw(path, path) == 0


def test_ndtw_worked() -> None:
    assert ndtw(LINE, BESIDE, 3.0) == pytest.approx(math.exp(-4 / 12))
    assert ndtw([(0,), (1,), (2,)], [(0,), (2,)], 3.0) == pytest.approx(math.exp(-1 / 9))


def test_ndtw_divides_by_the_reference_so_density_counts() -> None:
    """A path 1 m beside a reference of 4 nodes 2 m apart, sampled ever more densely."""
    reference = [(0, 0), (2, 0), (4, 0), (6, 0)]
    found = [ndtw(reference, [(x, 1) for x in np.linspace(0, 6, count)], 3.0) for count in (4, 7, 13, 25)]
    assert found == pytest.approx([0.7165, 0.5031, 0.2877, 0.0920], abs=1e-4)


def test_sdtw_and_its_printed_pseudo_code() -> None:
    assert (sdtw(True, 0.7), sdtw(False, 0.7)) == (0.7, 0.0)
    assert sdtw_as_printed(LINE, [(0, 5), (3, 0)], 3.0) == 0  # ends on the goal
    assert sdtw_as_printed(LINE, [(0, 0)], 2.0) > 0  # never left the start, 3 m from the goal


def test_along_a_graph() -> None:
    """Two rooms behind a wall: a and b are 1 m apart as the crow flies, 9 m on foot."""
    graph = Graph.of_edges([("a", "door", 4), ("door", "b", 5), ("b", "c", 1), ("b", "door", 7)])
    assert dtw(["a", "door"], ["b", "door"], graph) == 9
    assert dtw_alignment(["a"], ["b", "c"], graph)[0] == 9 + 10
    assert ndtw(["b", "c"], ["b", "c"], 3.0, graph) == 1
    with pytest.raises(ValueError, match="no node 'attic'"):
        dtw(["a"], ["attic"], graph)


def test_without_a_way_the_cost_is_infinite() -> None:
    graph = Graph.of_edges([("a", "b", 1), ("island", "beach", 1)])
    assert dtw(["a", "b"], ["island"], graph) == math.inf
    cost, pairs = dtw_alignment(["a", "b"], ["island", "beach", "island"], graph)
    assert cost == math.inf
    assert pairs[[0, -1]].tolist() == [[0, 0], [1, 2]]
    assert ndtw(["a"], ["island"], 3.0, graph) == 0


@pytest.mark.parametrize("bad", [[], [(0, math.nan)], [(0, 0), (math.inf, 0)], [0.0, 1.0], [(0, 0, 0)], "ab"])
def test_no_path(bad: Any) -> None:
    for a, b in ((LINE, bad), (bad, LINE)):
        for call in (dtw, dtw_alignment, lambda a, b: ndtw(a, b, 3.0)):
            with pytest.raises(ValueError):
                call(a, b)


@pytest.mark.parametrize("threshold", [0.0, -1.0, math.nan, math.inf])
def test_no_threshold(threshold: float) -> None:
    with pytest.raises(ValueError, match="threshold"):
        ndtw(LINE, LINE, threshold)


def test_matches_the_compiled_rival() -> None:
    rival = pytest.importorskip("dtaidistance.dtw_ndim", reason="dtaidistance is not installed")
    random = np.random.default_rng(1)
    for n, m in ((50, 80), (80, 50), (1, 7)):
        a, b = random.normal(size=(n, 2)), random.normal(size=(m, 2))
        assert dtw(a, b) == pytest.approx(rival.distance(a, b, inner_dist="euclidean"), rel=1e-12)


def test_fastdtw_never_finds_a_cheaper_warping() -> None:
    rival = pytest.importorskip("fastdtw", reason="fastdtw is not installed")
    random = np.random.default_rng(2)
    for _ in range(20):
        a, b = random.normal(size=(12, 2)), random.normal(size=(15, 2))
        assert dtw(a, b) <= rival.fastdtw(a, b, dist=2)[0] + 1e-9


def test_compiles_where_nothing_can_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    from numba.core.caching import CacheImpl

    from robot_runtime.common.jit import compiled

    monkeypatch.setattr(CacheImpl, "_locator_classes", [])
    assert compiled(lambda x: x + 1)(1) == 2


def test_numba_is_loaded_only_where_it_is_needed() -> None:
    script = "import sys, robot_runtime.scoring.cases; assert 'numba' not in sys.modules, 'numba was imported'"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
