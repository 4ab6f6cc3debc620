"""Server of the operator's page: stop, heartbeat and commands, in threads of the robot's process.

It sends no pictures and shares nothing with the server that does. One page is in control at a time; while it is,
silence of ``SILENCE_S``, a closed connection or a page that says that it is hidden stops the robot. Every page with the
token may stop it.
"""

import hmac
import json
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode
from websockets.sync.server import ServerConnection

from robot_runtime.common.accepting import AcceptLimits
from robot_runtime.common.websocket_server import WebSocketServer
from robot_runtime.console.protocol import MAX_BYTES, BadMessage, Message, parse_message
from robot_runtime.errors import ConfigError, RuntimeFault
from robot_runtime.estop.requests import Stops
from robot_runtime.hal import Halt

SILENCE_S = 0.5
"""Silence of the page in control after which the robot is stopped; the page sends five times in that time and more."""

HELLO_S = 5.0
"""Time for the handshakes and the first message."""

IDLE_S = 3600.0
MAX_CONNECTIONS = 64
MAX_BAD_MESSAGES = 20

_GRACE_S = 0.05
"""Part of ``SILENCE_S`` that is left for what has arrived while another thread had the processor."""

_NUMBERS = count()

Commands = Callable[[Message], str]
"""Carries out a command of the page in control and returns what was done; raises ``RuntimeFault``."""


class ControlServer:
    """A server that runs from construction until :meth:`close`.

    Args:
        address: host and port; port 0 for any free one.
        token: token that pages must show.
        stops: emergency stop of the robot.
        command: function for what the page in control asks beyond stops, and for verdicts and answers of any page.
        on_operator: called with the pseudonym of the person in control, or None.
        encryption: None for none.
        silence_s: see ``SILENCE_S``.
        tell: callback that gets a line when pages cannot be accepted.

    Attributes:
        operator: pseudonym of the person in control; None if there is none.

    Raises:
        ConfigError: the address is not available.
    """

    def __init__(
        self,
        address: tuple[str, int],
        token: str,
        stops: Stops,
        command: Commands,
        on_operator: Callable[[str | None], None],
        encryption: ssl.SSLContext | None = None,
        silence_s: float = SILENCE_S,
        tell: Callable[[str], object] = lambda _: None,
    ) -> None:
        self._token, self._stops, self._command, self._on_operator = token.encode(), stops, command, on_operator
        self._silence_s = silence_s
        self._lock = threading.Lock()
        self._page: int | None = None
        self.operator: str | None = None
        try:
            self._server = WebSocketServer(
                self._serve,
                address,
                AcceptLimits(known=MAX_CONNECTIONS, greet_s=HELLO_S),
                tell,
                "console control",
                encryption,
                max_size=MAX_BYTES,
                ping_interval=None,
            )
        except OSError as error:
            raise ConfigError(
                f"the console cannot listen on {address[0]}:{address[1]}: {error.strerror}",
                "choose another --console; it needs that port and the next one",
            ) from error

    @property
    def port(self) -> int:
        """The port that the server listens on."""
        return self._server.port

    def close(self) -> None:
        """Accept no more connections. No person is in control afterwards; that does not stop the robot."""
        with self._lock:
            self._page = self.operator = None
        self._server.close()

    # --- one connection ---------------------------------------------------------------------------------------------

    def _serve(self, connection: ServerConnection) -> None:
        page = next(_NUMBERS)
        try:
            if self._admit(connection):
                self._answer_all(connection, page)
        except TimeoutError:
            connection.close(CloseCode.GOING_AWAY, "silent")
        except ConnectionClosed:
            pass
        finally:
            self._lose(page, "the connection to the operator's page was lost")

    def _admit(self, connection: ServerConnection) -> bool:
        """Whether the first message has the token, and there is a place for the page."""
        try:
            message = parse_message(connection.recv(HELLO_S))
        except BadMessage:
            message = Message("hello")
        if message.do == "hello" and hmac.compare_digest(message.token.encode(), self._token):
            if not self._server.admit(connection):
                return False
            _send(connection, {"kind": "welcome", "operator": self.operator})
            return True
        connection.close(CloseCode.POLICY_VIOLATION, "wrong token")
        return False

    def _answer_all(self, connection: ServerConnection, page: int) -> None:
        bad = 0
        while bad < MAX_BAD_MESSAGES:
            try:
                message = parse_message(self._receive(connection, page))
                answer = self._answer(message, page)
            except RuntimeFault as error:
                bad += isinstance(error, BadMessage)
                answer = {"kind": "refused", "why": error.message, "remedy": error.remedy}
            _send(connection, answer)
        connection.close(CloseCode.POLICY_VIOLATION, "too many messages that are none")

    def _receive(self, connection: ServerConnection, page: int) -> str | bytes:
        for wait_s in (self._silence_s - _GRACE_S, _GRACE_S):
            if self._page == page:
                with suppress(TimeoutError):
                    return connection.recv(wait_s)
        self._lose(page, f"no sign of the operator's page for {self._silence_s:g} s")
        return connection.recv(IDLE_S)

    def _answer(self, message: Message, page: int) -> dict[str, Any]:
        if message.do == "beat":
            return self._beat(message.n, page)
        if message.do == "stop":
            answer = self._stops.stop(message.id, f"by {message.by or 'a page'}")
            took_ms = round(answer.took_ms, 2)
            return {"kind": "stopped", "id": message.id, "done": answer.done, "text": answer.text, "took_ms": took_ms}
        if message.do == "control":
            return self._control(message, page)
        if message.do == "leave":
            self._lose(page, f"the operator's page is {message.why or 'gone'}")
            return self._beat(-1, page)
        if message.do not in ("verdict", "answer") and self._page != page:
            raise ConfigError("another page is in control", "take control first")
        return {"kind": "done", "do": message.do, "text": self._command(message)}

    def _beat(self, n: int, page: int) -> dict[str, Any]:
        """The robot's own state: the page shows this, and never what it asked for."""
        state = self._stops.state()
        return {
            "kind": "beat",
            "n": n,
            "e_stop": None if state is None else state.halt is Halt.E_STOP,
            "speed": None if state is None else [state.velocity.linear_m_s, state.velocity.angular_rad_s],
            "operator": self.operator,
            "yours": self._page == page,
        }

    def _control(self, message: Message, page: int) -> dict[str, Any]:
        with self._lock:
            if message.want and self._page is None:
                if not message.by.strip():
                    raise ConfigError("an operator has a name", "type a name or a pseudonym first")
                self._page, self.operator = page, message.by.strip()
            elif message.want and self._page != page:
                raise ConfigError(f"{self.operator} is in control", "ask that person to give up control")
            elif not message.want and self._page == page:
                self._page = self.operator = None
            operator = self.operator
        self._on_operator(operator)
        return self._beat(-1, page)

    def _lose(self, page: int, reason: str) -> None:
        """Stop the robot if this page was in control, and take control from the page."""
        with self._lock:
            if self._page != page:
                return
            self._page = self.operator = None
        self._stops.stop(f"lost page {page}", reason)
        self._on_operator(None)


def _send(connection: ServerConnection, message: dict[str, Any]) -> None:
    connection.send(json.dumps(message))
