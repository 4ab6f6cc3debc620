"""State of a campaign, folded from its ledger: attempts, finished starts, what is to be run next."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from robot_runtime.campaign.counting import Kind
from robot_runtime.campaign.facts import Facts
from robot_runtime.campaign.ledger import Entry
from robot_runtime.campaign.lines import check_line
from robot_runtime.campaign.plan import Plan
from robot_runtime.campaign.schedule import EpisodeName, Start, schedule
from robot_runtime.common import config
from robot_runtime.errors import ConfigError

SIGNIFICANT = 0.001
"""Probability below which an unequal share of repetitions is no accident."""

OF_PEOPLE: tuple[Kind, ...] = ("interrupted", "killed", "damaged", "start", "battery_change", "invalid")
"""Kinds of which whoever is at the robot decides. So does a person who reports any kind."""


def weigh(state: State) -> tuple[list[str], list[str]]:
    """Compare the policies' shares of runs that did not count.

    Returns:
        Shares that people can cause and that are no accident; and the others that differ.
    """
    attempts = [attempt for attempt in state.attempts.values() if attempt.facts is not None]
    findings: list[str] = []
    notes: list[str] = []
    for policy in sorted(state.plan.policies):
        by_people = _unequal(state, attempts, policy, people=True)
        everything = _unequal(state, attempts, policy, people=False)
        if by_people:
            findings.append(by_people)
        elif everything:
            notes.append(everything)
    return findings, notes


def _unequal(state: State, attempts: Sequence[Attempt], policy: str, people: bool) -> str:
    """One sentence if a policy's runs were repeated more often than those of the others by more than chance."""
    void = [attempt for attempt in attempts if _is_void(state, attempt, people)]
    own = [attempt for attempt in attempts if attempt.policy == policy]
    own_void = sum(attempt.policy == policy for attempt in void)
    probability = tail_probability(own_void, len(own), len(void), len(attempts))
    if probability >= SIGNIFICANT:
        return ""
    others, others_void = len(attempts) - len(own), len(void) - own_void
    return (
        f"{own_void} of {len(own)} runs of {policy} did not count, of the others {others_void} of {others}: "
        f"more than chance (p = {probability:.1g})"
    )


def _is_void(state: State, attempt: Attempt, people: bool) -> bool:
    kind = state.plan.counting.repeated(attempt.kinds)
    return kind is not None and (not people or kind in OF_PEOPLE or kind in attempt.events)


def tail_probability(own_void: int, own: int, void: int, total: int) -> float:
    """Fisher's exact probability that ``own_void`` or more of ``void`` among ``total`` runs fall on ``own`` runs."""
    most = min(own, void)
    ways = sum(math.comb(own, k) * math.comb(total - own, void - k) for k in range(own_void, most + 1))
    return ways / math.comb(total, void)


@dataclass(frozen=True)
class LedgerVerdict:
    """A person's verdict on an attempt, as the ledger has it; None where the person does not say."""

    by: str
    success: bool | None = None
    invalid: bool = False
    line: int = 0


@dataclass
class Attempt:
    """One try to run a policy from a start.

    Attributes:
        name: ``0012-P1-2``: start, policy, try.
        start: number of the start.
        policy: its name.
        robot: number of the robot in the plan.
        begun: line at its beginning.
        ended: line at its end; None while it runs, and after a crash until the next session has looked for its log.
        facts: facts of its log; None as long as there is no line at its end.
        events: kinds of interventions that people reported.
        verdicts: verdicts on the run, in order.
        remarks: remarks that people wrote on it, each with its author.
    """

    name: str
    start: int
    policy: str
    robot: int
    begun: Entry
    ended: Entry | None = None
    facts: Facts | None = None
    events: list[Kind] = field(default_factory=list)
    verdicts: list[LedgerVerdict] = field(default_factory=list)
    remarks: list[tuple[str, str]] = field(default_factory=list)

    @property
    def judges(self) -> dict[str, LedgerVerdict]:
        """Each judge's last word."""
        return {verdict.by: verdict for verdict in self.verdicts}

    @property
    def kinds(self) -> list[Kind]:
        """Interventions and faults, from the log, the reports and the judges."""
        kinds: list[Kind] = [] if self.facts is None or self.facts.kind is None else [self.facts.kind]
        kinds += self.events
        kinds += ["invalid"] if any(verdict.invalid for verdict in self.judges.values()) else []
        return list(dict.fromkeys(kinds))

    @property
    def judged(self) -> int:
        """Number of people who have judged its success."""
        return sum(verdict.success is not None or verdict.invalid for verdict in self.judges.values())

    def completing_line(self, judges: int) -> int:
        """Line of the ledger with which it was complete: its end, or the first word of the last of its judges."""
        first: dict[str, int] = {}
        for verdict in self.verdicts:
            first.setdefault(verdict.by, verdict.line)
        ended = 0 if self.ended is None else self.ended.n
        return max([ended, *sorted(first.values())[:judges]])


