"""Discrete actions on the simulated LoCoBot, judged by where it truly is."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from robot_runtime.actions.discrete import Action, Magnitudes
from robot_runtime.common.clock import SimulatedClock
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.hal import Robot, Zone
from robot_runtime.motion.controller import MotionController
from robot_runtime.records import Outcome

SimFactory = Callable[..., Robot]

MAGNITUDES = Magnitudes(forward_m=0.25, turn_deg=30, tilt_deg=30)
FORWARD = MAGNITUDES.displacement(Action.MOVE_FORWARD)
EAST_WALL_X_M = 3.0
RADIUS_M = 0.18


def true_pose(robot: Robot) -> SE2:
    robot.clock.sleep(0.1)  # so that the poses around the instant asked for were both measured at rest
    return robot.referee.at(robot.clock.now_ns(), 0.5).pose


def placed(robot: Robot, pose: SE2) -> MotionController:
    robot.placer.place(pose, 0.0)
    motion = MotionController(robot.clock, robot.base, robot.head)
    motion.rest()
    return motion


@pytest.mark.parametrize("rate_hz", [50.0, 100.0])
def test_every_action_ends_within_two_millimeters_and_a_fifth_of_a_degree(sim: SimFactory, rate_hz: float):
    rng = random.Random(0)
    with sim({"base": {"rate_hz": rate_hz}}) as robot:
        motion = placed(robot, SE2(-1.5, 0.0, 0.0))
        for _ in range(30):
            before = true_pose(robot)
            ahead = before @ SE2(0.25, 0.0, 0.0)
            roomy = -2.0 < ahead.x_m < 0.8 and abs(ahead.y_m) < 0.6
            action = rng.choice((Action.TURN_LEFT, Action.TURN_RIGHT, *[Action.MOVE_FORWARD] * 3 * roomy))
            wish = MAGNITUDES.displacement(action)
            result = motion.execute(wish)
            moved = true_pose(robot).relative_to(before)
            assert result.outcome is Outcome.REACHED
            assert math.hypot(moved.x_m - wish.forward_m, moved.y_m) <= 0.002
            assert abs(wrap_angle(moved.yaw_rad - wish.turn_rad)) <= math.radians(0.2)
            assert result.measured.forward_m == pytest.approx(moved.x_m, abs=1e-4)


@pytest.mark.slow
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    start=st.builds(SE2, st.floats(-2.0, 0.8), st.floats(-0.6, 0.6), st.floats(-math.pi, math.pi)),
    magnitudes=st.builds(
        Magnitudes, st.floats(0.02, 0.3), st.sampled_from([1.0, 10.0, 30.0, 45.0, 90.0, 180.0]), st.just(30.0)
    ),
    action=st.sampled_from([Action.MOVE_FORWARD, Action.TURN_LEFT, Action.TURN_RIGHT]),
)
def test_wherever_it_starts_and_however_far_the_task_goes(
    sim: SimFactory, start: SE2, magnitudes: Magnitudes, action: Action
):
    wish = magnitudes.displacement(action)
    robot = sim()
    with robot.base, robot.head, robot.referee:
        motion = placed(robot, start)
        before = true_pose(robot)
        assert before.distance_to(start) < 1e-6
        assert motion.execute(wish).outcome is Outcome.REACHED
        moved = true_pose(robot).relative_to(before)
    assert math.hypot(moved.x_m - wish.forward_m, moved.y_m) <= 0.002
    assert abs(wrap_angle(moved.yaw_rad - wish.turn_rad)) <= math.radians(0.2)


def test_looking_reaches_its_angle_exactly(sim: SimFactory):
    with sim() as robot:
        motion = placed(robot, SE2())
        for action, tilt_deg in ((Action.LOOK_UP, 30), (Action.LOOK_DOWN, 0), (Action.LOOK_DOWN, -30)):
            assert motion.execute(MAGNITUDES.displacement(action)).outcome is Outcome.REACHED
            state = robot.head.state(0.2)
            assert (math.degrees(state.tilt_rad), state.moving) == (pytest.approx(tilt_deg, abs=0.2), False)


@pytest.mark.parametrize("angle_deg", [0, 15, -15, 29, 31, -45, 60, -75, 85, -88])
def test_a_wall_at_any_angle_holds_the_robot_where_it_touched(sim: SimFactory, angle_deg: float):
    angle_rad = math.radians(angle_deg)
    touch = SE2(EAST_WALL_X_M - RADIUS_M, 0.0, angle_rad)
    with sim() as robot:
        # 0.15 m before the wall: at full speed when it is met.
        start = touch @ SE2(-0.15, 0.0, 0.0)
        motion = placed(robot, start)
        touched: list[SE2] = []

        def watch(now_ns: int) -> None:
            state = robot.base.state(1.0)
            if state.bumper and not touched:
                assert state.velocity.linear_m_s > 0.25
                touched.append(start @ state.odom)  # without noise, odometry is exact, and it starts where placed

        assert isinstance(robot.clock, SimulatedClock)
        robot.clock.add_listener(watch)
        hit = motion.execute(FORWARD)
        end = true_pose(robot)
        facing = Zone.CENTER if abs(angle_deg) <= 30 else Zone.RIGHT if angle_deg > 0 else Zone.LEFT
        assert (hit.outcome, hit.contact) == (Outcome.CONTACT, facing)
        assert end.distance_to(touched[0]) <= 0.005
        slid = end.relative_to(touch)
        assert slid.x_m <= 0.005 / math.cos(angle_rad)
        assert abs(slid.y_m) <= 0.002
        assert abs(slid.yaw_rad) <= math.radians(0.2)

        again = motion.execute(FORWARD)
        assert again.outcome is Outcome.CONTACT
        assert true_pose(robot).distance_to(end) <= 1e-6

        turns = [motion.execute(MAGNITUDES.displacement(Action.TURN_LEFT)) for _ in range(6)]
        assert {turn.outcome for turn in turns} == {Outcome.REACHED}
        assert motion.execute(FORWARD).outcome is Outcome.REACHED
