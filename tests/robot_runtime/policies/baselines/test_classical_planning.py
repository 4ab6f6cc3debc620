"""Cost map, fast marching, frontiers and navigation of the classical agent."""

from __future__ import annotations

import math

import numpy as np
import pytest
from box_world import make_task

from robot_runtime.common.geometry import SE2
from robot_runtime.policies.baselines.classical.exploration import frontier_cells, is_open, next_frontier
from robot_runtime.policies.baselines.classical.grid import CAP, Grid
from robot_runtime.policies.baselines.classical.navigation import Navigator
from robot_runtime.policies.baselines.classical.planning import CostMap, CostParameters, disc, march
from robot_runtime.policies.baselines.classical.pointgoal import point_target
from robot_runtime.policies.planning.contact_memory import ContactMemory

CELL_M = 0.05
RADIUS_M = 0.18


def room(known: bool = True) -> Grid:
    """A grid of 6 x 6 m around the origin, empty."""
    grid = Grid(CELL_M, 3.0)
    grid.known[:] = known
    return grid


def block(grid: Grid, x0: float, y0: float, x1: float, y1: float) -> None:
    """An obstacle over a box."""
    grid.evidence[grid.window(x0, y0, x1 - 1e-6, y1 - 1e-6)] = CAP


def costs_of(grid: Grid, boldness: int = 0) -> CostMap:
    everything = (slice(0, grid.shape[0]), slice(0, grid.shape[1]))
    return CostMap(grid, CostParameters.of(RADIUS_M, CELL_M, boldness), everything)


def at(x_m: float, y_m: float) -> tuple[np.ndarray, np.ndarray]:
    return np.array([x_m]), np.array([y_m])


def test_in_the_open_the_cost_to_go_is_the_straight_distance() -> None:
    costs = costs_of(room())
    field = march(costs, disc(costs, 0.0, 0.0, 0.1))
    for x, y in ((2.0, 0.0), (0.0, -2.5), (1.5, 1.5), (-2.0, 1.0)):
        assert field.at(*at(x, y))[0] == pytest.approx(math.hypot(x, y) - 0.1, rel=0.05)


def test_a_wall_lengthens_the_way_and_a_closed_room_has_none() -> None:
    grid = room()
    block(grid, 0.5, -3.0, 0.6, 1.0)
    costs = costs_of(grid)
    field = march(costs, disc(costs, 1.5, 0.0, 0.1))
    assert field.at(*at(-0.5, 0.0))[0] > 2 * math.hypot(1.0, 1.2) - 0.1
    block(grid, 0.5, -3.0, 0.6, 3.0)
    costs = costs_of(grid)
    assert march(costs, disc(costs, 1.5, 0.0, 0.1)).at(*at(-0.5, 0.0))[0] == np.inf


def test_sources_inside_obstacles_lead_nowhere() -> None:
    grid = room()
    block(grid, 1.0, -0.5, 2.0, 0.5)
    costs = costs_of(grid)
    assert not np.isfinite(march(costs, disc(costs, 1.5, 0.0, 0.1)).to_go_m).any()


def test_cells_cost_more_near_obstacles_and_are_blocked_within_the_radius() -> None:
    grid = room()
    block(grid, 1.0, -3.0, 1.05, 3.0)
    costs = costs_of(grid)
    slowness = costs.slowness_from(-1.0, 0.0, np.array([1.0 - 0.1, 1.0 - 0.22, 1.0 - 0.5]), np.zeros(3))
    assert slowness[0] == np.inf
    assert 1.0 < slowness[1] < np.inf
    assert slowness[2] == 1.0


def test_a_robot_that_stands_too_near_to_a_wall_may_leave_but_not_get_nearer() -> None:
    grid = room()
    block(grid, 0.15, -3.0, 0.2, 3.0)
    slowness = costs_of(grid).slowness_from(0.0, 0.0, np.array([0.05, 0.0, -0.1]), np.array([0.0, 0.25, 0.0]))
    np.testing.assert_array_equal(np.isfinite(slowness), [False, True, True])


def test_boldness_opens_gaps() -> None:
    grid = room()
    block(grid, 0.0, -3.0, 0.05, -0.16)
    block(grid, 0.0, 0.16, 0.05, 3.0)
    open_at = [np.isfinite(costs_of(grid, boldness).slowness_from(-1.0, 0.0, *at(0.02, 0.0))[0]) for boldness in (0, 2)]
    assert open_at == [False, True]


