"""TLS between a robot and a policy server, with authentication of the server by its certificate."""

from __future__ import annotations

import select
import socket
import ssl
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from robot_runtime.common.clock import Stopwatch
from robot_runtime.errors import ConfigError

_POLL_S = 0.1


class DuplexSocket(ssl.SSLSocket):
    """An encrypted socket that one thread reads while another writes.

    OpenSSL's connection is for one thread at a time: without a lock, about one connection in 200 was lost at its first
    messages (``BAD_RECORD_TYPE``), and Python's own lock, where it has one, lets no thread write while another waits
    for bytes. Here, threads take turns for each call of OpenSSL, and wait for the network outside of their turn.
    Contexts make such sockets by ``sslsocket_class``.
    """

    _turn: threading.Lock | None = None
    """None until the handshake is done, which one thread does alone."""
    _limit_s: float | None = None

    def do_handshake(self, block: bool = False) -> None:  # noqa: D102
        super().do_handshake(block)
        self._limit_s = self.gettimeout()
        self._turn = threading.Lock()
        super().settimeout(0.0)

    def settimeout(self, value: float | None) -> None:  # noqa: D102
        if self._turn is None:
            super().settimeout(value)
        self._limit_s = value

    def read(self, len: int = 1024, buffer: Any = None) -> Any:  # noqa: D102
        return self._in_turn(partial(super().read, len, buffer))

    def send(self, data: Any, flags: int = 0) -> int:  # noqa: D102
        return int(self._in_turn(partial(super().send, data, flags)))

    def shutdown(self, how: int) -> None:
        """Shut the connection down; what arrives is still decrypted, as it is not by the base class."""
        socket.socket.shutdown(self, how)

    def _in_turn(self, call: Callable[[], Any]) -> Any:
        """The answer of a call of OpenSSL, made again when the network is ready."""
        if self._turn is None:
            return call()
        timer = Stopwatch()
        while True:
            try:
                with self._turn:
                    return call()
            except ssl.SSLWantReadError:
                event = select.POLLIN
            except ssl.SSLWantWriteError:
                event = select.POLLOUT
            network = select.poll()
            network.register(self.fileno(), event)
            # In slices, because closing the socket ends no wait.
            left_s = _POLL_S if self._limit_s is None else min(_POLL_S, self._limit_s - timer.elapsed_s())
            if left_s <= 0:
                raise TimeoutError("timed out")
            network.poll(left_s * 1000)


def server_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """The TLS context of a server with ``certificate``.

    Args:
        certificate: PEM, followed by the certificates that signed it.
        key: PEM, its private key, without a passphrase.

    Raises:
        ConfigError: a file cannot be read, is no PEM, or the two do not belong together.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.sslsocket_class = DuplexSocket
    for file in (certificate, key):
        _check_file(file)
    try:
        # With a password at hand, OpenSSL does not ask the terminal for one.
        context.load_cert_chain(certificate, key, password="")
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(
            f"{certificate} and {key}: no certificate and its private key: {error}",
            "give both as PEM, the key without a passphrase",
        ) from error
    return context


def client_context(certificate: str | Path | None) -> ssl.SSLContext:
    """The TLS context of a client that trusts the system's certificates, or only those in a file (PEM).

    Raises:
        ConfigError: the file cannot be read, or has no certificates.
    """
    if certificate is not None:
        _check_file(Path(certificate))
    try:
        context = ssl.create_default_context(cafile=None if certificate is None else str(certificate))
    except ssl.SSLError as error:
        raise ConfigError(
            f"{certificate}: has no certificates: {error}", "give the file that the server's --certificate names"
        ) from error
    context.sslsocket_class = DuplexSocket
    return context


def _check_file(path: Path) -> None:
    try:
        path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}", "check the path and its permissions") from error
