"""Honest campaigns as laboratories have them: crashes, torn lines, suspension, clocks that are set, three operators."""

from __future__ import annotations

import datetime
import json
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any
from unittest import mock

from robot_runtime.campaign import ledger
from robot_runtime.campaign.messages import send, take_alone
from robot_runtime.campaign.plan import Plan
from robot_runtime.campaign.state import State
from robot_runtime.campaign.verification import Verification
from robot_runtime.common import clock
from robot_runtime.errors import ConfigError, RecordingError
from robot_runtime.recording.log_files import LEDGER_FILE
from tests.benchmarks.report import Row
from tests.benchmarks.runtime.simulated_campaigns import in_child, run_campaign, state_of, write_plan

_SESSIONS = 30
"""Sessions after which a simulated campaign should have ended."""

OPERATORS = ("Ada", "Ben", "Cleo")
REFUSED = 7
"""Exit code of a session that was refused because of the clock."""

EVENTS: dict[str, tuple[float, float]] = {
    "suspension": (8 * 3600.0, 8 * 3600.0),
    "NTP step": (8.0, 0.0),
    "NTP step back": (-1.5, 0.0),
    "clock set back": (-3600.0, 0.0),
}
"""Seconds that an event adds to the wall clock, and to the time since the computer's start."""


class Computer:
    """The computer's clocks, whose state is in a file: the session's process and the operator's share it.

    Args:
        path: path of that file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._write(0.0, 0.0, "first")

    def _write(self, wall_s: float, up_s: float, boot: str) -> None:
        self._path.write_text(json.dumps([wall_s, up_s, boot]), encoding="utf-8")

    @property
    def state(self) -> tuple[float, float, str]:
        """Seconds by which wall clock and time since the start are ahead, and the start's name."""
        wall_s, up_s, boot = json.loads(self._path.read_text(encoding="utf-8"))
        return wall_s, up_s, boot

    def happens(self, event: str) -> None:
        """Let the clocks do what an event does to them."""
        wall_s, up_s, boot = self.state
        self._write(wall_s + EVENTS[event][0], up_s + EVENTS[event][1], boot)

    def mend(self, event: str) -> None:
        """Set the clock right again after an event, if it was set back by it."""
        if event == "clock set back":
            wall_s, up_s, boot = self.state
            self._write(wall_s - EVENTS[event][0], up_s, boot)

    def restart(self, boot: str) -> None:
        """Start the computer again: its time since the start begins anew."""
        wall_s, up_s, _ = self.state
        self._write(wall_s, up_s, boot)

    @contextmanager
    def used(self) -> Iterator[None]:
        """Let everything in this process read these clocks."""
        computer = self

        class Wall(datetime.datetime):
            @classmethod
            def now(cls, tz: datetime.tzinfo | None = None) -> datetime.datetime:  # type: ignore[override]
                return datetime.datetime.now(tz) + datetime.timedelta(seconds=computer.state[0])

        real_up_s = ledger._up_s

        def up_s() -> float:
            return real_up_s() + computer.state[1]

        def boot() -> str:
            return computer.state[2]

        with ExitStack() as stack:
            shown = SimpleNamespace(datetime=Wall, timezone=datetime.timezone)
            stack.enter_context(mock.patch.object(clock, "dt", shown))
            stack.enter_context(mock.patch.object(ledger, "_up_s", up_s))
            stack.enter_context(mock.patch.object(ledger, "_boot", boot))
            yield


def honest_row(campaigns: int, seed: int) -> Row:
    """Row ``honest_accused``: campaigns to which everything happens that may happen within the rules."""
    chance, happened = random.Random(seed), Counter[str]()
    accused: list[str] = []
    with TemporaryDirectory() as name:
        for number in range(campaigns):
            folder = Path(name) / f"{number}"
            folder.mkdir()
            computer = Computer(folder / "clocks")
            with computer.used():
                happened += _honest_campaign(folder, computer, chance)
                happened["runs"] += len(state_of(folder / "campaign").attempts)
                findings = Verification(folder / "campaign").findings
            accused += [f"{number}: {one.where}: {one.detail}" for one in findings[:1]]
    counts = ", ".join(f"{what} {count}" for what, count in sorted(happened.items()))
    label = "honest campaigns in which the verification finds anything"
    note = f"of {campaigns}, with three operators: {counts}"
    return Row("honest_accused", label, len(accused), "", 0, "<=", note="; ".join([note, *accused[:3]]))


