"""Messages between the runtime and the guard process: one JSON list per packet of a Unix socket.

A request is ``[kind, number, now_ns, *arguments]``; ``now_ns`` matters in simulated time only. Its answer is
:class:`Answer`. Besides, the guard sends a :class:`State` for each reading and each change, and a :class:`Trouble` when
the port fails and when it works again.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from drivers.serial_base.wire import Reading
from robot_runtime.errors import RuntimeFault
from robot_runtime.hal.wheels import Halt

MAX_PACKET = 65536

COMMAND, STOP, EMERGENCY_STOP, RELEASE, STEP = "command", "stop", "emergency_stop", "release", "step"
"""Kinds of requests; ``COMMAND`` has linear and angular velocity, ``STEP`` the number of bytes to read."""


class Request(NamedTuple):
    """A request of the runtime."""

    kind: str
    number: int
    now_ns: int
    arguments: tuple[Any, ...] = ()


class Answer(NamedTuple):
    """The answer to a request.

    Attributes:
        number: number of the request.
        linear_m_s: velocity that was let through.
        angular_rad_s: rotation that was let through.
        halt: why nothing was, a value of ``Halt``.
        written: bytes that the guard has written to the port so far.
        error: message and remedy of a refusal; empty for none.
    """

    number: int
    linear_m_s: float
    angular_rad_s: float
    halt: str
    written: int
    error: tuple[str, str] | None = None


class State(NamedTuple):
    """A reading, or a change of what the Guard does.

    Attributes:
        number: number of the state, without gaps.
        reading: newest.
        halt: why the wheels are held, a value of ``Halt``.
        hold: why the base must not move, in one sentence; empty if it may.
        missed: readings lost on the wire so far.
        skipped: bytes so far that belonged to no frame.
        scheduling: scheduling policy of the guard process, ``fifo`` or ``normal``.
        version: version of the firmware; empty if the device does not tell it.
    """

    number: int
    reading: Reading
    halt: Halt
    hold: str = ""
    missed: int = 0
    skipped: int = 0
    scheduling: str = "normal"
    version: str = ""


class Trouble(NamedTuple):
    """Fault of the port or the device; an empty message when it is over."""

    message: str
    remedy: str
    final: bool = False

    @classmethod
    def of(cls, fault: RuntimeFault, final: bool) -> Trouble:
        """The message for an error."""
        return cls(fault.message, fault.remedy, final)


Message = Request | Answer | State | Trouble
_KINDS: dict[str, type] = {"request": Request, "answer": Answer, "state": State, "trouble": Trouble}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def pack(message: Message) -> bytes:
    """Return a message as bytes."""
    return json.dumps([_NAMES[type(message)], *message]).encode()


def unpack(data: bytes) -> Message:
    """Return the message of :func:`pack`."""
    name, *fields = json.loads(data)
    if name == "state":
        number, reading, halt, *rest = fields
        return State(number, Reading(*reading), Halt(halt), *rest)
    if name == "request":
        kind, number, now_ns, arguments = fields
        return Request(kind, number, now_ns, tuple(arguments))
    message: Message = _KINDS[name](*fields)
    return message
