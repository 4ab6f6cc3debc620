"""Small campaigns of the robot without physics, in one process or in forked ones, which start in milliseconds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

import yaml
from typing_extensions import override

from robot_runtime.campaign.ledger import read_ledger
from robot_runtime.campaign.messages import send, take_alone
from robot_runtime.campaign.opening import open_campaign
from robot_runtime.campaign.plan import Plan, load_plan
from robot_runtime.campaign.robot_process import Channel, Operate, RobotSession, RunRequest, carry_out, main
from robot_runtime.campaign.robots import RobotProcess
from robot_runtime.campaign.runner import Ending, Runner
from robot_runtime.campaign.state import State, stored_plan
from robot_runtime.common import config
from robot_runtime.common.clock import Stopwatch, SystemClock, wait_for
from robot_runtime.datasets import native_yaml
from robot_runtime.datasets.files import load_episodes
from robot_runtime.datasets.formats import generate_episodes
from robot_runtime.scenes.scene import find_scene, load_scene
from robot_runtime.tasks.task import load_task

TASK, SCENE = "pointnav_quick", "arena"
MAX_STEPS = 15


def write_plan(folder: Path, starts: int, **changes: Any) -> Plan:
    """Write episodes, a light task and ``plan.yaml`` into a folder, and return the plan.

    Args:
        folder: exists.
        starts: number of episodes, always the same ones.
        changes: fields of the plan.
    """
    task, scene = load_task(TASK), load_scene(find_scene(SCENE))
    episodes = folder / "starts.yaml"
    native_yaml.save(episodes, generate_episodes(scene, task, starts, 7))
    light = config.unparse(task) | {"name": "light", "max_steps": MAX_STEPS}
    light["camera"] |= {"width": 32, "height": 24}
    (folder / "light.yaml").write_text(yaml.safe_dump(light), encoding="utf-8")
    document = {
        "name": "small",
        "task": str(folder / "light.yaml"),
        "scenes": {"*": SCENE},
        "episodes": str(episodes),
        "policies": {"P1": {"spec": "goal-follower"}, "P2": {"spec": "random"}},
        "robots": [{"robot": "fake"}],
        "order": {"seed": 3, "block": 4},
        "test": {"largest": 10 * starts},
        **changes,
    }
    path = folder / "plan.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return load_plan(path)


class _Answers(Channel):
    """Answers that are kept instead of written to a pipe."""

    def __init__(self) -> None:
        super().__init__(-1)
        self.kept: list[Mapping[str, Any]] = []

    @override
    def say(self, word: str, **content: Any) -> None:
        self.kept.append({"is": word, **content})


class InlineRobot(RobotProcess):
    """A robot within the campaign's own process; a run has ended when its request returns.

    Attributes:
        operate: function that connects the operator's devices during a run; None for none.
    """

    operate: Operate | None = None

    def __init__(self, plan: Plan, number: int, folder: Path) -> None:
        super().__init__(plan, number, folder)
        self._channel = _Answers()
        self._stack = ExitStack()
        self._session: RobotSession | None = None

    @property
    @override
    def pid(self) -> int | None:
        return None if self._session is None else os.getpid()

    @property
    @override
    def descriptor(self) -> int | None:
        return None

    @property
    @override
    def may_start(self) -> bool:
        return self._session is None

    @override
    def start(self, episode: int) -> None:
        episodes = load_episodes(Path(self._plan.episodes))
        scene = self._plan.scene(episodes[episode].scene)
        planned = self._plan.robots[self.number]
        session = RobotSession(self._plan, planned, scene, episodes, self._channel, self.operate)
        self._session = self._stack.enter_context(session)
        self._channel.say("ready", battery=session.battery())

    @override
    def run(self, request: RunRequest) -> None:
        assert self._session is not None
        self.attempt = request.attempt
        carry_out(self._session, request, self._channel)

    @override
    def answers(self) -> list[Mapping[str, Any]]:
        found, self._channel.kept = self._channel.kept, []
        self._take(found)
        return found

    @override
    def end(self) -> None:
        self._stack.close()
        self._session = None


class ForkedRobot(RobotProcess):
    """A robot in a process that is forked instead of started: it needs no imports."""

    @override
    def _spawn(self, log: BinaryIO) -> subprocess.Popen[bytes]:
        return _Forked(log)  # type: ignore[return-value]


class _Forked:
    """The part of ``subprocess.Popen`` that a robot's process needs."""

    def __init__(self, log: BinaryIO) -> None:
        (request_end, requests), (answers, answer_end) = os.pipe(), os.pipe()
        self._status: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            for source, target in ((request_end, 0), (answer_end, 1), (log.fileno(), 2)):
                os.dup2(source, target)
            # Whoever holds a copy of another process's pipe keeps it from noticing the end.
            os.closerange(3, 1024)
            in_child(main)
        os.close(request_end)
        os.close(answer_end)
        self.stdin, self.stdout = os.fdopen(requests, "wb"), os.fdopen(answers, "rb", 0)

    def poll(self) -> int | None:
        """Exit status; None while it runs."""
        if self._status is None:
            found, status = os.waitpid(self.pid, os.WNOHANG)
            self._status = status if found else None
        return self._status

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end. Raises ``subprocess.TimeoutExpired``."""
        status = wait_for(SystemClock(), self.poll, 3600.0 if timeout is None else timeout, 0.01)
        if status is None:
            raise subprocess.TimeoutExpired("robot", timeout or 0.0)
        return status

    def terminate(self) -> None:
        """Send SIGTERM."""
        os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        os.kill(self.pid, signal.SIGKILL)


def in_child(work: Callable[[], int]) -> None:
    """Run the rest of a forked process; does not return."""
    code = 1
    try:
        code = work()
    finally:
        sys.stderr.flush()
        os._exit(code)


def run_campaign(
    plan: Plan,
    folder: Path,
    make_robot: Callable[[Plan, int, Path], RobotProcess] = InlineRobot,
    on_change: Callable[[State], None] | None = None,
) -> Ending:
    """Run a campaign, or go on with it."""
    with open_campaign(plan, folder, tell=lambda _: None) as ledger:
        return Runner(plan, ledger, lambda _: None, on_change, make_robot).run()


def state_of(folder: Path) -> State:
    """State after a campaign's ledger."""
    entries = read_ledger(folder)
    return State(stored_plan(entries), entries)


def wait_until(condition: Callable[[], bool], limit_s: float) -> bool:
    """Whether a condition came true in time."""
    timer = Stopwatch()
    while timer.elapsed_s() < limit_s:
        if condition():
            return True
        SystemClock().sleep(0.01)
    return False


def run_judged_campaign(folder: Path, starts: int = 4) -> Path:
    """Run a campaign with a judge and one report of help to its end, and return its folder.

    Args:
        folder: existing folder for plan and campaign.
        starts: number of starts in the plan.
    """
    plan = write_plan(folder, starts, judging={"judges": 1}, limits={"steps": 40})
    campaign = folder / "campaign"
    run_campaign(plan, campaign)
    attempts = list(state_of(campaign).attempts.values())
    for attempt in attempts:
        success = attempt.facts is not None and attempt.facts.metrics.get("success") == 1.0
        send(campaign, {"kind": "verdict", "attempt": attempt.name, "by": "Ada", "success": success})
    send(campaign, {"kind": "event", "attempt": attempts[-1].name, "what": "help", "by": "Ada"})
    take_alone(campaign)
    run_campaign(plan, campaign)
    return campaign
