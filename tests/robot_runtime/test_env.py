"""Habitat's environment interface on the fake robot: order of events, observations, limits, faults."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from open_room import CAMERA, Witness, fake_robot, make_episode, make_fake, make_object_episode, make_scene, make_task
from raising import raises_naming

from robot_runtime.actions.discrete import Action, Magnitudes
from robot_runtime.common.clock import SimulatedClock, seconds_to_ns
from robot_runtime.common.geometry import SE2
from robot_runtime.env import Env
from robot_runtime.errors import (
    ConfigError,
    DeviceFault,
    EpisodeError,
    InvalidStart,
    LocalizationLost,
    NotConnected,
    RecordingError,
    StaleData,
    UnknownAction,
    UnreachableGoal,
)
from robot_runtime.hal import Arrivals, HeadState, Localizer, LocalizerInfo, PoseEstimate, Robot, Velocity, Zone
from robot_runtime.hal.events import Event
from robot_runtime.records import PHASES, EndReason, EpisodeEnd, EpisodeHeader, Outcome, StepRecord, Subscriber

TASK = make_task()
SCENE = make_scene()


def make_env(robot: Robot, *subscribers: Subscriber, **changes: Any) -> Env:
    return Env(robot, changes.pop("task", TASK), SCENE, subscribers, **changes)


def is_still(robot: Robot) -> bool:
    before = robot.referee.latest(1.0).pose
    robot.clock.sleep(0.5)
    return robot.referee.latest(1.0).pose == before


def in_seconds(robot: Robot, delay_s: float, act: Callable[[], None]) -> None:
    """Have ``act`` called once, ``delay_s`` from now on the robot's clock."""
    due = [act]
    due_ns = robot.clock.now_ns() + seconds_to_ns(delay_s)

    def on_step(now_ns: int) -> None:
        if due and now_ns >= due_ns:
            due.pop()()

    assert isinstance(robot.clock, SimulatedClock)
    robot.clock.add_listener(on_step)


def raise_interrupt() -> None:
    raise KeyboardInterrupt


class OdometryLocalizer(Localizer):
    """Wheel odometry as the policy's only idea of where it is."""

    def __init__(self, robot: Robot, frame: str = "odom") -> None:
        self._robot, self._frame = robot, frame

    @property
    def info(self) -> LocalizerInfo:
        return LocalizerInfo("odometry", self._frame, self._robot.base.info.rate_hz)

    def connect(self) -> None:
        """Nothing of its own."""

    def close(self) -> None:
        """Nothing of its own."""

    def latest(self, max_age_s: float) -> PoseEstimate:
        state = self._robot.base.state(max_age_s)
        return PoseEstimate(state.stamp_ns, state.odom, self.info.frame)

    def at(self, stamp_ns: int, timeout_s: float) -> PoseEstimate:
        return self.latest(timeout_s)  # the robot stands still whenever it is asked

    def arrivals(self, after: int = 0) -> Arrivals:
        newest = self.latest(1.0)
        return Arrivals(newest.stamp_ns, (newest,) if newest.stamp_ns > after else ())


def run(env: Env) -> None:
    """A short episode."""
    env.reset(make_episode())
    walk(env, Action.MOVE_FORWARD, Action.TURN_LEFT, Action.MOVE_FORWARD, Action.STOP)


def walk(env: Env, *actions: Action) -> None:
    for action in actions:
        env.step(action)


# --- a good episode -------------------------------------------------------------------------------------------------


