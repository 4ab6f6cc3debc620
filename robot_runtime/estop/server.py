"""Server of emergency stops: requests of other processes on this machine to a connected robot.

Every process with a connected robot listens on a socket in Linux's abstract namespace, ``@robot-runtime/PID/NUMBER``,
which needs no folder, leaves no file behind and ends with the process. It takes one line per connection, ``stop`` or
``release``, and answers with one. Everybody on this machine may stop a robot; only the user whose process it is, and
root, may release it. The stop holds in the base's driver, whatever the rest of the process does, until it is released
or the process ends.
"""

from __future__ import annotations

import os
import socket
import struct
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from typing_extensions import Self

from robot_runtime.errors import RuntimeFault
from robot_runtime.estop.requests import Request, carry_out
from robot_runtime.hal import Robot

ANSWER_S = 2.0
"""Time in seconds for a request and its answer; a stop takes milliseconds."""

_PREFIX = "robot-runtime"
_SOCKETS = Path("/proc/net/unix")
_CREDENTIALS = struct.Struct("3i")  # ucred: pid, uid, gid
_NUMBERS = count()
"""Numbers of this process's sockets: it may have several robots, one after the other or at once."""

_MAX_BYTES = 500


def may_release(user: int) -> bool:
    """Whether a user of this machine, by id, may release a robot that this process runs."""
    return user in (0, os.getuid())


class StopServer:
    """Listener for requests to stop a robot; a context.

    Args:
        robot: robot that is connected for as long as the context lasts.
        tell: callback that gets a line about every request that was carried out.
    """

    def __init__(self, robot: Robot, tell: Callable[[str], None]) -> None:
        self._robot = robot
        self._tell = tell
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._thread = threading.Thread(target=self._serve, name="emergency stop", daemon=True)

    def __enter__(self) -> Self:
        self._socket.bind(f"\0{_PREFIX}/{os.getpid()}/{next(_NUMBERS)}")
        self._socket.listen()
        self._socket.settimeout(None)  # rospy gives all new sockets a timeout
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:  # shut down
                return
            with connection:
                connection.settimeout(ANSWER_S)
                try:
                    connection.sendall(self._answer(connection).encode())
                except OSError:  # gone, or silent
                    continue

    def _answer(self, connection: socket.socket) -> str:
        request = connection.recv(_MAX_BYTES).decode(errors="replace").strip()
        _, user, _ = _CREDENTIALS.unpack(
            connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        )
        if request not in ("stop", "release"):
            return "refused: not understood"
        if request == "release" and not may_release(user):
            return f"refused: {self._robot.name} may be released by the user who runs it, or by root"
        try:
            done = carry_out("stop" if request == "stop" else "release", self._robot)
        except RuntimeFault as error:
            return f"refused: {error.message}"
        self._tell(done)
        return done


@dataclass(frozen=True)
class Answer:
    """Answer of a process."""

    process: int
    text: str
    done: bool


def running() -> dict[str, int]:
    """Sockets of connected robots on this machine, each with the id of its process."""
    names = (line.split()[-1] for line in _SOCKETS.read_text(encoding="utf-8", errors="replace").splitlines())
    paths = (name.split("/") for name in names if name.startswith(f"@{_PREFIX}/"))
    return {"\0" + "/".join(parts)[1:]: int(parts[1]) for parts in paths if len(parts) == 3 and parts[1].isdigit()}


def ask(request: Request, processes: Sequence[int] = ()) -> list[Answer]:
    """Send a request to robots of this machine, and return their answers.

    Args:
        request: requested action.
        processes: ids of the processes to ask; all if empty.
    """
    wanted = {address: process for address, process in running().items() if not processes or process in processes}
    return [_ask(request, address, process) for address, process in wanted.items()]


def _ask(request: Request, address: str, process: int) -> Answer:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(ANSWER_S)
        try:
            connection.connect(address)
            connection.sendall(request.encode())
            text = connection.recv(_MAX_BYTES).decode(errors="replace")
        except OSError as error:
            return Answer(process, f"no answer: {error}", done=False)
    return Answer(process, text or "no answer: the process is ending", bool(text) and not text.startswith("refused"))
