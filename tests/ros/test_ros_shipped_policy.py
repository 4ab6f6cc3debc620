"""`robot-runtime run --robot NAME` and no more: the policy that ships drives every family of LoCoBot over ROS."""

from __future__ import annotations

import signal
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml
from ros_processes import Master, Program

from robot_runtime.common.geometry import SE2
from robot_runtime.datasets.files import save_episodes
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import EndReason
from robot_runtime.scoring.summary import score_log
from robot_runtime.tasks.episode import Episode, Goal
from robot_runtime.tasks.task import load_task

pytestmark = pytest.mark.slow

GUARD = ("-m", "sim_bridge.ros.simulated_guard")
RUN_LIMIT_S = 200.0

START, GOAL = SE2(5.07, 0.82, 0.0), Goal(5.87, 0.82)
"""Free floor of the bundled apartment."""

SLOW_EYES = {
    "name": "slow-eyes",
    "driver": "sim_bridge.robot.driver.make_robot",
    "options": {"camera": {"rate_hz": 5.0}},
}
"""Drawing takes the time of this test; the policy needs its camera's whole size, and one frame per step."""


@pytest.mark.parametrize(
    ("robot", "family", "timing"),
    [
        ("locobot-ros-pyrobot", "pyrobot-kobuki", ()),
        pytest.param(
            "locobot-ros-create",
            "pyrobot-create",
            ("--manner", "report_hz=50", "--manner", "diagnostics_hz=50"),  # as launch/simulation.launch has it
            marks=pytest.mark.exhaustive,
        ),
        pytest.param("locobot-ros-interbotix", "interbotix", (), marks=pytest.mark.exhaustive),
    ],
)
def test_the_shipped_policy_reaches_a_goal_by_default(
    robot: str, family: str, timing: tuple[str, ...], ros_environ: dict[str, str], tmp_path: Path
) -> None:
    slow, near, out = tmp_path / "slow-eyes.yaml", tmp_path / "near.json.gz", tmp_path / "logs"
    slow.write_text(yaml.safe_dump(SLOW_EYES), encoding="utf-8")
    task = load_task("pointnav_gps_compass")
    save_episodes(near, [Episode("near", "apartment", START, goals=(GOAL,))], task)
    with ExitStack() as stack:
        master = Master(ros_environ)
        stack.callback(master.kill)

        def start(*arguments: str) -> Program:
            program = Program([sys.executable, "-u", *arguments], ros_environ | {"ROS_MASTER_URI": master.uri})
            stack.callback(program.stop, signal.SIGKILL)
            return program

        options = ("--family", family, "--rate", "2", "--robot", str(slow), *timing)
        simulated = start("-m", "sim_bridge.ros", *options)
        simulated.wait_for_line("ready")
        guard = start(*GUARD, "__name:=robot_runtime_guard", f"_family:={family}")
        guard.wait_for_line("commands pass")
        run = start("-m", "robot_runtime", "run", "--robot", robot, "--episodes", str(near), "--out", str(out))
        assert run.process.wait(RUN_LIMIT_S) == 0, run.output
    (log,) = out.glob("*.mcap")
    with LogReader(log) as reader:
        assert reader.complete
        assert reader.header.agent == "pointnav-depth"
        assert reader.end is not None
        assert reader.end.reason is EndReason.STOP
    assert score_log(log).metrics["success"] is True