def test_an_episode_from_start_to_stop():
    witness = Witness()
    with fake_robot(TASK) as robot:
        env = make_env(robot, witness)
        assert env.episode_over
        first = env.reset(make_episode(SE2(0.5, -1.0, math.pi / 2), goal=(0.5, 0.0)), agent_name="tester", seed=7)
        assert not env.episode_over
        np.testing.assert_allclose(first["gps"], [0, 0], atol=1e-6)
        np.testing.assert_allclose(first["pointgoal"], [1.0, 0.0], atol=1e-6)

        for _ in range(3):
            observation = env.step(Action.MOVE_FORWARD)
        np.testing.assert_allclose(observation["gps"], [0.75, 0.0], atol=0.005)
        np.testing.assert_allclose(observation["pointgoal"], [1.0, 0.0], atol=1e-6)
        np.testing.assert_allclose(observation["pointgoal_with_gps_compass"][0], 0.25, atol=0.005)

        observation = env.step("turn_left")
        np.testing.assert_allclose(np.degrees(observation["compass"]), [30.0], atol=0.2)
        env.step("stop")
        assert env.episode_over

        metrics = env.get_metrics()
        assert metrics["success"] is True
        assert metrics["steps"] == 5
        assert metrics["spl"] == pytest.approx(1.0, abs=0.05)
        assert env.end == witness.ends[0]
    (header,) = witness.headers
    assert (header.agent, header.seed, header.robot, header.task) == ("tester", 7, "fake", TASK)
    assert header.intrinsics == CAMERA.intrinsics
    assert header.provenance["python"]
    assert [record.action for record in witness.steps] == [
        None,
        *[Action.MOVE_FORWARD] * 3,
        Action.TURN_LEFT,
        Action.STOP,
    ]
    assert witness.ends == [EpisodeEnd(EndReason.STOP, 5, witness.ends[0].stamp_ns)]


def test_every_frame_is_exposed_after_the_motion_and_poses_belong_to_it():
    witness = Witness()
    with fake_robot(TASK, camera_latency_s=0.05, pose_latency_s=0.1) as robot:
        env = make_env(robot, witness)
        run(env)
    for record in witness.steps:
        times = record.times
        assert times.action_start_ns <= times.action_end_ns <= times.exposed_ns <= times.observed_ns
        assert times.exposed_ns == record.frame.stamp_ns == record.pose.stamp_ns == record.referee.stamp_ns
        assert record.pose.pose.distance_to(record.referee.pose) < 1e-9
        assert record.base.velocity == Velocity(0.0, 0.0)
        assert not record.head.moving
        assert set(record.phase_s) == (
            set(PHASES) - {"age", "stand"} if record.index else {"settle", "observe", "localize"}
        )
    assert witness.steps[0].times.action_start_ns == witness.steps[0].times.action_end_ns
    assert len(witness.states) > 100


def test_poses_are_not_blended_with_the_motion_before_them():
    witness = Witness()
    with fake_robot(TASK, pose_rate_hz=8.0, wall_x_m=0.18 + 0.15) as robot:
        env = make_env(robot, witness)
        env.reset(make_episode(goal=(-1.0, 0.0)))
        env.step(Action.MOVE_FORWARD)  # hits the wall at full speed
        robot.clock.sleep(0.5)
        assert witness.steps[1].pose.pose.distance_to(robot.referee.latest(1.0).pose) < 1e-9


def test_the_head_starts_at_the_tasks_tilt_or_the_episodes():
    witness = Witness()
    task = make_task("objectnav", camera=replace(CAMERA, tilt_deg=-20.0))
    with fake_robot(task) as robot:
        env = make_env(robot, witness, task=task)
        env.reset(make_object_episode())
        assert witness.steps[0].head.tilt_rad == pytest.approx(math.radians(-20))
        env.step(Action.LOOK_DOWN)
        assert witness.steps[1].head.tilt_rad == pytest.approx(math.radians(-50))
        env.reset(make_object_episode(start_tilt_rad=math.radians(10)))
        assert witness.steps[0].head.tilt_rad == pytest.approx(math.radians(10))
        env.step(Action.LOOK_UP)
        assert witness.steps[1].head.tilt_rad == pytest.approx(math.radians(40))


def test_object_goals_come_from_the_scene():
    task = make_task("objectnav")
    witness = Witness()
    with fake_robot(task) as robot:
        env = make_env(robot, witness, task=task)
        observation = env.reset(make_object_episode())
        assert observation["objectgoal"].tolist() == [11]
        assert env.episode.goals[0].object_id == "vase_1"
        assert env.get_metrics()["distance_to_goal"] == pytest.approx(math.hypot(1.5, 1.5), rel=0.02)
    assert witness.headers[0].episode == env.episode


