"""HTTP server of ``POST /step`` with a token, within limits of size and time, and of ``GET /ping``.

Python's ``http.server`` suffices for one route and one client, and needs no further package on a robot. The limits
that it lacks are added here: the time of a complete request, the length of a body, and the number of connections.
"""

import base64
import binascii
import hmac
import logging
import select
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any

from robot_runtime.common.accepting import BACKLOG, AcceptLimits, Acceptor
from robot_runtime.errors import ConfigError
from robot_runtime.servers.request_queue import Answer, Refused

MAX_BODY = 64 * 1024
"""Largest body in bytes. An action with all its arguments has a few hundred."""

READ_S = 5.0
"""Seconds for a complete request, from the connection to its last byte, and again for sending the answer."""

MAX_CONNECTIONS = 16

_LOG = logging.getLogger(__name__)

Handle = Callable[[str, bytes, Callable[[], bool]], Answer | None]
"""Function of client, body and whether the client is gone; returns the answer, or None for a client that is gone. May
raise ``Refused``."""


class RequestServer:
    """Server with a thread per connection, from construction until :meth:`close`.

    Args:
        address: host and port; port 0 for any free one.
        token: token of every request, as the password of HTTP's basic authentication or as bearer token.
        handle: called in the connection's thread.
        refusal: converts an error to an answer's body.
        tell: callback that gets a line when connections cannot be accepted.

    Raises:
        ConfigError: the address is not available.
    """

    def __init__(
        self,
        address: tuple[str, int],
        token: str,
        handle: Handle,
        refusal: Callable[[Refused], bytes],
        tell: Callable[[str], object] = _LOG.warning,
    ) -> None:
        self.token = token.encode()
        self.handle = handle
        self.refusal = refusal
        try:
            listening = socket.create_server(address, backlog=BACKLOG)
        except OSError as error:
            raise ConfigError(
                f"cannot listen on {address[0]}:{address[1]}: {error.strerror}",
                "choose one of this machine's IPv4 addresses, and a port that no other program has",
            ) from error
        limits = AcceptLimits(
            waiting=MAX_CONNECTIONS, greeting=MAX_CONNECTIONS, known=MAX_CONNECTIONS, greet_s=2 * READ_S
        )
        self._acceptor = Acceptor(listening, self._serve, limits, tell, "request server")
        self.port = self._acceptor.port

    def admit(self, address: Any) -> bool:
        """Note that a request has the token, and return whether there is a place for it."""
        return self._acceptor.admit(address)

    def close(self) -> None:
        """Accept no more connections. Requests in progress are finished."""
        self._acceptor.stop()

    def _serve(self, connection: socket.socket, address: Any) -> None:
        try:
            _Connection(connection, address, self)  # type: ignore[arg-type]  # which serves it
        except OSError:
            _LOG.debug("%s: connection lost", address, exc_info=True)
        finally:
            with suppress(OSError):  # the client has closed it
                connection.shutdown(socket.SHUT_WR)
            connection.close()


class _Connection(BaseHTTPRequestHandler):
    """One connection, one request."""

    server: RequestServer  # type: ignore[assignment]
    server_version = "robot-runtime"
    sys_version = ""
    timeout = READ_S
    disable_nagle_algorithm = True  # otherwise an answer's last packet waits for the client's acknowledgments

    def setup(self) -> None:
        super().setup()
        self._deadline = threading.Timer(READ_S, self._expire)
        self._deadline.daemon = True
        self._deadline.start()

    def finish(self) -> None:
        self._deadline.cancel()
        super().finish()

    def do_GET(self) -> None:
        if self.path == "/ping":
            self._send(Answer(HTTPStatus.OK, b"PONG"), "text/plain")
        else:
            self._answer(self._refuse_path)

    def do_POST(self) -> None:
        self._answer(self._step if self.path == "/step" else self._refuse_path)

    def log_message(self, format: str, *arguments: Any) -> None:
        _LOG.debug("%s: " + format, self.client_address, *arguments)

    def _answer(self, work: Callable[[], Answer | None]) -> None:
        try:
            answer = work()
        except Refused as refused:
            answer = Answer(refused.status, self.server.refusal(refused))
        if answer is not None:
            self._send(answer, "application/x-msgpack")

    def _step(self) -> Answer | None:
        length = self._length()
        # The body is read before the token is checked: closing a connection with unread bytes can discard the answer.
        body = self.rfile.read(length)
        self._deadline.cancel()
        return self.server.handle(self._client(), body, self._is_gone) if len(body) == length else None

    def _refuse_path(self) -> Answer:
        raise Refused(f"there is no {self.command} {self.path[:100]!r}", "use POST /step", HTTPStatus.NOT_FOUND)

    def _client(self) -> str:
        """Name of the client: its address, and the user name if there is one. Raises ``Refused`` without the token."""
        scheme, _, credentials = self.headers.get("Authorization", "").partition(" ")
        user, shown = b"", credentials.encode("latin-1", "replace")
        if scheme.lower() == "basic":
            try:
                user, _, shown = base64.b64decode(shown, validate=True).partition(b":")
            except binascii.Error:
                shown = b""
        if scheme.lower() not in ("basic", "bearer") or not hmac.compare_digest(shown, self.server.token):
            raise Refused(
                "the request does not have the server's token",
                'give it as password: Controller(host=f"robot-{os.getpid()}:TOKEN@127.0.0.1", ...)',
                HTTPStatus.UNAUTHORIZED,
            )
        if not self.server.admit(self.client_address):
            raise Refused("too many requests at once", "send one at a time", HTTPStatus.SERVICE_UNAVAILABLE)
        return f"{user.decode('utf-8', 'replace')[:50]}@{self.client_address[0]}"

    def _length(self) -> int:
        given = self.headers.get("Content-Length", "")
        if not (given.isascii() and given.isdigit()):
            raise Refused("the request has no length", "send a Content-Length", HTTPStatus.LENGTH_REQUIRED)
        if len(given) > len(str(MAX_BODY)) or int(given) > MAX_BODY:
            raise Refused(
                f"the request is longer than {MAX_BODY} bytes",
                "send one action per request",
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            )
        return int(given)

    def _is_gone(self) -> bool:
        """Whether the client has closed the connection."""
        if not select.select([self.connection], [], [], 0)[0]:
            return False
        try:
            return not self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except OSError:
            return True

    def _send(self, answer: Answer, content_type: str) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def _expire(self) -> None:
        try:
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            _LOG.debug("%s: closed before its time was over", self.client_address)
