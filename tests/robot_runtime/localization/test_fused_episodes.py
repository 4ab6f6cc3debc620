"""Episodes whose policy, or referee, is told fused poses: on the fake robot, with its localizer as the beacons."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from open_room import Witness, make_episode, make_fake, make_object_episode, make_scene, make_task
from raising import raises_naming

from robot_runtime.actions.discrete import Action
from robot_runtime.env import Env
from robot_runtime.errors import LocalizationLost
from robot_runtime.hal import Robot
from robot_runtime.localization.fused import FusedLocalizer, FusedOptions
from robot_runtime.policies import load_policy
from robot_runtime.records import EndReason
from robot_runtime.runtime import run_episode

TASK = make_task()
SCENE = make_scene()


@contextmanager
def robot_with(role: str = "localizer", **options: Any) -> Iterator[Robot]:
    robot = make_fake(TASK, pose_rate_hz=10.0, pose_latency_s=0.1, **options)
    assert robot.odometry is not None
    fused = FusedLocalizer(robot.clock, robot.odometry, robot.localizer, FusedOptions())
    parts: dict[str, Any] = {role: fused}
    with replace(robot, **parts) as made:
        yield made


@pytest.mark.parametrize("role", ["localizer", "referee"])
def test_scores_are_those_of_the_truth(role: str) -> None:
    policy = load_policy("goal-follower")
    found = []
    for chosen in (role, "tracker"):  # a robot's tracker is nobody's business in PointNav: that one is as it was
        witness = Witness()
        with robot_with(chosen) as robot:
            env = Env(robot, TASK, SCENE, (witness,))
            run_episode(env, policy, make_episode(goal=(1.5, 1.0)), 0)
            found.append(env.get_metrics())
        assert witness.ends[0].reason is EndReason.STOP
        for step in witness.steps:
            assert step.pose.pose.distance_to(step.referee.pose) < 0.02
            assert step.pose.stamp_ns == step.frame.stamp_ns == step.referee.stamp_ns
    fused, exact = found
    assert fused["success"] == exact["success"] == 1
    for name in ("spl", "soft_spl", "distance_to_goal"):
        assert fused[name] == pytest.approx(exact[name], abs=0.03)


def test_objects_are_found_by_it_too() -> None:
    task = make_task("objectnav")
    witness = Witness()
    with robot_with("referee") as robot:
        env = Env(robot, task, SCENE, (witness,))
        env.reset(make_object_episode())
        for action in (Action.TURN_LEFT, Action.MOVE_FORWARD, Action.STOP):
            env.step(action)
        assert env.get_metrics()["distance_to_goal"] == pytest.approx(2.12 - 0.25, abs=0.05)


def test_dropouts_are_bridged_and_told_of() -> None:
    witness = Witness()
    with robot_with(faults=[{"kind": "lost_tracking", "from_s": 5.0, "to_s": 8.0}]) as robot:
        env = Env(robot, TASK, SCENE, (witness,))
        env.reset(make_episode(goal=(2.5, 0.0)))
        for action in (*[Action.MOVE_FORWARD] * 5, Action.STOP):
            env.step(action)
    assert [(event.source, event.kind) for event in witness.events] == [
        ("fake localizer", "no_fix"),
        ("fake localizer", "fix"),
    ]
    assert all(step.pose.pose.distance_to(step.referee.pose) < 0.01 for step in witness.steps)


def test_a_lost_robot_pauses_and_goes_on_when_it_is_found() -> None:
    witness = Witness()
    with robot_with(faults=[{"kind": "dropped_poses", "from_s": 5.0, "to_s": 20.0}]) as robot:
        env = Env(robot, TASK, SCENE, (witness,))
        env.reset(make_episode(goal=(2.5, 0.0)))
        for action in (*[Action.MOVE_FORWARD] * 7, Action.STOP):
            env.step(action)
    assert witness.ends[0].reason is EndReason.STOP
    assert [event.kind for event in witness.events] == ["lost", "paused", "regained", "resumed"]
    assert "no measurement" in witness.events[0].detail
    assert not any(11.0 < step.frame.stamp_ns / 1e9 < 20.0 for step in witness.steps)


@pytest.mark.parametrize("role", ["localizer", "referee"])
def test_a_robot_that_stays_lost_ends_the_episode(role: str) -> None:
    witness = Witness()
    with robot_with(role, faults=[{"kind": "dropped_poses", "from_s": 5.0}]) as robot:
        env = Env(robot, TASK, SCENE, (witness,), localization_patience_s=10.0)
        with raises_naming(LocalizationLost, "10 s"):
            run_episode(env, load_policy("forward-only"), make_episode(goal=(2.5, 0.0)), 0)
        assert env.get_metrics()["success"] == 0
    assert witness.ends[0].reason is EndReason.LOCALIZATION_LOST
    assert "paused" in [event.kind for event in witness.events]
    assert {"fake localizer", "fused fake localizer", "fake odometry"} <= set(witness.poses)


def test_a_robot_that_is_lost_at_the_start_is_waited_for() -> None:
    with robot_with(faults=[{"kind": "lost_tracking", "to_s": 12.0}]) as robot:
        witness = Witness()
        env = Env(robot, TASK, SCENE, (witness,), localization_patience_s=15.0)
        env.reset(make_episode())
        assert robot.clock.now_ns() > 5e9
        assert [event.kind for event in witness.events][-1] == "resumed"
    with robot_with(faults=[{"kind": "lost_tracking"}]) as robot, pytest.raises(LocalizationLost):
        Env(robot, TASK, SCENE, localization_patience_s=3.0).reset(make_episode())
