"""Acceptance of TCP connections, within limits that hold before any handshake and before any token.

A stranger is a connection that has not shown its server's token. One thread accepts, and gives a connection a thread of
its own once its first bytes have come, so that a silent one costs a descriptor and nothing else. Where there are too
many strangers, those that have been there longest make room, first those of the address that has most; and the newest
is served first, because in a flood the older ones are the flood's.
"""

import errno
import math
import os
import selectors
import socket
import ssl
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from robot_runtime.common.clock import Stopwatch

GRACE_S = 0.3
"""Time for which a stranger at its handshakes makes no room for another."""

BACKLOG = 1024
"""Connections that the kernel keeps until they are accepted."""

TOLD_EVERY_S = 10.0
"""Least time between two lines about the same trouble."""

_ADDRESS_SHARE = 0.75
"""Share of the strangers' places that one address can have."""

_POLL_S = 0.05
_AT_ONCE = 256
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

Handle = Callable[[socket.socket, Any], object]
"""Function of a connection and its peer's address, called in a thread of the connection; closes the connection."""


@dataclass(frozen=True)
class AcceptLimits:
    """Limits of the connections of a server.

    Attributes:
        waiting: number of strangers that have sent nothing, or wait for their handshakes.
        greeting: number of strangers at their handshakes.
        known: number of connections that have shown the token.
        greet_s: time from a connection's arrival until it must have shown the token, in seconds.
    """

    waiting: int = 128
    greeting: int = 16
    known: int = 64
    greet_s: float = 5.0


@dataclass(eq=False)
class _Visitor:
    connection: socket.socket
    address: Any
    age: Stopwatch = field(default_factory=Stopwatch)
    greeting: Stopwatch = field(default_factory=Stopwatch)

    @property
    def host(self) -> str:
        return str(self.address[0]) if self.address else ""  # a Unix socket's peer has none

    @property
    def gone(self) -> bool:
        return self.connection.fileno() < 0

    def drop(self) -> None:
        """Cut the connection. The thread that serves it finds it closed."""
        with suppress(OSError):  # it is closed already
            self.connection.shutdown(socket.SHUT_RDWR)


