"""Tests per object, completion, do-no-harm, the published tasks' rules, and the shortest tour."""

from __future__ import annotations

import math
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from robot_runtime.metrics.functional.boxes import Box
from robot_runtime.metrics.functional.distances import Graph
from robot_runtime.metrics.functional.rearrangement import (
    HOUSE_CLEANUP,
    ROOM_REARRANGEMENT,
    PoseTest,
    angle_between,
    completion,
    do_no_harm,
    episode_success,
    pose_energy,
    room_rearrangement,
    within_goals,
)
from robot_runtime.metrics.functional.tours import MAX_OBJECTS, Delivery, shortest_tour

UNIT = Box.between((0, 0, 0), (1, 1, 1))


class TestPose:
    @given(st.floats(0, math.pi), st.integers(0, 1000))
    def test_angle(self, angle_rad: float, seed: int) -> None:
        axis = np.random.default_rng(seed).normal(size=3)
        axis /= np.linalg.norm(axis)
        turned = np.array([math.cos(angle_rad / 2), *(math.sin(angle_rad / 2) * axis)])
        assert angle_between((1, 0, 0, 0), turned.tolist()) == pytest.approx(angle_rad, abs=1e-12)
        assert angle_between((-turned).tolist(), (1, 0, 0, 0)) == pytest.approx(angle_rad, abs=1e-12)

    def test_tiny_angles_are_not_lost(self) -> None:
        assert angle_between((1, 0, 0, 0), (1, 5e-10, 0, 0)) == pytest.approx(1e-9)

    @pytest.mark.parametrize("bad", [(0, 0, 0, 0), (2, 0, 0, 0), (math.nan, 0, 0, 1), (1, 0, 0)])
    def test_no_orientation(self, bad: Any) -> None:
        with pytest.raises(ValueError, match="quaternion"):
            angle_between((1, 0, 0, 0), bad)

    def test_thresholds(self) -> None:
        assert HOUSE_CLEANUP.criteria(translation_m=1.0) == {"translation": True}
        assert ROOM_REARRANGEMENT.criteria(iou=0.5) == {"iou": False}
        assert PoseTest(min_iou=0.5, inclusive_iou=True).criteria(iou=0.5) == {"iou": True}
        assert ROOM_REARRANGEMENT.criteria(iou=0.6, openness=0.21) == {"iou": True, "openness": False}
        assert PoseTest(max_angle_rad=0.1).criteria(angle_rad=0.2, iou=0.0) == {"angle": False}

    def test_nothing_to_judge_by(self) -> None:
        with pytest.raises(ValueError, match="threshold"):
            HOUSE_CLEANUP.criteria(iou=1.0)
        with pytest.raises(ValueError, match="translation"):
            HOUSE_CLEANUP.criteria(translation_m=math.nan)