def test_odometry_as_localizer_measures_from_where_the_robot_was_put():
    with fake_robot(TASK) as robot:
        odom = OdometryLocalizer(robot)
        env = make_env(replace(robot, localizer=odom))
        robot.base.command(Velocity(0.2, 0.3))
        robot.clock.sleep(0.15)
        observation = env.reset(make_episode(SE2(1.0, 1.0, math.pi), goal=(0.0, 0.0)))
        np.testing.assert_allclose(observation["gps"], [0, 0], atol=1e-6)
        np.testing.assert_allclose(observation["pointgoal"], [math.sqrt(2), math.pi / 4], atol=1e-6)
        observation = env.step(Action.MOVE_FORWARD)
        np.testing.assert_allclose(observation["gps"], [0.25, 0], atol=0.003)


def test_the_caller_cannot_change_what_the_record_holds():
    witness = Witness()
    with fake_robot(TASK) as robot:
        env = make_env(robot, witness)
        for array in env.reset(make_episode()).values():
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 77
    np.testing.assert_array_equal(witness.steps[0].observation["rgb"], witness.steps[0].frame.rgb)


def test_what_the_policy_said_stands_in_the_record():
    witness = Witness()
    with fake_robot(TASK) as robot:
        env = make_env(robot, witness)
        env.reset(make_episode())
        env.step(Action.TURN_LEFT, {"plan": [1, 2]}, infer_s=0.25)
    assert witness.steps[1].policy_info == {"plan": [1, 2]}
    assert witness.steps[1].phase_s["infer"] == 0.25


def test_a_collision_marks_its_own_step():
    witness = Witness()
    with fake_robot(TASK, wall_x_m=0.18 + 0.1) as robot:
        env = make_env(robot, witness)
        env.reset(make_episode(goal=(-1.0, 0.0)))
        walk(env, Action.MOVE_FORWARD, Action.TURN_LEFT, Action.MOVE_FORWARD, *[Action.TURN_LEFT] * 3)
        walk(env, Action.MOVE_FORWARD)
        assert env.get_metrics()["collisions"] == 2
    assert [r.result.collided for r in witness.steps if r.result] == [True, False, True, False, False, False, False]
    assert witness.steps[1].result.contact is Zone.CENTER


def test_how_far_an_action_goes_is_the_tasks_choice():
    task = replace(TASK, magnitudes=Magnitudes(forward_m=0.1, turn_deg=10, tilt_deg=15))
    with fake_robot(task) as robot:
        env = make_env(robot, task=task)
        env.reset(make_episode())
        seen = env.step(Action.MOVE_FORWARD)
        np.testing.assert_allclose(seen["gps"], [0.1, 0], atol=0.002)
        for _ in range(3):
            seen = env.step(Action.TURN_LEFT)
    np.testing.assert_allclose(seen["compass"], [math.radians(30)], atol=math.radians(0.2))


# --- limits ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("last", "reason"), [(Action.STOP, EndReason.STOP), (Action.TURN_LEFT, EndReason.MAX_STEPS)])
def test_stop_as_the_last_allowed_action_counts(last: Action, reason: EndReason):
    task = make_task(max_steps=3)
    witness = Witness()
    with fake_robot(task) as robot:
        env = make_env(robot, witness, task=task)
        env.reset(make_episode(goal=(0.2, 0.0)))
        env.step(Action.TURN_LEFT)
        env.step(Action.TURN_RIGHT)
        assert not env.episode_over
        env.step(last)
        assert env.episode_over
        assert env.get_metrics()["success"] is (last is Action.STOP)
        with raises_naming(EpisodeError, "reset()"):
            env.step(Action.STOP)
    assert [(end.reason, end.steps) for end in witness.ends] == [(reason, 3)]


