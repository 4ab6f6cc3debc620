"""A simulated LoCoBot on an emulated base: real bytes, a real guard process, in lock-step with simulated time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest
import yaml
from open_room import Witness, make_episode, make_task

from robot_runtime.cli.main import run_command
from robot_runtime.common.geometry import SE2
from robot_runtime.conformance import BaseConformance, ContactConformance
from robot_runtime.env import Env
from robot_runtime.hal import Robot
from robot_runtime.policies import load_policy
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import EndReason
from robot_runtime.robots.loader import RobotContext, build_robot, read_robot_file
from robot_runtime.runtime import run_episode
from robot_runtime.scenes.scene import Scene


class _OnBytes:
    preset: ClassVar[str]

    @pytest.fixture(autouse=True)
    def _in_room(self, room: Scene) -> None:
        self.scene = room

    def make_robot(self) -> Robot:
        # Of ideal motors: what is checked is what the driver does, and not how late a Kobuki takes up a command.
        path, file = read_robot_file(self.preset)
        options = {"motors": {"type": "ideal", "separation_m": 0.235 if self.preset == "locobot-create2" else 0.23}}
        return build_robot(replace(file, options=options), str(path), RobotContext(self.scene, None, seed=1))


class _AtWall(_OnBytes):
    def make_robot(self) -> Robot:
        robot = super().make_robot()
        robot.placer.place(SE2(2.4, 0.0, 0.0), 0.0)
        return robot


@pytest.mark.slow
class TestKobukiConformance(_OnBytes, BaseConformance):
    preset = "locobot-kobuki"


@pytest.mark.slow
class TestKobukiContactConformance(_AtWall, ContactConformance):
    preset = "locobot-kobuki"


@pytest.mark.slow
class TestCreate2Conformance(_OnBytes, BaseConformance):
    preset = "locobot-create2"


@pytest.mark.slow
class TestCreate2ContactConformance(_AtWall, ContactConformance):
    preset = "locobot-create2"


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["locobot-kobuki", "locobot-create2"])
def test_an_episode_has_the_score_of_the_simulation_in_process(room: Scene, preset: str) -> None:
    """The same robot with the same motors, commanded by calls and by bytes."""
    scores = []
    path, file = read_robot_file(preset)
    for part in (replace(file, base=None, head=None), file):
        task = make_task(max_steps=20)
        robot = build_robot(part, str(path), RobotContext(room, task.camera, seed=1, images=False))
        witness = Witness()
        with robot, Env(robot, task, room, subscribers=(witness,)) as env:
            end = run_episode(env, load_policy("oracle"), make_episode(goal=(0.5, 0.8), scene=room.name), seed=0)
            scores.append({**env.get_metrics(), "steps": end.steps, "reason": end.reason})
            scores[-1]["actions"] = [step.action for step in witness.steps]
    plain, by_bytes = scores
    for name in ("success", "steps", "reason", "collisions", "actions"):
        assert by_bytes.get(name) == plain.get(name), name
    assert plain["success"]
    for name in ("distance_to_goal", "path_length_m", "spl"):
        assert by_bytes[name] == pytest.approx(plain[name], abs=0.02), name


@pytest.mark.slow
def test_a_cable_that_is_pulled_out_ends_the_episode_with_a_whole_log(tmp_path: Path) -> None:
    _, file = read_robot_file("locobot-kobuki")
    fault = {"kind": "unplugged", "from_s": 9.0}
    robot = tmp_path / "robot.yaml"
    document = {
        "name": "unplugged",
        "driver": file.driver,
        "options": file.options,
        "base": {"driver": "drivers.kobuki.driver.make_base", "options": {"emulator": {"faults": [fault]}}},
    }
    robot.write_text(yaml.safe_dump(document), encoding="utf-8")
    logs = tmp_path / "logs"
    run_command(["run", "--robot", str(robot), "--agent", "oracle", "--count", "1", "--out", str(logs)])
    (path,) = logs.glob("*.mcap")
    with LogReader(path) as log:
        assert log.complete
        assert log.end is not None
        assert log.end.reason is EndReason.FAULT
        assert "no such device" in log.end.detail
        indices = [record.index for record in log.steps(verify=True)]
    assert indices == list(range(len(indices)))
