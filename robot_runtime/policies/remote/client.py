"""Client of a remote policy. The robot stands still while it waits for a decision.

After a lost link the client reconnects for up to ``reconnect_s`` and repeats the request; after that, or when an answer
takes longer than ``time_limit_s``, the episode ends with the wheels at zero, as after every error of a policy.
"""

import os
import socket
import ssl
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from typing_extensions import override
from websockets.exceptions import InvalidHandshake, InvalidMessage, InvalidStatus, InvalidURI, WebSocketException
from websockets.frames import CloseCode
from websockets.sync.client import ClientConnection, connect

from robot_runtime.actions.timed import Decision
from robot_runtime.common import config
from robot_runtime.common.clock import Stopwatch, SystemClock, wait_for
from robot_runtime.errors import ConfigError, LinkLost, PolicyError, PolicyMismatch, RuntimeFault
from robot_runtime.policies.package.compatibility import check_task
from robot_runtime.policies.package.manifest import Manifest
from robot_runtime.policies.remote import protocol
from robot_runtime.policies.remote.dialects import openpi
from robot_runtime.policies.remote.encryption import client_context
from robot_runtime.policy import ChunkedPolicy, Observation, World
from robot_runtime.tasks.payloads import sensor_names
from robot_runtime.tasks.task import Task

TIME_LIMIT_S = 10.0
RESET_LIMIT_S = 60.0
"""Time limit (s) of the first message and of a reset: a policy may load or compile code."""

RECONNECT_S = 8.0
"""As long as a motion waits for the base's reports over a wireless link (``motion.patience_s`` of robots over ROS)."""

_RETRY_S = 0.2


