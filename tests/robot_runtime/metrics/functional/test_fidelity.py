"""Deviation, coverage, edit distance and whole routes, with every rule where sources disagree."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robot_runtime.metrics.functional.distances import EUCLIDEAN, Distance, Euclidean, Geodesic, Graph, Pairwise
from robot_runtime.metrics.functional.fidelity import average_deviation, cls, max_deviation, path_coverage
from robot_runtime.metrics.functional.path import path_length
from robot_runtime.metrics.functional.route import RouteRules, route_metrics, sed
from robot_runtime.metrics.functional.success import distance_to_goal
from robot_runtime.scenes.geodesic import GeodesicMap
from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap

LINE = [(0, 0), (1, 0), (2, 0), (3, 0)]
points = st.lists(st.tuples(st.floats(-20, 20), st.floats(-20, 20)), min_size=1, max_size=8)


class TestDistances:
    def test_planar_by_argument(self) -> None:
        path = [(0, 0.901, 0), (0, 0.01, 2)]  # RoboTHOR's two heights of one robot
        assert path_length(path, Euclidean((0, 2))) == 2.0
        assert path_length(path) > 2.1
        with pytest.raises(ValueError, match="no axes"):
            path_length([(0, 0)], Euclidean((0, 2)))

    def test_around_a_wall(self) -> None:
        """A room of 4 x 4 m, cut in two but for a gap at the top: 1 m through the wall is more than 4 m on foot."""
        cells = np.full((80, 80), Cell.FREE, np.uint8)
        cells[:60, 39:41] = Cell.OCCUPIED
        around = Geodesic(GeodesicMap(OccupancyMap(cells, 0.05, 0.0, 0.0), 0.18))
        here, there = (1.5, 1.0), (2.5, 1.0)
        assert distance_to_goal(here, [there]) == 1.0
        on_foot = distance_to_goal(here, [there], around)
        assert on_foot > 4.0
        assert distance_to_goal(here, [there, (1.5, 2.0)], around) == pytest.approx(1.0, abs=0.01)
        assert path_length([here, (1.5, 2.0), (1.0, 2.0)], around) == pytest.approx(1.5)
        assert path_length([here, there], around) == pytest.approx(on_foot)
        a, b = around.nodes([here, (1.0, 1.0)]), around.nodes([there, (1.5, 2.0), (3.0, 3.0)])
        np.testing.assert_allclose(around.nearest(a, b), around.matrix(a, b).min(axis=1), atol=0.01)
        assert average_deviation([there], [here], around) == pytest.approx(on_foot)

    def test_a_matrix_of_ones_own(self) -> None:
        stairs = Graph(["hall", "attic"], [[0, 12.5], [12.5, 0]])
        assert path_length(["hall", "attic", "hall"], stairs) == 25.0
        for names, matrix in ((["a", "a"], np.zeros((2, 2))), (["a"], np.zeros((2, 2))), (["a"], [[math.nan]])):
            with pytest.raises(ValueError):
                Graph(names, matrix)
        with pytest.raises(ValueError, match="positive"):
            Graph.of_edges([("a", "b", 0)])

    def test_a_function_of_ones_own(self) -> None:
        blocks = Pairwise(lambda a, b: float(np.abs(a - b).sum()))
        assert path_length([(0, 0), (1, 1)], blocks) == 2.0
        with pytest.raises(ValueError, match="negative or NaN"):
            path_length([(0, 0), (1, 1)], Pairwise(lambda a, b: -1.0))

    @given(points, points)
    def test_each_way_of_asking_is_the_same(self, first: list[Any], second: list[Any]) -> None:
        function: Distance = Pairwise(lambda a, b: math.dist(a, b))
        a, b = EUCLIDEAN.nodes(first), EUCLIDEAN.nodes(second)
        np.testing.assert_allclose(EUCLIDEAN.matrix(a, b), function.matrix(a, b), atol=1e-12)
        np.testing.assert_allclose(EUCLIDEAN.steps(a), function.steps(a), atol=1e-12)
        np.testing.assert_allclose(EUCLIDEAN.nearest(a, b), function.nearest(a, b), atol=1e-12)


class TestDeviation:
    def test_to_the_nearest_node_of_the_reference(self) -> None:
        assert average_deviation(LINE, [(0, 0), (3, 0)]) == 0
        assert average_deviation(LINE, [(0, 2), (3, 0)]) == 1
        assert max_deviation(LINE, [(0, 2), (4, 0)]) == 2

    @given(points, points)
    def test_the_largest_is_not_below_the_mean(self, reference: list[Any], path: list[Any]) -> None:
        assert max_deviation(reference, path) >= average_deviation(reference, path) - 1e-12


class TestCoverage:
    def test_worked(self) -> None:
        assert path_coverage([(0, 0), (3, 0)], [(0, 0)], 3.0) == pytest.approx((1 + math.exp(-1)) / 2)
        assert cls([(0, 0), (3, 0)], [(0, 0)], 3.0) == pytest.approx((1 + math.exp(-1)) / 4)

    def test_blind_to_order(self) -> None:
        square = [(0, 0), (2, 0), (2, 2), (0, 0)]
        assert cls(square, [square[0], square[2], square[1], square[3]], 3.0) == pytest.approx(1.0)

    def test_two_paths_without_length(self) -> None:
        assert cls([(0, 0)], [(9, 0)], 3.0) == pytest.approx(math.exp(-3))
        assert cls([(0, 0)], [(9, 0)], 3.0, degenerate="one") == 1.0

    def test_so_far_away_that_nothing_is_covered(self) -> None:
        assert cls([(0, 0), (1, 0)], [(1e6, 0)], 1.0) == 0.0

    @given(points, points)
    def test_between_zero_and_one(self, reference: list[Any], path: list[Any]) -> None:
        assert 0 <= cls(reference, path, 3.0) <= 1
        assert cls(reference, reference, 3.0) == pytest.approx(1.0)

    @pytest.mark.parametrize("bad", [[], [(math.nan, 0)]])
    def test_no_path(self, bad: Any) -> None:
        for metric in (average_deviation, max_deviation, lambda r, q: cls(r, q, 3.0)):
            for paths in ((LINE, bad), (bad, LINE)):
                with pytest.raises(ValueError):
                    metric(*paths)

    def test_no_way_between_nodes(self) -> None:
        islands = Graph.of_edges([("a", "b", 1), ("c", "d", 1)])
        with pytest.raises(ValueError, match="nodes"):
            cls(["a", "c"], ["a", "b"], 3.0, islands)


def edits(a: str, b: str) -> int:
    """Levenshtein by definition."""
    if not a or not b:
        return len(a) + len(b)
    return min(edits(a[1:], b[1:]) + (a[0] != b[0]), edits(a[1:], b) + 1, edits(a, b[1:]) + 1)


class TestSed:
    def test_edges_or_nodes(self) -> None:
        """One detour replaces an edge and adds one, but only adds a node."""
        assert sed(True, list("abcd"), list("abxcd")) == 0.5
        assert sed(True, list("abcd"), list("abxcd"), unit="nodes") == 0.8

    def test_failure_and_no_edges(self) -> None:
        assert sed(False, list("abc"), list("abc")) == 0
        assert sed(True, ["a"], ["a"]) == sed(True, ["a"], ["b"]) == 1
        assert sed(True, ["a"], ["b"], unit="nodes") == 0
        assert sed(True, ["a", "b"], ["a"]) == 0

    def test_points_are_equal_or_not(self) -> None:
        assert sed(True, LINE, np.array(LINE, float)) == 1
        assert sed(True, LINE, [(x, 1e-9) for x, _ in LINE]) == 0

    @given(st.text("ab", min_size=1, max_size=6), st.text("abc", min_size=1, max_size=6))
    def test_by_definition(self, a: str, b: str) -> None:
        expected = 1 - edits(a, b) / max(len(a), len(b))
        assert sed(True, list(a), list(b), unit="nodes") == pytest.approx(expected)

    @pytest.mark.parametrize("bad", [[], "abc", [(0, math.nan)], np.zeros((0, 2))])
    def test_no_path(self, bad: Any) -> None:
        with pytest.raises(ValueError):
            sed(True, ["a"], bad)


class TestRoute:
    def test_a_robot_that_turns_on_the_spot_1_m_beside_the_reference(self) -> None:
        path = [(0, 1), (0, 1), (1, 1), (1, 1), (2, 1), (3, 1)]
        found = route_metrics(LINE, path, shortest_m=3.0, stopped=True)
        assert found["ndtw"] == found["sdtw"] == pytest.approx(math.exp(-4 / 12))
        assert found["average_deviation_m"] == found["navigation_error_m"] == 1.0
        assert (found["path_length_m"], found["spl"], found["success"]) == (3.0, 1.0, True)
        kept = route_metrics(LINE, path, 3.0, True, RouteRules(drop_repeats=False))
        assert kept["ndtw"] == pytest.approx(math.exp(-6 / 12))

    def test_the_threshold_itself(self) -> None:
        path = [(0, 0), (0, 0.5)]
        strict = route_metrics([(0, 0), (3, 0.5)], path, 3.0, True)
        inclusive = route_metrics([(0, 0), (3, 0.5)], path, 3.0, True, RouteRules(inclusive=True))
        assert (strict["success"], strict["oracle_success"], strict["sdtw"]) == (False, False, 0.0)
        assert (inclusive["success"], inclusive["oracle_success"]) == (True, True)
        assert inclusive["sdtw"] == strict["ndtw"] > 0

    def test_oracle_success_needs_no_stop(self) -> None:
        found = route_metrics(LINE, LINE, 3.0, stopped=False)
        assert (found["success"], found["oracle_success"], found["spl"], found["soft_spl"]) == (False, True, 0.0, 1.0)

    def test_names_on_a_graph(self) -> None:
        graph = Graph.of_edges([("a", "b", 2), ("b", "c", 2), ("b", "x", 2), ("x", "c", 2)])
        found = route_metrics(list("abc"), list("abxc"), 4.0, True, distance=graph)
        assert found["sed"] == pytest.approx(1 / 3)
        assert found["spl"] == pytest.approx(4 / 6)
