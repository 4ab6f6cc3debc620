"""Distance fields: bounds, walls, snapping, several targets, paths, caching."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from robot_runtime.scenes.geodesic import SNAP_M, GeodesicMap
from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap

RADIUS_M = 0.18
CELL_M = 0.025


def room(width_m: float, height_m: float, *blocks: tuple[float, float, float, float]) -> GeodesicMap:
    """An empty room with its lower left corner at (-1, 2) and occupied blocks (x0, y0, x1, y1) relative to that."""
    cells = np.full((round(height_m / CELL_M), round(width_m / CELL_M)), Cell.FREE, np.uint8)
    for x0, y0, x1, y1 in blocks:
        cells[round(y0 / CELL_M) : round(y1 / CELL_M), round(x0 / CELL_M) : round(x1 / CELL_M)] = Cell.OCCUPIED
    return GeodesicMap(OccupancyMap(cells, CELL_M, -1.0, 2.0), RADIUS_M)


def at(x_m: float, y_m: float) -> tuple[float, float]:
    """A point given relative to the room's corner."""
    return x_m - 1.0, y_m + 2.0


def length(path: NDArray[np.float64]) -> float:
    return float(np.hypot(*np.diff(path, axis=0).T).sum())


def assert_in_navigable_space(space: GeodesicMap, path: NDArray[np.float64]) -> None:
    for (x0, y0), (x1, y1) in pairwise(path):
        for fraction in np.linspace(0, 1, 200):
            assert space.is_navigable(x0 + fraction * (x1 - x0), y0 + fraction * (y1 - y0))


@st.composite
def rooms(draw: st.DrawFn) -> GeodesicMap:
    """2.5 x 2 m with up to five blocks."""
    blocks = []
    for _ in range(draw(st.integers(0, 5))):
        x0, y0 = draw(st.floats(0, 2.4)), draw(st.floats(0, 1.9))
        blocks.append((x0, y0, x0 + draw(st.floats(0.03, 1)), y0 + draw(st.floats(0.03, 1))))
    return room(2.5, 2.0, *blocks)


PLACES = st.tuples(st.floats(0, 2.5), st.floats(0, 2)).map(lambda p: at(*p))


def test_in_plain_sight_the_distance_is_the_straight_line() -> None:
    space = room(6, 4)
    goal = at(1.013, 2.008)
    for x, y in [(1.02, 2.01), (1.4, 2.3), (5.7, 0.3), (3.333, 3.7)]:
        assert space.distance(*at(x, y), [goal]) == pytest.approx(math.dist((x, y), (1.013, 2.008)), abs=1e-12)


def test_round_the_end_of_a_wall_the_way_is_two_tangents_and_two_arcs() -> None:
    space = room(4, 4, (0, 1.9, 2, 2.1))
    to_corner_m, bearing = math.hypot(1.5, 0.9), math.atan2(0.9, 1.5)  # from (0.5, 1) to the corner (2, 1.9)
    tangent_m = math.sqrt(to_corner_m**2 - RADIUS_M**2)
    turned = math.pi / 2 - (bearing - math.asin(RADIUS_M / to_corner_m))
    exact = 2 * (tangent_m + RADIUS_M * turned) + 0.2
    assert space.distance(*at(0.5, 1.0), [at(0.5, 3.0)]) == pytest.approx(exact, rel=0.01)


def test_the_target_counts_to_a_fraction_of_a_cell() -> None:
    space = room(4, 4, (0, 1.9, 2, 2.1))
    start = at(0.5, 3.0)
    distances = [space.distance(*start, [at(x, 0.5)]) for x in (0.500, 0.506, 0.512, 0.518)]
    # The way starts 38 degrees off the x axis: it gets shorter by cos(38 degrees) of each step.
    assert (np.diff(distances) < -0.001).all()
    assert distances[-1] - distances[0] == pytest.approx(-0.018 * math.cos(math.radians(38)), abs=0.002)


def test_what_cannot_be_reached_is_infinitely_far() -> None:
    space = room(4, 4, (0, 1.9, 4, 2.1))
    field = space.field([at(1, 1)])
    assert field.at(*at(1, 3)) == math.inf
    assert field.path(*at(1, 3)).shape == (0, 2)
    assert np.isinf(field.values[round(3 / CELL_M), round(1 / CELL_M)])


