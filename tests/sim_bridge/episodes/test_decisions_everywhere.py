"""Decisions of every form drive the simulated robot to its goal, commanded by calls and by serial bytes, and score."""

from __future__ import annotations

from pathlib import Path

import pytest
import seeking_agent
from open_room import make_episode, make_task

from robot_runtime.actions.timed import Control, TrajectoryControl
from robot_runtime.env import Env
from robot_runtime.policies import load_policy
from robot_runtime.recording.reader import LogReader
from robot_runtime.recording.writer import Recorder
from robot_runtime.records import EndReason
from robot_runtime.robots.loader import RobotContext, build_robot, read_robot_file
from robot_runtime.runtime import run_episode
from robot_runtime.scenes.scene import Scene
from robot_runtime.scoring.summary import score_log
from robot_runtime.tasks.task import load_task

WAYPOINT = load_task("objectnav_hm3d2023").control
assert WAYPOINT is not None
TASK = make_task(
    max_steps=80, control=Control((-0.5, 0.5), waypoint=WAYPOINT.waypoint, trajectory=TrajectoryControl(latency_s=0.1))
)
VARIANTS = [
    *(pytest.param("sim", form) for form in seeking_agent.FORMS),
    *(
        pytest.param(robot, form, marks=[pytest.mark.slow, *quick])
        for robot in ("locobot-kobuki", "locobot-create2")
        for form in seeking_agent.FORMS
        for quick in [[] if (robot, form) == ("locobot-kobuki", "trajectory") else [pytest.mark.exhaustive]]
    ),
]


@pytest.mark.parametrize(("robot", "form"), VARIANTS)
def test_the_goal_is_reached_and_the_log_scores(room: Scene, robot: str, form: str, tmp_path: Path) -> None:
    path, file = read_robot_file(robot)
    context = RobotContext(room, TASK.camera, seed=1, images=False)
    policy = load_policy(f"{seeking_agent.__file__}:Seeking", form=form)
    with (
        build_robot(file, str(path), context) as driven,
        Env(driven, TASK, room, subscribers=(Recorder(tmp_path),)) as env,
    ):
        end = run_episode(env, policy, make_episode(goal=(0.8, 0.8), scene=room.name), seed=0)
    assert end.reason is EndReason.STOP
    (log,) = tmp_path.glob("*.mcap")
    with LogReader(log) as reader:
        assert reader.complete
        actions = {str(step.action) for step in reader.steps(images=False) if step.action}
    assert seeking_agent.LOGGED.get(form, "move_forward") in actions
    metrics = score_log(log).metrics
    assert metrics["success"]
    assert metrics["collisions"] == 0
    assert metrics["spl"] > 0.8
