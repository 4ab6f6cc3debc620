"""Inbox of a campaign: messages of people and of other programs, a file each, for the process that has the ledger."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Union

from pydantic import Field

from robot_runtime.campaign.plan import Kind
from robot_runtime.common import config
from robot_runtime.common.clock import unix_now_ns
from robot_runtime.errors import ConfigError, writing

FOLDER = "inbox"
Text = Annotated[str, Field(max_length=2000)]
Name = Annotated[str, Field(min_length=1, max_length=100)]


@dataclass(frozen=True)
class VerdictMessage:
    """A judge's word on an attempt; ``None`` where nothing is said."""

    kind: Literal["verdict"]
    attempt: Name
    by: Name
    success: bool | None = None
    visible: bool | None = None
    invalid: bool = False
    note: Text = ""

    __pydantic_config__ = config.STRICT

    def __post_init__(self) -> None:
        if self.success is None and self.visible is None and not self.invalid:
            raise ValueError("a verdict says success or not, visible or not, or invalid")


@dataclass(frozen=True)
class EventMessage:
    """An intervention during an attempt that the robot did not notice itself."""

    kind: Literal["event"]
    attempt: Name
    by: Name
    what: Kind
    note: Text = ""

    __pydantic_config__ = config.STRICT


@dataclass(frozen=True)
class NoteMessage:
    """A remark on an attempt; it counts for nothing."""

    kind: Literal["note"]
    attempt: Name
    by: Name
    note: Annotated[str, Field(min_length=1, max_length=2000)]

    __pydantic_config__ = config.STRICT


@dataclass(frozen=True)
class AnswerMessage:
    """An answer: the thing that was asked for is done."""

    kind: Literal["answer"]
    ask: int
    by: Name

    __pydantic_config__ = config.STRICT


@dataclass(frozen=True)
class EndMessage:
    """Stop after the running episodes; ``run`` goes on later."""

    kind: Literal["end"]
    by: Name
    note: Text = ""

    __pydantic_config__ = config.STRICT


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
    inbox = folder / FOLDER
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
    return [(path, _read(path)) for path in sorted((folder / FOLDER).glob("*.json"))]


def _read(path: Path) -> Message | ConfigError:
    try:
        return parse_message(config.read_yaml(path), str(path))
    except ConfigError as error:
        return error
