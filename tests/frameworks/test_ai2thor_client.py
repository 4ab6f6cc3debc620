"""The unmodified robot client of ai2thor 2.7.2 drives a robot."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from ai2thor.robot_controller import Controller

from robot_runtime.common.geometry import ros_to_thor_position, tilt_to_thor_horizon_deg, yaw_to_thor_rotation_deg
from robot_runtime.datasets.formats import generate_episodes
from robot_runtime.recording.reader import LogReader
from robot_runtime.recording.writer import Recorder
from robot_runtime.records import EndReason
from robot_runtime.robots.loader import RobotContext, load_robot
from robot_runtime.scenes.scene import find_scene, load_scene
from robot_runtime.servers.robothor import RobothorServer
from robot_runtime.task_kinds.objectnav.format_robothor import AGENT_HEIGHT_M
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.task import load_task

TOKEN = "a-token"
TASK = load_task("objectnav_robothor2021")
SCENE = load_scene(find_scene("apartment"))
LIMIT_S = 60.0


@contextmanager
def serving(folder: Path, episodes: Sequence[Episode], robot: str = "fake") -> Iterator[RobothorServer]:
    """The server in a thread that owns the robot, as MuJoCo's pictures ask for."""
    ready = threading.Event()
    made: list[RobothorServer] = []

    def serve() -> None:
        recorder = Recorder(folder)
        with (
            load_robot(robot, RobotContext(SCENE, TASK.camera, 0)) as connected,
            RobothorServer(
                connected, TASK, SCENE, episodes, TOKEN, ("127.0.0.1", 0), (recorder,), client_timeout_s=LIMIT_S
            ) as server,
        ):
            made.append(server)
            ready.set()
            server.serve()
        recorder.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    assert ready.wait(LIMIT_S)
    yield made[0]
    made[0].stop()
    thread.join(LIMIT_S)
    assert not thread.is_alive()


def connect(server: RobothorServer, token: str = TOKEN, **options: object) -> Controller:
    """As the command prints it."""
    return Controller(host=f"robot-{os.getpid()}:{token}@127.0.0.1", port=server.port, width=640, height=480, **options)


@pytest.mark.parametrize("robot", ["fake", "sim"])
def test_the_client_drives_the_robot(robot: str, tmp_path: Path) -> None:
    with serving(tmp_path, generate_episodes(SCENE, TASK, 1, 3), robot) as server:
        controller = connect(server)
        seen = controller.step("Initialize", gridSize=0.25, rotateStepDegrees=30, fieldOfView=63.453048374758716)
        assert (seen.frame.shape, seen.frame.dtype) == ((480, 640, 3), np.uint8)
        assert (seen.depth_frame.shape, seen.depth_frame.dtype) == ((480, 640), np.float32)
        np.testing.assert_array_equal(seen.frame, server.env.record.observation["rgb"])
        np.testing.assert_array_equal(seen.depth_frame, server.env.record.observation["depth"][:, :, 0])
        before = seen.pose
        turned = controller.step("RotateRight")
        assert turned.metadata["lastActionSuccess"]
        assert (turned.pose[2] - before[2]) % 360_000 == pytest.approx(30_000, abs=1500)
        assert controller.step({"action": "LookUp"}).metadata["agent"]["cameraHorizon"] == pytest.approx(0, abs=1)
        stopped = controller.step(action="Stop", raise_for_failure=True)
        assert stopped.metadata["robotRuntime"]["end"] == "stop"
        assert 'lastAction"] = Stop' in str(stopped)
    (log,) = tmp_path.glob("*.mcap")
    with LogReader(log) as reader:
        assert [step.action for step in reader.steps()][1:] == ["turn_right", "look_up", "stop"]
        assert reader.end is not None
        assert reader.end.reason is EndReason.STOP


def test_the_challenges_loop(tmp_path: Path) -> None:
    """Reset, teleport to each episode's start, act by name, keep what metrics.json.gz asks for."""
    episodes = generate_episodes(SCENE, TASK, 3, 5)
    with serving(tmp_path, episodes) as server:
        controller = connect(server)
        for episode in reversed(episodes):
            controller.reset(episode.scene)
            x, _, z = ros_to_thor_position(episode.start.x_m, episode.start.y_m, 0.0)
            tilt_rad = TASK.camera.tilt_rad if episode.start_tilt_rad is None else episode.start_tilt_rad
            seen = controller.step(
                action="TeleportFull",
                x=x,
                y=AGENT_HEIGHT_M,
                z=z,
                rotation={"x": 0, "y": yaw_to_thor_rotation_deg(episode.start.yaw_rad), "z": 0},
                horizon=tilt_to_thor_horizon_deg(tilt_rad),
            )
            assert seen.metadata["robotRuntime"]["objectType"] == episode.category
            trajectory = [seen.metadata["agent"]["position"]]
            for action in ("RotateLeft", "MoveAhead", "Stop"):
                seen = controller.step(action=action)
                trajectory.append(seen.metadata["agent"]["position"])
            assert len(trajectory) == 4
            assert seen.metadata["objects"] == []
    logs = sorted(tmp_path.glob("*.mcap"))
    assert len(logs) == 3
    ends = []
    for log in logs:
        with LogReader(log) as reader:
            assert reader.end is not None
            ends.append(reader.end.reason)
    assert ends == [EndReason.STOP] * 3


def test_headless_gets_no_images(tmp_path: Path) -> None:
    with serving(tmp_path, generate_episodes(SCENE, TASK, 1, 3)) as server:
        seen = connect(server, headless=True).step("Initialize")
        assert seen.frame is None
        assert seen.depth_frame is None


def test_what_is_refused_is_raised_by_the_client(tmp_path: Path) -> None:
    with serving(tmp_path, generate_episodes(SCENE, TASK, 1, 3)) as server:
        controller = connect(server)
        with pytest.raises(ValueError, match="no episode is running"):
            controller.step("MoveAhead")
        with pytest.raises(ValueError, match="token"):
            connect(server, token="wrong").step("Initialize")
        controller.step("Initialize")
        with pytest.raises(ValueError, match="'Jump' is not one of"):
            controller.step("Jump")
        assert controller.step("Pass").metadata["robotRuntime"]["steps"] == 0
