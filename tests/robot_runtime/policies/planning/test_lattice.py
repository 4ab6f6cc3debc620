"""The search over discrete actions, and the grids it reads."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robot_runtime.actions.discrete import Action, Magnitudes
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.policies.planning.lattice import Floats, Moves, Plan, Terrain, search
from robot_runtime.scenes.grid_interpolation import bilinear, nearest

MOVES = Moves.of(Magnitudes(0.25, 30.0, 30.0))


def open_floor(x: Floats, y: Floats) -> Floats:
    return np.ones(np.shape(x))


def distance_to(gx: float, gy: float) -> Terrain:
    return Terrain(open_floor, lambda x, y: np.hypot(x - gx, y - gy))


def forwards(plan: Plan) -> int:
    return sum(step.action is Action.MOVE_FORWARD for step in plan.steps)


@given(st.floats(-3, 3), st.floats(-3, 3), st.floats(-math.pi, math.pi))
def test_in_the_open_a_plan_arrives_with_next_to_no_detour(gx: float, gy: float, yaw: float) -> None:
    plan = search(SE2(0, 0, yaw), MOVES, distance_to(gx, gy), 0.1, width=300, max_forwards=100)
    assert plan is not None
    assert plan.arrived
    end = plan.steps[-1].pose if plan.steps else SE2()
    assert math.hypot(end.x_m - gx, end.y_m - gy) <= 0.1 + 1e-9
    # A direction between two headings costs at most 1/cos(15 degrees), and fitting the last metre two moves more.
    assert forwards(plan) * 0.25 <= math.hypot(gx, gy) / math.cos(math.radians(15)) + 0.5


@pytest.mark.slow
@given(st.floats(-2, 2), st.floats(-2, 2), st.floats(-3, 3))
def test_a_plans_poses_are_what_its_actions_lead_to(gx: float, gy: float, yaw: float) -> None:
    plan = search(SE2(0.3, -0.2, yaw), MOVES, distance_to(gx, gy), 0.15, width=100, max_forwards=50)
    assert plan is not None
    pose = SE2(0.3, -0.2, yaw)
    for step in plan.steps:
        d = Magnitudes(0.25, 30.0, 30.0).displacement(step.action)
        pose = pose @ SE2(d.forward_m, 0.0, d.turn_rad)
        assert pose.distance_to(step.pose) < 1e-9
        assert abs(wrap_angle(pose.yaw_rad - step.pose.yaw_rad)) < 1e-9


def test_it_goes_round_a_wall_that_the_distance_does_not_know() -> None:
    wall = Terrain(
        lambda x, y: np.where((np.abs(x - 1.0) < 0.1) & (y < 1.0) & (y > -2.0), np.inf, 1.0),
        lambda x, y: np.hypot(x - 2.0, y),
    )
    plan = search(SE2(), MOVES, wall, 0.1, width=300, max_forwards=200)
    assert plan is not None
    assert plan.arrived
    crossing = [step.pose.y_m for step in plan.steps if abs(step.pose.x_m - 1.0) < 0.3]
    assert min(crossing) > 0.9


def test_of_equally_long_ways_it_takes_the_one_with_fewer_turns() -> None:
    plan = search(SE2(), MOVES, distance_to(1.0, 0.0), 0.05, width=300, max_forwards=10)
    assert plan is not None
    assert [step.action for step in plan.steps] == [Action.MOVE_FORWARD] * 4


def test_slow_ground_is_worth_a_detour_only_if_it_is_slow_enough() -> None:
    def over(slowness: float) -> float:
        puddle = Terrain(
            lambda x, y: np.where(np.hypot(x - 1.0, y) < 0.4, slowness, 1.0), lambda x, y: np.hypot(x - 2.0, y)
        )
        plan = search(SE2(), MOVES, puddle, 0.1, width=500, max_forwards=9)
        assert plan is not None
        return min(math.hypot(step.pose.x_m - 1.0, step.pose.y_m) for step in plan.steps)

    assert over(1.01) < 0.2
    assert over(6.0) > 0.3


def test_a_goal_already_reached_needs_no_action() -> None:
    assert search(SE2(), MOVES, distance_to(0.05, 0.0), 0.1, 10, 10) == Plan((), arrived=True)


def test_there_is_no_plan_where_nothing_is_free() -> None:
    walled = Terrain(lambda x, y: np.full(np.shape(x), np.inf), lambda x, y: np.hypot(x - 2, y))
    assert search(SE2(), MOVES, walled, 0.1, 10, 10) is None


def test_a_goal_beyond_the_horizon_or_the_walls_gives_a_plan_towards_it() -> None:
    plan = search(SE2(), MOVES, distance_to(5.0, 0.0), 0.1, width=50, max_forwards=4)
    assert plan is not None
    assert not plan.arrived
    assert plan.steps[-1].pose.x_m == pytest.approx(1.0)
    room = Terrain(
        lambda x, y: np.where(np.maximum(np.abs(x), np.abs(y)) > 0.6, np.inf, 1.0), lambda x, y: np.hypot(x - 5, y)
    )
    plan = search(SE2(), MOVES, room, 0.1, width=500, max_forwards=400)
    assert plan is not None
    assert not plan.arrived
    assert plan.steps[-1].pose.x_m > 0.45


def test_the_first_heading_can_be_restricted() -> None:
    backwards = np.abs(np.array([wrap_angle(a) for a in MOVES.angles(0.0)])) > math.radians(100)
    plan = search(SE2(), MOVES, distance_to(2.0, 0.0), 0.1, 300, 100, backwards)
    assert plan is not None
    assert plan.arrived
    first = next(step.pose for step in plan.steps if step.action is Action.MOVE_FORWARD)
    assert abs(wrap_angle(first.yaw_rad)) > math.radians(100)


@pytest.mark.parametrize(("turn_deg", "headings"), [(30.0, 12), (10.0, 36), (9.0, 40), (45.0, 8)])
def test_turns_make_a_full_circle(turn_deg: float, headings: int) -> None:
    moves = Moves.of(Magnitudes(0.25, turn_deg, 30.0))
    assert moves.headings == headings
    assert moves.turns(0, 1) == [Action.TURN_LEFT]
    assert moves.turns(0, headings - 1) == [Action.TURN_RIGHT]
    assert len(moves.turns(0, headings // 2)) == headings // 2


@given(st.floats(-3, 3), st.floats(-3, 3))
def test_facing_leaves_at_most_half_a_turn(yaw: float, direction: float) -> None:
    turns = MOVES.facing(yaw, direction)
    assert len(turns) <= 6
    for action in turns:
        yaw += MOVES.turn_rad if action is Action.TURN_LEFT else -MOVES.turn_rad
    assert abs(wrap_angle(direction - yaw)) <= MOVES.turn_rad / 2 + 1e-9


@given(st.floats(0.5, 4.5), st.floats(0.5, 2.5))
def test_bilinear_is_exact_for_a_plane_and_nearest_takes_the_cell(column: float, row: float) -> None:
    rows, columns = np.mgrid[0:3, 0:5] + 0.5
    plane = 2.0 * columns - 3.0 * rows + 1.0
    assert bilinear(plane, np.array(column), np.array(row)) == pytest.approx(2 * column - 3 * row + 1)
    assert nearest(plane, np.array(column), np.array(row), 0.0) == plane[min(int(row), 2), min(int(column), 4)]


def test_unknown_cells_have_no_say_and_no_value() -> None:
    values = np.array([[1.0, np.inf], [1.0, np.inf]])
    x, y = np.array([0.9, 1.1, -0.5, 0.5]), np.array([1.0, 1.0, 0.5, 5.0])
    np.testing.assert_array_equal(bilinear(values, x, y), [1.0, np.inf, np.inf, np.inf])