def _honest_campaign(folder: Path, computer: Computer, chance: random.Random) -> Counter[str]:
    """Run a campaign of random shape to its end; what happened to it."""
    judges = chance.choice([0, 0, 1, 2])
    starts = chance.randint(1, 2)
    changes: dict[str, Any] = {
        "order": {"seed": chance.randrange(1 << 30), "block": chance.randint(1, 4)},
        "judging": {"judges": judges},
        "test": {"largest": starts, "metric": chance.choice(["success", "spl", "soft_spl"])},
        "limits": {"contacts": chance.choice([None, 1, 3])},
        "robots": [{"robot": "fake"}] * chance.choice([1, 1, 2]),
    }
    plan = write_plan(folder, starts, **changes)
    campaign, happened = folder / "campaign", Counter[str]()
    for session in range(_SESSIONS):
        early = session < 3
        at = chance.randint(1, 12) if early and chance.random() < 0.6 else None
        event = chance.choice(list(EVENTS)) if early and chance.random() < 0.5 else None
        before = computer.state
        code = _session(plan, campaign, computer, at, event, chance)
        happened.update(["crashes"] if code == 9 else ["sessions refused for the clock"] if code == REFUSED else [])
        if event and computer.state != before:
            happened[event] += 1
            computer.mend(event)
        if at is not None and chance.random() < 0.3:
            happened["torn lines"] += 1
            with (campaign / LEDGER_FILE).open("ab") as file:
                file.write(b'{"n":99,"at":"20')
        if chance.random() < 0.2:
            happened["restarts of the computer"] += 1
            computer.restart(f"boot{session}")
        _speak(campaign, judges, chance)
        if state_of(campaign).closed is not None:
            return happened
    raise RecordingError(f"{campaign}: did not end in {_SESSIONS} sessions", "look into its ledger")


def _session(
    plan: Plan, campaign: Path, computer: Computer, crash_at: int | None, event: str | None, chance: random.Random
) -> int:
    """Run a session of one of the operators in a process of its own; its exit code, 9 for a crash.

    Args:
        plan: plan of the campaign.
        campaign: folder of the campaign.
        computer: clocks that it reads.
        crash_at: number of lines after which it crashes; None for never.
        event: what happens to the clocks after some lines, or before the first; None for nothing.
        chance: generator of random numbers.
    """
    operator, event_at = chance.choice(OPERATORS), chance.randint(0, 8)
    child = os.fork()
    if child == 0:
        os.environ["LOGNAME"] = operator
        if event and not event_at:
            computer.happens(event)
        in_child(lambda: _run(plan, campaign, crash_at, (lambda: computer.happens(event)) if event else None, event_at))
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, 9, REFUSED):
        raise RecordingError(f"{campaign}: a session ended with {code}", "see its message above")
    return code


def _run(plan: Plan, campaign: Path, crash_at: int | None, happen: Callable[[], None] | None, event_at: int) -> int:
    lines = 0

    def count(_: State) -> None:
        nonlocal lines
        lines += 1
        if lines == event_at and happen is not None:
            happen()
        if lines == crash_at:
            os._exit(9)

    try:
        run_campaign(plan, campaign, on_change=count)
    except ConfigError as error:
        if "set back" not in error.message:
            raise
        return REFUSED
    return 0


def _speak(campaign: Path, judges: int, chance: random.Random) -> None:
    """Judge what waits, now and then as invalid, and report help."""
    state = state_of(campaign)
    said: list[Callable[[], Path]] = []
    for attempt in state.to_judge:
        for by in OPERATORS[:judges]:
            invalid = chance.random() < 0.05 and by == OPERATORS[0]
            verdict = {"success": None if invalid else chance.random() < 0.5, "invalid": invalid}
            message = {"kind": "verdict", "attempt": attempt.name, "by": by, **verdict}
            said.append(lambda message=message: send(campaign, message))  # type: ignore[misc]
    if state.attempts and state.closed is None and chance.random() < 0.2:
        name, by = chance.choice(sorted(state.attempts)), chance.choice(OPERATORS)
        send(campaign, {"kind": "event", "attempt": name, "what": "help", "by": by})
    for one in said:
        one()
    take_alone(campaign)
