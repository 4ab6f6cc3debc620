from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from open_room import Witness, fake_robot, make_episode, make_fake, make_scene, make_task
from raising import raises_naming

from drivers.replay.driver import make_camera
from robot_runtime.actions.discrete import Action
from robot_runtime.common.clock import seconds_to_ns
from robot_runtime.conformance import CameraConformance
from robot_runtime.env import Env
from robot_runtime.errors import ConfigError, DeviceFault, NotConnected, RecordingError, StaleData
from robot_runtime.hal import Robot
from robot_runtime.recording.writer import Recorder
from robot_runtime.robots.loader import RobotContext

TASK = make_task()
CONTEXT = RobotContext(make_scene(), TASK.camera, 0)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Of three steps: the start, and two moves."""
    with fake_robot(TASK) as robot, closing(Recorder(tmp_path)) as recorder:
        env = Env(robot, TASK, make_scene(), (recorder,))
        env.reset(make_episode())
        env.step(Action.MOVE_FORWARD)
        env.step(Action.TURN_LEFT)
        env.close()
    return next(tmp_path.glob("*.mcap"))


def replaying(log: Path, **options: object) -> Robot:
    robot = make_fake(TASK)
    return replace(robot, camera=make_camera(robot, CONTEXT, {"log": str(log), **options}, "test"))


class TestReplayConformance(CameraConformance):
    @pytest.fixture(autouse=True)
    def _with(self, log: Path) -> None:
        self.log = log

    def make_robot(self) -> Robot:
        return replaying(self.log, repeat=True)


def test_another_robot_sees_what_the_log_saw(log: Path) -> None:
    seen = Witness()
    with replaying(log) as robot:
        env = Env(robot, TASK, make_scene(), (seen,))
        env.reset(make_episode(start=None, goal=(-1.0, 0.0)))
        first = robot.clock.now_ns()
        env.step(Action.TURN_RIGHT)
        env.step(Action.TURN_RIGHT)
        frames = [record.frame for record in seen.steps]
        with raises_naming(DeviceFault, ".mcap", "3 frames"):
            env.step(Action.TURN_RIGHT)
    original = replaying(log).camera
    with original:
        for frame in frames:
            again = original.capture(0, 1.0)
            np.testing.assert_array_equal(again.rgb, frame.rgb)
            np.testing.assert_array_equal(again.depth_m, frame.depth_m)
    assert frames[1].stamp_ns > first
    assert not np.array_equal(frames[0].rgb, frames[2].rgb)


def test_it_can_begin_anew(log: Path) -> None:
    with replaying(log, repeat=True).camera as camera:
        frames = [camera.capture(0, 1.0) for _ in range(4)]
    np.testing.assert_array_equal(frames[0].rgb, frames[3].rgb)
    assert frames[3].stamp_ns > frames[0].stamp_ns


def test_frames_are_not_there_before_they_are_due(log: Path) -> None:
    robot = replaying(log)
    with pytest.raises(NotConnected):
        robot.camera.capture(0, 1.0)
    with robot:
        with raises_naming(StaleData, "rate_hz"):
            robot.camera.capture(robot.clock.now_ns() + seconds_to_ns(5), 0.2)
        asked_ns = robot.clock.now_ns() + seconds_to_ns(0.1)
        assert robot.camera.capture(asked_ns, 1.0).stamp_ns >= asked_ns
        with raises_naming(DeviceFault, "object ids"):
            robot.camera.capture(0, 1.0, semantic=True)


def test_the_log_is_found_in_a_folder_of_its_own_only(log: Path) -> None:
    assert replaying(log.parent).camera.info.intrinsics == TASK.camera.intrinsics
    log.with_name("another.mcap").write_bytes(log.read_bytes())
    with raises_naming(ConfigError, "test: field 'log'", "2 logs", "another.mcap"):
        replaying(log.parent)
    with raises_naming(ConfigError, "test: field 'log'"):
        make_camera(make_fake(TASK), CONTEXT, {}, "test")
    with pytest.raises(RecordingError):
        replaying(log.with_name("absent.mcap"))
