"""Decisions that do not settle, on the fake robot: pursued while it moves, by the age of their image."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from open_room import Witness, fake_robot, make_episode, make_scene, make_task
from raising import raises_naming
from scripted import Script, record

from robot_runtime.actions import timed
from robot_runtime.actions.discrete import Action
from robot_runtime.actions.timed import Control, Decision, TimedAction, TrajectoryControl
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.env import Env
from robot_runtime.errors import DeviceFault, PolicyError, UnknownAction
from robot_runtime.hal import Zone
from robot_runtime.motion.pursuit import arcs
from robot_runtime.policy import Observation, Policy, World
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import EndReason, Outcome, Pursued
from robot_runtime.runtime import run_episode
from robot_runtime.scoring.policy_agreement import open_loop
from robot_runtime.scoring.summary import score_log
from robot_runtime.tasks.task import Task
from sim_bridge.replay.action_replay import decision_of

FAKE = "drivers.fake.driver.make_robot"
KOBUKI = {"type": "kobuki"}
LIMITS = TrajectoryControl((0.0, 0.4), 1.5, 0.25, latency_s=0.1)


def make_control(**changes: Any) -> Control:
    return Control((0.0, 0.0), trajectory=replace(LIMITS, **changes))


@contextmanager
def running(limits: Control | None = None, start: SE2 | None = None, **options: Any) -> Iterator[tuple[Env, Witness]]:
    """An episode of the fake robot with a Kobuki's motors."""
    task = make_task(control=limits or make_control(), max_steps=200)
    with fake_robot(task, motors=KOBUKI, **options) as robot:
        witness = Witness()
        env = Env(robot, task, make_scene(), (witness,))
        env.reset(make_episode(start))
        yield env, witness


def speed(env: Env) -> float:
    return env.robot.base.state(1.0).velocity.linear_m_s


def pursued(env: Env) -> Pursued:
    result = env.record.result
    assert result is not None
    assert result.pursued is not None
    return result.pursued


def on_circle(pose: SE2) -> TimedAction:
    """Points on the circle of 1 m radius around (0, 1), 2 s ahead at 0.3 m/s, from a pose near it."""
    share = math.atan2(pose.x_m, 1 - pose.y_m)
    points = [(math.sin(share + 0.075 * k), 1 - math.cos(share + 0.075 * k)) for k in range(1, 9)]
    seen = [SE2(x_m, y_m, 0.0).relative_to(pose) for x_m, y_m in points]
    return timed.trajectory([(point.x_m, point.y_m) for point in seen], 0.25)


def test_a_trajectory_is_followed_from_the_pose_at_its_image() -> None:
    with running() as (env, witness):
        for _ in range(40):
            env.step(on_circle(env.record.referee.pose))
        steps = witness.steps[4:]
        exact = [pose.pose for pose in witness.poses["fake referee"]]
    assert max(abs(math.hypot(pose.x_m, pose.y_m - 1) - 1) for pose in exact) < 0.005
    for pose in exact:
        assert abs(wrap_angle(pose.yaw_rad - math.atan2(pose.x_m, 1 - pose.y_m))) < math.radians(1)
    assert {step.result.outcome for step in steps if step.result} == {Outcome.MOVING}
    assert sum(a.distance_to(b) for a, b in pairwise(exact)) > 0.28 * 10
    for before, step in pairwise(steps):
        assert step.result is not None
        assert step.result.pursued is not None
        assert 0.1 < step.result.pursued.age_s < 0.25
        assert step.times.exposed_ns - before.times.exposed_ns < 0.31e9
        assert step.result.pursued.error_m < 0.005
        assert step.result.measured.forward_m == pytest.approx(step.result.pursued.driven.x_m)


def test_a_velocity_holds_until_it_is_replaced() -> None:
    with running() as (env, witness):
        for _ in range(20):
            env.step(timed.velocity(0.2, 0.1, settle=False))
        assert speed(env) == pytest.approx(0.2, abs=0.01)
        for _ in range(8):
            env.step(timed.velocity(0.0, 0.0, settle=False))
        assert speed(env) == pytest.approx(0.0, abs=0.005)
        assert witness.states
        assert [state.stamp_ns for state in witness.states] == sorted(state.stamp_ns for state in witness.states)


def test_what_is_older_than_its_limit_stops_the_wheels() -> None:
    with running(make_control(latency_s=0.3)) as (env, _):
        for _ in range(3):
            env.step(timed.velocity(0.3, 0.0, settle=False))
        assert speed(env) > 0.1
        env.robot.clock.sleep(1.5)  # the policy is held up
        assert speed(env) == 0.0
        env.step(timed.velocity(0.3, 0.0, settle=False, max_age_s=0.5))
        result = env.record.result
        assert result is not None
        assert result.outcome is Outcome.TIMED_OUT
        assert "old" in result.detail
        assert pursued(env).standing_s > 0.5
        env.step(timed.velocity(0.3, 0.0, settle=False, max_age_s=1.0))
        assert pursued(env).standing_s > 0
        assert env.record.result is not None
        assert env.record.result.outcome is Outcome.MOVING


