"""Episodes of a simulated robot that sees through Intel's own SDK, from the command line to the score."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from drivers.realsense.driver import make_camera
from robot_runtime.cli.main import run_command
from robot_runtime.common.geometry import SE2
from robot_runtime.hal import Robot
from robot_runtime.hal.lens import Lens
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import EndReason
from robot_runtime.robots.loader import RobotContext
from robot_runtime.tasks.task import TrainingCamera

OPTIONS = {"color": "640x360", "depth": "424x240", "latency_s": 0.03}
EXACT: dict[str, object] = {"depth_noise": {}, "color_noise": {}}
NARROW = TrainingCamera(320, 180, 60.0, 0.88, 0.3, 9.0, False)


def preset(path: Path, **options: object) -> str:
    """A camera's YAML file."""
    document = {"name": "camera", "driver": "drivers.realsense.driver.make_camera", "options": {**OPTIONS, **options}}
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return str(path)


def episode(room_folder: Path, out: Path, camera: str, robot: str = "sim") -> tuple[int, Path]:
    """One episode in the room; exit code and log."""
    task = ["--task", "pointnav_habitat2020", "--agent", "oracle", "--count", "1", "--seed", "1", "--robot", robot]
    code = run_command(["run", *task, "--scene", str(room_folder), "--camera", camera, "--out", str(out)])
    (log,) = out.glob("*.mcap")
    return code, log


@pytest.mark.slow
def test_an_episode_succeeds_and_its_recording_plays(room_folder: Path, tmp_path: Path) -> None:
    recording = tmp_path / "run.db3"
    camera = preset(tmp_path / "camera.yaml", record_to=str(recording), emulated={"depth_noise": {}})
    code, log = episode(room_folder, tmp_path / "logs", camera)
    assert code == 0
    scores = tmp_path / "scores.json"
    assert run_command(["score", str(log), "--json", str(scores)]) == 0
    assert json.loads(scores.read_text(encoding="utf-8"))["episodes"][0]["metrics"]["success"] is True
    with LogReader(log) as reader:
        steps = list(reader.steps())
    for step in steps:
        frame = step.frame
        assert (frame.rgb.shape, frame.depth_m.shape) == ((360, 640, 3), (360, 640))
        assert frame.stamp_ns >= step.times.action_end_ns
    assert all((step.frame.depth_m > 0).mean() > 0.8 for step in steps)

    # Its pauses, while the robot moved, are left out: a robot that is somewhere else sees the same episode.
    played = preset(tmp_path / "playback.yaml", file=str(recording), real_time=False)
    code, again = episode(room_folder, tmp_path / "again", played, "fake")
    assert code == 0
    with LogReader(again) as reader:
        frames = [step.frame for step in reader.steps()]
    # The file holds what came meanwhile, too, as a camera that runs on delivers it.
    start_m = steps[0].frame.depth_m
    assert any((np.abs(frame.depth_m - start_m) < 0.002).mean() > 0.98 for frame in frames)


@pytest.mark.slow
def test_the_view_is_the_ideal_cameras(sim: Callable[..., Robot]) -> None:
    robot = sim()
    options = {**OPTIONS, "depth": "848x480", "imaging": {"depth_max_m": 9.0}, "emulated": EXACT}
    seen = replace(robot, camera=make_camera(robot, RobotContext(None, NARROW, 0), options, "test"))
    with seen:
        seen.placer.place(SE2(-0.5, 0.3, 0.4), -0.2)
        frame = seen.camera.capture(seen.clock.now_ns(), 1.0)
        assert seen.simulation is not None
        rgb, depth_m = seen.simulation.render(Lens.of(seen.camera.info.intrinsics), seen.simulation.camera_pose())
        both = (frame.depth_m > 0) & (depth_m > 0)
        assert both.mean() > 0.95
        error_m = np.abs(frame.depth_m - depth_m)[both]
        assert np.median(error_m) < 0.001
        assert np.percentile(error_m, 95) < 0.003
        assert np.median(np.abs(frame.rgb.astype(int) - rgb)) <= 3


@pytest.mark.slow
def test_a_cable_that_is_pulled_ends_the_episode_with_its_log_whole(room_folder: Path, tmp_path: Path) -> None:
    emulated = {"faults": [{"kind": "unplugged", "from_s": 6.0}]}
    code, log = episode(room_folder, tmp_path / "logs", preset(tmp_path / "camera.yaml", emulated=emulated))
    assert code != 0
    with LogReader(log) as reader:
        assert reader.end is not None
        assert reader.end.reason is EndReason.FAULT
        assert "was unplugged" in reader.end.detail
        steps = list(reader.steps())
        assert len(steps) == reader.end.steps + 1