class TestEpisode:
    def test_completion(self) -> None:
        assert completion([True, True, False, True]) == 0.75
        assert completion([True, True], harmed=True) == 0.0
        assert episode_success([True, True])
        assert not episode_success([True, False])
        assert not episode_success([True], harmed=True)
        with pytest.raises(ValueError):
            completion([])

    def test_do_no_harm(self) -> None:
        moved = Box.between((0.5, 0, 0), (1.5, 1, 1))
        assert do_no_harm({"vase": UNIT, "lamp": UNIT}, {"vase": moved, "lamp": UNIT}) == {"vase": False, "lamp": True}
        assert do_no_harm({"vase": UNIT}, {"vase": moved}, min_iou=0.3) == {"vase": True}
        with pytest.raises(ValueError, match="lamp"):
            do_no_harm({"vase": UNIT, "lamp": UNIT}, {"vase": UNIT})

    def test_house_cleanup(self) -> None:
        assert within_goals([(0, 0, 0), (5, 5, 0)], [(0, 0, 1), (5, 5, 1.01)]) == [True, False]
        for final in ([(0, 0, 0)], [(0, 0, math.nan), (0, 0, 0)], []):
            with pytest.raises(ValueError):
                within_goals(final, [(0, 0, 0), (1, 1, 1)])

    def test_room(self) -> None:
        found = room_rearrangement([True, True, False], [False, False, True])
        assert (found.prop_fixed, found.prop_fixed_strict, found.prop_misplaced) == (1.0, 0.0, 0.5)
        assert not found.success
        assert found.energy_prop is None
        nothing = room_rearrangement([False], [False])
        assert (nothing.success, nothing.prop_fixed, nothing.prop_misplaced) == (True, 1.0, None)

    def test_room_by_energies(self) -> None:
        found = room_rearrangement([1.0, 0.5], [0.3, 0.0])
        assert (found.prop_fixed, found.energy_prop) == (0.5, pytest.approx(0.2))
        for start, end in (([], []), ([1.0], [1.0, 0.0]), ([math.nan], [0.0]), ([1.0], [-1.0])):
            with pytest.raises(ValueError):
                room_rearrangement(start, end)

    def test_energy_of_one_object(self) -> None:
        assert pose_energy(UNIT, UNIT) == 0
        assert pose_energy(UNIT, UNIT, broken=True) == 1
        assert pose_energy(UNIT, Box.between((2, 0, 0), (3, 1, 1))) == pytest.approx(0.5 + 0.25)
        assert pose_energy(UNIT, Box.between((9, 0, 0), (10, 1, 1))) == 1
        assert pose_energy(UNIT, Box.between((0.5, 0, 0), (1.5, 1, 1))) == pytest.approx(0.5 * (1 - 2 / 3))
        assert (pose_energy(UNIT, UNIT, 0.2, pickupable=False), pose_energy(UNIT, UNIT, 0.3, pickupable=False)) == (
            0,
            1,
        )


def every_tour(start: NDArray[np.float64], deliveries: list[Delivery]) -> float:
    """The shortest of all orders and all choices of places."""
    shortest = math.inf
    for order in permutations(range(len(deliveries))):
        places = [product(range(len(deliveries[i].picks)), range(len(deliveries[i].drops))) for i in order]
        for choice in product(*places):
            here, length = start, 0.0
            for i, (pick, drop) in zip(order, choice, strict=True):
                picked, dropped = deliveries[i].picks[pick], deliveries[i].drops[drop]
                length += float(np.linalg.norm(picked - here) + np.linalg.norm(dropped - picked))
                here = dropped
            shortest = min(shortest, length)
    return shortest


def every_stacked_tour(start: np.ndarray, deliveries: list[Delivery], capacity: int) -> float:
    """The shortest of all, by trying them."""

    def shortest_from(here: np.ndarray, waiting: tuple[int, ...], carried: tuple[int, ...]) -> float:
        if not waiting and not carried:
            return 0.0
        options = []
        if len(carried) < capacity:
            options += [(there, tuple(k for k in waiting if k != i), (*carried, i))
                        for i in waiting for there in deliveries[i].picks]  # fmt: skip
        if carried:
            options += [(there, waiting, carried[:-1]) for there in deliveries[carried[-1]].drops]
        return min(float(np.linalg.norm(there - here)) + shortest_from(there, *rest) for there, *rest in options)

    return shortest_from(start, tuple(range(len(deliveries))), ())


