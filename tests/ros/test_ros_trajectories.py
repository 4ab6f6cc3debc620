"""Trajectories over ROS, on the robot's own time and on a simulator's ``/clock``: followed while the policy decides."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from circling_agent import DECISIONS, RADIUS_M, SPEED_M_S
from ros_processes import LIMIT_S
from test_ros_episode_ends import Network

from robot_runtime.common.config import find_preset
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import EndReason, Outcome, StepRecord

pytestmark = pytest.mark.slow


@pytest.fixture(params=[pytest.param("sim", marks=pytest.mark.exhaustive), "real"])
def network(ros_environ: dict[str, str], request: pytest.FixtureRequest) -> Iterator[Network]:
    with ExitStack() as stack:
        yield Network(stack, ros_environ, clock=request.param)


def driven(network: Network, folder: Path) -> list[StepRecord]:
    task = yaml.safe_load(find_preset("tasks", "pointnav_trajectory").read_text(encoding="utf-8"))
    task["camera"] |= {"width": 80, "height": 60}
    (folder / "task.yaml").write_text(yaml.safe_dump(task), encoding="utf-8")
    arguments = ("--task", str(folder / "task.yaml"), "--agent", "circling_agent:Circling", "--count", "1")
    robot = ("--robot", "locobot-ros-pyrobot", "--out", str(folder / "logs"))
    program = network.start("-m", "robot_runtime", "run", *robot, *arguments)
    assert program.process.wait(LIMIT_S) == 0, program.output
    (log,) = (folder / "logs").glob("*.mcap")
    with LogReader(log) as reader:
        steps = list(reader.steps())
        assert reader.end is not None
        assert reader.end.reason is EndReason.STOP
    return steps


def test_a_circle_is_followed_without_stopping(network: Network, tmp_path: Path) -> None:
    steps = driven(network, tmp_path)
    moving = steps[1:-1]
    assert len(moving) == DECISIONS
    assert {step.result.outcome for step in moving if step.result} == {Outcome.MOVING}
    poses = [step.referee.pose for step in steps]
    length_m = sum(a.distance_to(b) for a, b in pairwise(poses))
    passed_s = (steps[-2].times.exposed_ns - steps[0].times.exposed_ns) / 1e9
    assert length_m > 0.8 * SPEED_M_S * passed_s
    for step in moving[4:]:
        assert step.result is not None
        assert step.result.pursued is not None
        assert step.result.pursued.error_m < 0.02
        turned_rad, driven_m = step.result.measured.turn_rad, step.result.pursued.driven.x_m
        assert turned_rad == pytest.approx(driven_m / RADIUS_M, abs=math.radians(4))
    assert abs(steps[-1].base.velocity.linear_m_s) < 0.005
