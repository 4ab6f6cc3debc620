"""Server of a policy for robots elsewhere, by the protocol of ``robot_runtime.policies.remote``.

One policy, one episode at a time. An episode belongs to the client that began it, until that client closes its
connection properly, begins another episode, or is disconnected for ``HOLD_S``. Until then a robot whose connection
broke can continue its episode, with the policy's state.

Connections are counted from the first byte on, before any handshake, and silent ones are closed: this project's client
connects again for its next request.
"""

import hmac
import logging
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode
from websockets.http11 import Request, Response
from websockets.sync.server import ServerConnection

from robot_runtime.common import config
from robot_runtime.common.accepting import AcceptLimits
from robot_runtime.common.clock import Stopwatch
from robot_runtime.common.closing import Closing
from robot_runtime.common.websocket_server import WebSocketServer
from robot_runtime.errors import ConfigError, LinkLost, PolicyError, RuntimeFault
from robot_runtime.policies.remote import protocol
from robot_runtime.policies.stepping import check_policy, directory_of
from robot_runtime.policy import Policy
from robot_runtime.tasks.task import Task

HOLD_S = 10.0
"""Seconds for which the episode of a disconnected client is reserved."""

MAX_CONNECTIONS = 16

OPEN_S = 5.0
"""Seconds for a connection's handshakes."""

SILENT_S = 60.0
"""Seconds without a request after which a connection without an episode is closed."""

SILENT_EPISODE_S = 600.0
"""The same limit for a connection with an episode: a robot moves, or waits for its operator, between two requests."""

FINISH_S = 30.0
"""Seconds for a request that is in progress when the server is closed."""

_LEAVING_S = 1.0
"""Seconds that a new client waits for a busy policy, because a client that left may not be noticed at once."""

_PING_S = 5.0
_PLAIN = "connection "
_LOG = logging.getLogger(__name__)


@dataclass
class _Episode:
    """The episode that is running.

    Attributes:
        session: the client's id of the episode.
        task: task of the episode.
        last: number of the last answered request, and the answer.
        gone: time since its client disconnected; None while it is connected.
        held_by: ids of the episodes that the last used connection owns.
    """

    session: str
    task: Task
    last: tuple[int, bytes]
    gone: Stopwatch | None = None
    held_by: set[str] | None = None

    def hold(self, own: set[str]) -> None:
        """Assign the episode to a connection."""
        own.add(self.session)
        self.gone, self.held_by = None, own


def check_servable(policy: Policy, task: Task) -> None:
    """Check that a policy fits a task, and that its sensors suffice. Raises ``PolicyError``, or as ``check_policy``."""
    if policy.privileged:
        raise PolicyError(f"policy {policy.name!r} needs the simulator's state", "serve one that needs sensors only")
    check_policy(policy, task)


