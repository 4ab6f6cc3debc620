"""Messages between a campaign and people: calls for help, and what people say, until it is in the ledger.

A call goes to a callback, a desktop notification and an HTTP hook. What people and other programs say is a file per
message in the campaign's inbox. The process that runs the campaign takes the messages; if none does, the one that has
put them there.
"""

import json
import os
import secrets
import shutil
import subprocess
import threading
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Union

from pydantic import Field

from robot_runtime.campaign.counting import Kind
from robot_runtime.campaign.ledger import LOGS, Entry, Ledger, is_running, read_ledger
from robot_runtime.campaign.lines import RULES
from robot_runtime.campaign.plan import JUDGES, Help
from robot_runtime.campaign.state import Attempt, State, read_state
from robot_runtime.common import config
from robot_runtime.common.clock import unix_now_ns
from robot_runtime.errors import ConfigError, RuntimeFault, writing
from robot_runtime.recording.log_files import LEDGER_FILE, sha256_of
from robot_runtime.recording.verdict_files import add_verdict, verdicts_path
from robot_runtime.scenes.objects import ObjectPose
from robot_runtime.verdicts import EpisodeVerdict

INBOX = "inbox"
Append = Callable[..., Entry]
Text = Annotated[str, Field(max_length=2000)]
Name = Annotated[str, Field(min_length=1, max_length=100)]
TIMEOUT_S = 5.0
"""Time limit of a notification."""