def test_an_episode_may_last_only_so_long_on_the_robots_clock():
    task = replace(make_task(max_steps=500), max_seconds=5.0)
    witness = Witness()
    with fake_robot(task) as robot:
        env = make_env(robot, witness, task=task)
        for _ in range(2):  # each episode has its own time
            env.reset(make_episode())
            began_ns = robot.clock.now_ns()
            while not env.episode_over:
                env.step(Action.TURN_LEFT)
    for end in witness.ends:
        assert end.reason is EndReason.MAX_SECONDS
    assert witness.steps[-1].times.action_end_ns - began_ns >= 4.9e9
    assert witness.steps[-2].times.action_end_ns - began_ns < 5e9


@pytest.mark.parametrize("limit_s", [0.0, -1.0, math.inf, math.nan])
def test_a_time_limit_is_a_time(limit_s: float):
    with pytest.raises(ValueError, match="max_seconds must be positive and finite"):
        replace(make_task(), max_seconds=limit_s)


def test_stepping_or_asking_before_the_first_reset_is_refused():
    with fake_robot(TASK) as robot:
        env = make_env(robot)
        with raises_naming(EpisodeError, "reset()"):
            env.step(Action.STOP)
        for ask in (env.get_metrics, lambda: env.record, lambda: env.episode, lambda: env.end):
            with pytest.raises(EpisodeError):
                ask()


def test_a_new_episode_interrupts_the_one_that_runs():
    witness = Witness()
    with fake_robot(TASK) as robot:
        env = make_env(robot, witness)
        env.reset(make_episode())
        env.reset(make_episode())
        with env:
            env.step(Action.TURN_LEFT)
        env.close()
    assert [end.reason for end in witness.ends] == [EndReason.INTERRUPTED] * 2
    assert "another episode" in witness.ends[0].detail


# --- what cannot be run ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("episode", "error", "named"),
    [
        (make_episode(SE2(2.95, 0.0)), InvalidStart, "2.950"),
        (make_episode(SE2(9.0, 0.0)), InvalidStart, "9.000"),
        (make_episode(goal=(30.0, 0.0)), UnreachableGoal, "goal"),
        (make_object_episode(), EpisodeError, "goals"),
    ],
)
def test_an_impossible_episode_is_refused_before_the_robot_moves(episode: Any, error: type[EpisodeError], named: str):
    witness = Witness()
    with fake_robot(TASK) as robot:
        env = make_env(robot, witness)
        before_ns = robot.clock.now_ns()
        with raises_naming(error, named):
            env.reset(episode)
        assert robot.clock.now_ns() == before_ns
        assert env.episode_over
    assert not witness.headers


def test_a_camera_of_another_size_is_refused_before_anything_moves():
    with fake_robot(TASK, width=64, height=48) as robot, raises_naming(ConfigError, "64x48", "32x24"):
        make_env(robot)


@pytest.mark.parametrize(
    ("role", "frame", "known"),
    [("localizer", "beacons", "map or odom"), ("referee", "beacons", "map"), ("referee", "odom", "map")],
)
def test_poses_in_a_frame_that_episodes_do_not_know_are_refused(role: str, frame: str, known: str):
    with fake_robot(TASK) as robot:
        astray = OdometryLocalizer(robot, frame)
        with raises_naming(ConfigError, f"{role} 'odometry'", f"'{frame}'", known):
            make_env(replace(robot, **{role: astray}))


@pytest.mark.parametrize("action", ["fly", "", 1, None, "look_up", "MOVE_FORWARD"])
def test_an_unknown_action_ends_the_episode_with_the_wheels_at_zero(action: Any):
    witness = Witness()
    with fake_robot(TASK) as robot:
        env = make_env(robot, witness)
        env.reset(make_episode())
        robot.base.command(Velocity(0.2, 0.0))
        with pytest.raises(UnknownAction):
            env.step(action)
        assert robot.base.command(Velocity(0.0, 0.0)) == Velocity(0.0, 0.0)
        assert is_still(robot)
        assert env.episode_over
    assert [(end.reason, end.of_policy) for end in witness.ends] == [(EndReason.FAULT, True)]
    assert repr(action) in witness.ends[0].detail


