"""Episodes by tags: the policy by those on the walls, the referee by a camera that watches the one on the robot."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from open_room import Witness, make_task
from tagged_room import CAMERA, CEILING, ROBOT_TAG, TAGS

from robot_runtime.actions.discrete import Action
from robot_runtime.common import config
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.common.transforms import transform
from robot_runtime.env import Env
from robot_runtime.errors import LocalizationLost
from robot_runtime.hal import Localizer, Robot
from robot_runtime.metrics.episode_metrics import EpisodeScorer
from robot_runtime.policies import load_policy
from robot_runtime.records import EndReason, EpisodeHeader, StepRecord, Subscriber
from robot_runtime.robots.loader import DeviceConfig, RobotContext, make_device
from robot_runtime.runtime import run_episode
from robot_runtime.scenes.scene import Scene
from robot_runtime.scenes.tag_map import Tag, TagMap, write_tag_map
from robot_runtime.tasks.episode import Episode, Goal
from robot_runtime.tasks.task import Task
from sim_bridge.robot.driver import make_robot
from sim_bridge.robot.ground_truth import MujocoGroundTruth

ALL_ROUND = (
    *TAGS,
    Tag(6, 0.24, (-3.0, 0.5, 1.0), (0.0, 0.0, 0.0)),
    Tag(7, 0.24, (-3.0, -0.7, 1.2), (0.0, 0.0, 0.0)),
    Tag(8, 0.24, (-0.4, -2.0, 1.0), (0.0, 0.0, 90.0)),
    Tag(9, 0.24, (0.8, -2.0, 0.9), (0.0, 0.0, 90.0)),
)
DRIFT = {"linear_scale": 1.01, "angular_scale": 0.995, "linear_noise_m": 0.005, "angular_noise_rad": 0.01}
NEAR_M = 0.03


class Judge(Subscriber):
    """Keeps how far both localizers are off, and scores the same episode by the truth."""

    def __init__(self, truth: Localizer) -> None:
        self._truth = truth
        self.policy_m: list[float] = []
        self.policy_rad: list[float] = []
        self.referee_m: list[float] = []

    def on_episode_start(self, header: EpisodeHeader) -> None:
        self.scorer = EpisodeScorer(header)

    def on_step(self, record: StepRecord) -> None:
        true = self._truth.at(record.frame.stamp_ns, 1.0)
        self.policy_m.append(record.pose.pose.distance_to(true.pose))
        self.policy_rad.append(abs(wrap_angle(record.pose.pose.yaw_rad - true.pose.yaw_rad)))
        self.referee_m.append(record.referee.pose.distance_to(true.pose))
        self.scorer.on_step(replace(record, referee=true))


@pytest.fixture
def site(room: Scene, tmp_path: Path) -> Callable[[Task], tuple[Robot, Localizer]]:
    """A robot with a drifting odometry that goes by tags, watched from the ceiling; and the truth."""

    def make(task: Task) -> tuple[Robot, Localizer]:
        path = tmp_path / "tags.yaml"
        write_tag_map(path, TagMap(1, "tag36h11", ALL_ROUND))
        context = RobotContext(room, task.camera, seed=2)
        options = {"tags": str(path), "robot_tag": ROBOT_TAG, "odometry": DRIFT}
        robot = make_robot(context, "tagged", options, "test options")
        part = config.load(config.find_preset("localizers", "fused-apriltag"), DeviceConfig)
        part.options["absolute"]["options"]["tags"] = str(path)
        part.options["lost_after_s"] = 4.0
        policy = make_device(part, Localizer, robot, context, "test")
        referee = make_device(
            DeviceConfig("drivers.apriltag.static_camera.make_localizer", {**CEILING, "rate_hz": 2.0}),
            Localizer,
            robot,
            context,
            "test",
        )
        return replace(robot, localizer=policy, referee=referee), robot.referee

    return make


EPISODES = {
    "pointnav": Episode("1", "room", SE2(0.2, -0.9, 0.6), (Goal(1.2, -0.4),)),
    "objectnav": Episode("1", "room", SE2(0.2, -0.6, 2.6), (), category="Vase"),
}


def turn(env: Env, times: int) -> None:
    for _ in range(times):
        env.step(Action.TURN_LEFT)


@pytest.mark.slow
@pytest.mark.parametrize("kind", EPISODES)
def test_scores_by_a_camera_under_the_ceiling_are_the_truths(
    room: Scene, site: Callable[[Task], tuple[Robot, Localizer]], kind: str
) -> None:
    task = make_task(kind, camera=CAMERA, max_steps=40)
    room = replace(room, view_points={"vase": (SE2(-0.6, -0.9, math.pi),)})
    robot, truth = site(task)
    update = Judge(truth)
    with robot, truth, Env(robot, task, room, (update,)) as env:
        end = run_episode(env, load_policy("oracle"), EPISODES[kind], seed=0)
        said = env.get_metrics()
    true = update.scorer.metrics()
    assert end.reason is EndReason.STOP
    assert np.sqrt(np.mean(np.square(update.policy_m))) < NEAR_M
    assert np.sqrt(np.mean(np.square(update.policy_rad))) < math.radians(1)
    assert max(update.referee_m) < NEAR_M
    assert said["success"] is True
    assert true["success"] is True
    assert abs(said["distance_to_goal"] - true["distance_to_goal"]) < NEAR_M
    assert said["spl"] == pytest.approx(true["spl"], abs=0.05)


@pytest.mark.slow
def test_an_episode_ends_where_no_tag_is_left(room: Scene, site: Callable[[Task], tuple[Robot, Localizer]]) -> None:
    task, witness = make_task(camera=CAMERA, max_steps=40), Witness()
    robot, truth = site(task)
    with robot, truth:
        env = Env(robot, task, room, (witness,), localization_patience_s=2.0)
        env.reset(Episode("1", "room", SE2(-0.5, -0.9, 0.3), (Goal(1.2, -0.4),)))
        env.step(Action.MOVE_FORWARD)
        away = transform((0.0, 0.0, -5.0), np.eye(3))
        cast(MujocoGroundTruth, robot.simulation).move_tags({tag.id: away for tag in ALL_ROUND})
        with pytest.raises(LocalizationLost):
            turn(env, 8)
    assert witness.ends[-1].reason is EndReason.LOCALIZATION_LOST
    kinds = [event.kind for event in witness.events]
    assert kinds.index("no_fix") < kinds.index("lost") < kinds.index("paused")
