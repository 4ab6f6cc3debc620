"""Attempts: single runs of a campaign, with what people reported and said of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from robot_runtime.campaign.facts import Facts
from robot_runtime.campaign.ledger import Entry
from robot_runtime.campaign.plan import Counting, Kind


@dataclass(frozen=True)
class Verdict:
    """A judge's word on an attempt; None where nothing was said."""

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
    verdicts: list[Verdict] = field(default_factory=list)
    remarks: list[tuple[str, str]] = field(default_factory=list)

    @property
    def judges(self) -> dict[str, Verdict]:
        """Each judge's last word."""
        return {verdict.by: verdict for verdict in self.verdicts}

    @property
    def kinds(self) -> list[Kind]:
        """Interventions and faults, from the log, the reports and the judges."""
        found: list[Kind] = [] if self.facts is None or self.facts.kind is None else [self.facts.kind]
        found += self.events
        found += ["invalid"] if any(verdict.invalid for verdict in self.judges.values()) else []
        return list(dict.fromkeys(found))

    @property
    def judged(self) -> int:
        """Number of people who have judged its success."""
        return sum(verdict.success is not None or verdict.invalid for verdict in self.judges.values())


def must_repeat(counting: Counting, kinds: Sequence[Kind]) -> str:
    """The first kind for which the strict or the lenient result needs another run; empty for none."""
    for kind in kinds:
        if "repeat" in (counting.rule(kind, "strict"), counting.rule(kind, "lenient")):
            return kind
    return ""


def completing_line(attempt: Attempt, judges: int) -> int:
    """Line of the ledger with which an attempt was complete: its end, or the last judge's first word."""
    first: dict[str, int] = {}
    for verdict in attempt.verdicts:
        first.setdefault(verdict.by, verdict.line)
    ended = 0 if attempt.ended is None else attempt.ended.n
    return max([ended, *sorted(first.values())[:judges]])