class PolicyServer(Closing):
    """A server that runs from construction until :meth:`close`.

    Args:
        policy: policy that decides; the caller closes it.
        task: task of clients that name none, such as openpi's.
        address: host and port; port 0 for any free one.
        token: token that clients must send; None for none.
        seed: seed of clients that name none.
        on_error: called with the message of every failed request.
        encryption: TLS settings of ``wss://`` (:mod:`robot_runtime.policies.remote.encryption`); None for ``ws://``.

    Raises:
        OSError: the address is not available.
        PolicyError: the policy needs the simulator's state, and clients cannot send it.
    """

    def __init__(
        self,
        policy: Policy,
        task: Task,
        address: tuple[str, int],
        token: str | None = None,
        seed: int = 0,
        on_error: Callable[[str], None] | None = None,
        encryption: ssl.SSLContext | None = None,
    ) -> None:
        check_servable(policy, task)
        self._policy = policy
        self._task = task
        self._token = token
        self._seed = seed
        self._on_error = on_error or (lambda _: None)
        self._lock = threading.Condition()
        self._episode: _Episode | None = None
        self._about = protocol.pack(
            {
                protocol.EXTENSION: {
                    "protocol": protocol.PROTOCOL,
                    "policy": policy.name,
                    "needs": list(policy.needs),
                    "follows": policy.follows,
                    "declared": policy.declared,
                    "task": None if policy.task is None else config.unparse(policy.task),
                }
            }
        )
        self._server = WebSocketServer(
            self._serve_connection,
            address,
            AcceptLimits(waiting=MAX_CONNECTIONS, greeting=MAX_CONNECTIONS, known=MAX_CONNECTIONS, greet_s=OPEN_S),
            self._on_error,
            "policy server",
            encryption,
            max_size=protocol.MAX_REQUEST_BYTES,
            process_request=self._admit,
            ping_interval=_PING_S,
            ping_timeout=_PING_S,
        )

    @property
    def port(self) -> int:
        """The port that the server listens on."""
        return self._server.port

    def wait(self, timeout_s: float) -> bool:
        """Wait up to ``timeout_s``, and return whether the server still listens."""
        return self._server.wait(timeout_s)

    def close(self) -> None:
        """Accept no more connections. Requests in progress are finished, for up to ``FINISH_S``."""
        self._server.close(FINISH_S)

    # --- connections ------------------------------------------------------------------------------------------------

    def _admit(self, connection: ServerConnection, request: Request) -> Response | None:
        if request.path == "/healthz":
            return connection.respond(HTTPStatus.OK, "OK\n")
        if self._token is None:
            return None
        shown = request.headers.get("Authorization", "").split(" ", 1)[-1]
        if not hmac.compare_digest(shown.encode(), self._token.encode()):
            return connection.respond(HTTPStatus.UNAUTHORIZED, "the token is wrong or missing\n")
        return None

    def _serve_connection(self, connection: ServerConnection) -> None:
        own: set[str] = set()
        properly, limit_s = False, SILENT_S
        try:
            if not self._server.admit(connection):
                return
            connection.send(self._about)
            plain: Task | None = None
            while True:
                limit_s = SILENT_EPISODE_S if own else SILENT_S
                message = protocol.unpack(connection.recv(limit_s))
                if protocol.EXTENSION in message:
                    connection.send(self._answer(message, own))
                else:
                    plain = self._begin_plain(connection, own) if plain is None else plain
                    connection.send(self._decide(message, plain))
        except TimeoutError:
            connection.close(CloseCode.GOING_AWAY, f"no request for {limit_s:g} s")
        except ConnectionClosed as closed:
            properly = closed.rcvd is not None and closed.rcvd.code == CloseCode.NORMAL_CLOSURE
        except RuntimeFault as error:
            # As openpi's server: the error as text, then the end of the connection.
            code = CloseCode.INVALID_DATA if isinstance(error, protocol.ProtocolError) else CloseCode.INTERNAL_ERROR
            self._failed(connection, str(error), code)
            properly = True
        except TypeError as error:
            self._failed(connection, f"the answer cannot be sent: {error}", CloseCode.INTERNAL_ERROR)
        finally:
            self._leave(own, properly)

    def _failed(self, connection: ServerConnection, message: str, code: int) -> None:
        self._on_error(message)
        try:
            connection.send(message)
            connection.close(code, message.splitlines()[0].encode()[:120].decode(errors="ignore"))
        except ConnectionClosed:
            _LOG.debug("the client disconnected before the error was sent")

    # --- our clients ------------------------------------------------------------------------------------------------

    def _answer(self, message: dict[Any, Any], own: set[str]) -> bytes:
        request = message[protocol.EXTENSION]
        if not isinstance(request, dict):
            raise protocol.ProtocolError("a request is not a dictionary", "use robot-runtime's own client")
        kind, session, sequence = (request.get(name) for name in ("type", "session", "sequence"))
        if not isinstance(session, str) or type(sequence) is not int or kind not in ("reset", "act", "overruled"):
            raise protocol.ProtocolError("a request has no type, session or sequence", "use robot-runtime's own client")
        with self._lock:
            episode = self._episode
            if episode is not None and episode.session == session and episode.last[0] == sequence:
                episode.hold(own)
                return episode.last[1]
            try:
                if kind == "reset":
                    content = self._reset(request, session, sequence, own)
                else:
                    episode = self._next(session, sequence, own)
                    content = (
                        self._decided(message, episode.task) if kind == "act" else self._overruled(message, episode)
                    )
                ours: dict[str, Any] = {"sequence": sequence}
            except RuntimeFault as error:
                self._on_error(error.message)
                content = {}
                lost = isinstance(error, LinkLost)
                ours = {"sequence": sequence, "error": {"message": error.message, "remedy": error.remedy, "lost": lost}}
            answer = protocol.pack({**content, protocol.EXTENSION: ours})
            if self._episode is not None and self._episode.session == session:
                self._episode.last = (sequence, answer)
            return answer

    def _reset(self, request: dict[Any, Any], session: str, sequence: int, own: set[str]) -> dict[str, Any]:
        task = config.parse(request.get("task"), Task, "the client's task")
        seed = request.get("seed")
        if type(seed) is not int or seed < 0:
            raise ConfigError(f"the client's seed is {seed!r:.40}", "send an integer >= 0")
        self._begin(session, task, seed, sequence, own)
        return {}

    def _next(self, session: str, sequence: int, own: set[str]) -> _Episode:
        """The episode of a request. Raises ``PolicyError``."""
        episode = self._episode
        if episode is None or episode.session != session:
            raise LinkLost(
                "the episode is unknown: the server was restarted, or has served another robot since",
                "start the episode again",
            )
        if sequence != episode.last[0] + 1:
            raise PolicyError(f"request {sequence} follows {episode.last[0]}", "count up by one per request")
        episode.hold(own)
        return episode

    def _begin(self, session: str, task: Task, seed: int, sequence: int, own: set[str]) -> None:
        if not self._lock.wait_for(lambda: self._is_free_for(own), _LEAVING_S):
            raise LinkLost("the policy is in an episode of another robot", "wait, or start a server per robot")
        check_policy(self._policy, task)
        self._guarded(lambda: self._policy.reset(task, seed), "reset")
        self._episode = _Episode(session, task, (sequence, b""))
        own.clear()
        self._episode.hold(own)

    def _is_free_for(self, own: set[str]) -> bool:
        episode = self._episode
        if episode is None or episode.session in own:
            return True
        return episode.gone is not None and episode.gone.elapsed_s() >= HOLD_S

    def _leave(self, own: set[str], properly: bool) -> None:
        with self._lock:
            self._lock.notify_all()
            episode = self._episode
            # A broken connection may be noticed only after the client has reconnected.
            if episode is not None and episode.held_by is own:
                episode.gone = Stopwatch()
                if properly or episode.session.startswith(_PLAIN):  # which cannot be resumed
                    self._episode = None

    # --- openpi's clients -------------------------------------------------------------------------------------------

    def _begin_plain(self, connection: ServerConnection, own: set[str]) -> Task:
        """Begin the episode of a connection, for clients without sessions."""
        with self._lock:
            self._begin(f"{_PLAIN}{connection.id}", self._task, self._seed, 0, own)
        return self._task

    def _decide(self, message: dict[Any, Any], task: Task) -> bytes:
        with self._lock:
            return protocol.pack(self._decided(message, task))

    # --- the policy -------------------------------------------------------------------------------------------------

    def _decided(self, message: dict[Any, Any], task: Task) -> dict[str, Any]:
        shown = {name: message[name] for name in message if name != protocol.EXTENSION}
        observation = protocol.observation_from_message(shown)
        missing = [name for name in self._policy.needs if name not in observation]
        if missing:
            raise PolicyError(f"the observation has no {', '.join(missing)}", "send every sensor that the policy needs")
        timer = Stopwatch()
        decision = self._guarded(lambda: self._policy.act(observation), "act")
        content = protocol.decision_to_message(decision, task)
        timing = {"infer_ms": timer.elapsed_s() * 1000}
        return {**content, "info": self._policy.info(), "server_timing": timing}

    def _overruled(self, message: dict[Any, Any], episode: _Episode) -> dict[str, Any]:
        decision = protocol.decisions_from_message(message, episode.task, self._policy.name)[0]
        self._guarded(lambda: self._policy.overruled(decision), "overruled")
        return {}

    def _guarded(self, work: Callable[[], Any], what: str) -> Any:
        try:
            with directory_of(self._policy):
                return work()
        except RuntimeFault:
            raise
        except (Exception, SystemExit) as error:
            raise PolicyError(
                f"policy {self._policy.name!r} raised {type(error).__name__} at {what}: {error}", "correct the policy"
            ) from error
