"""Distances against exact visibility graphs, on the same grid and in random polygonal rooms."""

from __future__ import annotations

import numpy as np
import pytest
import shapely
from numpy.typing import NDArray
from shapely import affinity
from shapely.geometry import Polygon, box
from visibility_oracle import PolygonRoom, room_of_disc

from robot_runtime.scenes.geodesic import GeodesicMap
from tests.benchmarks.runtime.visibility_graph import VisibilityGraph, room_of_cells

RADIUS_M = 0.18
CELL_M = 0.025
ROOMS = 8
POINTS = 16
TARGETS = 3


def random_room(seed: int) -> PolygonRoom:
    """A rectangle or an L of 5 to 7 by 4 to 6 m with five rectangles and convex polygons, upright or turned."""
    rng = np.random.default_rng(seed)
    width, depth = (round(rng.uniform(low, low + 2) / CELL_M) * CELL_M for low in (5, 4))
    inside = box(0, 0, width, depth)
    if rng.random() < 0.5:
        inside = inside.difference(box(0.55 * width, 0.5 * depth, width, depth))
    obstacles = []
    for _ in range(5):
        x, y = rng.uniform(0, width), rng.uniform(0, depth)
        if rng.random() < 0.5:
            left, low, right, high = rng.uniform(0.1, 1, 4)
            shape = box(x - left, y - low, x + right, y + high)
        else:
            angles = np.sort(rng.uniform(0, 2 * np.pi, rng.integers(3, 7)))
            rays = np.column_stack([np.cos(angles), np.sin(angles)]) * rng.uniform(0.2, 1, (len(angles), 1))
            shape = Polygon(rays + np.array([x, y])).convex_hull
        obstacles.append(affinity.rotate(shape, rng.choice([0, rng.uniform(0, 90)]), "centroid"))
    return PolygonRoom(inside, shapely.union_all(obstacles))


def compare(seed: int, cell_rule: str) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Exact, measured and straight-line distances between random places of a random room."""
    room = random_room(seed)
    oracle = VisibilityGraph(room_of_disc(room, RADIUS_M))
    space = GeodesicMap(room.occupancy(CELL_M, cell_rule), RADIUS_M)
    rng = np.random.default_rng(1000 + seed)
    places: list[NDArray[np.float64]] = []
    while len(places) < POINTS:
        place = rng.uniform((0, 0), room.inside.bounds[2:])
        if oracle.contains(place, 2 * CELL_M):
            places.append(place)
    starts = np.array(places[TARGETS:])
    exact, measured, straight = [], [], []
    for target in places[:TARGETS]:
        field = space.field([(target[0], target[1])])
        exact.append(oracle.distances(target, starts))
        measured.append([field.at(x, y) for x, y in starts])
        straight.append(np.linalg.norm(starts - target, axis=1))
    return np.concatenate(exact), np.concatenate(measured), np.concatenate(straight)


def largest_errors(seed: int, cell_m: float) -> tuple[NDArray[np.float64], int]:
    """Relative errors between random places of a random room on its own grid, and the number of bent pairs."""
    space = GeodesicMap(random_room(seed).occupancy(cell_m, "center"), RADIUS_M)
    oracle = VisibilityGraph(room_of_cells(space))
    rng = np.random.default_rng(2000 + seed)
    cells = rng.permutation(np.argwhere(space.navigable))[:POINTS]
    x_m = space.map.origin_x_m + (cells[:, 1] + rng.uniform(0.05, 0.95, len(cells))) * cell_m
    y_m = space.map.origin_y_m + (cells[:, 0] + rng.uniform(0.05, 0.95, len(cells))) * cell_m
    places = np.stack((x_m, y_m), axis=1)
    errors, bent = [np.empty(0)], 0
    for target in places[:TARGETS]:
        exact = oracle.distances(target, places[TARGETS:])
        field = space.field([(target[0], target[1])])
        measured = np.array([field.at(x, y) for x, y in places[TARGETS:]])
        assert np.array_equal(np.isfinite(exact), np.isfinite(measured)), "the two disagree on what can be reached"
        reached = np.isfinite(exact)
        errors.append(measured[reached] / exact[reached] - 1)
        bent += int((exact > 1.0001 * np.linalg.norm(places[TARGETS:] - target, axis=1))[reached].sum())
        for start in places[TARGETS:][reached]:
            path = field.path(*start)
            assert np.hypot(*np.diff(path, axis=0).T).sum() == pytest.approx(field.at(*start), abs=1e-9)
    return np.concatenate(errors), bent


@pytest.mark.slow
def test_distances_are_exact_on_the_grid() -> None:
    found = [largest_errors(seed, 0.05) for seed in range(4)]
    assert sum(bent for _, bent in found) >= 30
    assert max(np.abs(errors).max() for errors, _ in found) < 1e-5


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(4, 24))
@pytest.mark.parametrize("cell_m", [0.025, 0.05, 0.1])
def test_distances_are_exact_on_grids_of_any_size(seed: int, cell_m: float) -> None:
    assert np.abs(largest_errors(seed, cell_m)[0]).max() < 1e-5


# A map on which a cell is occupied if an obstacle has any of it has obstacles that are half a cell larger than life.
# That makes ways round corners longer, whoever measures them, and is no error of the measurement.
@pytest.mark.slow
@pytest.mark.parametrize(("cell_rule", "bent_limit"), [("center", 0.01), ("any", 0.02)])
def test_distances_are_within_one_percent_of_exact_ones_on_average(cell_rule: str, bent_limit: float) -> None:
    exact, measured, straight = (
        np.concatenate(parts) for parts in zip(*(compare(seed, cell_rule) for seed in range(ROOMS)), strict=True)
    )
    assert np.array_equal(np.isfinite(exact), np.isfinite(measured)), "the two disagree on what can be reached"
    reached = np.isfinite(exact)
    error = measured[reached] / exact[reached] - 1
    bent = exact[reached] > 1.0001 * straight[reached]
    assert reached.sum() > 200
    assert bent.sum() > 50
    assert np.abs(error).mean() < 0.01
    assert np.abs(error[bent]).mean() < bent_limit  # straight ways are exact and flatter the mean
    assert np.abs(error).max() < 0.07
    assert np.abs(error[~bent]).max() < 0.005


def test_the_oracle_knows_a_case_worked_by_hand() -> None:
    # Round the end of a wall: tangent, arc, along the end, arc, tangent.
    room = PolygonRoom(box(0, 0, 4, 4), box(0, 1.9, 2, 2.1))
    oracle = VisibilityGraph(room_of_disc(room, RADIUS_M))
    to_corner_m, bearing = np.hypot(1.5, 0.9), np.arctan2(0.9, 1.5)
    turned = np.pi / 2 - bearing + np.arcsin(RADIUS_M / to_corner_m)
    exact = 2 * (np.sqrt(to_corner_m**2 - RADIUS_M**2) + RADIUS_M * turned) + 0.2
    found = oracle.distances(np.array([0.5, 3.0]), np.array([[0.5, 1.0], [1.0, 3.5]]))
    assert found == pytest.approx([exact, np.hypot(0.5, 0.5)], abs=1e-3)


def test_the_oracle_finds_no_way_through_a_gap_that_is_too_narrow() -> None:
    wall = shapely.union_all([box(0, 1.9, 2, 2.1), box(2.35, 1.9, 4, 2.1)])
    found = VisibilityGraph(room_of_disc(PolygonRoom(box(0, 0, 4, 4), wall), RADIUS_M)).distances(
        np.array([0.5, 3.0]), np.array([[0.5, 1.0]])
    )
    assert np.isinf(found).all()