class RemotePolicy(ChunkedPolicy):
    """A policy behind a websocket.

    Args:
        url: ``ws://host:port`` or ``wss://...``.
        token: token of the server; by default the environment's ``ROBOT_RUNTIME_TOKEN``, if any.
        time_limit_s: time limit of a decision, transmission included.
        reconnect_s: time to restore a lost link, per decision.
        certificate: PEM file with the certificates to trust instead of the system's, for ``wss://``.
        chunks: meaning of ``actions`` and names of sensors, for servers of other projects: the fields of
            :class:`~robot_runtime.policies.remote.dialects.openpi.Chunks`.

    Raises:
        LinkLost: the server cannot be reached.
        PolicyError: it is not a policy server, is not trusted, or refuses the token.
        ConfigError: an argument has an invalid value.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        time_limit_s: float = TIME_LIMIT_S,
        reconnect_s: float = RECONNECT_S,
        certificate: str | None = None,
        **chunks: Any,
    ) -> None:
        self.name = url  # type: ignore[misc]  # one class stands for every server
        self._chunks = config.parse(chunks, openpi.Chunks, f"{url}: arguments")
        self.needs = tuple(self._chunks.renamed())  # type: ignore[misc]
        url = url.replace("openpi://", "ws://", 1) if url.startswith("openpi://") else url
        self._url = url
        self._token = token or os.environ.get(protocol.TOKEN_VARIABLE)
        self._limit_s = _seconds("time_limit_s", time_limit_s)
        self._reconnect_s = _seconds("reconnect_s", reconnect_s)
        if certificate is not None and not url.startswith("wss://"):
            raise ConfigError(f"{url}: is not encrypted, so there is no certificate to trust", "write it with wss://")
        self._encryption = client_context(certificate) if url.startswith("wss://") else None
        self._link: ClientConnection | None = None
        self._exit_stack = ExitStack()
        self._session = ""
        self._sequence = 0
        self._task: Task | None = None
        self._info: dict[str, Any] = {}
        self._manifest: Manifest | None = None
        self._about = self._with_reconnect(self._connect)
        self._server = self._about.get(protocol.EXTENSION)
        if self._server is not None:
            try:
                self._read_server_description(self._server)
            except RuntimeFault:
                self._drop()
                raise

    @override
    def check(self, task: Task) -> None:
        super().check(task)
        if self._manifest is not None:
            check_task(self._manifest, task)

    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        """Start an episode.

        Raises:
            PolicyError: the server's policy cannot run in the task, or the server is busy with another robot.
        """
        self._task, self._info, self.rest = task, {}, ()
        self._session, self._sequence = uuid.uuid4().hex, 0
        if self._server is None:
            # openpi's protocol has no episodes: a new connection starts a new one.
            self._drop(CloseCode.NORMAL_CLOSURE)
            self._about = self._with_reconnect(self._connect)
            if openpi.is_roboarena(self._about):
                message = protocol.pack({"endpoint": "reset", "session_id": self._session})
                self._exchange(message, RESET_LIMIT_S, text="reset successful")
            return
        self._ask({"type": "reset", "seed": seed, "task": config.unparse(task)}, {}, RESET_LIMIT_S)

    def answered(self, observation: Observation) -> tuple[Decision, ...]:
        """The policy's decisions.

        Raises:
            LinkLost: the link was lost and could not be restored in time.
            PolicyError: no answer in time, an error of the policy, or an answer that is not a decision.
            UnknownAction: an action that the task does not have.
        """
        if self._task is None:
            raise PolicyError(f"policy {self.name!r} has no episode", "call reset() first")
        if self._server is None:
            message = openpi.request(observation, self._about, self._session, self._chunks)
        else:
            message = protocol.observation_to_message(observation)
        answer = self._ask({"type": "act"}, message, self._limit_s)
        info = answer.get("info")
        self._info = info if isinstance(info, dict) else {}
        if self._server is None and "actions" in answer and "action" not in answer:
            return openpi.decisions(answer["actions"], self._chunks, self._task, self.name)
        return protocol.decisions_from_message(answer, self._task, self.name)

    def overruled(self, decision: Decision) -> None:
        """Report the decision to the policy, if the server has this runtime's protocol. Raises ``PolicyError``."""
        super().overruled(decision)
        if self.follows and self._task is not None:
            content = protocol.decision_to_message(decision, self._task)
            self._ask({"type": "overruled"}, content, self._limit_s)

    def info(self) -> dict[str, Any]:
        """The basis of the last decision, from the server."""
        return self._info

    def close(self) -> None:
        """End the connection, and with it the episode."""
        self._drop(CloseCode.NORMAL_CLOSURE)

    # --- requests ---------------------------------------------------------------------------------------------------

    def _ask(self, request: dict[str, Any], observation: dict[str, Any], limit_s: float) -> dict[Any, Any]:
        if self._server is None:
            return self._checked(self._exchange(protocol.pack(observation), limit_s), None)
        sequence, self._sequence = self._sequence, self._sequence + 1
        extension = {**request, "session": self._session, "sequence": sequence}
        message = protocol.pack({**observation, protocol.EXTENSION: extension})
        return self._with_reconnect(lambda: self._checked(self._exchange(message, limit_s, sequence), sequence))

    def _with_reconnect(self, work: Callable[[], dict[Any, Any]]) -> dict[Any, Any]:
        """Return the work's result; after a lost link, repeat the work for up to ``reconnect_s``."""
        lost: list[LinkLost] = []

        def attempt() -> dict[Any, Any] | None:
            try:
                return work()
            except LinkLost as error:
                self._drop()
                lost.append(error)
                return None

        answer = wait_for(SystemClock(), attempt, self._reconnect_s, _RETRY_S)
        if answer is None:
            raise lost[-1]
        return answer

    def _exchange(
        self, message: bytes, limit_s: float, sequence: int | None = None, text: str | None = None
    ) -> dict[Any, Any]:
        """Send a message and return the answer to it, nothing for this text; older answers are ignored."""
        if self._link is None:
            if sequence is None:
                raise LinkLost(f"{self._url}: the link was lost within an episode", "start the episode again")
            self._connect()
        link, timer = self._link, Stopwatch()
        assert link is not None
        with self._within(link, limit_s):
            link.send(message)
            while True:
                answer = self._read(link, limit_s - timer.elapsed_s(), text)
                extension = answer.get(protocol.EXTENSION)
                number = extension.get("sequence") if isinstance(extension, dict) else None
                if sequence is None or number == sequence:
                    return answer
                if not isinstance(number, int) or number > sequence:
                    self._drop()
                    raise PolicyError(
                        f"{self._url}: an answer has no number of a request", "use a server of the same version"
                    )

    def _checked(self, answer: dict[Any, Any], sequence: int | None) -> dict[Any, Any]:
        extension = answer.get(protocol.EXTENSION)
        error = extension.get("error") if sequence is not None and isinstance(extension, dict) else None
        if error is None:
            return answer
        message, remedy = (error.get("message"), error.get("remedy")) if isinstance(error, dict) else (error, None)
        if isinstance(error, dict) and error.get("lost") is True:  # earlier versions do not send it
            raise LinkLost(f"{self._url}: {message}", str(remedy or "start the episode again"))
        raise PolicyError(f"{self._url}: {message}", str(remedy or "look into the server's output"))

    # --- link -------------------------------------------------------------------------------------------------------

    def _connect(self) -> dict[Any, Any]:
        """Open a connection and return the server's first message."""
        headers = {"Authorization": f"Api-Key {self._token}"} if self._token else None
        try:
            self._link = self._exit_stack.enter_context(
                connect(
                    self._url,
                    compression=None,
                    max_size=protocol.MAX_ANSWER_BYTES,
                    additional_headers=headers,
                    open_timeout=self._limit_s,
                    close_timeout=1.0,
                    proxy=None,
                    ssl=self._encryption,
                )
            )
        except ssl.SSLCertVerificationError as error:
            raise PolicyError(
                f"{self._url}: shows a certificate that is not trusted: {error.verify_message}",
                "trust the file that its --certificate names: --agent-arg certificate=FILE; check the host's name",
            ) from error
        except (InvalidURI, ValueError) as error:
            raise ConfigError(f"{self._url!r}: {error}", "write it like ws://host:port") from error
        except (OSError, EOFError, WebSocketException) as error:
            if isinstance(error, InvalidHandshake) and not _server_is_absent(error):
                raise PolicyError(
                    f"{self._url}: refused: {error}",
                    "check that a policy server is there, and its token (--agent-arg token=... or "
                    f"{protocol.TOKEN_VARIABLE})",
                ) from error
            raise LinkLost(
                f"{self._url}: cannot be reached: {error or type(error).__name__}",
                "check that `robot-runtime serve policy` runs there, and the network",
            ) from error
        with self._within(self._link, RESET_LIMIT_S):
            return self._read(self._link, RESET_LIMIT_S)

    @contextmanager
    def _within(self, link: ClientConnection, limit_s: float) -> Iterator[None]:
        """End the connection at the limit: a peer that reads nothing would block a send for ever."""
        expired = threading.Event()

        def expire() -> None:
            expired.set()
            with suppress(OSError):
                link.socket.shutdown(socket.SHUT_RDWR)

        timer = threading.Timer(limit_s, expire)
        timer.daemon = True
        timer.start()
        try:
            yield
        except (TimeoutError, OSError, EOFError, WebSocketException) as error:
            late = expired.is_set() or isinstance(error, TimeoutError)
            self._drop()
            if late:
                raise PolicyError(
                    f"{self._url}: no answer within {limit_s:g} s",
                    "check the server's load, or give it more time with --agent-arg time_limit_s=...",
                ) from error
            raise LinkLost(f"{self._url}: the link was lost: {error}", "check the network and the server") from error
        except BaseException:
            self._drop()  # the next message would be the answer to this request
            raise
        finally:
            timer.cancel()

    def _read(self, link: ClientConnection, limit_s: float, text: str | None = None) -> dict[Any, Any]:
        data = link.recv(timeout=max(limit_s, 0.0))
        if data == text:
            return {}
        if isinstance(data, str):
            lines = [line for line in data.strip().splitlines() if line.strip()] or [""]
            raise PolicyError(f"{self._url}: the server failed: {lines[-1]:.300}", "read the server's output")
        try:
            return protocol.unpack(data)
        except protocol.ProtocolError as error:
            raise PolicyError(
                f"{self._url}: {error.message}", "correct the server's messages: docs/how-to/remote-policies.md"
            ) from error

    def _drop(self, code: CloseCode = CloseCode.INTERNAL_ERROR) -> None:
        """End the connection; only after a normal closure does the server forget the episode at once."""
        link, self._link = self._link, None
        if link is not None:
            with suppress(OSError, EOFError, WebSocketException):
                link.close(code)
                self._exit_stack.close()

    def _read_server_description(self, about: object) -> None:
        """Set name, sensors and task from the description that this runtime's servers send."""
        needs = about.get("needs") if isinstance(about, Mapping) else None
        if not isinstance(about, Mapping) or about.get("protocol") != protocol.PROTOCOL or not isinstance(needs, list):
            raise PolicyError(
                f"{self._url}: its first message is not of protocol {protocol.PROTOCOL}: {about!r:.80}",
                "install the same version of robot-runtime there",
            )
        self.name = f"{about.get('policy')}@{self._url}"  # type: ignore[misc]
        if unknown := [str(name) for name in needs if name not in sensor_names()]:
            raise PolicyMismatch(
                f"{self._url}: its policy needs {', '.join(unknown)}, and no sensor here has that name",
                "install the package that adds the sensor, or the server's version of robot-runtime, on this computer",
            )
        self.needs = tuple(needs)  # type: ignore[misc]
        self.follows = about.get("follows") is True  # type: ignore[misc]  # earlier versions do not send it
        self.declared = about.get("declared")  # earlier versions do not send it
        if self.declared is not None:
            self._manifest = config.parse(self.declared, Manifest, f"{self._url}: declared")
        if about.get("task") is not None:
            self.task = config.parse(about["task"], Task, f"{self._url}: task")


def _server_is_absent(error: InvalidHandshake) -> bool:
    """Whether a tunnel or gateway answers for a server that it cannot reach now: by closing, or by 502 to 504."""
    return isinstance(error, InvalidMessage) or (
        isinstance(error, InvalidStatus) and error.response.status_code in (502, 503, 504)
    )


def _seconds(name: str, value: object) -> float:
    if not isinstance(value, int | float) or not 0 < value <= 3600:
        raise ConfigError(f"argument {name}={value!r} is not a time limit", "give seconds, more than 0, at most 3600")
    return float(value)
