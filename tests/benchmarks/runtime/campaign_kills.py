"""Campaigns whose processes are killed at random moments, beside the same campaign left alone."""

from __future__ import annotations

import os
import random
import signal
import socket
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from robot_runtime.campaign.messages import send
from robot_runtime.campaign.outcomes import VIEWS, values
from robot_runtime.campaign.plan import Plan
from robot_runtime.campaign.sealing import read_key, seal, served
from robot_runtime.campaign.state import State
from robot_runtime.campaign.verification import Verification
from robot_runtime.common.clock import Stopwatch, SystemClock
from robot_runtime.errors import DeviceFault
from robot_runtime.recording.log_files import LEDGER_FILE
from tests.benchmarks.report import Row
from tests.benchmarks.runtime.simulated_campaigns import ForkedRobot, in_child, run_campaign, state_of, write_plan

LIMIT_S = 3000.0
_POLL_S = 0.02
_STARTS = 20
"""Different starts; more runs are repetitions."""


def kill_rows(episodes: int, kills: int, seed: int) -> list[Row]:
    """Rows ``kills_lost`` and ``kills_doubled``.

    Args:
        episodes: runs of two policies together, an even number.
        kills: number of kills of the campaign's, the robot's and the policies' processes, at random moments spread
            over the runs.
        seed: random seed of victims and moments.
    """
    with TemporaryDirectory() as name:
        folder = Path(name)
        starts = min(_STARTS, episodes // 2)
        repetitions = -(-episodes // 2 // starts)
        changes = {"repetitions": repetitions, "limits": {"tries": 1000}, "pairs": {"rounds": 1}}
        largest = {"largest": episodes // 2, "least": episodes // 2}
        plan = write_plan(folder, starts, test=largest, **changes)
        run_campaign(plan, folder / "quiet")
        quiet = state_of(folder / "quiet")
        sealed = seal(plan, folder / "key.yaml", first_port=_free_port())
        names = {one.name: name for name, one in read_key(folder / "key.yaml").policies.items()}
        if names["P1"] != "P1":  # the runs' order depends on the names: both campaigns must have the same
            sealed = _renamed(plan, sealed, folder)
        timer = Stopwatch()
        done = Disturbed(sealed, folder, kills, random.Random(seed)).run()
        wall_s = timer.elapsed_s()
        disturbed = state_of(folder / "disturbed")
        lost = sum(
            one not in values(disturbed, view)[number : number + 1]
            for view in VIEWS
            for number, one in enumerate(values(quiet, view))
        )
        findings = Verification(folder / "disturbed").findings
        note = (
            f"{episodes} runs, {done['campaign']} kills of the campaign's, {done['robot']} of the robot's and "
            f"{done['policies']} of the policies' process, {done['stopped']} pauses of one, "
            f"{done['answers']} late answers, {len(disturbed.attempts)} attempts, {wall_s:.0f} s; "
            f"the verification found {len(findings)} contradictions {findings[:1] or ''}"
        )
        label = "starts whose values differ from the campaign that was left alone, strict and lenient"
        doubled = "runs of a policy from a start that ended by themselves more than once"
        return [
            Row(
                "kills_lost",
                label,
                lost + abs(len(quiet.finished) - len(disturbed.finished)),
                "starts",
                0,
                "<=",
                note=note,
            ),
            Row("kills_doubled", doubled, _doubled(disturbed), "runs", 0, "<="),
        ]


def _renamed(plan: Plan, sealed: Plan, folder: Path) -> Plan:
    """The sealed plan and its key with the names dealt as in the open plan."""
    text = (folder / "key.yaml").read_text(encoding="utf-8")
    swapped = text.replace("  P1:", "  P0:").replace("  P2:", "  P1:").replace("  P0:", "  P2:")
    (folder / "key.yaml").write_text(swapped, encoding="utf-8")
    p1, p2 = sealed.policies["P1"], sealed.policies["P2"]
    return replace(sealed, policies={"P1": p2, "P2": p1})


def _doubled(state: State) -> int:
    complete: dict[tuple[int, str], int] = {}
    for attempt in state.attempts.values():
        if attempt.facts is not None and attempt.facts.kind is None:
            complete[attempt.start, attempt.policy] = complete.get((attempt.start, attempt.policy), 0) + 1
    return sum(count - 1 for count in complete.values())


def _free_port() -> int:
    """The first of two free ports."""
    while True:
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            port = int(first.getsockname()[1])
            with suppress(OSError):
                second.bind(("127.0.0.1", port + 1))
                return port


class Disturbed:
    """A campaign with its policies' servers, whose processes are killed and started again.

    Args:
        plan: sealed; its key is ``key.yaml`` in the folder.
        folder: the campaign is in ``disturbed`` below it.
        kills: number of kills.
        chance: random numbers.
    """

    def __init__(self, plan: Plan, folder: Path, kills: int, chance: random.Random) -> None:
        self._plan, self._folder, self._chance = plan, folder, chance
        self._campaign_folder = folder / "disturbed"
        runs = plan.test.largest * 2
        self._due = sorted(chance.uniform(0.5, runs - 1) for _ in range(kills))
        self._pids: dict[str, int] = {}
        self.done = dict.fromkeys(("campaign", "robot", "policies", "stopped", "answers"), 0)

    def run(self) -> dict[str, int]:
        """Run the campaign to its end; returns what was done to it. Raises ``DeviceFault`` if it does not end."""
        timer = Stopwatch()
        try:
            while not self._closed():
                self._ensure("policies", self._serve)
                self._ensure("campaign", self._run)
                if self._due and self._ended() >= self._due[0]:
                    self._due.pop(0)
                    SystemClock().sleep(self._chance.uniform(0.0, 0.3))
                    self._disturb()
                self._answer()
                SystemClock().sleep(_POLL_S)
                if timer.elapsed_s() > LIMIT_S:
                    raise DeviceFault(f"the campaign did not end in {LIMIT_S:.0f} s", "look into its ledger")
        finally:
            for name in list(self._pids):
                self._kill(name)
        return self.done

    def _disturb(self) -> None:
        victim = self._chance.choice(["campaign", "robot", "policies"])
        pid = self._robot() if victim == "robot" else self._pids.get(victim)
        if pid is None:
            victim, pid = "campaign", self._pids["campaign"]
        if self._chance.random() < 0.1:
            os.kill(pid, signal.SIGSTOP)
            SystemClock().sleep(self._chance.uniform(0.2, 1.0))
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
            self.done["stopped"] += 1
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            self.done[victim] += 1

    def _robot(self) -> int | None:
        """Process of the robot, a child of the campaign's."""
        pid = self._pids.get("campaign")
        with suppress(OSError, IndexError):
            return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
        return None

    def _ensure(self, name: str, work: Callable[[], int]) -> None:
        pid = self._pids.get(name)
        if pid is not None and os.waitpid(pid, os.WNOHANG)[0] == 0:
            return
        self._pids[name] = child = os.fork()
        if child == 0:
            null = os.open(os.devnull, os.O_RDWR)
            for target in (0, 1):
                os.dup2(null, target)
            in_child(work)

    def _kill(self, name: str) -> None:
        pid = self._pids.pop(name)
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    def _run(self) -> int:
        run_campaign(self._plan, self._campaign_folder, ForkedRobot)
        return 0

    def _serve(self) -> int:
        port = int(self._plan.policies["P1"].server.rpartition(":")[2])
        first = min(port, int(self._plan.policies["P2"].server.rpartition(":")[2]))
        with ExitStack() as stack:
            stack.enter_context(served(read_key(self._folder / "key.yaml"), "127.0.0.1", first, None, lambda _: None))
            while True:
                SystemClock().sleep(1.0)

    def _answer(self) -> None:
        """Answer what the campaign asks for, as an operator who is in no hurry."""
        if not (self._campaign_folder / LEDGER_FILE).exists() or self._chance.random() > 0.05:
            return
        for ask in state_of(self._campaign_folder).asks:
            send(self._campaign_folder, {"kind": "answer", "ask": ask, "by": "the bench"})
            self.done["answers"] += 1

    def _ledger(self) -> bytes:
        path = self._campaign_folder / LEDGER_FILE
        return path.read_bytes() if path.exists() else b""

    def _closed(self) -> bool:
        return b'"kind":"closed"' in self._ledger()

    def _ended(self) -> int:
        return self._ledger().count(b'"end":"stop"') + self._ledger().count(b'"end":"max_steps"')
