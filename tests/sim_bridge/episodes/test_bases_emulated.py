"""A simulated LoCoBot on an emulated base: real bytes, a real guard process, in lock-step with simulated time."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest
from open_room import Witness, make_episode, make_task

from drivers.serial_base.base import GuardProcessBase
from robot_runtime.common.geometry import SE2
from robot_runtime.conformance import BaseConformance, ContactConformance
from robot_runtime.env import Env
from robot_runtime.errors import RuntimeFault
from robot_runtime.hal import Robot
from robot_runtime.policies import load_policy
from robot_runtime.recording.reader import LogReader
from robot_runtime.recording.writer import Recorder
from robot_runtime.records import EndReason, StepRecord
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
@pytest.mark.parametrize("preset", ["locobot-kobuki", "locobot-create2"])
@pytest.mark.parametrize("fault", [{"kind": "noisy"}, {"kind": "dropped_bytes", "probability": 0.1}])
def test_bad_packets_of_base_and_servos_end_no_episode(room: Scene, preset: str, fault: dict[str, object]) -> None:
    path, file = read_robot_file(preset)
    assert file.base is not None
    assert file.head is not None
    spoiled = {"emulator": {"faults": [{**fault, "from_s": 2.0}]}}
    base, head = (replace(part, options={**part.options, **spoiled}) for part in (file.base, file.head))
    task = make_task(max_steps=30)
    context = RobotContext(room, task.camera, seed=1, images=False)
    robot = build_robot(replace(file, base=base, head=head), str(path), context)
    with robot, Env(robot, task, room) as env:
        run_episode(env, load_policy("oracle"), make_episode(goal=(0.5, 0.8), scene=room.name), seed=0)
        assert env.get_metrics()["success"]
        assert isinstance(robot.base, GuardProcessBase)
        newest = robot.base.newest
        assert newest is not None
        assert newest.skipped > 0


class _Disturbed(Witness):
    """Sends a signal to the guard process after the second step."""

    def __init__(self, robot: Robot, number: signal.Signals) -> None:
        super().__init__()
        self._robot, self._number = robot, number

    def on_step(self, record: StepRecord) -> None:
        super().on_step(record)
        if record.index == 2:
            base = self._robot.base
            assert isinstance(base, GuardProcessBase)
            os.kill(base.guard_process_id, self._number)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("part", "fault", "said"),
    [
        ("base", "unplugged", "no such device"),
        ("base", "over_current", "draws more than 3 A"),
        ("base", "low_voltage", "battery is critical"),
        ("head", "silent", "does not answer"),
        ("head", "latched_error", "overload"),
        ("guard", "SIGKILL", "guard process"),
        ("guard", "SIGSTOP", "guard process"),
    ],
)
def test_a_fault_in_mid_episode_ends_it_with_its_remedy_and_a_whole_log(
    room: Scene, tmp_path: Path, part: str, fault: str, said: str
) -> None:
    path, file = read_robot_file("locobot-kobuki")
    if part != "guard":
        device = getattr(file, part)
        options = {**device.options, "emulator": {"faults": [{"kind": fault, "from_s": 4.0}]}}
        file = replace(file, **{part: replace(device, options=options)})
    task = make_task(max_steps=20)
    robot = build_robot(file, str(path), RobotContext(room, task.camera, seed=1, images=False))
    recorder = Recorder(tmp_path)
    disturbed = (_Disturbed(robot, signal.Signals[fault]),) if part == "guard" else ()
    with robot, Env(robot, task, room, subscribers=(recorder, *disturbed)) as env:
        with pytest.raises(RuntimeFault, match=said) as caught:
            run_episode(env, load_policy("oracle"), make_episode(goal=(2.0, 1.6), scene=room.name), seed=0)
        assert caught.value.remedy
        robot.clock.sleep(1.0)
        simulation = robot.simulation
        assert simulation is not None
        before = simulation.pose()
        robot.clock.sleep(1.0)
        # The last command of a base without a cable persists: nobody can stop it.
        after = simulation.pose()
        assert fault == "unplugged" or (after.x_m, after.y_m) == pytest.approx((before.x_m, before.y_m), abs=1e-6)
    (log_path,) = tmp_path.glob("*.mcap")
    with LogReader(log_path) as log:
        assert log.complete
        assert log.end is not None
        assert log.end.reason is EndReason.FAULT
        assert said in log.end.detail
        indices = [record.index for record in log.steps(verify=True)]
    assert indices == list(range(len(indices)))
