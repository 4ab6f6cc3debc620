"""Episodes in which the policy knows what its wheels tell it and nothing else."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from open_room import Witness, make_task

from robot_runtime.common.geometry import SE2
from robot_runtime.env import Env
from robot_runtime.errors import ConfigError
from robot_runtime.localization.wheel_odometry import make_localizer
from robot_runtime.policies import load_policy
from robot_runtime.records import EndReason
from robot_runtime.robots.loader import DeviceOverrides, RobotContext, load_robot
from robot_runtime.runtime import run_episode
from robot_runtime.scenes.scene import Scene
from robot_runtime.tasks.episode import Episode, Goal

EPISODES = {
    "pointnav": Episode("1", "room", SE2(-1.5, -0.4, 0.5), (Goal(1.0, -0.8),)),
    "objectnav": Episode("1", "room", SE2(0.5, -1.0, 1.0), (), category="Vase"),
}


@pytest.mark.parametrize("kind", EPISODES)
def test_wheels_alone_tell_the_way_within_their_drift_and_scores_are_the_referees(room: Scene, kind: str) -> None:
    room = replace(room, view_points={"vase": (SE2(-0.8, -1.2, math.pi), SE2(-1.5, -0.5, -math.pi / 2))})
    task, witness = make_task(kind, max_steps=40), Witness()
    parts = DeviceOverrides(localizer="odometry")
    with (
        load_robot("sim-noisy", RobotContext(room, task.camera, seed=3), parts) as robot,
        Env(robot, task, room, (witness,)) as env,
    ):
        end = run_episode(env, load_policy("oracle"), EPISODES[kind], seed=0)
        metrics = env.get_metrics()
    assert end.reason is EndReason.STOP
    assert metrics["success"] is True
    first, path_m = witness.steps[0], metrics["path_length_m"]
    assert path_m is not None
    for step in witness.steps:
        assert (step.pose.frame, step.referee.frame) == ("odom", "map")
        assert step.pose.stamp_ns == step.frame.stamp_ns
        by_wheels = step.pose.pose.relative_to(first.pose.pose)
        off_m = by_wheels.distance_to(step.referee.pose.relative_to(first.referee.pose))
        assert off_m <= 0.02 + 0.1 * path_m


def test_a_robot_without_odometry_and_options_are_refused(room: Scene) -> None:
    context = RobotContext(room, None, seed=0)
    robot = load_robot("sim", context)
    with pytest.raises(ConfigError, match="'sim' has no odometry"):
        make_localizer(replace(robot, odometry=None), context, {}, "test")
    with pytest.raises(ConfigError, match="takes no options, got rate_hz"):
        make_localizer(robot, context, {"rate_hz": 5}, "test")
