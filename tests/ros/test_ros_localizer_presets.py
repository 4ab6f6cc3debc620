"""Presets for motion capture, AMCL and SLAM on a ROS LoCoBot keep the contract, alone and fused with odometry."""

from __future__ import annotations

import math
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import rosgraph
import rospy
from geometry_msgs.msg import Pose2D
from raising import raises_naming
from robot_runtime_simulation.srv import Place
from ros_processes import Program

from drivers.fake.driver import make_robot as make_fake
from drivers.ros.localizer.alignment import aligned
from drivers.ros.localizer_factory import make_localizer
from drivers.ros.options import LocalizerOptions
from drivers.ros_locobot.driver import make_robot
from robot_runtime.common import config
from robot_runtime.common.geometry import SE2
from robot_runtime.conformance import Harness, LocalizerConformance
from robot_runtime.env import Env
from robot_runtime.errors import ConfigError
from robot_runtime.hal import Localizer, PoseEstimate, PoseStatus, Robot, Velocity
from robot_runtime.localization.alignment import Alignment
from robot_runtime.metrics.episode_metrics import EpisodeScorer
from robot_runtime.policies import load_policy
from robot_runtime.records import EndReason, EpisodeHeader, StepRecord, Subscriber
from robot_runtime.robots.loader import DeviceConfig, RobotContext, make_device, read_robot_file
from robot_runtime.runtime import run_episode
from robot_runtime.scenes.scene import find_scene, load_scene
from robot_runtime.tasks.episode import Episode, Goal
from robot_runtime.tasks.task import load_task

pytestmark = pytest.mark.slow

OPEN = (1.2, 1.36, 0.0)
"""In the bundled apartment: 1.5 m of free floor ahead."""

NEAR_M = 0.03


def preset(name: str) -> DeviceConfig:
    """A preset that listens to what the simulated robot has: its exact pose instead of VRPN's."""
    part = config.load(config.find_preset("localizers", name), DeviceConfig)

    def retargeted(value: Any) -> Any:
        if isinstance(value, dict):
            simulated = {"topic": "/simulation/ground_truth", "map_frame": "map", "rate_hz": 50.0}
            changed = simulated if value.get("topic") == "/vrpn_client_node/locobot/pose" else {}
            return {key: retargeted(inner) for key, inner in {**value, **changed}.items()}
        return value

    return replace(part, options=retargeted(part.options))


@pytest.fixture(scope="module")
def simulated(ros_node: str, ros_environ: dict[str, str], ros_master: str) -> Iterator[None]:
    """A robot of which AMCL and motion capture say where it is."""
    command = [sys.executable, "-u", "-m", "sim_bridge.ros", "--camera", "80x60@79", "--rate", "2"]
    program = Program([*command, "--localizer", "amcl"], os.environ)
    try:
        program.wait_for_line("ready")
        yield
    finally:
        program.stop(signal.SIGKILL)
        rosgraph.Master("/tests").setParam("/use_sim_time", False)


@pytest.mark.usefixtures("simulated")
class _Simulated(Harness):
    """Put back to its place before each check."""

    localizer: ClassVar[str]
    referee: ClassVar[str]
    start_s: ClassVar[float] = 0.4

    @contextmanager
    def connected(self) -> Iterator[Robot]:
        assert rospy.ServiceProxy("/simulation/place", Place)(Pose2D(*OPEN), 0.0).success
        with super().connected() as robot:
            robot.localizer.expect(SE2(*OPEN), 0.1, math.radians(5))
            robot.clock.sleep(self.start_s)
            yield robot

    def make_robot(self) -> Robot:
        _, file = read_robot_file("locobot-ros-pyrobot")
        context = RobotContext(load_scene(find_scene("apartment")), None, seed=0)
        robot = make_robot(context, file.name, {**file.options, "base": {"guard": False}}, "test")
        robot = replace(robot, localizer=make_device(preset(self.localizer), Localizer, robot, context, "localizer"))
        robot = replace(robot, referee=make_device(preset(self.referee), Localizer, robot, context, "referee"))
        return replace(robot, placer=robot.placer.fitted(robot))


class TestMotionCapture(_Simulated, LocalizerConformance):
    """Fused for the policy, alone for the referee."""

    localizer, referee = "fused-ros-mocap", "ros-mocap"


class TestAmcl(_Simulated):
    """AMCL's topic fused for the policy, the transform from map to base for the referee."""

    localizer, referee = "fused-ros-amcl", "ros-tf"

    def test_both_know_where_the_robot_is_while_it_drives_and_after(self) -> None:
        with self.connected() as robot:
            self.drive(robot, Velocity(0.3, 0.0), 2.0)
            robot.base.stop()
            robot.clock.sleep(1.0)
            driven = self.state(robot).odom  # without errors; how far depends on how busy this computer is
            assert driven.x_m > 0.5
            for source in (robot.localizer, robot.referee):
                found = source.latest(0.5)
                assert found.status is PoseStatus.OK
                assert found.pose.distance_to(SE2(*OPEN) @ driven) < 0.03, source.info.name

    def test_a_robot_that_is_put_elsewhere_is_found_there(self) -> None:
        with self.connected() as robot:
            there = SE2(1.6, 1.36, 1.0)
            robot.placer.place(there, 0.0)
            robot.localizer.expect(there, 0.1, math.radians(5))
            robot.clock.sleep(0.5)
            for source in (robot.localizer, robot.referee):
                assert source.latest(0.5).pose.distance_to(there) < 0.03, source.info.name


