"""Adaptation of the model of a base's motors to its motions."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from open_room import fake_robot, make_episode, make_scene, make_task

from drivers.fake.driver import make_robot
from robot_runtime.actions.discrete import Action, Displacement
from robot_runtime.env import Env
from robot_runtime.hal import Robot
from robot_runtime.hal.events import Event
from robot_runtime.hal.motors import KOBUKI_MOTORS, KnownMotors, MotorModel
from robot_runtime.motion.adaptation import DELAY_BOUND_S, GAIN_BOUND, described
from robot_runtime.motion.controller import MotionController
from robot_runtime.recording.reader import LogReader
from robot_runtime.recording.writer import Recorder
from robot_runtime.records import Outcome
from robot_runtime.robots.loader import RobotContext

FORWARD = Displacement(forward_m=0.25)
LEFT = Displacement(turn_rad=math.radians(30))


def robot_with(**motors: Any) -> Robot:
    options = {"rate_hz": 50.0, "max_linear_accel_m_s2": 1.0, "max_angular_accel_rad_s2": 7.0, "motors": motors}
    return make_robot(RobotContext(scene=None, camera=None, seed=0), "fake", options, "test")


def driven(robot: Robot, known: KnownMotors, actions: int) -> tuple[MotorModel, list[Event], list[float]]:
    """The model after steps forward, the events, and how long each step took."""
    events: list[Event] = []
    with robot:
        robot.base.motors = known
        motion = MotionController(robot.clock, robot.base, robot.head, on_event=events.append)
        seconds = []
        for _ in range(actions):
            result = motion.execute(FORWARD)
            assert result.outcome is Outcome.REACHED
            seconds.append(result.duration_s)
            robot.clock.sleep(0.5)
        return motion.follower.predictor.model, events, seconds


@pytest.mark.parametrize(("dead_time_s", "lag_s"), [(0.02, 0.03), (0.25, 0.2)])
def test_delays_and_gains_approach_those_of_the_base_and_the_log_says_so(dead_time_s: float, lag_s: float) -> None:
    robot = robot_with(dead_time_s=dead_time_s, lag_s=lag_s, gain=[0.96, 1.04], report_delay_s=0.05)
    model, events, seconds = driven(robot, KnownMotors(KOBUKI_MOTORS), 12)
    assert model.dead_time_s + model.lag_s == pytest.approx(dead_time_s + lag_s, abs=0.04)
    assert model.gain == pytest.approx((0.96, 1.04), abs=0.015)
    assert seconds[-1] < seconds[0]
    assert {(event.source, event.kind) for event in events} == {("motion", "motors_adapted")}
    assert "dead time 0.200 to 0." in events[0].detail
    assert "gain 1.000/1.000 to 0.98" in events[0].detail
    assert len(events) < 12


def test_the_log_of_an_episode_has_the_changes(tmp_path: Path) -> None:
    task, recorder = make_task(), Recorder(tmp_path)
    motors = {"type": "kobuki", "gain": [0.95, 0.95]}
    with fake_robot(task, motors=motors) as robot, Env(robot, task, make_scene(), (recorder,)) as env:
        env.reset(make_episode(), "three steps")
        for _ in range(3):
            env.step(Action.MOVE_FORWARD)
        env.step(Action.STOP)
    recorder.close()
    assert recorder.path is not None
    with LogReader(recorder.path) as log:
        changes = [event.detail for event in log.events() if event.kind == "motors_adapted"]
    assert "the model of the motors has changed: gain 1.000/1.000 to 0.9" in changes[0]


def test_an_episode_does_not_depend_on_what_was_driven_before() -> None:
    with robot_with(dead_time_s=0.05, lag_s=0.2, gain=[0.96, 1.0]) as robot:
        robot.base.motors = KnownMotors(KOBUKI_MOTORS)
        motion = MotionController(robot.clock, robot.base, robot.head)
        episodes = []
        for _ in range(2):
            motion.begin_episode()
            assert motion.follower.predictor.model == KOBUKI_MOTORS
            results = [motion.execute(FORWARD) for _ in range(3)]
            episodes.append([(result.outcome, round(result.duration_s, 6)) for result in results])
            assert motion.follower.predictor.model != KOBUKI_MOTORS
    assert episodes[0] == episodes[1]


def test_each_change_is_small_and_all_together_are_bounded() -> None:
    robot = robot_with(dead_time_s=0.02, lag_s=0.02, gain=[0.8, 0.8], report_delay_s=0.02)
    known = KnownMotors(MotorModel(dead_time_s=0.45, lag_s=0.1))
    models = [driven(robot, known, actions)[0] for actions in (1, 2, 15)]
    assert known.model.dead_time_s - models[0].dead_time_s <= 0.05 + 1e-9
    assert 1.0 - models[1].gain[0] <= 2 * 0.02 + 1e-9
    assert models[2].gain == pytest.approx((1 - GAIN_BOUND, 1 - GAIN_BOUND))
    assert models[2].dead_time_s + models[2].lag_s >= 0.55 - DELAY_BOUND_S - 1e-9


def test_a_calibrated_base_keeps_its_delays_and_follows_the_battery() -> None:
    known = KnownMotors(MotorModel(dead_time_s=0.2, lag_s=0.1), calibrated=True)
    model, events, _ = driven(robot_with(dead_time_s=0.15, lag_s=0.1, gain=[0.96, 0.96]), known, 10)
    assert (model.dead_time_s, model.lag_s) == (0.2, 0.1)
    assert model.gain == pytest.approx((0.96, 0.96), abs=0.015)
    assert events


def test_the_true_model_stays_as_it_is() -> None:
    robot = robot_with(type="kobuki", report_delay_s=0.04)
    model, events, _ = driven(robot, KnownMotors(KOBUKI_MOTORS), 5)
    assert model == KOBUKI_MOTORS
    assert events == []


def test_turns_alone_change_nothing() -> None:
    with robot_with(dead_time_s=0.02, lag_s=0.03, gain=[0.96, 1.04]) as robot:
        robot.base.motors = KnownMotors(KOBUKI_MOTORS)
        motion = MotionController(robot.clock, robot.base, robot.head)
        for _ in range(3):
            motion.execute(LEFT)
        assert motion.follower.predictor.model.gain == KOBUKI_MOTORS.gain


def test_a_change_is_described_with_its_units() -> None:
    assert described(KOBUKI_MOTORS, KOBUKI_MOTORS) == ""
    after = replace(KOBUKI_MOTORS, lag_s=0.12, threshold_m_s=(0.05, 0.0))
    assert described(KOBUKI_MOTORS, after) == "lag 0.100 to 0.120 s, threshold 0.000/0.000 to 0.050/0.000 m/s"