# --- faults ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "error", "named", "reason"),
    [
        ({"kind": "lost_frames"}, StaleData, "camera", EndReason.FAULT),
        ({"kind": "dropped_poses"}, LocalizationLost, "localizer", EndReason.LOCALIZATION_LOST),
        ({"kind": "late_poses", "latency_s": 2.0}, LocalizationLost, "localizer", EndReason.LOCALIZATION_LOST),
        ({"kind": "lost_tracking"}, LocalizationLost, " 30 s", EndReason.LOCALIZATION_LOST),
        ({"kind": "silent_base"}, StaleData, "base", EndReason.FAULT),
    ],
)
def test_a_fault_in_an_episode_is_raised_after_the_log_was_closed(
    fault: dict[str, Any], error: type[DeviceFault], named: str, reason: EndReason
):
    witness = Witness()
    with fake_robot(TASK, faults=[{**fault, "from_s": 4.0}]) as robot:
        env = make_env(robot, witness)
        env.reset(make_episode(goal=(2.5, 0.0)))
        with raises_naming(error, named) as caught:
            walk(env, *[Action.MOVE_FORWARD] * 10)
        assert env.episode_over
        assert robot.base.command(Velocity()) == Velocity()
    assert [(end.reason, end.detail) for end in witness.ends] == [(reason, caught.value.message)]
    assert witness.ends[0].steps == len(witness.steps) - 1 > 0
    # No step tells of the action in which it happened: the end does.
    assert witness.ends[0].action is Action.MOVE_FORWARD
    result = witness.ends[0].result
    assert result is not None
    assert result.outcome is (Outcome.FAULT if named == "base" else Outcome.REACHED)


def test_what_the_camera_has_noticed_is_logged_with_the_step(monkeypatch: pytest.MonkeyPatch):
    witness = Witness()
    noticed = [(), (Event(1, "camera", "images", "depth is stamped +0.0090 s relative to its color image"),), ()]
    with fake_robot(TASK) as robot:
        monkeypatch.setattr(robot.camera, "events", lambda: noticed.pop(0))
        env = make_env(robot, witness)
        env.reset(make_episode(goal=(2.5, 0.0)))
        walk(env, Action.MOVE_FORWARD, Action.STOP)
    assert [(event.source, event.kind) for event in witness.events] == [("camera", "images")]


@pytest.mark.parametrize("kind", ["dropped_poses", "lost_tracking"])
def test_a_robot_that_is_lost_waits_until_it_is_found(kind: str):
    """The observation then was exposed after the pose was found, and the wait counts against no time limit."""
    witness = Witness()
    with fake_robot(TASK, faults=[{"kind": kind, "from_s": 4.0, "to_s": 24.0}]) as robot:
        env = make_env(robot, witness, task=replace(TASK, max_seconds=20.0))
        env.reset(make_episode(goal=(2.5, 0.0)))
        walk(env, *[Action.MOVE_FORWARD] * 4, Action.STOP)
    assert witness.ends[0].reason is EndReason.STOP
    assert [(event.source, event.kind) for event in witness.events] == [("env", "paused"), ("env", "resumed")]
    assert "fake localizer" in witness.events[0].detail
    waited_s = [step.times.observed_ns / 1e9 - step.times.action_end_ns / 1e9 for step in witness.steps]
    assert sum(wait_s > 1 for wait_s in waited_s) == 1
    for step in witness.steps:
        assert step.pose.pose.distance_to(step.referee.pose) < 1e-6
        assert not 4.1 < step.pose.stamp_ns / 1e9 < 24.0


