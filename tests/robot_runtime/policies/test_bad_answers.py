"""Bad answers in mid-episode: a typed error, wheels at zero, a complete log, and a remedy that works."""

from __future__ import annotations

import math
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from navigator_servers import STRAIGHT, Emulator, emulated
from open_room import fake_robot, make_episode, make_scene, make_task
from raising import assert_names
from websockets.sync.server import ServerConnection, serve

from robot_runtime.actions.timed import Control, Decision, TrajectoryControl, trajectory
from robot_runtime.common.geometry import SE2
from robot_runtime.env import Env
from robot_runtime.errors import PolicyError
from robot_runtime.policies import load_policy
from robot_runtime.policies.remote.http_request import MAX_ANSWER_BYTES
from robot_runtime.policies.remote.protocol import pack
from robot_runtime.policy import Observation, Policy, World
from robot_runtime.recording.reader import LogReader
from robot_runtime.recording.writer import Recorder
from robot_runtime.records import EndReason, Outcome, StepRecord
from robot_runtime.runtime import run_episode
from robot_runtime.tasks.task import Task

BAD_STEP = 3


def make_control(**limits: Any) -> Task:
    return make_task(control=Control((-0.5, 0.5), trajectory=TrajectoryControl(**limits)), max_steps=8)


TASK = make_control()


@dataclass
class Driven:
    """An episode: its error, and what its log has."""

    error: PolicyError | None
    steps: list[StepRecord]
    reason: EndReason


def drive(policy: Policy, folder: Path, task: Task = TASK, **options: Any) -> Driven:
    """Run an episode; the wheels are at zero after it, and the log is complete."""
    error, recorder = None, Recorder(folder)
    with fake_robot(task, **options) as robot:
        env = Env(robot, task, make_scene(), [recorder])
        try:
            run_episode(env, policy, make_episode(goal=(0.0, 2.5)), seed=7)
        except PolicyError as caught:
            error = caught
        robot.clock.sleep(1.0)  # the wheels are told at once, and slow down
        velocity = robot.base.state(1.0).velocity
        assert (velocity.linear_m_s, velocity.angular_rad_s) == (0.0, 0.0)
    recorder.close()
    policy.close()
    assert recorder.path is not None
    with LogReader(recorder.path) as log:
        assert log.complete
        assert log.end is not None
        return Driven(error, list(log.steps()), log.end.reason)


def fails_then_works(make: Callable[[bool], Policy], folder: Path, *things: object) -> None:
    """The policy that ``make(False)`` gives fails, by an error that names things; ``make(True)`` has the remedy."""
    bad = drive(make(False), folder / "bad")
    assert bad.error is not None
    assert_names(bad.error, *things)
    assert (bad.reason, len(bad.steps)) == (EndReason.FAULT, BAD_STEP)
    good = drive(make(True), folder / "good")
    assert (good.error, len(good.steps)) == (None, TASK.max_steps + 1)


@pytest.mark.parametrize(
    ("raw", "named"),
    [
        (b'{"trajectory": [[[NaN, NaN]]]}', "not finite"),
        (b'{"trajectory": [[[1, 2, 3, 4]]]}', "(1, 4)"),
        (b'{"error": "CUDA out of memory"}', "CUDA out of memory"),
        (b" " * (MAX_ANSWER_BYTES + 1), f"{MAX_ANSWER_BYTES} bytes"),
    ],
)
def test_a_server_that_answers_nonsense_is_corrected(raw: bytes, named: str, tmp_path: Path) -> None:
    emulator = Emulator(raw=lambda step: raw if step == BAD_STEP - 1 else None)
    with emulated(emulator) as place:

        def make(remedied: bool) -> Policy:
            emulator.raw = (lambda _: None) if remedied else emulator.raw
            return load_policy(f"navdp://{place}", time_limit_s=20.0)

        fails_then_works(make, tmp_path, place, named, "the server" if "bytes" not in named else "a server")


def test_a_server_that_stalls_in_mid_answer_gets_more_time(tmp_path: Path) -> None:
    leave = threading.Event()
    emulator = Emulator(answer=lambda _: STRAIGHT)
    emulator.pause = lambda steps: leave.wait(20) if steps == BAD_STEP else None
    with emulated(emulator) as place:

        def make(remedied: bool) -> Policy:
            emulator.seen.clear()
            if remedied:
                leave.set()
                emulator.pause = lambda steps: time.sleep(1.1) if steps == BAD_STEP else None
            return load_policy(f"navdp://{place}", time_limit_s=20.0 if remedied else 1.0)

        fails_then_works(make, tmp_path, place, "1 s", "more time")