class Notifier:
    """Sender of messages; none of them delays the campaign."""

    def __init__(self, settings: Help, tell: Callable[[str], None]) -> None:
        self._settings, self._tell = settings, tell

    def ask(self, text: str, facts: Mapping[str, Any]) -> None:
        """Ask for a person."""
        self._tell(text)
        if self._settings.desktop:
            self._start(self._notify, text)
        self.post({"asks": text, **facts})

    def post(self, document: Mapping[str, Any]) -> None:
        """Post to the hook, if the plan names one."""
        if self._settings.hook is not None:
            self._start(self._post, json.dumps(document))

    def _start(self, send: Callable[[str], None], text: str) -> None:
        threading.Thread(target=send, args=(text,), name="notification", daemon=True).start()

    def _notify(self, text: str) -> None:
        program = shutil.which("notify-send")
        if program is None:
            self._tell("no desktop notification: notify-send is not installed")
            return
        command = [program, "robot-runtime campaign", text]
        try:
            subprocess.run(command, timeout=TIMEOUT_S, check=True, capture_output=True)
        except (OSError, subprocess.SubprocessError) as error:
            self._tell(f"no desktop notification: {error}")

    def _post(self, text: str) -> None:
        assert self._settings.hook is not None
        request = urllib.request.Request(self._settings.hook, text.encode(), {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S):
                pass
        except OSError as error:
            self._tell(f"{self._settings.hook}: not reached: {error}")


@dataclass(frozen=True)
class VerdictMessage(config.Strict):
    """A person's verdict on an attempt; ``None`` where the person does not say."""

    kind: Literal["verdict"]
    attempt: Name
    by: Name
    success: bool | None = None
    visible: bool | None = None
    invalid: bool = False
    note: Text = ""

    def __post_init__(self) -> None:
        if self.success is None and self.visible is None and not self.invalid:
            raise ValueError("a verdict says success or not, visible or not, or invalid")


@dataclass(frozen=True)
class EventMessage(config.Strict):
    """An intervention during an attempt that the robot did not notice itself."""

    kind: Literal["event"]
    attempt: Name
    by: Name
    what: Kind
    note: Text = ""


@dataclass(frozen=True)
class NoteMessage(config.Strict):
    """A remark on an attempt; it counts for nothing."""

    kind: Literal["note"]
    attempt: Name
    by: Name
    note: Annotated[str, Field(min_length=1, max_length=2000)]


@dataclass(frozen=True)
class AnswerMessage(config.Strict):
    """An answer: the thing that was asked for is done."""

    kind: Literal["answer"]
    ask: int
    by: Name


@dataclass(frozen=True)
class EndMessage(config.Strict):
    """Stop after the running episodes; ``run`` resumes later."""

    kind: Literal["end"]
    by: Name
    note: Text = ""


Message = Union[VerdictMessage, EventMessage, NoteMessage, AnswerMessage, EndMessage]  # noqa: UP007 (pydantic)
_KINDS: dict[str, Any] = {
    "verdict": VerdictMessage,
    "event": EventMessage,
    "note": NoteMessage,
    "answer": AnswerMessage,
    "end": EndMessage,
}


def parse_message(document: Any, where: str) -> Message:
    """A message from JSON. Raises ``ConfigError``."""
    kind = _KINDS.get(str(document.get("kind"))) if isinstance(document, Mapping) else None
    if kind is None:
        raise ConfigError(f"{where}: not a message of a campaign", f"give one of the kinds {', '.join(_KINDS)}")
    message: Message = config.parse(document, kind, where)
    return message


def send(folder: Path, document: Mapping[str, Any]) -> Path:
    """Put a message into the inbox; it is complete or not there.

    Raises:
        ConfigError: it is malformed.
        RecordingError: it cannot be written.
    """
    parse_message(document, "the message")
    inbox = folder / INBOX
    path = inbox / f"{unix_now_ns():020d}-{secrets.token_hex(4)}.json"
    part = path.with_suffix(".part")
    with writing(path, "make the folder writable"):
        inbox.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as file:
            file.write(json.dumps(document).encode())
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    return path


def messages(folder: Path) -> list[tuple[Path, Message | ConfigError]]:
    """The messages that wait, the oldest first; for a malformed one, its error."""
    return [(path, _read(path)) for path in sorted((folder / INBOX).glob("*.json"))]


def _read(path: Path) -> Message | ConfigError:
    try:
        return parse_message(config.read_yaml(path), str(path))
    except ConfigError as error:
        return error


def take_messages(ledger: Ledger, state: State, append: Append, tell: Callable[[str], None]) -> Iterator[Entry]:
    """Write each waiting message into the ledger, once, and yield its line.

    A message that does not fit is written down as ``refused_message``, with the reason. A verdict on a run that has not
    ended waits.
    """
    waiting = messages(ledger.folder)
    if not waiting:
        return
    known = {entry.get("message") for entry in ledger.entries}
    for path, message in waiting:
        if isinstance(message, VerdictMessage) and message.attempt in {attempt.name for attempt in state.unfinished}:
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
            _check_event(message, attempt, state)
            return append("event", what=message.what, **stated)
        return _verdict(message, attempt, name, folder, append)
    return append("end", by=message.by, note=message.note, message=name)


def _check_event(message: EventMessage, attempt: Attempt, state: State) -> None:
    """Who knows a run's result must not decide whether it counts. Raises ``ConfigError``."""
    repeats = state.plan.counting.repeated([message.what]) is not None
    if repeats and attempt.ended is not None and state.rules >= RULES:
        raise ConfigError(
            f"{attempt.name} has ended, and {message.what} would make it be run again: its result is known",
            "report such an event while the run lasts; afterwards a judge may call the run invalid, or add a note",
        )


def _verdict(message: VerdictMessage, attempt: Attempt, name: str, folder: Path, append: Append) -> Entry:
    log = None if attempt.ended is None else attempt.ended["log"]
    if log is None:
        raise ConfigError(f"attempt {attempt.name} has no log to judge", "judge a run that has ended")
    others = {by for by, said in attempt.judges.items() if said.success is not None} - {message.by}
    if len(others) >= JUDGES:
        names = ", ".join(sorted(others))
        raise ConfigError(f"attempt {attempt.name} has its {JUDGES} judges: {names}", "ask one of them")
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
        state = read_state(ledger.entries)
        if state.plan.signer:
            return ["it waits for the next `campaign run`, to be signed"]

        def append(kind: str, **content: object) -> Entry:
            entry = ledger.append(kind, **content)
            state.add(entry)
            return entry

        taken = list(take_messages(ledger, state, append, lambda _: None))
    return [line["why"] if line.kind == "refused_message" else f"written down as line {line.n + 1}" for line in taken]


def run_of(log: Path) -> tuple[Path, str] | None:
    """Folder of the campaign and name of the attempt with this log; None if the log belongs to no campaign."""
    attempt = log.resolve().parent
    folder = attempt.parent.parent
    return (folder, attempt.name) if attempt.parent.name == LOGS and (folder / LEDGER_FILE).is_file() else None


def submit(folder: Path, document: Mapping[str, Any]) -> str:
    """Enter a message in a campaign's ledger, through the process that runs the campaign if there is one.

    Returns:
        What became of it, in one line.

    Raises:
        ConfigError: there is no campaign, or the message is malformed.
        RecordingError: it cannot be written, or the ledger was altered.
    """
    read_ledger(folder)
    send(folder, document)
    if is_running(folder):
        return "handed to the process that runs the campaign"
    return "; ".join(take_alone(folder)) or "it waits until the run has ended"


def give_verdict(
    log: Path,
    who: str,
    visible: bool | None = None,
    objects: Mapping[str, ObjectPose] | None = None,
    note: str = "",
    judgment: EpisodeVerdict | None = None,
    intervention: Literal["help", "takeover"] | None = None,
) -> str:
    """Add a person's verdict on a run: to the ledger if it belongs to a campaign, else to the log's file of verdicts.

    Args:
        log: path of the run's log.
        who: name of the person.
        visible: whether the goal object was in view where the robot stopped; None if the person does not say.
        objects: poses of objects in map at the end; not in a campaign.
        note: free text.
        judgment: verdict on the episode; None if the person does not say.
        intervention: intervention by which a person took part in the run; None if the person does not say.

    Returns:
        What became of it, in one line.

    Raises:
        ConfigError: the verdict is empty, or does not fit the task or the campaign.
        RecordingError: there is no log, or the verdict cannot be written.
    """
    run = run_of(log)
    if run is None:
        verdicts = add_verdict(log, who, visible, dict(objects or {}), note, judgment, bool(intervention) or None)
        count = len(verdicts.statements)
        return f"{verdicts_path(log)}: {count} verdict{'' if count == 1 else 's'}"
    folder, attempt = run
    if objects:
        raise ConfigError(
            f"{log}: belongs to a campaign, and campaigns do not record poses of objects", "judge the run"
        )
    said: dict[str, Any] = {"attempt": attempt, "by": who, "note": note}
    if intervention is not None:
        return submit(folder, {"kind": "event", "what": intervention, **said})
    if judgment is None and visible is None:
        return submit(folder, {"kind": "note", **said})
    success = None if judgment not in ("success", "fail") else judgment == "success"
    verdict = {"success": success, "visible": visible, "invalid": judgment == "invalid"}
    return submit(folder, {"kind": "verdict", **verdict, **said})
