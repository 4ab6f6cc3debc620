"""HTTP server of ``POST /step`` with a token, within limits of size and time, and of ``GET /ping``.

Python's ``http.server`` suffices for one route and one client, and needs no further package on a robot. The limits
that it lacks are added here: the time of a complete request, the length of a body, and the number of connections.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import logging
import select
import socket
import socketserver
import sys
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from typing_extensions import override

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


class RequestServer(socketserver.ThreadingMixIn, HTTPServer):
    """Server with a thread per connection, from construction until :meth:`close`.

    Args:
        address: host and port; port 0 for any free one.
        token: token of every request, as the password of HTTP's basic authentication or as bearer token.
        handle: called in the connection's thread.
        refusal: converts an error to an answer's body.

    Raises:
        ConfigError: the address is not available.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(
        self, address: tuple[str, int], token: str, handle: Handle, refusal: Callable[[Refused], bytes]
    ) -> None:
        self.token = token.encode()
        self.handle = handle
        self.refusal = refusal
        self._slots = threading.BoundedSemaphore(MAX_CONNECTIONS)
        try:
            super().__init__(address, _Connection)
        except OSError as error:
            raise ConfigError(
                f"cannot listen on {address[0]}:{address[1]}: {error.strerror}",
                "choose one of this machine's IPv4 addresses, and a port that no other program has",
            ) from error
        self._thread = threading.Thread(target=self.serve_forever, args=(0.1,), name="request server", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """The port that the server listens on."""
        return int(self.server_address[1])

    def close(self) -> None:
        """Accept no more connections. Requests in progress are finished."""
        self.shutdown()
        self.server_close()
        self._thread.join()

    @override
    def server_bind(self) -> None:
        # HTTPServer's own asks DNS for the host's name; that can take long in a robot's network.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.port

    @override
    def process_request(self, request: Any, client_address: Any) -> None:
        if self._slots.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    @override
    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._slots.release()

    @override
    def handle_error(self, request: Any, client_address: Any) -> None:
        if isinstance(sys.exc_info()[1], OSError):
            _LOG.debug("%s: connection lost", client_address, exc_info=True)
        else:
            _LOG.exception("%s: a request could not be handled", client_address)


class _Connection(BaseHTTPRequestHandler):
    """One connection, one request."""

    server: RequestServer
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