def test_a_policy_for_which_the_robot_stands_too_long_is_a_fault_of_its_own() -> None:
    with running(make_control(latency_s=2.0, max_standing_s=5.0)) as (env, witness):
        with raises_naming(PolicyError, "5", "max_standing_s"):
            for _ in range(10):
                env.step(timed.velocity(0.3, 0.0, settle=False))
        assert witness.ends[-1].reason is EndReason.FAULT
        assert speed(env) == 0.0


def test_a_trajectory_into_a_wall_ends_with_a_contact_and_another_way_goes_on() -> None:
    with running(start=SE2(0.0, 0.0, 0.0), wall_x_m=0.8) as (env, _):
        outcomes = []
        for _ in range(14):
            env.step(timed.trajectory([(0.1 * k, 0.0) for k in range(1, 9)], 0.25))
            assert env.record.result is not None
            outcomes.append(env.record.result.outcome)
        assert outcomes[0] is Outcome.MOVING
        assert outcomes[-1] is Outcome.CONTACT
        assert env.record.result is not None
        assert env.record.result.contact & Zone.CENTER
        assert speed(env) == 0.0
        for _ in range(8):
            env.step(timed.trajectory([(0.0, 0.0, 0.2 * k) for k in range(1, 9)], 0.25))
        assert env.record.referee.pose.yaw_rad > 0.5


def test_the_end_of_a_trajectory_is_reached_at_rest() -> None:
    with running(make_control(max_age_s=20.0)) as (env, _):
        env.step(timed.trajectory([(0.1 * k, 0.0, 0.0) for k in range(1, 6)], 0.5))
        env.robot.clock.sleep(5.0)
        for _ in range(2):
            env.step(timed.trajectory([(0.0, 0.0, 0.0)], 0.25))
        pose = env.record.referee.pose
        assert pose.distance_to(SE2(0.5, 0.0, 0.0)) < 0.01
        assert speed(env) == 0.0
        assert env.record.result is not None
        assert env.record.result.outcome is Outcome.REACHED


def test_a_turn_on_the_spot_is_followed() -> None:
    with running(make_control(max_age_s=20.0)) as (env, _):
        env.step(timed.trajectory([(0.0, 0.0, 0.3 * k) for k in range(1, 6)], 0.5))
        env.robot.clock.sleep(5.0)
        env.step(timed.velocity(0.0, 0.0, settle=False))
        pose = env.record.referee.pose
        assert math.hypot(pose.x_m, pose.y_m) < 0.005
        assert pose.yaw_rad == pytest.approx(1.5, abs=math.radians(2))


@pytest.mark.parametrize("then", [Action.MOVE_FORWARD, Action.STOP])
def test_a_discrete_action_begins_at_rest(then: Action) -> None:
    with running() as (env, witness):
        for _ in range(6):
            env.step(timed.velocity(0.3, 0.0, settle=False))
        assert speed(env) > 0.2
        before = env.record.referee.pose
        env.step(then)
        assert speed(env) == 0.0
        if then is Action.MOVE_FORWARD:
            assert 0.25 < env.record.referee.pose.distance_to(before) < 0.6
            env.step(timed.velocity(0.3, 0.0, settle=False))
        else:
            assert witness.ends[-1].reason is EndReason.STOP


@pytest.mark.parametrize(
    "action",
    [
        timed.velocity(math.nan, 0.0, settle=False),
        timed.trajectory([(0.1, math.inf)], 0.1),
        timed.trajectory([(0.1, 0.0)], 0.0),
        timed.trajectory([(0.1, 0.0)], 0.1, exposure_ns=10**18),
        timed.velocity(0.1, 0.0),
        timed.waypoint(0.1, 0.0, 0.0),
    ],
)
def test_what_cannot_be_pursued_ends_the_episode_at_rest(action: TimedAction) -> None:
    with running() as (env, witness):
        for _ in range(4):
            env.step(timed.velocity(0.3, 0.0, settle=False))
        with pytest.raises(UnknownAction) as caught:
            env.step(action)
        assert caught.value.remedy
        assert (witness.ends[-1].reason, witness.ends[-1].of_policy) == (EndReason.FAULT, True)
        env.robot.clock.sleep(1.0)
        assert speed(env) == 0.0


def test_a_task_without_trajectories_refuses_them_and_names_one_that_takes_them() -> None:
    task = make_task()
    with fake_robot(task) as robot:
        env = Env(robot, task, make_scene())
        env.reset(make_episode())
        with raises_naming(UnknownAction, "pointnav_trajectory"):
            env.step(timed.trajectory([(0.1, 0.0)], 0.1))


