"""Episodes of a simulated robot that sees through the Kinect SDK, from the command line to the score."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from drivers.azure_kinect.driver import make_camera
from drivers.azure_kinect.mkv import MkvReader
from drivers.azure_kinect.sdk import load_sdk
from robot_runtime.cli.main import run_command
from robot_runtime.common import config
from robot_runtime.common.geometry import SE2
from robot_runtime.hal import Robot
from robot_runtime.hal.lens import Lens
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import EndReason
from robot_runtime.robots.loader import RobotContext
from robot_runtime.tasks.task import load_task

pytestmark = pytest.mark.skipif(
    sys.version_info >= (3, 13) or platform.machine() != "x86_64",
    reason="the Kinect SDK is not packaged for this Python",
)

TASK = "pointnav_gps_compass"


def preset(path: Path, **options: object) -> str:
    """The shipped preset with other options."""
    document = config.read_yaml(config.find_preset("cameras", "azure-kinect"))
    path.write_text(yaml.safe_dump(document | {"options": document["options"] | options}), encoding="utf-8")
    return str(path)


def played(path: Path, recording: Path) -> str:
    """A copy of ``launch/cameras/azure-kinect-mkv.yaml`` that plays a recording however it paused."""
    document = config.read_yaml(config.find_preset("cameras", "azure-kinect-mkv"))
    document["options"] |= {"path": str(recording), "real_time": False}
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return str(path)


def episode(room_folder: Path, out: Path, camera: str, robot: str = "sim") -> tuple[int, Path]:
    """One episode in the room; exit code and log."""
    task = ["--task", TASK, "--agent", "oracle", "--count", "1", "--seed", "1", "--robot", robot]
    code = run_command(["run", *task, "--scene", str(room_folder), "--camera", camera, "--out", str(out)])
    (log,) = out.glob("*.mcap")
    return code, log


@pytest.mark.slow
def test_an_episode_succeeds_and_everything_it_saw_is_recorded(room_folder: Path, tmp_path: Path) -> None:
    recording = tmp_path / "run.mkv"
    code, log = episode(room_folder, tmp_path / "logs", preset(tmp_path / "camera.yaml", record_to=str(recording)))
    assert code == 0
    scores = tmp_path / "scores.json"
    assert run_command(["score", str(log), "--json", str(scores)]) == 0
    assert json.loads(scores.read_text(encoding="utf-8"))["episodes"][0]["metrics"]["success"] is True
    with LogReader(log) as reader:
        steps = list(reader.steps())
    for step in steps:
        assert (step.frame.rgb.shape, step.frame.depth_m.shape) == ((480, 640, 3), (480, 640))
        assert step.frame.stamp_ns >= step.times.action_end_ns
    recorded = MkvReader(load_sdk(), recording)
    captures = 0
    while recorded.next_capture() is not None:
        captures += 1
    recorded.close()
    assert captures >= len(steps)

    # Its pauses, while the robot moved, are left out: a robot that is somewhere else sees the same episode.
    code, again = episode(room_folder, tmp_path / "again", played(tmp_path / "playback.yaml", recording), "fake")
    assert code == 0
    with LogReader(log) as first, LogReader(again) as second:
        assert np.array_equal(next(first.steps()).frame.depth_m, next(second.steps()).frame.depth_m)


@pytest.mark.slow
@pytest.mark.slow
@pytest.mark.parametrize("depth", ["nfov", "wfov_2x2"])
def test_the_view_is_the_ideal_cameras(sim: Callable[..., Robot], depth: str) -> None:
    robot, training = sim(), load_task(TASK).camera
    options = {
        "depth": depth,
        "imaging": {"depth_min_m": 0.2, "depth_max_m": 9.0},
        "emulated": {"depth_noise": {}, "color_noise": {}},
    }
    seen = replace(robot, camera=make_camera(robot, RobotContext(None, training, 0), options, "test"))
    with seen:
        seen.placer.place(SE2(-0.5, 0.3, 0.4), -0.2)
        frame = seen.camera.capture(seen.clock.now_ns(), 1.0)
        assert seen.simulation is not None
        rgb, depth_m = seen.simulation.render(Lens.of(seen.camera.info.intrinsics), seen.simulation.camera_pose())
    both = (frame.depth_m > 0) & (depth_m > 0)
    # Without a noise model there is no hexagon either: what is missing lies outside the sensor's image.
    assert both.mean() > 0.8
    error_m = np.abs(frame.depth_m - depth_m)[both]
    assert np.median(error_m) < 0.001
    assert np.percentile(error_m, 95) < 0.003
    lit = frame.rgb.any(axis=2)
    assert lit.mean() > 0.9
    assert np.median(np.abs(frame.rgb.astype(int) - rgb)[lit]) <= 3


@pytest.mark.slow
def test_a_cable_that_is_pulled_ends_the_episode_with_its_log_whole(room_folder: Path, tmp_path: Path) -> None:
    camera = preset(tmp_path / "camera.yaml", emulated={"unplugged_after_s": 4.0})
    code, log = episode(room_folder, tmp_path / "logs", camera)
    assert code != 0
    with LogReader(log) as reader:
        assert reader.end is not None
        assert reader.end.reason is EndReason.FAULT
        assert "was unplugged" in reader.end.detail
        assert len(list(reader.steps())) == reader.end.steps + 1