def test_a_websocket_that_stalls_in_mid_answer_gets_more_time(tmp_path: Path) -> None:
    leave, count = threading.Event(), iter(range(1000))

    def handle(connection: ServerConnection) -> None:
        connection.send(pack({}))
        answer = pack({"actions": np.array([[0.1, 0.0]])})

        def halves() -> Iterator[bytes]:
            yield answer[:9]
            leave.wait(20)
            yield answer[9:]

        for _ in connection:
            connection.send(halves() if next(count) == BAD_STEP - 1 else answer)

    with websocket(handle) as place:

        def make(remedied: bool) -> Policy:
            if remedied:
                leave.set()
            return load_policy(f"openpi://{place}", actions="velocities", time_limit_s=20.0 if remedied else 1.0)

        fails_then_works(make, tmp_path, place, "1 s", "--agent-arg time_limit_s")


@contextmanager
def websocket(handle: Callable[[ServerConnection], None]) -> Iterator[str]:
    with serve(handle, "127.0.0.1", 0, compression=None) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"127.0.0.1:{server.socket.getsockname()[1]}"
        server.shutdown()
        thread.join()


AGENTS = """
import torch

class Loads:
    def __init__(self, file, map_location=None):
        self.file, self.where, self.count = file, map_location, 0

    def reset(self):
        pass

    def act(self, observations):
        self.count += 1
        if self.count == 3:
            torch.load(self.file, map_location=self.where)
        return "turn_left"

class Rows:
    def __init__(self, chunk=False):
        self.chunk, self.count = chunk, 0

    def reset(self):
        pass

    def act(self, observations):
        self.count += 1
        if self.count == 3:
            return {"chunk": [2, 2]} if self.chunk else [[2, 2]]
        return [[2]]
"""


@pytest.fixture
def agents(tmp_path: Path) -> Path:
    path = tmp_path / "agents.py"
    path.write_text(AGENTS)
    return path


@pytest.mark.skipif(torch.cuda.is_available(), reason="this computer has CUDA")
@pytest.mark.parametrize("kind", ["", pytest.param("habitat:", marks=[pytest.mark.slow, pytest.mark.exhaustive])])
def test_a_checkpoint_of_a_gpu_is_loaded_with_map_location(agents: Path, kind: str, tmp_path: Path) -> None:
    torch.save({"w": torch.zeros(2)}, tmp_path / "net.pt")
    with zipfile.ZipFile(tmp_path / "net.pt") as source, zipfile.ZipFile(tmp_path / "gpu.pt", "w") as copy:
        for name in source.namelist():
            copy.writestr(name, source.read(name).replace(b"X\x03\x00\x00\x00cpu", b"X\x06\x00\x00\x00cuda:0"))

    def make(remedied: bool) -> Policy:
        where = {"map_location": "cpu"} if remedied else {}
        return load_policy(f"{kind}{agents}:Loads", file=str(tmp_path / "gpu.pt"), **where)

    fails_then_works(make, tmp_path, "CUDA", "map_location='cpu'")


def test_two_actions_in_an_array_are_no_action_and_a_chunk_is(agents: Path, tmp_path: Path) -> None:
    """An array of one action is that action, however deep."""
    fails_then_works(lambda remedied: load_policy(f"{agents}:Rows", chunk=remedied), tmp_path, "[[2, 2]]", "'chunk'")


class Ahead(Policy):
    """Answers a trajectory ahead, or after a contact one that turns."""

    name = "ahead"

    def __init__(self, turns_after: int = 100) -> None:
        self.turns_after = turns_after

    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        self.count = 0

    def act(self, observation: Observation) -> Decision:
        self.count += 1
        turns = self.count > self.turns_after
        return trajectory([(0, 0, 0.2 * k) if turns else (0.1 * k, 0, 0) for k in range(1, 9)], 0.25)


def test_a_trajectory_that_is_older_than_allowed_needs_a_task_with_another_limit(tmp_path: Path) -> None:
    limits = {"latency_s": 2.0, "max_standing_s": 5.0}
    late = drive(Ahead(), tmp_path / "late", make_control(**limits))
    assert late.error is not None
    assert_names(late.error, "max_standing_s", 5)
    assert late.reason is EndReason.FAULT
    assert late.steps[-1].referee.pose.distance_to(SE2()) < 0.01
    patient = drive(Ahead(), tmp_path / "patient", make_control(**limits, max_age_s=3.0))
    assert patient.error is None
    assert patient.steps[-1].referee.pose.x_m > 0.3


def test_a_trajectory_into_a_wall_is_a_contact_and_another_one_goes_on(tmp_path: Path) -> None:
    stopped = drive(Ahead(), tmp_path / "wall", wall_x_m=0.4).steps
    outcomes = [step.result.outcome for step in stopped if step.result]
    assert outcomes[-1] is Outcome.CONTACT
    turned = drive(Ahead(turns_after=5), tmp_path / "turned", wall_x_m=0.4).steps
    assert turned[-1].referee.pose.yaw_rad > math.radians(10)
    assert turned[-1].result is not None
    assert turned[-1].result.outcome is Outcome.MOVING
