"""`robot-runtime run --robot turtlebot4-jazzy`, or another, on a simulated robot over ROS 2: as without ROS."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from robot_runtime.common.config import find_preset
from robot_runtime.recording.reader import LogReader
from robot_runtime.scoring.summary import score_log

pytestmark = pytest.mark.slow

SIZE = {"width": 80, "height": 60}
"""Of the camera, in place of 640x480: the agent does not look, and drawing takes time."""

ROBOTS = ["turtlebot4-jazzy", pytest.param("locobot-create3", marks=pytest.mark.exhaustive)]
LIMIT_S = 150.0


@pytest.fixture
def simulated(robot: str, ros2_domain: int) -> Iterator[dict[str, str]]:
    """A simulated robot, and the environment of its network."""
    environment = os.environ | {"ROS_DOMAIN_ID": str(ros2_domain)}
    camera = f"{SIZE['width']}x{SIZE['height']}@79"
    command = [sys.executable, "-u", "-m", "sim_bridge.ros", "--family", robot, "--camera", camera, "--die-with-stdin"]
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as program:
        assert program.stdout is not None
        try:
            assert program.stdout.readline().startswith("ready")
            yield environment
        finally:
            program.kill()


@pytest.mark.parametrize("robot", ROBOTS)
def test_the_same_episode_goes_and_scores_as_in_process(robot: str, simulated: dict[str, str], tmp_path: Path) -> None:
    task = yaml.safe_load(find_preset("tasks", "pointnav_gps_compass").read_text(encoding="utf-8"))
    task["camera"] |= SIZE
    task_file = tmp_path / "small.yaml"
    task_file.write_text(yaml.safe_dump(task), encoding="utf-8")
    actions: dict[str, list[Any]] = {}
    scores = {}
    for name in ("sim", robot):
        arguments = ("--task", str(task_file), "--agent", "oracle", "--count", "1", "--seed", "7")
        out = tmp_path / name
        subprocess.run(
            [sys.executable, "-m", "robot_runtime", "run", "--robot", name, *arguments, "--out", str(out)],
            env=simulated,
            check=True,
            timeout=LIMIT_S,
            stdout=subprocess.DEVNULL,
        )
        (log,) = out.glob("*.mcap")
        with LogReader(log) as reader:
            assert reader.complete
            actions[name] = [(step.action, step.result and step.result.outcome) for step in reader.steps(images=False)]
        scores[name] = score_log(log).metrics
    assert actions[robot] == actions["sim"]
    for metric, value in scores["sim"].items():
        expected = pytest.approx(value, abs=0.03, rel=0.03) if isinstance(value, float) else value
        assert scores[robot][metric] == expected, metric
    assert scores["sim"]["success"] is True
