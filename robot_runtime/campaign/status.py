"""Status of a campaign, read from its ledger without a lock, also while it runs."""

from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from robot_runtime.campaign.ledger import LOGS, OVERLAY, Entry, is_running, read_ledger
from robot_runtime.campaign.outcomes import answer, closing, closing_lines, same, sentence, values
from robot_runtime.campaign.state import State, read_state
from robot_runtime.campaign.verification import Verification
from robot_runtime.common.clock import utc_now_iso


@dataclass(frozen=True)
class Ask:
    """An open question to a person."""

    id: int
    robot: int
    text: str


@dataclass(frozen=True)
class Row:
    """One start: its episode, and what has become of it."""

    name: str
    state: str


@dataclass(frozen=True)
class Status:
    """Status of a campaign.

    Attributes:
        name: name of the plan.
        question: question of the plan.
        running: whether a process runs it.
        finished: whether it has ended for good.
        blind: whether its policies are sealed and not yet unblinded.
        starts_done: number of starts that count.
        starts_planned: largest number of starts.
        given_up: starts that were given up.
        attempts: runs so far, repeated ones included.
        repeated: runs that were or must be repeated by rule.
        elapsed_s: duration of the sessions, pauses not counted.
        eta_s: time until all planned starts have run, by the pace so far; None before the first.
        answer: present answer in one sentence.
        asks: open questions to people.
        to_judge: attempts that wait for a judge, with their logs.
        robots: attempt that each robot carries out; None for none.
        rows: starts in order.
        overlay: picture for the person who places a robot; None if there is none now.
        closing: what its end says, line by line; empty before.
    """

    name: str
    question: str
    running: bool
    finished: bool
    blind: bool
    starts_done: int
    starts_planned: int
    given_up: int
    attempts: int
    repeated: int
    elapsed_s: float
    eta_s: float | None
    answer: str
    asks: tuple[Ask, ...]
    to_judge: tuple[tuple[str, str], ...]
    robots: tuple[str | None, ...]
    rows: tuple[Row, ...]
    overlay: Path | None
    closing: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As JSON, with ``title``, ``done`` and ``total`` for the console."""
        overlay = None if self.overlay is None else str(self.overlay)
        more = {"title": self.name, "done": self.starts_done, "total": self.starts_planned}
        return asdict(self) | {"overlay": overlay} | more


def read_status(folder: Path) -> Status:
    """The status of the campaign in a folder.

    Raises:
        ConfigError: there is none.
        RecordingError: its ledger was altered.
    """
    entries = read_ledger(folder)
    return status_of(read_state(entries), entries, folder, is_running(folder))


def verified_status(folder: Path) -> Status:
    """The status by the logs; of a campaign that runs, by its ledger: reading all logs would disturb its robots.

    Raises:
        RuntimeFault: as :func:`read_status` and :class:`.verification.Verification`.
    """
    if is_running(folder):
        return read_status(folder)
    found = Verification(folder)
    status = status_of(found.state, found.entries, folder, running=False)
    if not found.findings:
        return status
    doubt = f"{len(found.findings)} contradictions in its folder: see `robot-runtime campaign verify`"
    return replace(status, answer=f"{status.answer}; {doubt}")


def status_of(state: State, entries: list[Entry], folder: Path, running: bool) -> Status:
    """The status after these lines."""
    plan = state.plan
    progress = {start.number: state.progress(start.number) for start in state.starts}
    done = len(state.finished)
    given_up = sum(bool(start.given_up) for start in progress.values())
    elapsed_s = elapsed(entries, running)
    left = len(state.starts) - done - given_up
    ended, result = closing(state, answer(plan, values(state, plan.test.counts)))
    over = state.closed is not None
    said = sentence(plan, result) if plan.show_scores or over else "not shown before the end"
    busy = {attempt.robot: attempt.name for attempt in state.unfinished} if running else {}
    if state.closed is not None and not (
        state.closed["reason"] == ended and same(state.closed["answer"], result.document())
    ):
        said += "; the ledger's last word is another one: see `robot-runtime campaign verify`"
    return Status(
        name=plan.name,
        question=plan.question,
        running=running,
        finished=over,
        blind=plan.blind and state.unblinded is None,
        starts_done=done,
        starts_planned=len(state.starts),
        given_up=given_up,
        attempts=len(state.attempts),
        repeated=sum(len(start.repeats) for start in progress.values()),
        elapsed_s=elapsed_s,
        eta_s=0.0 if over else elapsed_s / (done + given_up) * left if done + given_up else None,
        answer=said,
        asks=tuple(Ask(number, entry["robot"], entry["text"]) for number, entry in sorted(state.asks.items())),
        to_judge=tuple(
            (attempt.name, str(folder / attempt.ended["log"]))
            for attempt in state.to_judge
            if attempt.ended is not None
        ),
        robots=tuple(busy.get(number) for number in range(len(plan.robots))),
        rows=tuple(
            Row(f"{start.number}: {start.episode.id}", _word(state, start.number, running)) for start in state.starts
        ),
        overlay=next(filter(Path.is_file, (folder / LOGS / name / OVERLAY for name in busy.values())), None),
        closing=tuple(closing_lines(state, result)) if over else (),
    )


def elapsed(entries: list[Entry], running: bool) -> float:
    """Seconds from each session's line to its last line, or to now for the one that runs."""
    total_s, begun = 0.0, None
    last: datetime | None = None
    for entry in entries:
        if entry.kind == "session":
            if begun is not None and last is not None:
                total_s += (last - begun).total_seconds()
            begun = entry.at
        if entry.kind in ("session", "begun", "ended", "decision", "paused", "closed", "asked", "answered"):
            last = entry.at
    if begun is None or last is None:
        return 0.0
    end = datetime.fromisoformat(utc_now_iso()) if running else last
    return total_s + max(0.0, (end - begun).total_seconds())


def _word(state: State, number: int, running: bool) -> str:
    progress = state.progress(number)
    if progress.given_up:
        return f"given up: {progress.given_up}"
    if progress.done:
        return "done" if state.is_judged(progress) else "to be judged"
    attempts = state.by_start.get(number, [])
    if running and attempts and attempts[-1].ended is None:
        return f"{attempts[-1].policy} is running"
    return f"{len(progress.valid)} of {len(state.starts[number].policies)} runs" if attempts else "waiting"
