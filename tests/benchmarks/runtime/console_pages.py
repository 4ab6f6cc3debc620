"""Pages of the console's benchmark: an operator and viewers, in a process of their own as a browser is."""

from __future__ import annotations

import json
import os
import socket
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from robot_runtime.common.clock import Stopwatch, SystemClock, seconds_to_ns
from robot_runtime.common.time_slices import ask_for_slices

BEAT_S = 0.1
ANSWER_S = 10.0
PICTURES = 6
"""More than one set of color, depth and map."""


@dataclass(frozen=True)
class Address:
    """Address at which a console listens.

    Attributes:
        page: URL of the page, without its last slash.
        control_port: port of the operator's server on 127.0.0.1.
        token: access token of page and server.
    """

    page: str
    control_port: int
    token: str


def burn(ended: Connection) -> None:
    """Keep a core busy until the other end of a pipe is closed; the target of a process."""
    ask_for_slices(0)  # as other programs, which begin elsewhere
    while not ended.poll():
        for _ in range(100_000):
            pass


def watch(address: Address, count: int, ended: Connection) -> None:
    """Watch with so many viewers until the other end of a pipe is closed; the target of a process.

    Sends a viewer's number when it has got pictures for the second time, so that its live view is known to go on.
    """
    ask_for_slices(0)
    os.nice(19)  # as on other computers: what is measured is the robot's
    with ExitStack() as stack:
        sending = threading.Lock()
        for number in range(count):
            viewer = stack.enter_context(connect(address.page.replace("http", "ws") + "/live", proxy=None))
            viewer.send(address.token)
            threading.Thread(target=_read, args=(viewer, number, ended, sending), daemon=True).start()
        with suppress(EOFError):
            ended.recv()


def _read(viewer: ClientConnection, number: int, ended: Connection, sending: threading.Lock) -> None:
    with suppress(ConnectionClosed):
        for _ in range(PICTURES):
            while not isinstance(viewer.recv(), bytes):
                pass
        with sending:
            ended.send(number)
        while True:
            viewer.recv()


def press_stops(address: Address, pauses_s: list[float], hold_s: float, results: Connection) -> None:
    """Press STOP after each pause, on both ways at once as the page does, and release; the target of a process.

    Sends the host's monotonic times of the presses and, in milliseconds, how long the first answer to each took.
    """
    presses: list[tuple[int, float]] = []
    other_ways: list[threading.Thread] = []
    clock = SystemClock()
    with _operator(address) as connection:
        for number, pause_s in enumerate(pauses_s):
            _drive_for(connection, pause_s)
            press = json.dumps({"id": f"press {number}"}).encode()
            request = urllib.request.Request(
                f"{address.page}/stop", press, {"Authorization": f"Bearer {address.token}"}
            )
            other_way = threading.Thread(target=_post, args=(request,))
            pressed_ns = clock.now_ns()
            other_way.start()
            _ask(connection, do="stop", id=f"press {number}")
            presses.append((pressed_ns, (clock.now_ns() - pressed_ns) / 1e6))
            _beat_for(connection, hold_s)
            _ask(connection, do="release")
            other_ways.append(other_way)
        _ask(connection, do="control", want=False)
    for other_way in other_ways:
        other_way.join()
    results.send(presses)


def be_lost(address: Address, pause_s: float, way: str, results: Connection) -> None:
    """Take control, drive, and be lost as ``silent``, ``hidden``, ``closed`` or ``throttled``; the target of a process.

    Sends the host's monotonic time of the last sign: a heartbeat, the word that the page is hidden, the end of the
    connection.
    """
    clock = SystemClock()
    with _operator(address) as connection:
        _ask(connection, do="release")
        _drive_for(connection, pause_s)
        at_ns = clock.now_ns()
        if way == "hidden":
            _ask(connection, do="leave", why="hidden")
        elif way == "closed":
            connection.socket.shutdown(socket.SHUT_RDWR)
        results.send(at_ns)
        with suppress(EOFError, ConnectionClosed):
            while not results.poll(1.0 if way == "throttled" else None):
                _ask(connection, do="beat")
            results.recv()


@contextmanager
def _operator(address: Address) -> Iterator[ClientConnection]:
    """A page in control."""
    with connect(f"ws://127.0.0.1:{address.control_port}/", proxy=None) as connection:
        _ask(connection, do="hello", token=address.token)
        _ask(connection, do="control", by="bench")
        yield connection


def _beat_for(connection: ClientConnection, duration_s: float) -> None:
    clock = SystemClock()
    until_ns = clock.now_ns() + seconds_to_ns(duration_s)
    while clock.now_ns() < until_ns:
        _ask(connection, do="beat")
        clock.sleep_until(min(until_ns, clock.now_ns() + seconds_to_ns(BEAT_S)))
    _ask(connection, do="beat")


def _drive_for(connection: ClientConnection, duration_s: float) -> None:
    """Heartbeats for so long, and on until the robot moves.

    A busy computer may have held up its loop, or this page until it counted as lost.
    """
    _beat_for(connection, duration_s)
    since = Stopwatch()
    while since.elapsed_s() < ANSWER_S:
        now = _ask(connection, do="beat")
        if any(now["speed"] or ()):
            return
        if now["e_stop"]:
            _ask(connection, do="control", by="bench")
            _ask(connection, do="release")
        SystemClock().sleep(0.01)


def _ask(connection: ClientConnection, **message: object) -> dict[str, Any]:
    connection.send(json.dumps(message))
    answer: dict[str, Any] = json.loads(connection.recv(ANSWER_S))
    return answer


def _post(request: urllib.request.Request) -> None:
    # Whatever becomes of the second way, the first one is measured.
    with suppress(OSError), urllib.request.urlopen(request, timeout=ANSWER_S) as answer:
        answer.read()