@pytest.mark.usefixtures("simulated")
@pytest.mark.parametrize(
    ("kind", "localizer", "referee"),
    [("pointnav", "fused-ros-mocap", "ros-tf"), ("objectnav", "fused-ros-amcl", "ros-mocap")],
)
def test_episodes_by_topics_score_as_the_truth_does(kind: str, localizer: str, referee: str) -> None:
    scene = load_scene(find_scene("apartment"))
    category = "bed" if kind == "objectnav" else None
    goals = () if category else (Goal(1.95, 1.36),)
    episode = Episode("1", "apartment", SE2(*OPEN), goals, category=category)
    task = load_task({"pointnav": "pointnav_gps_compass", "objectnav": "objectnav_habitat2020"}[kind])
    task = replace(task, camera=replace(task.camera, width=80, height=60), max_steps=8)
    _, file = read_robot_file("locobot-ros-pyrobot")
    context = RobotContext(scene, task.camera, seed=0)
    robot = make_robot(context, file.name, {**file.options, "base": {"guard": False}}, "test")
    truth = make_device(preset("ros-mocap"), Localizer, robot, context, "truth")
    robot = replace(robot, localizer=make_device(preset(localizer), Localizer, robot, context, "localizer"))
    robot = replace(robot, referee=make_device(preset(referee), Localizer, robot, context, "referee"))
    judge = Judge(truth)
    with replace(robot, placer=robot.placer.fitted(robot)) as made, truth, Env(made, task, scene, (judge,)) as env:
        end = run_episode(env, load_policy("oracle"), episode, seed=0)
        said = env.get_metrics()
    true = judge.scorer.metrics()
    assert end.reason is EndReason.STOP
    assert max(judge.policy_m) < NEAR_M
    assert (said["success"], true["success"]) == (True, True)
    for name in ("distance_to_goal", "path_length_m"):
        assert said[name] == pytest.approx(true[name], abs=NEAR_M), name
    assert said["spl"] == pytest.approx(true["spl"], abs=NEAR_M)


class Judge(Subscriber):
    """Keeps how far the policy's poses are off, and scores the same episode by the truth."""

    def __init__(self, truth: Localizer) -> None:
        self._truth = truth
        self.policy_m: list[float] = []

    def on_episode_start(self, header: EpisodeHeader) -> None:
        self.scorer = EpisodeScorer(header)

    def on_step(self, record: StepRecord) -> None:
        true = self._truth.at(record.frame.stamp_ns, 1.0)
        self.policy_m.append(record.pose.pose.distance_to(true.pose))
        self.scorer.on_step(replace(record, referee=true))


def test_an_alignment_takes_a_markers_pose_to_the_robots() -> None:
    """Against a robot whose marker sits ahead of its middle and is turned, in a frame that is turned against map."""
    alignment = Alignment(SE2(1.0, -2.0, 0.7), lever_m=(0.2, 0.1), yaw_offset_rad=-0.4)
    robot = SE2(3.0, 1.5, 2.0)
    mark = SE2(*robot.apply(0.2, 0.1), robot.yaw_rad + 0.4)
    seen = alignment.map_from_source.inverse() @ mark
    covariance = np.diag([4e-4, 1e-4, 1e-3])
    found = aligned(PoseEstimate(5, seen, "map", covariance), alignment)
    assert found.pose.distance_to(robot) < 1e-9
    assert math.remainder(found.pose.yaw_rad - robot.yaw_rad, 2 * math.pi) == pytest.approx(0.0, abs=1e-9)
    c, s = math.cos(0.7), math.sin(0.7)
    assert found.covariance[0, 0] == pytest.approx(4e-4 * c * c + 1e-4 * s * s)
    assert found.covariance[2, 2] == pytest.approx(1e-3)


def test_an_alignment_goes_with_poses_and_must_know_the_heading(tmp_path: Path) -> None:
    with raises_naming(ConfigError, "alignment"):
        config.parse({"source": "tf", "alignment": "a.yaml"}, LocalizerOptions, "test")
    file = tmp_path / "alignment.yaml"
    file.write_text("map_from_source: {x_m: 0.0, y_m: 0.0, yaw_rad: 0.0}\n", encoding="utf-8")
    ros = {"family": "pyrobot-kobuki", "camera": {"mount": "habitat"}}
    robot = make_robot(RobotContext(None, None, 0), "lab", ros, "test")
    options = {"source": "pose", "topic": "/mocap", "alignment": str(file)}
    with raises_naming(ConfigError, "heading"):
        make_localizer(robot, RobotContext(None, None, 0), options, "test")


def test_a_robot_that_is_not_on_ros_has_none_of_it() -> None:
    robot = make_fake(RobotContext(None, None, 0), "fake", {"width": 32, "height": 24}, "test")
    with raises_naming(ConfigError, "'fake'"):
        make_localizer(robot, RobotContext(None, None, 0), {"source": "tf"}, "test")