def test_every_pose_of_every_source_is_told_of_once():
    witness = Witness()
    with fake_robot(TASK) as robot:
        run(make_env(robot, witness))
    assert set(witness.poses) == {"fake localizer", "fake referee", "fake odometry"}
    header, last = witness.headers[0], witness.steps[-1]
    for source, rate_hz in (("fake localizer", 30), ("fake referee", 50), ("fake odometry", 50)):
        stamps = [estimate.stamp_ns for estimate in witness.poses[source]]
        assert stamps == sorted(set(stamps))
        assert stamps[0] <= header.start_ns, "the origin's window is there too"
        assert stamps[-1] >= last.times.exposed_ns
        assert len(stamps) == pytest.approx((stamps[-1] - stamps[0]) / 1e9 * rate_hz + 1, abs=1)
    assert header.origin is not None
    assert header.origin.pose.distance_to(header.episode.start) < 1e-6


@pytest.mark.parametrize("kind", ["lost_frames", "dropped_poses", "lost_tracking", "silent_base"])
def test_a_fault_at_the_start_leaves_no_episode_open(kind: str):
    witness = Witness()
    with fake_robot(TASK, faults=[{"kind": kind, "from_s": 0.05}]) as robot:
        robot.clock.sleep(0.1)
        env = make_env(robot, witness)
        with pytest.raises(DeviceFault):
            env.reset(make_episode())
        assert env.episode_over
    assert len(witness.headers) == len(witness.ends)
    assert {end.reason for end in witness.ends} <= {EndReason.FAULT, EndReason.LOCALIZATION_LOST}


def test_short_silences_are_waited_out():
    faults = [
        {"kind": "lost_frames", "from_s": 2.0, "to_s": 2.3},
        {"kind": "late_poses", "from_s": 2.0, "to_s": 6.0, "latency_s": 0.2},
    ]
    with fake_robot(TASK, faults=faults) as robot:
        env = make_env(robot)
        env.reset(make_episode(goal=(2.0, 0.0)))
        for _ in range(3):
            observation = env.step(Action.MOVE_FORWARD)
    np.testing.assert_allclose(observation["gps"], [0.75, 0.0], atol=0.005)


@pytest.mark.parametrize("begin_s", np.arange(1.5, 4.5, 0.1).round(1).tolist())
def test_a_gap_of_the_link_costs_no_episode_whenever_it_begins(monkeypatch: pytest.MonkeyPatch, begin_s: float):
    """Before, between and after motions, while the head looks, and while a frame is awaited: 1.5 s without anything."""
    gap, task = (
        {"from_s": begin_s, "to_s": begin_s + 1.5},
        make_task(actions=(*TASK.actions, Action.LOOK_UP, Action.LOOK_DOWN)),
    )
    with fake_robot(
        task, faults=[{"kind": k, **gap} for k in ("silent_base", "lost_frames", "dropped_poses")]
    ) as robot:
        head_state = robot.head.state

        def reported(max_age_s: float) -> HeadState:
            if begin_s + max_age_s < robot.clock.now_ns() / 1e9 < gap["to_s"]:
                raise StaleData("the head is silent", "check its cable")
            return head_state(max_age_s)

        monkeypatch.setattr(robot.head, "state", reported)
        witness = Witness()
        env = make_env(robot, witness, task=task)
        env.reset(make_episode(goal=(2.0, 0.0)))
        walk(env, Action.MOVE_FORWARD, Action.LOOK_DOWN, Action.TURN_LEFT, Action.LOOK_UP, Action.MOVE_FORWARD)
        walk(env, Action.STOP)
        assert robot.clock.now_ns() / 1e9 > gap["to_s"], "the gap was part of the episode"
    assert [end.reason for end in witness.ends] == [EndReason.STOP]
    assert {step.result.outcome for step in witness.steps if step.result} == {Outcome.REACHED}
    assert all(step.times.exposed_ns > step.times.action_end_ns for step in witness.steps[1:])