@pytest.mark.parametrize("place", [(-50.0, 0.0), (1e9, 1e9), (-1.2, 3.0), (1.0, -1e12)])
def test_off_the_map_there_is_nothing(place: tuple[float, float]) -> None:
    space = room(4, 4)
    assert not space.is_navigable(*place)
    assert space.snap(*place) is None
    assert space.distance(*place, [at(1, 1)]) == math.inf
    assert space.distance(*at(1, 1), [place]) == math.inf


def test_unknown_cells_are_not_navigable() -> None:
    cells = np.full((80, 80), Cell.FREE, np.uint8)
    cells[:, 40:] = Cell.UNKNOWN
    space = GeodesicMap(OccupancyMap(cells, CELL_M, 0, 0), RADIUS_M)
    assert space.is_navigable(0.5, 1.0)
    assert not space.is_navigable(1.5, 1.0)
    assert not space.is_navigable(0.95, 1.0)


def test_a_robot_that_touches_a_wall_stands_in_reach_and_one_inside_does_not() -> None:
    space = room(4, 4)
    goal = at(3, 2)
    touching = at(RADIUS_M - 0.04, 2)
    assert not space.is_navigable(*touching)
    assert space.distance(*touching, [goal]) == pytest.approx(3 - RADIUS_M + 0.04, abs=0.001)
    path = space.field([goal]).path(*touching)
    assert tuple(path[0]) == touching
    assert space.distance(*at(RADIUS_M - SNAP_M - 0.03, 2), [goal]) == math.inf


def test_snapping_finds_the_nearest_navigable_point() -> None:
    space = room(4, 4)
    inside = at(2.345, 1.234)
    assert space.snap(*inside) == inside
    snapped = space.snap(*at(2.345, 0.1))
    assert snapped is not None
    assert space.is_navigable(*snapped)
    assert snapped == pytest.approx(at(2.345, RADIUS_M), abs=CELL_M)
    assert space.snap(*at(2.345, 0.1), max_m=0.05) is None


def test_targets_in_walls_are_moved_out_or_left_out() -> None:
    space = room(4, 4, (1, 1, 2, 2))
    near, deep, good = at(1.5, 0.9), at(1.5, 1.5), at(3, 3)
    assert len(space.field([near, deep, good]).targets) == 2
    assert space.distance(*at(3, 2.5), [deep, good]) == pytest.approx(0.5)
    assert space.distance(*at(3, 2.5), [deep]) == math.inf
    assert space.distance(*at(3, 2.5), []) == math.inf


def test_of_two_targets_the_way_leads_to_the_nearer_by_foot() -> None:
    space = room(4, 4, (0, 1.9, 3, 2.1))
    behind_the_wall, on_this_side = at(0.5, 1.6), at(2.2, 3.0)
    field = space.field([behind_the_wall, on_this_side])
    start = at(0.5, 2.4)
    assert field.at(*start) == pytest.approx(math.dist(start, on_this_side), rel=0.01)
    assert tuple(field.path(*start)[-1]) == pytest.approx(on_this_side)


def test_a_single_cell_of_room_is_enough_for_a_field() -> None:
    space = room(4, 4)
    space.navigable[:] = False
    space.navigable[80, 40] = True
    center = space.map.to_point(80, 40)
    assert space.distance(*center, [center]) == 0
    assert space.field([center]).path(*center).tolist() == [list(center), list(center)]


def test_paths_hug_corners_and_stay_out_of_walls() -> None:
    space = room(4, 4, (0, 1, 3, 1.2), (1, 2.4, 4, 2.6))
    start, goal = at(0.5, 0.5), at(3.5, 3.5)
    path = space.field([goal]).path(*start)
    assert tuple(path[0]) == start
    assert tuple(path[-1]) == goal
    assert_in_navigable_space(space, path)
    assert length(path) == pytest.approx(space.distance(*start, [goal]), rel=0.01)
    assert len(path) < 20


def test_a_segment_is_clear_only_if_no_cell_on_it_is_blocked() -> None:
    space = room(4, 4)
    row, column = space.map.to_cell(*at(2, 2))
    space.navigable[row, column] = False
    corner_x, corner_y = at(2, 2)  # the lower left corner of the blocked cell
    assert not space.is_clear(corner_x - 1, corner_y + 0.024, corner_x + 1, corner_y + 0.024)
    assert not space.is_clear(corner_x - 0.5, corner_y + 0.501, corner_x + 0.5, corner_y - 0.499)
    assert space.is_clear(corner_x - 0.5, corner_y + 0.499, corner_x + 0.5, corner_y - 0.501)
    assert not space.is_clear(*at(2, 1), *at(2, -1))


