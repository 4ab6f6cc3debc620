"""Continuous actions on the fake robot: exact kinematics behind the real Guard."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drivers.fake.driver import make_robot
from robot_runtime.actions import timed
from robot_runtime.actions.discrete import Displacement
from robot_runtime.actions.timed import TimedAction
from robot_runtime.common.clock import seconds_to_ns
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.errors import DeviceFault
from robot_runtime.hal import Robot, Velocity, Zone
from robot_runtime.motion.controller import MotionController
from robot_runtime.motion.steering import Steering
from robot_runtime.records import ActionResult, Outcome
from robot_runtime.robots.loader import RobotContext
from robot_runtime.tasks.task import load_task

CONTROL = load_task("objectnav_hm3d2023").control
assert CONTROL is not None
MAX_AGE_S = 0.1


@contextmanager
def fake_robot(**options: Any) -> Iterator[Robot]:
    with make_robot(RobotContext(scene=None, camera=None, seed=0), "fake", {"rate_hz": 50.0, **options}, "t") as robot:
        yield robot


def execute(robot: Robot, *commands: TimedAction) -> ActionResult:
    motion = MotionController(robot.clock, robot.base, robot.head)
    steering = Steering(robot.clock, robot.base, robot.head, motion)
    for command in commands:
        result = steering.execute(command, CONTROL)
    return result


def odom(robot: Robot) -> SE2:
    return robot.base.state(MAX_AGE_S).odom


def near(here: SE2, there: SE2, metres: float = 0.002, degrees: float = 0.2) -> bool:
    return here.distance_to(there) <= metres and abs(wrap_angle(here.yaw_rad - there.yaw_rad)) <= math.radians(degrees)


def integrated(linear_m_s: float, angular_rad_s: float, duration_s: float, steps: int = 2000) -> SE2:
    """End of a unicycle without inertia: the simulator's velocity control by small steps."""
    pose = SE2()
    for _ in range(steps):
        time_s = duration_s / steps
        pose = pose @ SE2(linear_m_s * time_s / 2, 0.0, angular_rad_s * time_s) @ SE2(linear_m_s * time_s / 2, 0.0, 0.0)
    return pose


@given(linear_m_s=st.floats(-0.4, 0.4), angular_rad_s=st.floats(-1.0, 1.0), duration_s=st.floats(0.05, 2.0))
@settings(max_examples=40)
def test_a_velocity_ends_where_the_simulator_would_end(
    linear_m_s: float, angular_rad_s: float, duration_s: float
) -> None:
    with fake_robot() as robot:
        result = execute(robot, timed.velocity(linear_m_s, angular_rad_s, 0.0, duration_s))
        assert result.outcome is Outcome.REACHED
        assert near(odom(robot), integrated(linear_m_s, angular_rad_s, duration_s), metres=0.003)
        assert result.commanded == Displacement(linear_m_s * duration_s, angular_rad_s * duration_s)
        assert robot.base.state(MAX_AGE_S).velocity == Velocity()


def test_small_velocities_do_not_drift_from_what_was_asked() -> None:
    with fake_robot() as robot:
        command = timed.velocity(0.3, 0.45, 0.0, 0.1)
        execute(robot, *[command] * 30)
        assert near(odom(robot), integrated(0.3, 0.45, 3.0), metres=0.02, degrees=0.3)


def test_no_motion_takes_its_time_all_the_same() -> None:
    with fake_robot() as robot:
        before_ns = robot.clock.now_ns()
        result = execute(robot, timed.velocity(0.0, 0.0, 0.0, 1.0))
        assert result.outcome is Outcome.REACHED
        assert robot.clock.now_ns() - before_ns >= seconds_to_ns(1.0)
        assert odom(robot) == SE2()


@pytest.mark.slow
@given(x_m=st.floats(-0.5, 0.5), y_m=st.floats(-0.5, 0.5), yaw_rad=st.floats(-3.1, 3.1))
@settings(max_examples=40)
def test_a_waypoint_is_reached_with_its_heading(x_m: float, y_m: float, yaw_rad: float) -> None:
    with fake_robot() as robot:
        result = execute(robot, timed.waypoint(x_m, y_m, yaw_rad, 0.0, 60.0))
        assert result.outcome is Outcome.REACHED
        allowed_m = 0.0101 if math.hypot(x_m, y_m) <= 0.01 else 0.005
        assert near(odom(robot), SE2(x_m, y_m, yaw_rad), metres=allowed_m, degrees=0.5)  # the tolerance


