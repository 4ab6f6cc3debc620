"""Schemas of a campaign's ledger: a line has the fields of its kind, and no others.

A line is read once, here, before anything believes it: the state, and so the runner, the status and the verification.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import Field

from robot_runtime.campaign.counting import Kind
from robot_runtime.campaign.facts import Facts
from robot_runtime.campaign.ledger import LOGS, Entry
from robot_runtime.common import config
from robot_runtime.errors import ConfigError

RULES = 2
"""Rules of repetition of new campaigns. By rules 1, runs that ended with the campaign's process were no tries."""

Number = Annotated[int, Field(ge=0, lt=1 << 53)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Name = Annotated[str, Field(min_length=1, max_length=300)]
Text = Annotated[str, Field(max_length=1 << 16)]
AttemptName = Annotated[str, Field(pattern=r"^\d{4,9}-[A-Za-z0-9_.-]{1,200}-\d{1,6}$")]
Reason = Literal["decided", "undecided", "all_run"]


@dataclass(frozen=True)
class Envelope(config.Strict):
    """The fields of every line: number, time (UTC), seconds since the computer was started, and that start's id."""

    n: Number
    at: str
    up_s: config.NonNegative
    boot: Text
    kind: Name
    chain: Sha256
    signature: Text = ""

    def __post_init__(self) -> None:
        if datetime.fromisoformat(self.at).tzinfo is None:
            raise ValueError("the time has no time zone")


@dataclass(frozen=True)
class PlanLine(config.Strict):
    """The first line."""

    plan: dict[str, Any]
    plan_sha256: Text
    episodes: list[tuple[Text, Text, Text]]
    episodes_sha256: Text = ""
    software: dict[str, Any] = field(default_factory=dict)
    contents: dict[str, Any] | None = None
    rules: Annotated[int, Field(ge=1, le=RULES)] = 1


@dataclass(frozen=True)
class SessionLine(config.Strict):
    """The campaign's process begins."""

    provenance: dict[str, Any]


@dataclass(frozen=True)
class BegunLine(config.Strict):
    """A run begins."""

    attempt: AttemptName
    start: Number
    policy: Name
    robot: Number
    seed: Number
    episode: Text


@dataclass(frozen=True)
class EndedLine(config.Strict):
    """A run has ended. Without a log nothing is known of it: it was killed."""

    attempt: AttemptName
    log: Text | None
    sha256: Sha256 | None
    facts: Facts
    recovered: bool
    refused: bool = False
    error: Text | None = None

    def __post_init__(self) -> None:
        if (self.log is None) != (self.sha256 is None):
            raise ValueError("a log and its hash belong together")
        if self.log is None and replace(self.facts, detail="") != Facts(None, "", "killed"):
            raise ValueError("a run without a log can only have been killed, and has no facts")
        parts = () if self.log is None else PurePosixPath(self.log).parts
        if self.log is not None and (
            parts[:-1] != (LOGS, self.attempt) or not self.log.endswith(".mcap") or not self.log.isprintable()
        ):
            raise ValueError(f"the log of {self.attempt} is not in its folder")


@dataclass(frozen=True)
class EventLine(config.Strict):
    """A person reports an intervention."""

    attempt: AttemptName
    what: Kind
    by: Name
    note: Text = ""
    message: Text = ""


@dataclass(frozen=True)
class NoteLine(config.Strict):
    """A person's remark on a run."""

    attempt: AttemptName
    by: Name
    note: Text
    message: Text = ""


@dataclass(frozen=True)
class VerdictLine(config.Strict):
    """A person's verdict on a run, and the hash of the file that holds it."""

    attempt: AttemptName
    by: Name
    success: bool | None
    invalid: bool
    sha256: Sha256
    visible: bool | None = None
    note: Text = ""
    message: Text = ""


@dataclass(frozen=True)
class AskedLine(config.Strict):
    """A person is asked for something."""

    robot: Number
    text: Text
    what: Text


@dataclass(frozen=True)
class AnsweredLine(config.Strict):
    """What was asked for is done."""

    ask: Number
    by: Name
    message: Text = ""


@dataclass(frozen=True)
class DecisionLine(config.Strict):
    """The answers after the starts that are finished."""

    strict: dict[str, Any]
    lenient: dict[str, Any]
    starts: Number


@dataclass(frozen=True)
class PausedLine(config.Strict):
    """A session ends; the campaign does not."""

    why: Text


@dataclass(frozen=True)
class ClosedLine(config.Strict):
    """The campaign has ended."""

    reason: Reason
    answer: dict[str, Any]


@dataclass(frozen=True)
class UnblindedLine(config.Strict):
    """Who is who."""

    policies: dict[str, Any]


@dataclass(frozen=True)
class RecoveredLine(config.Strict):
    """A line that a power failure cut off was removed."""

    bytes: Number
    sha256: Sha256


@dataclass(frozen=True)
class RefusedMessageLine(config.Strict):
    """A message that did not fit."""

    message: Text
    why: Text


@dataclass(frozen=True)
class EndLine(config.Strict):
    """A person ends the session."""

    by: Name
    note: Text = ""
    message: Text = ""


LINES: Mapping[str, type] = {
    "plan": PlanLine,
    "session": SessionLine,
    "begun": BegunLine,
    "ended": EndedLine,
    "event": EventLine,
    "note": NoteLine,
    "verdict": VerdictLine,
    "asked": AskedLine,
    "answered": AnsweredLine,
    "decision": DecisionLine,
    "paused": PausedLine,
    "closed": ClosedLine,
    "unblinded": UnblindedLine,
    "recovered": RecoveredLine,
    "refused_message": RefusedMessageLine,
    "end": EndLine,
}
"""Schema by kind."""

_ENVELOPE = frozenset({"n", "at", "up_s", "boot", "kind", "chain", "signature"})


def check_line(entry: Entry) -> None:
    """Check a line by the schema of its kind. Raises ``ConfigError``, which names line and field."""
    where = f"line {entry.n + 1} of the ledger"
    schema = LINES.get(entry.kind)
    if schema is None:
        raise ConfigError(f"{where}: malformed: there is no kind {entry.kind!r:.80}", "restore it as it was written")
    try:
        for cls, is_envelope in ((Envelope, True), (schema, False)):
            fields = {key: value for key, value in entry.content.items() if (key in _ENVELOPE) is is_envelope}
            config.parse(fields, cls, where, recorded=True)
    except ConfigError as error:
        raise ConfigError(f"{error.message} (malformed {entry.kind!r})", "restore it as it was written") from error