@pytest.mark.parametrize("fault", [{"kind": "wheel_drop"}, {"kind": "cliff"}])
def test_a_robot_that_needs_a_person_ends_the_episode_as_interrupted(fault: dict[str, Any]):
    witness = Witness()
    with fake_robot(TASK, faults=[{**fault, "from_s": 3.0}]) as robot:
        env = make_env(robot, witness)
        env.reset(make_episode(goal=(2.5, 0.0)))
        while not env.episode_over:
            env.step(Action.MOVE_FORWARD)
    assert witness.steps[-1].result.outcome is Outcome.STOPPED
    assert (witness.ends[0].reason, witness.ends[0].steps) == (EndReason.INTERRUPTED, witness.steps[-1].index)
    assert fault["kind"] in witness.ends[0].detail
    assert witness.ends[0].of_policy == (fault["kind"] == "cliff"), "it drove there; nobody lifts a robot by a command"


def test_an_emergency_stop_in_mid_action_ends_the_episode():
    witness = Witness()
    with fake_robot(TASK) as robot:
        env = make_env(robot, witness)
        env.reset(make_episode())
        in_seconds(robot, 0.5, robot.base.emergency_stop)
        env.step(Action.MOVE_FORWARD)
        assert env.episode_over
        assert is_still(robot)
    assert "e_stop" in witness.ends[0].detail
    assert not witness.ends[0].of_policy


def test_ctrl_c_in_mid_action_closes_the_log_and_stops_the_wheels():
    witness = Witness()
    with fake_robot(TASK) as robot:
        env = make_env(robot, witness)
        env.reset(make_episode())
        in_seconds(robot, 0.5, raise_interrupt)
        with pytest.raises(KeyboardInterrupt):
            env.step(Action.MOVE_FORWARD)
        assert is_still(robot)
    assert [(end.reason, end.steps) for end in witness.ends] == [(EndReason.INTERRUPTED, 0)]


def test_a_lost_connection_still_closes_the_log():
    witness = Witness()
    robot = make_fake(TASK)
    robot.connect()
    env = make_env(robot, witness)
    env.reset(make_episode())
    robot.close()
    with pytest.raises(NotConnected):
        env.step(Action.MOVE_FORWARD)
    assert [end.reason for end in witness.ends] == [EndReason.FAULT]


class FullDisk(Subscriber):
    """Fails at one of its calls."""

    def __init__(self, at: str) -> None:
        self._at = at
        self.ended = 0

    def _fail(self, at: str) -> None:
        if at == self._at:
            raise RecordingError("disk full", "free some space")

    def on_episode_start(self, header: EpisodeHeader) -> None:
        self._fail("start")

    def on_step(self, record: StepRecord) -> None:
        self._fail("reset" if record.index == 0 else "step")

    def on_episode_end(self, end: EpisodeEnd) -> None:
        self.ended += 1
        self._fail("end")


@pytest.mark.parametrize("at", ["start", "reset", "step", "end"])
@pytest.mark.parametrize("last", [True, False])
def test_a_failing_subscriber_ends_the_episode_for_everybody(at: str, last: bool):
    witness, disk = Witness(), FullDisk(at)
    with fake_robot(TASK) as robot:
        env = make_env(robot, *((witness, disk) if last else (disk, witness)))
        with raises_naming(RecordingError, "disk full"):
            run(env)
        assert is_still(robot)
        assert env.episode_over
    assert len(witness.headers) == len(witness.ends) == (0 if at == "start" and not last else 1)
    assert disk.ended == (0 if at == "start" else 1)


# --- determinism ----------------------------------------------------------------------------------------------------


def test_two_runs_leave_the_same_records():
    def record() -> Witness:
        witness = Witness()
        with fake_robot(TASK) as robot:
            run(make_env(robot, witness))
        return witness

    first, second = record(), record()
    for a, b in zip(first.steps, second.steps, strict=True):
        assert (a.result, a.times, a.base, a.head) == (b.result, b.times, b.base, b.head)
        assert (a.pose.pose, a.referee.pose) == (b.pose.pose, b.referee.pose)
        np.testing.assert_array_equal(a.frame.rgb, b.frame.rgb)
        assert all(np.array_equal(a.observation[name], b.observation[name]) for name in TASK.sensors)
