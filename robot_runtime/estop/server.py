"""Server of emergency stops: requests of other processes on this machine to a connected robot.

Every process with a connected robot listens on a socket in Linux's abstract namespace, ``@robot-runtime/PID/NUMBER``,
which needs no folder, leaves no file behind and ends with the process. It takes one line per connection, ``stop``,
``release`` or ``release any``, and answers with one. Everybody on this machine may stop a robot; only the user whose
process it is, and root, may release it. ``release`` leaves alone what another user has stopped. The stop holds in the
base's driver, whatever the rest of the process does, until it is released or the process ends.

The client needs the standard library alone and is imported in milliseconds: ``robot-runtime stop`` must not wait for
the rest of the program.
"""

from __future__ import annotations

import os
import re
import socket
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from robot_runtime.common.clock import Stopwatch
from robot_runtime.errors import DeviceFault, RuntimeFault

if TYPE_CHECKING:
    from typing_extensions import Self

    from robot_runtime.hal import Robot

ANSWER_S = 2.0
"""Time in seconds for a request and its answer; a stop takes milliseconds."""

Line = Literal["stop", "release", "release any"]

_PREFIX = "robot-runtime"
_SOCKETS = Path("/proc/net/unix")
_PROCESSES = Path("/proc")
_CREDENTIALS = struct.Struct("3i")  # ucred: pid, uid, gid
_NUMBERS = count()
"""Numbers of this process's sockets: it may have several robots, one after the other or at once."""

_MAX_BYTES = 500
_SECRET = re.compile(r"(--[a-z-]*token[= ])\S+")


def may_release(user: int) -> bool:
    """Whether a user of this machine, by id, may release a robot that this process runs."""
    return user in (0, os.getuid())


class StopServer:
    """Listener for requests to stop a robot; a context."""

    def __init__(self, robot: Robot, tell: Callable[[str], None]) -> None:
        self._robot = robot
        self._tell = tell
        self._stopped_by: int | None = None

    def __enter__(self) -> Self:
        from robot_runtime.common.accepting import AcceptLimits, Acceptor

        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listening.bind(f"\0{_PREFIX}/{os.getpid()}/{next(_NUMBERS)}")
        listening.listen()
        self._acceptor = Acceptor(listening, self._serve, AcceptLimits(greet_s=ANSWER_S), self._tell, "emergency stop")
        return self

    def __exit__(self, *_: object) -> None:
        self._acceptor.close()

    def _serve(self, connection: socket.socket, _: object) -> None:
        with connection:
            connection.settimeout(ANSWER_S)
            connection.sendall(self._answer(connection).encode())

    def _answer(self, connection: socket.socket) -> str:
        from robot_runtime.estop.requests import carry_out, state_of
        from robot_runtime.hal import Halt

        request = connection.recv(_MAX_BYTES).decode(errors="replace").strip()
        _, user, _ = _CREDENTIALS.unpack(
            connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        )
        name = self._robot.name
        if request not in ("stop", "release", "release any"):
            return "refused: not understood"
        if request != "stop":
            state = state_of(self._robot)
            if not may_release(user):
                return f"refused: {name} may be released by the user who runs it, or by root"
            if request == "release" and state is not None and state.halt is not Halt.E_STOP:
                return f"{name}: no emergency stop holds the wheels"
            if request == "release" and self._stopped_by not in (None, user):
                return (
                    f"refused: user {self._stopped_by} has stopped {name}; --process {os.getpid()} releases it anyway"
                )
        try:
            done = carry_out("stop" if request == "stop" else "release", self._robot)
        except RuntimeFault as error:
            return f"refused: {error.message}"
        self._stopped_by = user if request == "stop" else None
        self._tell(done)
        return done


class Answer(NamedTuple):
    """Answer of a process.

    Attributes:
        process: id of the process.
        text: description for people.
        done: whether the request was carried out.
        run: command line of the process, without the program's name and without secrets.
    """

    process: int
    text: str
    done: bool
    run: str = ""


def running() -> dict[str, int]:
    """Sockets of connected robots on this machine, each with the id of its process."""
    names = (line.split()[-1] for line in _SOCKETS.read_text(encoding="utf-8", errors="replace").splitlines())
    paths = (name.split("/") for name in names if name.startswith(f"@{_PREFIX}/"))
    return {"\0" + "/".join(parts)[1:]: int(parts[1]) for parts in paths if len(parts) == 3 and parts[1].isdigit()}


def ask(request: Line, processes: Sequence[int] = ()) -> list[Answer]:
    """Send a request to robots of this machine, all at once, and return their answers.

    Args:
        request: requested action.
        processes: ids of the processes to ask. If empty, all; for a release, all of this user.
    """
    wanted = {
        address: process
        for address, process in running().items()
        if (process in processes if processes else request == "stop" or _is_own(process))
    }
    timer = Stopwatch()
    asked = [(process, *_send(request, address)) for address, process in wanted.items()]
    return [_received(process, connection, error, timer) for process, connection, error in asked]


def stop_everywhere(release: bool, processes: Sequence[int], say: Callable[[str], object]) -> None:
    """Stop robots of this machine, or release them, and say what became of each.

    Args:
        release: whether to release them.
        processes: ids of the processes whose robots are meant; if empty, see :func:`ask`.
        say: callback that gets a line per robot.

    Raises:
        DeviceFault: there is no robot, or not every one has carried it out.
    """
    answers = ask(("release any" if processes else "release") if release else "stop", processes)
    for answer in answers:
        say(f"process {answer.process}: {answer.text} ({answer.run})")
    if not answers:
        raise DeviceFault(
            "no command on this machine runs a robot" if not release else "no command of this user runs a robot",
            "run this where the robot's command runs (the same computer and container), or cut the motors' power",
        )
    if not all(answer.done for answer in answers):
        raise DeviceFault(
            "not every robot carried it out", "cut the motors' power; end the process with Ctrl-C or `kill`"
        )


def _is_own(process: int) -> bool:
    try:
        return os.getuid() in (0, (_PROCESSES / str(process)).stat().st_uid)
    except OSError:  # it has just ended
        return False


def _send(request: str, address: str) -> tuple[socket.socket, OSError | None]:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(ANSWER_S)
    try:
        connection.connect(address)
        connection.sendall(request.encode())
    except OSError as error:
        return connection, error
    return connection, None


def _received(process: int, connection: socket.socket, error: OSError | None, timer: Stopwatch) -> Answer:
    text, run = "", _run_of(process)
    with connection:
        try:
            if error is None:
                connection.settimeout(max(0.01, ANSWER_S - timer.elapsed_s()))
                text = connection.recv(_MAX_BYTES).decode(errors="replace")
        except OSError as failure:
            error = failure
    if error is not None:
        return Answer(process, f"no answer: {error}", False, run)
    return Answer(
        process, text or "no answer: the process is ending", bool(text) and not text.startswith("refused"), run
    )


def _run_of(process: int) -> str:
    """Command line of a process from the program's own words on, for people."""
    words: list[str] = []
    with suppress(OSError):  # it has just ended
        words = (_PROCESSES / str(process) / "cmdline").read_bytes().decode(errors="replace").split("\0")
    first = next((index for index, word in enumerate(words) if _PREFIX in word or "robot_runtime" in word), 0)
    return _SECRET.sub(r"\1…", " ".join(words[first + 1 :]).strip())[:200] or "unknown command"