@dataclass(frozen=True)
class Progress:
    """Progress of a start.

    Attributes:
        valid: the attempt that counts, by policy.
        next_policy: policy that runs next; None if all have run, or the start was given up.
        done: whether every policy has a run that counts.
        given_up: why the start was given up; empty if it was not.
        repeats: why runs were repeated, in order.
        left: runs of a start that was given up which would have counted, by policy.
    """

    valid: dict[str, Attempt]
    next_policy: str | None
    done: bool
    given_up: str
    repeats: tuple[str, ...]
    left: dict[str, Attempt] = field(default_factory=dict)


class State:
    """State after the lines of a ledger. Raises ``ConfigError``: a line has not the fields of its kind."""

    def __init__(self, plan: Plan, entries: Iterable[Entry]) -> None:
        self.plan = plan
        self.starts: tuple[Start, ...] = ()
        self.rules = 1
        self.attempts: dict[str, Attempt] = {}
        self.by_start: dict[int, list[Attempt]] = {}
        self.asks: dict[int, Entry] = {}
        self.last_decision: Entry | None = None
        self.closed: Entry | None = None
        self.unblinded: Entry | None = None
        self._progress: dict[int, Progress] = {}
        for entry in entries:
            self.add(entry)

    def add(self, entry: Entry) -> None:
        """Take in the next line."""
        handler = getattr(self, f"_on_{entry.kind}", None)
        if handler is None:
            return
        try:
            handler(entry)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ConfigError(
                f"line {entry.n + 1} of the ledger, {entry.kind!r}, is malformed: {error!r}",
                "restore the ledger as it was written",
            ) from error

    def progress(self, number: int) -> Progress:
        """Progress of a start."""
        if number not in self._progress:
            self._progress[number] = _fold(self.plan, self.starts[number], self.by_start.get(number, ()), self.rules)
        return self._progress[number]

    def next_run(self, robot: int) -> tuple[Start, str] | None:
        """The start and the policy that a robot runs next; None if there is none for it.

        All runs of a start are of the robot that began with it.
        """
        for start in self.starts:
            attempts = self.by_start.get(start.number, ())
            if attempts and attempts[0].robot != robot:
                continue
            policy = self.progress(start.number).next_policy
            if policy is not None:
                return start, policy
        return None

    def attempt_name(self, start: Start, policy: str) -> str:
        """Name of the next attempt."""
        tries = sum(attempt.policy == policy for attempt in self.by_start.get(start.number, ()))
        return f"{start.number:04d}-{policy}-{tries + 1}"

    @property
    def unfinished(self) -> list[Attempt]:
        """Attempts without an end in the ledger."""
        return [attempt for attempt in self.attempts.values() if attempt.ended is None]

    @property
    def to_judge(self) -> list[Attempt]:
        """Attempts that count and lack a judge."""
        wanted = self.plan.judging.judges
        valid = (attempt for number in sorted(self.by_start) for attempt in self.progress(number).valid.values())
        return [attempt for attempt in valid if attempt.judged < wanted]

    @property
    def finished(self) -> list[tuple[int, Progress]]:
        """Starts that count and are judged, with their numbers, in the order in which that came about."""
        wanted = self.plan.judging.judges

        def line(start: tuple[int, Progress]) -> int:
            return max(attempt.completing_line(wanted) for attempt in start[1].valid.values())

        starts = [(number, self.progress(number)) for number in self.by_start]
        return sorted((start for start in starts if start[1].done and self.is_judged(start[1])), key=line)

    @property
    def given_up(self) -> list[int]:
        """Numbers of the starts that were given up."""
        return [number for number in sorted(self.by_start) if self.progress(number).given_up]

    def is_judged(self, progress: Progress) -> bool:
        """Whether every run of a start that counts has its judges."""
        return all(attempt.judged >= self.plan.judging.judges for attempt in progress.valid.values())

    @property
    def consumptions(self) -> list[float]:
        """Charge that each run took, with the way to its start, parts of 1, where it is known."""
        taken: list[float] = []
        last: dict[int, float] = {}
        for attempt in self.attempts.values():
            facts = attempt.facts
            if facts is None or facts.battery is None or facts.battery_end is None:
                continue
            # Less than the last run's end where the robot was charged since.
            before = max(facts.battery, last.get(attempt.robot, 0.0))
            taken.append(max(0.0, before - facts.battery_end))
            last[attempt.robot] = facts.battery_end
        return taken

    def _on_plan(self, entry: Entry) -> None:
        episodes = [EpisodeName(n, id_, scene, key) for n, (id_, scene, key) in enumerate(entry["episodes"])]
        self.starts = schedule(self.plan, episodes)
        self.rules = entry.get("rules", 1)

    def _on_begun(self, entry: Entry) -> None:
        attempt = Attempt(entry["attempt"], entry["start"], entry["policy"], entry["robot"], entry)
        if attempt.name in self.attempts or not 0 <= attempt.start < len(self.starts):
            raise ValueError(attempt.name)
        self.attempts[attempt.name] = attempt
        self.by_start.setdefault(attempt.start, []).append(attempt)
        self._progress.pop(attempt.start, None)

    def _on_ended(self, entry: Entry) -> None:
        attempt = self._attempt(entry)
        if attempt.ended is not None:
            raise ValueError(f"{attempt.name} ended twice")
        attempt.ended = entry
        attempt.facts = Facts.of(entry["facts"], f"line {entry.n + 1} of the ledger")

    def _on_event(self, entry: Entry) -> None:
        self._attempt(entry).events.append(entry["what"])
        self._on_note(entry)

    def _on_note(self, entry: Entry) -> None:
        if entry.get("note"):
            self.attempts[entry["attempt"]].remarks.append((entry["by"], entry["note"]))

    def _on_verdict(self, entry: Entry) -> None:
        verdict = LedgerVerdict(entry["by"], entry["success"], entry["invalid"], entry.n)
        self._attempt(entry).verdicts.append(verdict)
        self._on_note(entry)

    def _on_asked(self, entry: Entry) -> None:
        self.asks[entry.n] = entry

    def _on_answered(self, entry: Entry) -> None:
        self.asks.pop(entry["ask"], None)

    def _on_decision(self, entry: Entry) -> None:
        self.last_decision = entry

    def _on_closed(self, entry: Entry) -> None:
        self.closed = entry

    def _on_unblinded(self, entry: Entry) -> None:
        self.unblinded = entry

    def _attempt(self, entry: Entry) -> Attempt:
        attempt = self.attempts[entry["attempt"]]
        self._progress.pop(attempt.start, None)
        return attempt


