"""Messages of the page to the robot: JSON objects, one per WebSocket message, none of it trusted."""

import json
from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from pydantic import Field

from robot_runtime.actions.discrete import Action
from robot_runtime.common import config
from robot_runtime.errors import ConfigError, RuntimeFault
from robot_runtime.verdicts import EpisodeVerdict

MAX_BYTES = 4096

Word = Annotated[str, Field(max_length=64)]
Text = Annotated[str, Field(max_length=2000)]
Share = Annotated[float, Field(ge=-1, le=1, allow_inf_nan=False)]

Kind = Literal[
    "hello",
    "beat",
    "leave",
    "stop",
    "control",
    "release",
    "start",
    "pause",
    "resume",
    "abort",
    "takeover",
    "handback",
    "press",
    "hold",
    "let_go",
    "verdict",
    "answer",
]


class BadMessage(RuntimeFault):
    """A message that is none of the protocol's."""


@dataclass(frozen=True)
class Message(config.Strict):
    """One message; which fields count depends on its kind.

    Attributes:
        do: kind of the message. ``hello`` comes first, with the token.
        token: token of the console.
        id: id of a stop, the same on both ways.
        n: number of a heartbeat; the answer repeats it.
        by: pseudonym of the person.
        want: whether to take or to give up control (``control``).
        why: what happened to the page (``leave``).
        action: action that is pressed or held (``press`` and ``hold``).
        stick: shares of the largest forward and turning velocity, -1 to 1, left positive (``hold``).
        log: log that a verdict is on: its name, as the page got it.
        judgment: judgment of a verdict.
        visible: visibility of a verdict.
        helped: whether a person helped the robot (verdict).
        note: note of a verdict.
        ask: number of the campaign's question (``answer``).
    """

    do: Kind
    token: Word = ""
    id: Word = ""
    n: int = 0
    by: Word = ""
    want: bool = True
    why: Word = ""
    action: Action | None = None
    stick: tuple[Share, Share] | None = None
    log: Annotated[str, Field(max_length=300)] = ""
    judgment: EpisodeVerdict | None = None
    visible: bool | None = None
    helped: bool = False
    note: Text = ""
    ask: int = 0


def parse_message(data: str | bytes) -> Message:
    """Parse what a page sent. Raises ``BadMessage``."""
    remedy = f"send an object with 'do', one of {', '.join(get_args(Kind))}"
    if not isinstance(data, str) or len(data) > MAX_BYTES:
        raise BadMessage(f"a message is JSON text of at most {MAX_BYTES} characters", remedy)
    try:
        return config.parse(json.loads(data), Message, "message")
    except (ValueError, RecursionError) as error:
        raise BadMessage(f"a message is not JSON: {error}", remedy) from error
    except ConfigError as error:
        raise BadMessage(error.message, remedy) from error