def test_a_point_may_move_along_the_very_edge_of_the_map() -> None:
    cells = np.full((40, 40), Cell.FREE, np.uint8)
    cells[8:32, 0:39] = Cell.OCCUPIED
    space = GeodesicMap(OccupancyMap(cells, CELL_M, 0, 0), 0.0)
    start, goal = (0.01, 0.01), (0.01, 0.99)
    path = space.field([goal]).path(*start)
    assert_in_navigable_space(space, path)
    # There and back to the one free column at the right: its inner edge is at 39 cells.
    exact = 2 * math.hypot(39 * CELL_M - 0.01, 8 * CELL_M - 0.01) + 24 * CELL_M
    assert space.distance(*start, [goal]) == pytest.approx(exact, rel=0.03)


def test_a_map_without_any_obstacle_will_do() -> None:
    space = GeodesicMap(OccupancyMap(np.full((50, 60), Cell.FREE, np.uint8), CELL_M, 0, 0), 0.0)
    field = space.field([(0.2, 0.3)])
    assert np.isfinite(field.values).all()
    assert field.values[40, 50] == pytest.approx(math.dist(space.map.to_point(40, 50), (0.2, 0.3)), rel=0.01)


@settings(max_examples=40)
@given(space=rooms(), start=PLACES, goals=st.lists(PLACES, min_size=1, max_size=3))
def test_no_way_is_shorter_than_the_straight_line_nor_leaves_navigable_space(
    space: GeodesicMap, start: tuple[float, float], goals: list[tuple[float, float]]
) -> None:
    field = space.field(goals)
    distance_m = field.at(*start)
    path = field.path(*start)
    assert (len(path) == 0) == math.isinf(distance_m)
    if math.isinf(distance_m):
        return
    straight_m = min(math.dist(start, target) for target in field.targets)
    assert distance_m >= straight_m - 1e-9
    assert tuple(path[0]) == start
    assert any(np.allclose(path[-1], target) for target in field.targets)
    assert_in_navigable_space(space, path if space.is_navigable(*start) else path[1:])
    # The straightened path may be a little shorter than the marched distance, never much longer.
    assert length(path) == pytest.approx(distance_m, rel=0.06, abs=2 * CELL_M)


@settings(max_examples=30)
@given(space=rooms(), a=PLACES, b=PLACES)
def test_there_and_back_are_equally_far(space: GeodesicMap, a: tuple[float, float], b: tuple[float, float]) -> None:
    if space.is_navigable(*a) and space.is_navigable(*b):
        there, back = space.distance(*a, [b]), space.distance(*b, [a])
        assert there == pytest.approx(back, rel=0.03, abs=CELL_M)


@settings(max_examples=30)
@given(space=rooms(), start=PLACES, goals=st.lists(PLACES, min_size=2, max_size=4))
def test_several_targets_are_as_far_as_the_nearest(
    space: GeodesicMap, start: tuple[float, float], goals: list[tuple[float, float]]
) -> None:
    together = space.distance(*start, goals)
    apart = min(space.distance(*start, [goal]) for goal in goals)
    assert together == pytest.approx(apart, rel=0.02, abs=CELL_M)


@settings(max_examples=30)
@given(space=rooms(), goal=PLACES, a=PLACES, step=st.tuples(st.floats(-0.02, 0.02), st.floats(-0.02, 0.02)))
def test_a_small_step_changes_little(
    space: GeodesicMap, goal: tuple[float, float], a: tuple[float, float], step: tuple[float, float]
) -> None:
    b = (a[0] + step[0], a[1] + step[1])
    if space.is_clear(*a, *b):
        field = space.field([goal])
        change, moved = abs(field.at(*a) - field.at(*b)) if math.isfinite(field.at(*a)) else 0.0, math.dist(a, b)
        assert change <= moved + CELL_M


def test_fields_are_kept_but_not_for_ever() -> None:
    space = room(2, 2)
    first = space.field([at(0.5, 0.5)])
    assert space.field([at(0.5, 0.5)]) is first
    for index in range(40):
        space.field([at(0.5, 0.6 + index / 100)])
    again = space.field([at(0.5, 0.5)])
    assert again is not first
    assert np.array_equal(again.values, first.values)