def test_the_unknown_the_suspect_and_the_touched_cost_more_than_the_known() -> None:
    grid = room()
    grid.known[grid.window(-3, 0.0, 3, 3)] = False
    grid.suspect[grid.window(-3, 1.0, 3, 2)] = True
    for _ in range(3):
        grid.touch(SE2(2.0, -2.0, 0.0), RADIUS_M)
    costs = costs_of(grid)
    known, unknown, suspect, touched = costs.slowness_from(
        -2.5, -1.0, np.array([0.0, 0.0, 0.0, 2.1]), np.array([-1.0, 0.5, 1.5, -2.0])
    )
    assert known == 1.0 < unknown < suspect
    assert touched > 3.0


def test_a_window_equals_that_part_of_the_map() -> None:
    grid = room()
    block(grid, 1.0, 1.0, 1.5, 1.5)
    part = CostMap(grid, CostParameters.of(RADIUS_M, CELL_M), grid.window(0.0, 0.0, 2.9, 2.9))
    x, y = np.random.default_rng(1).uniform(0.1, 2.8, (2, 200))
    np.testing.assert_allclose(
        part.slowness_from(0.2, 0.2, x, y), costs_of(grid).slowness_from(0.2, 0.2, x, y), rtol=1e-5
    )


def test_frontiers_lie_between_the_known_and_the_unknown_but_not_at_walls() -> None:
    grid = room(known=False)
    grid.known[grid.window(-1.0, -1.0, 1.0, 1.0)] = True
    block(grid, -1.05, -1.05, 1.05, -1.0)
    rows, columns = np.nonzero(frontier_cells(costs_of(grid)))
    x, y = grid.centers(rows, columns)
    assert (np.maximum(np.abs(x), y) > 0.9).all()
    assert y.min() > -1.0 + RADIUS_M - CELL_M / 2


def test_the_nearest_frontier_comes_first_and_a_closed_one_not_at_all() -> None:
    grid = room()
    grid.known[grid.window(-3.0, -3.0, -2.0, 3.0)] = False
    grid.known[grid.window(1.0, -3.0, 3.0, 3.0)] = False
    target = next_frontier(costs_of(grid), SE2())
    assert target is not None
    assert target.point[0] == pytest.approx(1.0, abs=0.1)
    assert is_open(grid, target)
    grid.known[grid.window(1.0, -3.0, 3.0, 3.0)] = True
    assert not is_open(grid, target)
    other = next_frontier(costs_of(grid), SE2())
    assert other is not None
    assert other.point[0] == pytest.approx(-2.0, abs=0.1)
    grid.known[:] = True
    assert next_frontier(costs_of(grid), SE2()) is None


def drive(grid: Grid, navigator: Navigator, goal: tuple[float, float], pose: SE2, most: int = 200) -> tuple[SE2, int]:
    """Follow the navigator, without noise, to within 0.2 m; the pose at the end and the actions taken."""
    target = point_target(*goal, 0.2)
    for count in range(most):
        if math.dist((pose.x_m, pose.y_m), goal) <= 0.2:
            return pose, count
        action = navigator.towards(target, pose)
        if action is None:
            return pose, count
        d = make_task().magnitudes.displacement(action)
        pose = pose @ SE2(d.forward_m, 0.0, d.turn_rad)
    return pose, most


def test_navigation_follows_a_map_that_changes() -> None:
    grid = room()
    navigator = Navigator(make_task(), grid, ContactMemory(0.25))
    pose, steps = drive(grid, navigator, (2.0, 0.0), SE2(-2.0, 0.0), most=4)
    block(grid, 0.5, -3.0, 0.6, 1.5)  # seen only now
    pose, steps = drive(grid, navigator, (2.0, 0.0), pose)
    assert math.hypot(pose.x_m - 2.0, pose.y_m) <= 0.2
    assert steps < 60


def test_navigation_gets_bolder_only_where_it_must() -> None:
    grid = room()
    block(grid, 0.0, -3.0, 0.05, -0.16)
    block(grid, 0.0, 0.16, 0.05, 3.0)
    navigator = Navigator(make_task(), grid, ContactMemory(0.25))
    pose, _ = drive(grid, navigator, (2.0, 0.0), SE2(-1.5, 0.0))
    assert math.hypot(pose.x_m - 2.0, pose.y_m) <= 0.2
    timid = Navigator(make_task(), grid, ContactMemory(0.25))
    assert timid.towards(point_target(2.0, 0.0, 0.2), SE2(-1.5, 0.0), boldest=0) is None


def test_navigation_returns_none_without_a_path() -> None:
    grid = room()
    block(grid, -2.0, -1.0, -1.95, 1.0)
    block(grid, -1.0, -1.0, -0.95, 1.0)
    block(grid, -2.0, -1.0, -0.95, -0.95)
    block(grid, -2.0, 0.95, -0.95, 1.0)
    navigator = Navigator(make_task(), grid, ContactMemory(0.25))
    assert navigator.towards(point_target(2.0, 0.0, 0.2), SE2(-1.5, 0.0)) is None