def mismatch(plan: Plan, runs: Sequence[Facts]) -> str:
    """The first condition that differs by more than the plan allows; empty if none does.

    What a log does not tell (charge, brightness, measured start) is not compared; the map always is.
    """
    limits = plan.pairs
    for a, b in combinations(runs, 2):
        if a.map != b.map:
            return "the map is another version"
        if a.battery is not None and b.battery is not None and abs(a.battery - b.battery) > limits.battery:
            return f"the charges differ by {100 * abs(a.battery - b.battery):.0f} %"
        if a.light is not None and b.light is not None and _ratio(a.light, b.light) > limits.light:
            return f"the first images differ by {100 * _ratio(a.light, b.light):.0f} % in brightness"
        if a.x_m is not None and a.y_m is not None and b.x_m is not None and b.y_m is not None:
            apart_m = math.hypot(a.x_m - b.x_m, a.y_m - b.y_m)
            if apart_m > limits.apart_m:
                return f"the starts are {100 * apart_m:.0f} cm apart"
    return ""


def _ratio(a: float, b: float) -> float:
    """The brighter one over the darker one, less 1; images are never quite black."""
    low, high = sorted((max(a, 1 / 255), max(b, 1 / 255)))
    return high / low - 1


def _fold(plan: Plan, start: Start, attempts: Sequence[Attempt], rules: int) -> Progress:
    """Apply the rules of repetition to the attempts from a start, in order."""
    valid: dict[str, Attempt] = {}
    tries: dict[str, int] = {}
    repeats: list[str] = []
    rounds = 1
    for attempt in attempts:
        if attempt.facts is None or attempt.ended is None:
            return Progress(valid, None, False, "", tuple(repeats))
        reason = plan.counting.repeated(attempt.kinds)
        if reason:
            repeats.append(f"{attempt.name}: {reason}")
            if rules == 1 and attempt.ended["recovered"]:  # older campaigns: their end is no try of the policy
                continue
            tries[attempt.policy] = tries.get(attempt.policy, 0) + 1
            if tries[attempt.policy] >= plan.limits.tries * rounds:
                why = f"{attempt.policy} had no run that counts in {plan.limits.tries}"
                return Progress({}, None, False, why, tuple(repeats), valid)
            continue
        valid[attempt.policy] = attempt
        if len(valid) == len(start.policies):
            difference = mismatch(plan, [counted.facts for counted in valid.values() if counted.facts is not None])
            if difference:
                repeats.append(f"start {start.number}: {difference}")
                if rounds == plan.pairs.rounds:
                    return Progress({}, None, False, f"{difference}, {rounds} times", tuple(repeats), {})
                rounds += 1
                valid = {}
    missing = [policy for policy in start.policies if policy not in valid]
    return Progress(valid, missing[0] if missing else None, not missing, "", tuple(repeats))


def stored_plan(entries: Sequence[Entry]) -> Plan:
    """The plan in a ledger's first line. Raises ``ConfigError``."""
    if not entries or entries[0].kind != "plan":
        raise ConfigError("the ledger does not begin with a plan", "restore it as it was written")
    document: Any = entries[0].get("plan")
    return config.parse(document, Plan, "the plan in the ledger", recorded=True)


def read_state(entries: Sequence[Entry]) -> State:
    """The state after a ledger that was read, whoever wrote it: each line is checked by the schema of its kind.

    Raises:
        ConfigError: a line is not of its kind, or does not fit the lines before it.
    """
    for entry in entries:
        check_line(entry)
    return State(stored_plan(entries), entries)