class TestTour:
    @given(st.integers(1, 4), st.integers(1, 2), st.integers(1, 2), st.integers(0, 10_000))
    @settings(max_examples=60)
    def test_is_the_shortest_of_all(self, count: int, picks: int, drops: int, seed: int) -> None:
        random = np.random.default_rng(seed)
        deliveries = [Delivery(random.random((picks, 2)), random.random((drops, 2))) for _ in range(count)]
        start = random.random(2)
        tour = shortest_tour(start, deliveries)
        assert tour.length == pytest.approx(every_tour(start, deliveries))
        assert sorted(stop[0] for stop in tour.stops) == list(range(count))
        path = [start]
        for i, pick, drop in tour.stops:
            path += [deliveries[i].picks[pick], deliveries[i].drops[drop]]
        assert np.linalg.norm(np.diff(path, axis=0), axis=1).sum() == pytest.approx(tour.length)

    def test_worked(self) -> None:
        """The object behind goes first: 1 back, 1 on to its goal at the start, 2 on, 1 to the last goal."""
        deliveries = [Delivery([(2, 0)], [(3, 0)]), Delivery([(-1, 0)], [(0, 0)])]
        tour = shortest_tour((0, 0), deliveries)
        assert (tour.length, tour.stops) == (5.0, ((1, 0, 0), (0, 0, 0)))
        assert shortest_tour((0, 0), []).length == 0

    @pytest.mark.slow
    def test_as_many_as_are_allowed(self) -> None:
        places = [[(float(i), 0.0)] for i in range(MAX_OBJECTS + 1)]
        deliveries = [Delivery(place, place) for place in places]
        assert shortest_tour((0, 0), deliveries[:MAX_OBJECTS]).length == MAX_OBJECTS - 1
        with pytest.raises(ValueError, match="at most"):
            shortest_tour((0, 0), deliveries)

    @given(st.integers(1, 3), st.integers(2, 3), st.integers(1, 2), st.integers(0, 10_000))
    @settings(max_examples=40)
    def test_carrying_several_is_the_shortest_of_all(self, count: int, capacity: int, places: int, seed: int) -> None:
        """Against every order of picks and drops in which what was taken last is released first."""
        random = np.random.default_rng(seed)
        deliveries = [Delivery(random.random((places, 2)), random.random((places, 2))) for _ in range(count)]
        start = random.random(2)
        tour = shortest_tour(start, deliveries, capacity=capacity)
        assert tour.length == pytest.approx(every_stacked_tour(start, deliveries, capacity))
        assert tour.length <= shortest_tour(start, deliveries).length + 1e-9
        here, length, carried = start, 0.0, []
        for i, dropped, place in tour.visits:
            there = (deliveries[i].drops if dropped else deliveries[i].picks)[place]
            length += float(np.linalg.norm(there - here))
            here = there
            if dropped:
                assert carried.pop() == i
            else:
                carried.append(i)
                assert len(carried) <= capacity
        assert not carried
        assert length == pytest.approx(tour.length)

    def test_two_at_once_save_a_way(self) -> None:
        """Both lie at the start and go to the far end: one way with two in the backpack, three with one."""
        deliveries = [Delivery([(0, 0)], [(5, 0)]), Delivery([(0, 0)], [(5, 0)])]
        assert shortest_tour((0, 0), deliveries).length == 15
        assert shortest_tour((0, 0), deliveries, capacity=2).length == 5
        with pytest.raises(ValueError, match="capacity"):
            shortest_tour((0, 0), deliveries, capacity=0)

    def test_out_of_reach(self) -> None:
        graph = Graph.of_edges([("start", "cup", 1), ("cup", "table", 1), ("island", "beach", 1)])
        assert shortest_tour("start", [Delivery(["cup"], ["table"])], graph).length == 2
        assert shortest_tour("start", [Delivery(["cup"], ["island"])], graph).length == math.inf
        with pytest.raises(ValueError):
            shortest_tour("start", [Delivery([], ["table"])], graph)

    def test_or_tools_finds_none_shorter(self) -> None:
        """The solver that the paper names, in its exact mode, on lengths in whole micrometres."""
        solver = pytest.importorskip("ortools.sat.python.cp_model", reason="OR-Tools is not installed")
        random = np.random.default_rng(5)
        deliveries = [Delivery(random.random((1, 2)), random.random((1, 2))) for _ in range(6)]
        ours = shortest_tour((0, 0), deliveries).length
        model = solver.CpModel()
        arcs, cost = [], []
        for i in range(7):
            for j in range(7):
                if i == j:
                    continue
                here = np.zeros(2) if i == 0 else deliveries[i - 1].drops[0]
                arc = model.new_bool_var(f"{i}-{j}")
                arcs.append((i, j, arc))
                if j:
                    pick, drop = deliveries[j - 1].picks[0], deliveries[j - 1].drops[0]
                    cost.append(arc * round(1e6 * (math.dist(here, pick) + math.dist(pick, drop))))
        model.add_circuit(arcs)
        model.minimize(sum(cost))
        search = solver.CpSolver()
        search.parameters.num_workers = 1
        assert search.solve(model) == solver.OPTIMAL
        assert search.objective_value / 1e6 == pytest.approx(ours, abs=1e-5)
