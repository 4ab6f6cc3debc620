"""`robot-runtime run --robot locobot-ros-pyrobot` on what `roslaunch … sim:=true` brings up: as without ROS."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ros_stack import Stack, workspace_environ

from robot_runtime.common.config import find_preset
from robot_runtime.common.geometry import wrap_angle
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import StepRecord
from robot_runtime.scoring.summary import score_log
from sim_bridge.replay.log_replay import ReplayCache, replay_log
from sim_bridge.replay.options import ReplayOptions

pytestmark = pytest.mark.slow

SIZE = {"width": 80, "height": 60}
"""Of the camera, in place of 640x480: the agent does not look, and drawing takes time."""

RUN_LIMIT_S = 200.0


@pytest.fixture(scope="module")
def master(ros_environ: dict[str, str], free_port_of_module: int) -> Iterator[str]:
    """A network with robot, guard and the rest on it; it has a Kobuki's motors, the robot in process ideal ones."""
    camera = f"camera:={SIZE['width']}x{SIZE['height']}@79"
    running = Stack(
        workspace_environ(ros_environ),
        free_port_of_module,
        *("sim:=true", "rate:=2", camera, "options:=--die-with-stdin"),
    )
    try:
        running.wait_for_line("ready: pyrobot-kobuki LoCoBot")
        running.wait_for_line("commands pass")
        yield running.uri
    finally:
        running.close()


@pytest.mark.parametrize(
    ("task", "seed"),
    [("pointnav_gps_compass", 7), pytest.param("objectnav_habitat2020", 12, marks=pytest.mark.exhaustive)],
)
def test_the_same_episode_goes_and_scores_as_in_process(
    task: str, seed: int, master: str, spawn: Any, tmp_path: Path
) -> None:
    small = yaml.safe_load(find_preset("tasks", task).read_text(encoding="utf-8"))
    small["camera"] |= SIZE
    task_file = tmp_path / "small.yaml"
    task_file.write_text(yaml.safe_dump(small), encoding="utf-8")
    steps: dict[str, list[StepRecord]] = {}
    scores = {}
    for robot in ("sim", "locobot-ros-pyrobot"):
        arguments = ("--task", str(task_file), "--agent", "oracle", "--count", "1", "--seed", str(seed))
        out = tmp_path / robot
        program = spawn("-m", "robot_runtime", "run", "--robot", robot, *arguments, "--out", str(out), master=master)
        assert program.process.wait(RUN_LIMIT_S) == 0, program.output
        (log,) = out.glob("*.mcap")
        with LogReader(log) as reader:
            assert reader.complete
            steps[robot] = list(reader.steps(images=False))
        scores[robot] = score_log(log).metrics
    plain, over_ros = steps.values()
    assert [step.action for step in over_ros] == [step.action for step in plain]
    assert [step.result and step.result.outcome for step in over_ros] == [
        step.result and step.result.outcome for step in plain
    ]
    end, expected = over_ros[-1].referee.pose, plain[-1].referee.pose
    assert end.distance_to(expected) < 0.02
    assert abs(wrap_angle(end.yaw_rad - expected.yaw_rad)) < math.radians(2)
    assert over_ros[-1].head.tilt_rad == pytest.approx(plain[-1].head.tilt_rad, abs=math.radians(2))
    assert_same_score(*scores.values())
    assert_replays(log)


def assert_replays(log: Path) -> None:
    """What was recorded over ROS is seen and done again by the simulated robot in this process."""
    options = ReplayOptions(parts=("pose", "action"))
    with ReplayCache(options) as cache:
        replay = replay_log(log, options, cache, log.stem)
    assert replay.pose is not None, replay.notes
    assert all(frame.depth.median_mm == pytest.approx(0, abs=0.5) for frame in replay.pose.frames)
    assert replay.action is not None, replay.notes
    assert len(replay.action.steps) == replay.action.recorded_steps
    assert replay.action.divergence is None
    assert replay.action.ndtw > 0.9


def assert_same_score(plain: dict[str, Any], over_ros: dict[str, Any]) -> None:
    """Equal in all that is counted; in what is measured, as near as the ends are."""
    assert plain["success"] is True
    assert plain.keys() == over_ros.keys()
    for name, value in plain.items():
        if isinstance(value, float):
            assert over_ros[name] == pytest.approx(value, abs=0.02, rel=0.02), name
        else:
            assert over_ros[name] == value, name
