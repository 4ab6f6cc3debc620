"""Strangers at a server: limits before any handshake, floods, and a system without free descriptors."""

from __future__ import annotations

import errno
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from console_page import eventually

from robot_runtime.common import accepting
from robot_runtime.common.accepting import AcceptLimits, Acceptor

PATIENCE_S = 30.0
FOREVER_S = 3600.0
HELLO = b"hello"

Start = Callable[..., Acceptor]


@pytest.fixture
def said() -> list[str]:
    """Lines that servers have told."""
    return []


@pytest.fixture
def start(said: list[str]) -> Iterator[Start]:
    """``start(limits)``: a server that admits who says hello, and answers every line from then on."""
    with ExitStack() as stack:

        def make(limits: AcceptLimits) -> Acceptor:
            def serve(connection: socket.socket, address: tuple[str, int]) -> None:
                with connection:
                    while data := connection.recv(100):
                        if data.startswith(HELLO) and not server.admit(address):
                            return
                        connection.sendall(data)

            listening = socket.create_server(("127.0.0.1", 0), backlog=accepting.BACKLOG)
            server = Acceptor(listening, serve, limits, said.append, "test")
            stack.callback(server.close)
            return server

        yield make


@pytest.fixture
def come() -> Iterator[Callable[[Acceptor], socket.socket]]:
    """``come(server)``: a connection that has sent nothing yet."""
    with ExitStack() as stack:
        yield lambda server: stack.enter_context(
            socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S)
        )


def is_served(connection: socket.socket, line: bytes = HELLO) -> bool:
    connection.sendall(line)
    return connection.recv(100) == line


def is_closed(connection: socket.socket) -> bool:
    """True once it is closed; raises ``TimeoutError`` if it never is."""
    try:
        while connection.recv(100):
            pass
    except ConnectionResetError:
        pass
    return True


def is_closed_now(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        while connection.recv(100):
            pass
    except BlockingIOError:
        return False
    except ConnectionResetError:
        pass
    return True


def test_silent_connections_cost_no_thread_and_the_oldest_make_room(
    start: Start, come: Callable[[Acceptor], socket.socket]
) -> None:
    server = start(AcceptLimits(waiting=8, greet_s=FOREVER_S))
    before = threading.active_count()
    flood = [come(server) for _ in range(50)]
    assert is_served(come(server))
    assert threading.active_count() <= before + 1
    assert all(map(is_closed, flood[:40]))


def test_who_has_sent_something_in_the_turn_of_a_flood_is_not_taken_for_silent(
    start: Start, come: Callable[[Acceptor], socket.socket]
) -> None:
    server = start(AcceptLimits(waiting=8, greet_s=FOREVER_S))
    for _ in range(20):
        operator = come(server)
        operator.sendall(HELLO)
        for _ in range(20):
            come(server)
        assert operator.recv(100) == HELLO


def test_strangers_in_their_handshakes_make_room_and_who_has_shown_the_token_stays(
    monkeypatch: pytest.MonkeyPatch, start: Start, come: Callable[[Acceptor], socket.socket]
) -> None:
    monkeypatch.setattr(accepting, "GRACE_S", 0.0)
    server = start(AcceptLimits(greeting=4, greet_s=FOREVER_S))
    operator = come(server)
    assert is_served(operator)
    flood = [come(server) for _ in range(20)]
    for connection in flood:
        connection.sendall(b"?")
    late = come(server)
    assert is_served(late)
    assert is_served(operator, b"beat")
    eventually(lambda: sum(map(is_closed_now, flood)) >= len(flood) - 4)


def test_a_connection_has_a_time_for_its_token(start: Start, come: Callable[[Acceptor], socket.socket]) -> None:
    server = start(AcceptLimits(greet_s=0.2))
    operator = come(server)
    assert is_served(operator)
    silent, half = come(server), come(server)
    half.sendall(b"hel")
    assert half.recv(100) == b"hel"
    assert is_closed(silent)
    assert is_closed(half)
    assert is_served(operator, b"beat")


def test_places_of_those_who_have_the_token_are_counted_apart(
    start: Start, come: Callable[[Acceptor], socket.socket]
) -> None:
    server = start(AcceptLimits(known=2))
    first, second, third = (come(server) for _ in range(3))
    assert is_served(first)
    assert is_served(second)
    third.sendall(HELLO)
    assert is_closed(third)
    first.close()
    eventually(lambda: is_served(come(server)))


def test_a_system_without_free_descriptors_is_survived_and_told(
    start: Start, come: Callable[[Acceptor], socket.socket], said: list[str]
) -> None:
    server = start(AcceptLimits(greet_s=FOREVER_S))
    silent = come(server)
    assert is_served(come(server))
    listening, failures = server._listening, [errno.EMFILE, errno.ENFILE, errno.ECONNABORTED]

    class Failing:
        """The listening socket of a system that fails three times."""

        def accept(self) -> tuple[socket.socket, tuple[str, int]]:
            if failures:
                raise OSError(failures.pop(0), "too many open files")
            return listening.accept()

        def close(self) -> None:
            listening.close()

    server._listening = Failing()  # type: ignore[assignment]
    server._accept()
    assert is_closed(silent), "strangers make room"
    for _ in range(3):
        server._accept()
    server._listening = listening
    assert is_served(come(server))
    assert ["too many open files" in line for line in said] == [True]


def test_a_thread_that_cannot_be_started_costs_one_connection(
    monkeypatch: pytest.MonkeyPatch, start: Start, come: Callable[[Acceptor], socket.socket], said: list[str]
) -> None:
    server = start(AcceptLimits())
    with monkeypatch.context() as patch:

        def fail(_: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        patch.setattr(threading.Thread, "start", fail)
        refused = come(server)
        refused.sendall(HELLO)
        assert is_closed(refused)
    assert is_served(come(server))
    assert "can't start new thread" in said[0]


def test_the_end_cuts_who_does_not_leave(start: Start, come: Callable[[Acceptor], socket.socket]) -> None:
    server = start(AcceptLimits())
    known, silent = come(server), come(server)
    assert is_served(known)
    assert server.wait(0.0)
    server.close(finish_s=0.0)
    assert not server.wait(0.0)
    assert is_closed(known)
    assert is_closed(silent)
    server.close()