def test_a_base_that_goes_silent_while_the_policy_decides_is_a_fault() -> None:
    faults = [{"kind": "silent_base", "from_s": 4.0, "to_s": 30.0}]
    with running(make_control(latency_s=0.5, max_age_s=10.0), faults=faults) as (env, witness):
        with pytest.raises(DeviceFault):  # noqa: PT012  # at whichever step it is noticed
            for _ in range(40):
                env.step(timed.velocity(0.1, 0.0, settle=False))
        assert witness.ends[-1].reason is EndReason.FAULT


@pytest.mark.parametrize("begin_s", [round(2.5 + 0.05 * k, 2) for k in range(12)])
def test_a_gap_of_the_link_costs_no_episode_and_is_not_the_policy_s(begin_s: float) -> None:
    """At whatever instant of a decision nothing comes any more, for 1.5 s."""
    kinds, gap = ("silent_base", "lost_frames", "dropped_poses"), {"from_s": begin_s, "to_s": begin_s + 1.5}
    faults = [{"kind": kind, **gap} for kind in kinds]
    with running(make_control(max_standing_s=0.5), faults=faults) as (env, witness):
        for _ in range(20):
            env.step(on_circle(env.record.referee.pose))
        assert env.robot.clock.now_ns() / 1e9 > gap["to_s"] + 1
        assert speed(env) > 0.25
        stamps = [step.times.exposed_ns for step in witness.steps]
    assert 1.5e9 < max(b - a for a, b in pairwise(stamps)) < 2.5e9
    assert not witness.ends


def test_a_decision_that_raises_leaves_the_wheels_at_zero() -> None:
    class Moving(Policy):
        name = "moving"

        def reset(self, task: Task, seed: int, world: World | None = None) -> None:
            self.left = 5

        def act(self, observation: Observation) -> Decision:
            self.left -= 1
            return timed.velocity(0.3 / max(0, self.left), 0.0, settle=False)

    task = make_task(control=make_control(), max_steps=200)
    with fake_robot(task, motors=KOBUKI) as robot:
        env = Env(robot, task, make_scene())
        with pytest.raises(PolicyError):
            run_episode(env, Moving(), make_episode(), 0)
        robot.clock.sleep(1.0)
        assert robot.base.state(1.0).velocity.linear_m_s == 0.0
        assert env.end.reason is EndReason.FAULT


def test_a_wheel_that_turns_round_is_no_fault() -> None:
    """The model runs a dead time ahead of odometry: distances cancel at other instants."""
    with running() as (env, _):
        for count in range(1, 12):
            for _ in range(count):
                env.step(timed.velocity(0.0, 0.6, settle=False))
            for _ in range(3):
                env.step(timed.velocity(0.3, 0.6, settle=False))
            for _ in range(3):
                env.step(timed.velocity(0.0, -0.6, settle=False))


def test_an_episode_repeats_bit_for_bit() -> None:
    def steps() -> list[tuple[Any, ...]]:
        with running() as (env, witness):
            for _ in range(10):
                env.step(on_circle(env.record.referee.pose))
            return [(step.result, step.times, step.referee.pose) for step in witness.steps]

    assert steps() == steps()


def test_arcs_meet_their_points() -> None:
    points = timed.trajectory([(0.2, 0.0, 0.1), (0.4, 0.1, 0.5), (0.4, 0.1, 1.5), (0.3, 0.1, 1.5)], 0.5).points
    made = arcs(points)
    for arc, point in zip(made, points, strict=True):
        assert point.pose is not None
        assert arc.pose(1.0).distance_to(point.pose) < 1e-9
        share, square = arc.project(arc.pose(0.3))
        assert abs(share - 0.3) < 0.01
        assert square < 1e-5
    assert made[2].forward_m == 0.0
    assert abs(made[2].turn_rad - 1.0) < 1e-9


def test_the_log_holds_points_stamp_age_and_what_was_driven(tmp_path: Path) -> None:
    task = replace(make_task(control=make_control()), max_steps=200)
    ahead = timed.trajectory([(0.05 * k, 0.0) for k in range(1, 9)], 0.25)
    script: list[Decision] = [ahead] * 8
    options = {"motors": KOBUKI, "rate_hz": 50.0}
    (log,) = record(tmp_path, make_scene(), [script], task, episode=make_episode(), driver=FAKE, options=options)
    with LogReader(log) as reader:
        steps = list(reader.steps())
        again = open_loop(reader, Script(script))
    assert again.steps
    assert all(step.same for step in again.steps)
    for before, step in pairwise(steps[:-1]):
        assert step.action is Action.TRAJECTORY_CONTROL
        assert step.command == timed.stamped(ahead, before.times.exposed_ns)
        assert step.result is not None
        assert step.result.pursued is not None
        assert step.phase_s["age"] == step.result.pursued.age_s
        assert decision_of(step) == ahead
        assert "to 0.40 m, 0.00 m, 0° in 2 s by 8 points" in str(step.command)
    assert steps[-1].result is not None
    assert steps[-1].result.pursued is None
    score = score_log(log)
    assert [time.phase for time in score.latency.times()][-2:] == ["age", "stand"]
