"""Verification of simulated campaigns: frauds that must be found, and honest campaigns that must not be accused."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from robot_runtime.campaign.messages import send, take_alone
from robot_runtime.campaign.plan import Plan
from robot_runtime.campaign.state import State
from robot_runtime.campaign.verification import Verification
from robot_runtime.errors import RecordingError
from robot_runtime.recording.log_files import LEDGER_FILE
from tests.benchmarks.report import Row
from tests.benchmarks.runtime.campaign_conditions import CONDITIONS
from tests.benchmarks.runtime.campaign_frauds import FRAUDS, is_found
from tests.benchmarks.runtime.simulated_campaigns import (
    in_child,
    run_campaign,
    run_judged_campaign,
    state_of,
    write_plan,
)

_SESSIONS = 20
"""Sessions after which a simulated campaign should have ended."""


def fraud_row() -> Row:
    """Row ``frauds_found``: each fraud on a copy of one honest campaign, judged, with help, of eight runs."""
    frauds = FRAUDS + CONDITIONS
    with TemporaryDirectory() as name:
        honest = run_judged_campaign(Path(name))
        missed = [
            fraud.name for number, fraud in enumerate(frauds) if not is_found(fraud, honest, Path(name) / f"{number}")
        ]
    special = [fraud.name for fraud in frauds if fraud.published or fraud.witnessed]
    note = f"of {len(frauds)}; with the published plan or a head that others kept: {', '.join(special)}"
    missing = f"; not found: {', '.join(missed)}" if missed else ""
    return Row(
        "frauds_found",
        "frauds that the verification finds",
        len(frauds) - len(missed),
        "",
        len(frauds),
        note=note + missing,
    )


def honest_row(campaigns: int, seed: int) -> Row:
    """Row ``honest_accused``: campaigns with crashes, torn lines, judges and help, all within the rules."""
    chance = random.Random(seed)
    accused: list[str] = []
    crashes = runs = 0
    with TemporaryDirectory() as name:
        for number in range(campaigns):
            folder = Path(name) / f"{number}"
            folder.mkdir()
            crashes += _honest_campaign(folder, chance)
            runs += len(state_of(folder / "campaign").attempts)
            findings = Verification(folder / "campaign").findings
            accused += [f"{number}: {one.where}: {one.detail}" for one in findings[:1]]
    note = f"of {campaigns}, {runs} runs, {crashes} crashes of the campaign's process"
    label = "honest campaigns in which the verification finds anything"
    return Row("honest_accused", label, len(accused), "", 0, "<=", note="; ".join([note, *accused[:3]]))


def _honest_campaign(folder: Path, chance: random.Random) -> int:
    """Run a campaign of random shape to its end; how often its process crashed."""
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
    campaign, crashes = folder / "campaign", 0
    for session in range(_SESSIONS):
        at = chance.randint(1, 12) if session < 3 and chance.random() < 0.6 else None
        crashes += _session(plan, campaign, at)
        if at is not None and chance.random() < 0.3:
            with (campaign / LEDGER_FILE).open("ab") as file:
                file.write(b'{"n":99,"at":"20')
        _speak(campaign, judges, chance)
        if state_of(campaign).closed is not None:
            return crashes
    raise RecordingError(f"{campaign}: did not end in {_SESSIONS} sessions", "look into its ledger")


def _session(plan: Plan, campaign: Path, crash_at: int | None) -> bool:
    """Run a session in a process of its own, which dies after a number of lines; whether it did."""
    child = os.fork()
    if child == 0:
        in_child(lambda: _run(plan, campaign, crash_at))
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, 9):
        raise RecordingError(f"{campaign}: a session ended with {code}", "see its message above")
    return code == 9


def _run(plan: Plan, campaign: Path, crash_at: int | None) -> int:
    lines = 0

    def count(_: State) -> None:
        nonlocal lines
        lines += 1
        if lines == crash_at:
            os._exit(9)

    run_campaign(plan, campaign, on_change=count)
    return 0


def _speak(campaign: Path, judges: int, chance: random.Random) -> None:
    """Judge what waits, now and then as invalid, and report help."""
    state = state_of(campaign)
    said: list[Callable[[], Path]] = []
    for attempt in state.to_judge:
        for by in ("Ada", "Ben")[:judges]:
            invalid = chance.random() < 0.05 and by == "Ada"
            verdict = {"success": None if invalid else chance.random() < 0.5, "invalid": invalid}
            message = {"kind": "verdict", "attempt": attempt.name, "by": by, **verdict}
            said.append(lambda message=message: send(campaign, message))  # type: ignore[misc]
    if state.attempts and state.closed is None and chance.random() < 0.2:
        name = chance.choice(sorted(state.attempts))
        send(campaign, {"kind": "event", "attempt": name, "what": "help", "by": "Ada"})
    for one in said:
        one()
    take_alone(campaign)
