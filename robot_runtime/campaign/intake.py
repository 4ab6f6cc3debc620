"""Intake of the messages in a campaign's inbox into its ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from robot_runtime.campaign.attempts import Attempt
from robot_runtime.campaign.inbox import (
    AnswerMessage,
    EventMessage,
    Message,
    NoteMessage,
    VerdictMessage,
    messages,
)
from robot_runtime.campaign.ledger import Entry, Ledger, sha256_of
from robot_runtime.campaign.sealing import Key, SealedPolicy, check_commitments
from robot_runtime.campaign.state import State, stored_plan
from robot_runtime.common import config
from robot_runtime.errors import ConfigError, RuntimeFault
from robot_runtime.recording.verdict_files import add_verdict, verdicts_path
from robot_runtime.verdicts import EpisodeVerdict

Append = Callable[..., Entry]


def take_messages(ledger: Ledger, state: State, append: Append, tell: Callable[[str], None]) -> Iterator[Entry]:
    """Write each waiting message into the ledger, once, and yield its line.

    A message that does not fit is written down as ``refused_message``, with the reason. A verdict on a run that has not
    ended waits.

    Args:
        ledger: open.
        state: state after the ledger.
        append: adds a line to ledger and state.
        tell: gets the reasons of refused messages.
    """
    waiting = messages(ledger.folder)
    if not waiting:
        return
    known = {entry.get("message") for entry in ledger.entries}
    for path, message in waiting:
        if isinstance(message, VerdictMessage) and message.attempt in {one.name for one in state.unfinished}:
            continue
        if path.stem not in known:
            try:
                if isinstance(message, ConfigError):
                    raise message
                yield _take(message, path.stem, ledger.folder, state, append)
            except RuntimeFault as error:
                tell(error.message)
                yield append("refused_message", message=path.stem, why=error.message)
        path.unlink(missing_ok=True)


def _take(message: Message, name: str, folder: Path, state: State, append: Append) -> Entry:
    if isinstance(message, AnswerMessage):
        if message.ask not in state.asks:
            raise ConfigError(f"nothing is asked under number {message.ask}", "see `robot-runtime campaign status`")
        return append("answered", ask=message.ask, by=message.by, message=name)
    if isinstance(message, (VerdictMessage, EventMessage, NoteMessage)):
        attempt = state.attempts.get(message.attempt)
        if attempt is None:
            raise ConfigError(f"there is no attempt {message.attempt!r}", "see `robot-runtime campaign status`")
        stated = {"attempt": attempt.name, "by": message.by, "note": message.note, "message": name}
        if isinstance(message, NoteMessage):
            return append("note", **stated)
        if state.closed is not None:
            raise ConfigError(
                f"the campaign has ended, {attempt.name} counts as it is", "add a note to the run instead"
            )
        if isinstance(message, EventMessage):
            return append("event", what=message.what, **stated)
        return _verdict(message, attempt, name, folder, append)
    return append("end", by=message.by, note=message.note, message=name)


def _verdict(message: VerdictMessage, attempt: Attempt, name: str, folder: Path, append: Append) -> Entry:
    log = None if attempt.ended is None else attempt.ended["log"]
    if log is None:
        raise ConfigError(f"attempt {attempt.name} has no log to judge", "judge a run that has ended")
    others = {by for by, said in attempt.judges.items() if said.success is not None} - {message.by}
    if len(others) >= 2:
        raise ConfigError(f"attempt {attempt.name} has its two judges: {', '.join(sorted(others))}", "ask one of them")
    judgment: EpisodeVerdict | None = "invalid" if message.invalid else None
    if judgment is None and message.success is not None:
        judgment = "success" if message.success else "fail"
    path = folder / log
    add_verdict(path, message.by, message.visible, note=message.note, judgment=judgment)
    return append(
        "verdict",
        attempt=attempt.name,
        by=message.by,
        success=message.success,
        visible=message.visible,
        invalid=message.invalid,
        note=message.note,
        sha256=sha256_of(verdicts_path(path)),
        message=name,
    )


def take_alone(folder: Path) -> list[str]:
    """Take what waits while no other process has the ledger, and return a line about each message.

    Raises:
        ConfigError: the plan names a signer, whose key only the running campaign has.
        RuntimeFault: as :class:`Ledger`.
    """
    with Ledger(folder) as ledger:
        plan = stored_plan(ledger.entries)
        if plan.signer:
            return ["it waits for the next `campaign run`, to be signed"]
        state = State(plan, ledger.entries)

        def append(kind: str, **content: object) -> Entry:
            entry = ledger.append(kind, **content)
            state.add(entry)
            return entry

        taken = list(take_messages(ledger, state, append, lambda _: None))
    return [one["why"] if one.kind == "refused_message" else f"written down as line {one.n + 1}" for one in taken]


def unblind(folder: Path, key: Key) -> dict[str, SealedPolicy]:
    """Write who is who into a campaign's ledger, and return it.

    Raises:
        ConfigError: the campaign is not blind, has not ended, or is not the key's; or its ledger is signed.
        RuntimeFault: as :class:`Ledger`.
    """
    with Ledger(folder) as ledger:
        plan = stored_plan(ledger.entries)
        state = State(plan, ledger.entries)
        problems = check_commitments(plan, key.policies)
        if problems:
            raise ConfigError(f"{folder}: {problems[0]}", "give the key with which this plan was sealed")
        if state.closed is None:
            raise ConfigError(f"{folder}: the campaign has not ended", "unblind it when it has")
        if state.unblinded is None:
            ledger.append("unblinded", policies={name: config.unparse(one) for name, one in key.policies.items()})
    return key.policies
