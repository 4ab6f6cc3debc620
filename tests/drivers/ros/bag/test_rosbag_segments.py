"""Rests, movements and which action they were: worked numbers and properties."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivers.ros.bag.motion_segments import ActionSegmenter, Motion, find_stand_stills, motion_between, waypoints
from robot_runtime.actions.discrete import Action, Magnitudes
from robot_runtime.common.geometry import SE2

ACTIONS = tuple(action for action in Action if action is not Action.GRAB_RELEASE)
RECOGNISER = ActionSegmenter(ACTIONS, Magnitudes(0.25, 30.0, 15.0), 0.2)
PERIOD_NS = 20_000_000


def moved(forward_m: float = 0.0, left_m: float = 0.0, turn_deg: float = 0.0, tilt_deg: float = 0.0) -> Motion:
    return Motion(forward_m, left_m, math.radians(turn_deg), 0.0, math.radians(tilt_deg))


@pytest.mark.parametrize(
    ("movement", "action"),
    [
        (moved(forward_m=0.25), Action.MOVE_FORWARD),
        (moved(forward_m=0.21, turn_deg=5.9), Action.MOVE_FORWARD),
        (moved(turn_deg=34, forward_m=0.03), Action.TURN_LEFT),
        (moved(turn_deg=-25), Action.TURN_RIGHT),
        (moved(tilt_deg=15), Action.LOOK_UP),
        (moved(tilt_deg=-13), Action.LOOK_DOWN),
        (moved(forward_m=0.19), None),
        (moved(forward_m=-0.25), None),
        (moved(forward_m=0.5), None),
        (moved(forward_m=0.24, left_m=0.06), None),
        (moved(forward_m=0.25, turn_deg=7), None),
        (moved(turn_deg=90), None),
        (moved(turn_deg=30, tilt_deg=15), None),
        (Motion(0.25, 0.0, 0.0, math.radians(10), 0.0), None),
    ],
)
def test_an_action_is_recognised_within_tolerance_and_nothing_else_is(movement: Motion, action: Action | None) -> None:
    assert RECOGNISER.action(movement, bumped=False) is action
    assert not RECOGNISER.is_still(movement)


@pytest.mark.parametrize("forward_m", [-0.01, 0.0, 0.1, 0.25])
def test_a_bump_may_end_a_forward_early(forward_m: float) -> None:
    assert RECOGNISER.action(moved(forward_m=forward_m), bumped=True) is Action.MOVE_FORWARD


def test_a_bump_excuses_no_other_movement() -> None:
    assert RECOGNISER.action(moved(turn_deg=12), bumped=True) is None
    assert RECOGNISER.action(moved(forward_m=0.4), bumped=True) is None


coordinates = st.floats(-5, 5)
angles = st.floats(-3, 3)


@given(coordinates, coordinates, angles, coordinates, coordinates, angles)
def test_movement_is_the_pose_seen_from_the_one_before(
    x0: float, y0: float, yaw0: float, x1: float, y1: float, yaw1: float
) -> None:
    found = motion_between((x0, y0, yaw0, 0.1, 0.2), (x1, y1, yaw1, 0.4, 0.0))
    expected = SE2(x1, y1, yaw1).relative_to(SE2(x0, y0, yaw0))
    assert (found.forward_m, found.left_m) == pytest.approx((expected.x_m, expected.y_m), abs=1e-9)
    assert math.cos(found.turn_rad - expected.yaw_rad) == pytest.approx(1)
    assert (found.pan_rad, found.tilt_rad) == pytest.approx((0.3, -0.2))


@given(st.lists(st.tuples(st.integers(20, 40), st.integers(10, 60)), min_size=1, max_size=6))
def test_rests_are_found_where_they_are(parts: list[tuple[int, int]]) -> None:
    x_m, resting = [0.0], [True]
    for rest, motion in parts:
        x_m += [x_m[-1]] * rest
        resting += [True] * rest
        x_m += [x_m[-1] + 0.25 * (tick + 1) / motion for tick in range(motion)]
        resting += [False] * (motion - 1) + [True]
    x_m += [x_m[-1]] * 20
    resting += [True] * 20
    poses = np.column_stack([x_m, np.zeros(len(x_m)), np.zeros(len(x_m))])
    stamps = np.arange(len(x_m)) * PERIOD_NS
    rests = find_stand_stills(stamps, poses, np.zeros((len(x_m), 2)), 0.15)
    assert len(rests) == len(parts) + 1
    for rest in rests:
        assert resting[rest.first]
        assert resting[rest.middle]
        assert x_m[rest.last] == pytest.approx(x_m[rest.first], abs=0.002 + 1e-9)


def test_a_moving_head_is_no_rest() -> None:
    stamps = np.arange(100) * PERIOD_NS
    head = np.column_stack([np.zeros(100), np.linspace(0, 2, 100)])
    assert find_stand_stills(stamps, np.zeros((100, 3)), head, 0.15) == []


def test_waypoints_lie_apart_by_distance_or_turn() -> None:
    straight = np.column_stack([np.linspace(0, 1, 101), np.zeros(101), np.zeros(101)])
    assert [round(float(straight[row, 0]), 2) for row in waypoints(straight, 0.25, 1.0)] == [0.0, 0.25, 0.5, 0.75, 1.0]
    turn = np.column_stack([np.zeros(101), np.zeros(101), np.linspace(0, 4, 101)])
    assert waypoints(turn, 0.25, 1.0) == [0, 25, 50, 75, 100]
    assert waypoints(np.zeros((1, 3)), 0.25, 1.0) == [0]