class Acceptor:
    """A thread that accepts connections from construction until :meth:`close`, which closes its socket, too."""

    def __init__(
        self,
        listening: socket.socket,
        handle: Handle,
        limits: AcceptLimits,
        tell: Callable[[str], object],
        name: str,
        encryption: ssl.SSLContext | None = None,
    ) -> None:
        self._listening, self._handle, self._limits = listening, handle, limits
        self._tell, self._name, self._encryption = tell, name, encryption
        self._told: dict[str, Stopwatch] = {}
        self._silent: list[_Visitor] = []
        self._ready: list[_Visitor] = []
        self._greeting: list[_Visitor] = []
        self._known: list[_Visitor] = []
        self._threads: set[threading.Thread] = set()
        self._lock, self._ended = threading.Lock(), threading.Event()
        self._selector = selectors.DefaultSelector()
        self._woken, self._wake = os.pipe()
        self._reserve = os.open(os.devnull, os.O_RDONLY)  # lets one connection in where all descriptors are used
        listening.setblocking(False)
        self._selector.register(listening, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._run, name=f"{name}: accept", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return int(self._listening.getsockname()[1])

    def wait(self, timeout_s: float) -> bool:
        """Wait up to ``timeout_s`` for the end, and return whether connections are still accepted."""
        self._thread.join(timeout_s)
        return self._thread.is_alive()

    def admit(self, address: Any) -> bool:
        """Note that a stranger has shown the token; for any thread.

        Returns:
            Whether there is a place among ``AcceptLimits.known``; the caller closes a connection without one.
        """
        with self._lock:
            for visitor in self._greeting:
                if visitor.address[:2] == tuple(address[:2]) and not visitor.gone:
                    self._known = [known for known in self._known if not known.gone]
                    if len(self._known) >= self._limits.known:
                        return False
                    self._greeting.remove(visitor)
                    self._known.append(visitor)
                    return True
        return any(visitor.address[:2] == tuple(address[:2]) for visitor in self._known)

    def stop(self) -> None:
        """Accept no more connections, and close those of strangers; known ones go on."""
        if self._ended.is_set():
            return
        self._ended.set()
        os.write(self._wake, b"x")
        self._thread.join()
        self._selector.close()
        self._listening.close()
        for descriptor in (self._woken, self._wake, self._reserve):
            os.close(descriptor)
        for visitor in (*self._silent, *self._ready):
            visitor.connection.close()
        with self._lock:
            for visitor in self._greeting:
                visitor.drop()

    def close(self, finish_s: float = 1.0) -> None:
        """Stop, and return once no connection is served any more, or after about ``finish_s``, then cutting them."""
        self.stop()
        timer = Stopwatch()
        for cut in (False, True):
            for thread in list(self._threads):
                thread.join(max(0.0, finish_s - timer.elapsed_s()) + cut)
            with self._lock:
                for visitor in self._known:
                    visitor.drop()

    # --- the thread -------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._ended.is_set():
            self._turn()

    def _turn(self) -> None:
        try:
            self._accept_and_start()
        except (OSError, RuntimeError, MemoryError) as error:  # such as: no thread can be started
            self._warn(f"{self._name}: connections are accepted again after: {error}")
            self._ended.wait(_POLL_S)

    def _accept_and_start(self) -> None:
        waits = self._silent or self._ready or self._greeting
        events = self._selector.select(_POLL_S if waits else None)
        for visitor in [key.data for key, _ in events if key.data is not None]:
            if _has_bytes(visitor.connection):
                self._make_ready(visitor)
            else:
                self._close(visitor)
        if any(key.fileobj is self._listening for key, _ in events):
            self._accept()
        self._close_overdue()
        while self._ready and self._has_place():
            self._start(self._ready.pop(self._next()))

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                connection, address = self._listening.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno not in _EXHAUSTED:
                    continue  # the peer's: it was gone before it was accepted
                self._make_room(error)
                return
            connection.setblocking(True)  # whatever default another library has set
            visitor = _Visitor(connection, address)
            self._silent.append(visitor)
            self._selector.register(connection, selectors.EVENT_READ, visitor)
            hosts = Counter(one.host for one in (*self._silent, *self._ready))
            if len(self._silent) + len(self._ready) > self._limits.waiting:
                self._close_oldest(hosts.most_common(1)[0][0])
            elif hosts[visitor.host] > _share(self._limits.waiting):
                self._close_oldest(visitor.host)

    def _make_room(self, error: OSError) -> None:
        """Free all descriptors that strangers hold, and take one connection from the kernel's queue."""
        self._warn(f"{self._name}: {error.strerror}: connections that have sent nothing are closed")
        for visitor in (*self._silent, *self._ready):
            self._close(visitor)
        with suppress(OSError):
            os.close(self._reserve)
            with suppress(OSError):
                self._listening.accept()[0].close()
            self._reserve = os.open(os.devnull, os.O_RDONLY)
        self._ended.wait(_POLL_S)

    def _close_oldest(self, host: str) -> None:
        """Close the oldest stranger of an address, one that has sent nothing before one that waits for a place."""
        for visitor in [one for one in self._silent if one.host == host]:
            if not _has_bytes(visitor.connection):
                self._close(visitor)
                return
            self._make_ready(visitor)  # its bytes came in this turn
        self._close(next(one for one in self._ready if one.host == host))

    def _make_ready(self, visitor: _Visitor) -> None:
        self._selector.unregister(visitor.connection)
        self._silent.remove(visitor)
        self._ready.append(visitor)

    def _close_overdue(self) -> None:
        limit_s = self._limits.greet_s
        for visitor in [one for one in (*self._silent, *self._ready) if one.age.elapsed_s() > limit_s]:
            self._close(visitor)
        with self._lock:
            for visitor in self._greeting:
                if visitor.age.elapsed_s() > limit_s:
                    visitor.drop()
            self._greeting = [one for one in self._greeting if not one.gone and one.age.elapsed_s() <= limit_s]

    def _close(self, visitor: _Visitor) -> None:
        if visitor in self._silent:
            self._silent.remove(visitor)
            self._selector.unregister(visitor.connection)
        else:
            self._ready.remove(visitor)
        visitor.connection.close()

    def _next(self) -> int:
        """Place in ``_ready`` of the newest stranger of the address that has fewest at their handshakes."""
        with self._lock:
            hosts = Counter(one.host for one in self._greeting)
        return min(range(len(self._ready)), key=lambda index: (hosts[self._ready[index].host], -index))

    def _has_place(self) -> bool:
        """Whether a stranger may begin its handshakes; one that has had its time makes room."""
        host = self._ready[self._next()].host
        with self._lock:
            own = [one for one in self._greeting if one.host == host]
            if len(own) >= _share(self._limits.greeting):
                rivals: Iterable[_Visitor] = own
            elif len(self._greeting) >= self._limits.greeting:
                rivals = self._greeting
            else:
                return True
            oldest = next(iter(rivals))
            if oldest.greeting.elapsed_s() < GRACE_S:
                return False
            oldest.drop()
            self._greeting.remove(oldest)
            return True

    def _start(self, visitor: _Visitor) -> None:
        visitor.greeting.restart()
        with self._lock:
            self._greeting.append(visitor)
        thread = threading.Thread(target=self._serve, args=(visitor,), name=self._name, daemon=True)
        self._threads.add(thread)
        try:
            thread.start()
        except RuntimeError:
            self._threads.discard(thread)
            visitor.drop()
            visitor.connection.close()
            raise

    def _serve(self, visitor: _Visitor) -> None:
        try:
            if self._encryption is not None:
                plain, limit_s = visitor.connection, self._limits.greet_s
                plain.settimeout(limit_s)
                with self._lock:  # meanwhile the connection looks closed
                    visitor.connection = self._encryption.wrap_socket(
                        plain, server_side=True, do_handshake_on_connect=False
                    )
                visitor.connection.do_handshake()
                visitor.connection.settimeout(None)
            self._handle(visitor.connection, visitor.address)
        except (OSError, ValueError):  # the peer is gone, speaks no TLS, or was cut
            visitor.connection.close()
        finally:
            self._threads.discard(threading.current_thread())

    def _warn(self, line: str) -> None:
        told = self._told.get(line)
        if told is None or told.elapsed_s() >= TOLD_EVERY_S:
            self._told[line] = Stopwatch()
            self._tell(line)


def _has_bytes(connection: socket.socket) -> bool:
    try:
        return bool(connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
    except OSError:  # reset by the peer
        return False


def _share(places: int) -> int:
    return math.ceil(_ADDRESS_SHARE * places)
