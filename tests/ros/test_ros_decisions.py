"""Decisions of every form drive the robot over ROS to its goal, and score."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import seeking_agent
import yaml
from ros_processes import LIMIT_S
from test_ros_episode_ends import Network

from robot_runtime.common.config import find_preset
from robot_runtime.recording.reader import LogReader
from robot_runtime.scoring.summary import score_log

pytestmark = [pytest.mark.slow, pytest.mark.exhaustive]  # a circle over ROS is in test_ros_trajectories.py

EPISODE = {
    "episode_id": "1",
    "scene_id": "apartment",
    "start_position": [-1.065, 0.0, -4.42],
    "start_rotation": [0.0, -0.99656, 0.0, 0.08293],
    "info": {"geodesic_distance": 1.38},
    "goals": [{"position": [-0.84, 0.0, -3.06], "radius": 0.2}],
}


@pytest.fixture(scope="module")
def network(ros_environ: dict[str, str]) -> Iterator[Network]:
    with ExitStack() as stack:
        yield Network(stack, ros_environ, clock="real")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    task = yaml.safe_load(find_preset("tasks", "pointnav_trajectory").read_text(encoding="utf-8"))
    task["camera"] |= {"width": 80, "height": 60}
    settling = yaml.safe_load(find_preset("tasks", "objectnav_hm3d2023").read_text(encoding="utf-8"))
    task["control"]["waypoint"] = settling["control"]["waypoint"]
    (tmp_path / "task.yaml").write_text(yaml.safe_dump(task), encoding="utf-8")
    (tmp_path / "episodes.json").write_text(json.dumps({"episodes": [EPISODE]}), encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("form", seeking_agent.FORMS)
def test_the_goal_is_reached_and_the_log_scores(network: Network, files: Path, form: str) -> None:
    where = ("--robot", "locobot-ros-pyrobot", "--task", str(files / "task.yaml"), "--out", str(files / "logs"))
    what = ("--policy", f"{seeking_agent.__file__}:Seeking", "--agent-arg", f"form={form}")
    episodes = ("--episodes", str(files / "episodes.json"))
    program = network.start("-m", "robot_runtime", "run", *where, *what, *episodes)
    assert program.process.wait(LIMIT_S) == 0, program.output
    (log,) = (files / "logs").glob("*.mcap")
    with LogReader(log) as reader:
        assert reader.complete
        actions = {str(step.action) for step in reader.steps(images=False) if step.action}
    assert seeking_agent.LOGGED.get(form, "move_forward") in actions
    metrics = score_log(log).metrics
    assert metrics["success"]
    assert metrics["collisions"] == 0
    assert metrics["spl"] > 0.8
