"""WebSocket server with a thread per connection, within the limits of :mod:`robot_runtime.common.accepting`."""

import logging
import socket
import ssl
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode
from websockets.sync.server import ServerConnection, serve

from robot_runtime.common.accepting import BACKLOG, AcceptLimits, Acceptor

CLOSE_S = 0.5
"""Time for the goodbyes of a server that ends."""

_LOG = logging.getLogger(__name__)


class WebSocketServer:
    """A server that runs from construction until :meth:`close`.

    Args:
        serve_connection: server of a connection after its handshakes; calls :meth:`admit` once the token was shown.
        address: host and port; port 0 for any free one.
        limits: limits of the connections.
        tell: callback that gets a line when connections cannot be accepted.
        name: name of the server, for threads and messages.
        encryption: TLS settings; None without.
        options: further options of ``websockets.sync.server.serve``.

    Raises:
        OSError: the address is not available.
    """

    def __init__(
        self,
        serve_connection: Callable[[ServerConnection], None],
        address: tuple[str, int],
        limits: AcceptLimits,
        tell: Callable[[str], object],
        name: str,
        encryption: ssl.SSLContext | None = None,
        **options: Any,
    ) -> None:
        self._serve_connection = serve_connection
        self._open: set[ServerConnection] = set()
        _LOG.setLevel(logging.CRITICAL)
        listening = socket.create_server(address, backlog=BACKLOG)
        # The library's handler of an accepted connection; its own loop would end at the first error of the system.
        self._library = serve(
            self._serve,
            sock=listening,
            compression=None,
            open_timeout=limits.greet_s,
            close_timeout=CLOSE_S,
            server_header=None,
            logger=_LOG,
            **options,
        )
        self._acceptor = Acceptor(listening, self._library.handler, limits, tell, name, encryption)
        self.port = self._acceptor.port

    def wait(self, timeout_s: float) -> bool:
        """Wait up to ``timeout_s`` for the end, and return whether connections are still accepted."""
        return self._acceptor.wait(timeout_s)

    def admit(self, connection: ServerConnection) -> bool:
        """Note that a connection has shown the token. One without a place is closed, and False returned."""
        if self._acceptor.admit(connection.remote_address):
            return True
        connection.close(CloseCode.TRY_AGAIN_LATER, "too many connections")
        return False

    def close(self, finish_s: float = CLOSE_S) -> None:
        """Accept no more connections, say goodbye to those that are open, and wait for their threads.

        Args:
            finish_s: time for what is in progress, in seconds.
        """
        self._acceptor.stop()
        going = list(self._open)
        with ThreadPoolExecutor(len(going) + 1) as goodbyes:
            for connection in going:
                goodbyes.submit(connection.close, CloseCode.GOING_AWAY)
        self._acceptor.close(finish_s)
        self._library.serve_forever()  # ends at once, its socket is closed, and frees what it had for its own loop
        self._library.shutdown()

    def _serve(self, connection: ServerConnection) -> None:
        self._open.add(connection)
        try:
            self._serve_connection(connection)
        except ConnectionClosed:
            _LOG.debug("the peer is gone")
        finally:
            self._open.discard(connection)