def test_a_waypoint_ends_when_its_time_is_over() -> None:
    with fake_robot() as robot:
        before_ns = robot.clock.now_ns()
        result = execute(robot, timed.waypoint(0.5, 0.0, 0.0, 0.0, 1.0))
        assert result.outcome is Outcome.TIMED_OUT
        assert "short after 1 s" in result.detail
        assert 0.05 < odom(robot).x_m < 0.3
        assert robot.clock.now_ns() - before_ns < seconds_to_ns(1.5)
        assert robot.base.state(MAX_AGE_S).velocity == Velocity()


def test_a_waypoint_that_asks_for_no_time_gets_one_step() -> None:
    with fake_robot() as robot:
        result = execute(robot, timed.waypoint(0.5, 0.0, 0.0, 0.0, 0.0))
        assert result.outcome is Outcome.TIMED_OUT
        assert 0 < odom(robot).x_m < 0.02


def test_the_camera_tilts_with_the_command_and_stays_in_range() -> None:
    with fake_robot() as robot:
        up = execute(robot, timed.velocity(0.1, 0.0, 0.4, 0.5))
        assert up.measured.tilt_rad == pytest.approx(0.2, abs=0.01)
        most = execute(robot, timed.velocity(0.0, 0.0, 0.45, 2.0))
        assert most.measured.tilt_rad == pytest.approx(0.43 - 0.2, abs=0.01)
        assert "limit is 24.6°" in most.detail


def test_contact_ends_a_velocity_and_forbids_the_next_one_forward_but_no_turn() -> None:
    with fake_robot(faults=[{"kind": "stuck_bumper", "zone": "left", "from_s": 0.5}]) as robot:
        touched = execute(robot, timed.velocity(0.25, 0.1, 0.0, 2.0))
        assert (touched.outcome, touched.contact) == (Outcome.CONTACT, Zone.LEFT)
        assert touched.measured.forward_m < 0.2
        before = odom(robot)
        again = execute(robot, timed.waypoint(0.3, 0.0, 0.0, 0.0, 10.0))
        assert again.outcome is Outcome.CONTACT
        assert odom(robot) == before
        turn = execute(robot, timed.velocity(0.0, 0.4, 0.0, 1.0))
        assert turn.outcome is Outcome.REACHED


def test_an_emergency_stop_stops_it() -> None:
    with fake_robot() as robot:
        robot.base.emergency_stop()
        result = execute(robot, timed.velocity(0.2, 0.0, 0.0, 1.0))
        assert result.outcome is Outcome.STOPPED
        assert odom(robot) == SE2()


def test_a_silent_base_is_a_fault_with_what_was_measured_and_the_wheels_at_zero() -> None:
    with fake_robot() as robot:
        motion = MotionController(robot.clock, robot.base, robot.head)
        steering = Steering(robot.clock, robot.base, robot.head, motion)
        calls = 0
        read = motion.follower.read

        def failing() -> Any:
            nonlocal calls
            calls += 1
            if calls > 40:
                raise DeviceFault("base: gone", "look for it")
            return read()

        motion.follower.read = failing  # type: ignore[method-assign]
        result = steering.execute(timed.velocity(0.3, 0.0, 0.0, 2.0), CONTROL)
        assert (result.outcome, result.detail) == (Outcome.FAULT, "base: gone")
        assert isinstance(motion.fault, DeviceFault)
        assert result.measured.forward_m > 0.01
        before = odom(robot)
        robot.clock.sleep(0.5)
        assert robot.base.state(1.0).odom == before


@pytest.mark.parametrize("bad", [SE2(math.nan, 0.0, 0.0), SE2(0.0, 0.0, math.inf)])
def test_odometry_that_is_not_finite_never_becomes_a_command(bad: SE2, monkeypatch: pytest.MonkeyPatch) -> None:
    with fake_robot() as robot:
        state, commands = robot.base.state, []
        monkeypatch.setattr(robot.base, "state", lambda max_age_s: replace(state(max_age_s), odom=bad))
        monkeypatch.setattr(robot.base, "command", commands.append)
        result = execute(robot, timed.velocity(0.3, 1.5, 0.0, 2.0))
    assert result.outcome is Outcome.FAULT
    assert "not finite" in result.detail
    assert commands == []
