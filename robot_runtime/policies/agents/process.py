"""Process of one agent: the robot stands still while the agent hangs, crashes or is slow.

The process has its own interpreter if one is named, its own session, no standard input, and a socket for requests
(:mod:`robot_runtime.policies.agents.worker`) that is separate from its output, and a limit of its memory. The end of
the output is stored for error messages. A failed request ends the process; :meth:`AgentProcess.start` starts a new one.
Its children end with it, those in sessions of their own included, also if the runtime is killed
(:mod:`robot_runtime.policies.agents.descendants`).
"""

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import uuid
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.clock import Stopwatch
from robot_runtime.errors import PolicyError
from robot_runtime.policies.agents import descendants, worker
from robot_runtime.policies.isolation import MEMORY_SHARE, Isolation, remedy_for

LOAD_S = 300.0
"""Time limit (s) for the import and construction of an agent: a large network on a slow disk."""

_MAX_ANSWER_BYTES = 1 << 20
_MAX_OUTPUT_BYTES = 8192
_SHOWN_LINES = 8
_LOG = logging.getLogger(__name__)
_GRACE_S = 2.0
_BUFFER_BYTES = 1 << 20


class AgentProcess:
    """The process of an agent. For use by one thread."""

    def __init__(self, name: str, isolation: Isolation) -> None:
        self._name = name
        self._isolation = isolation
        self._process: subprocess.Popen[bytes] | None = None
        self._ender: subprocess.Popen[bytes] | None = None
        self._connection: socket.socket | None = None
        self._mark = uuid.uuid4().hex
        self._output = b""
        self._reader: threading.Thread | None = None

    @property
    def running(self) -> bool:
        """Whether there is a process to ask."""
        return self._process is not None

    def start(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Start the process, load the agent and return the worker's reply. Raises as :meth:`ask`."""
        self.close()
        interpreter = self._isolation.interpreter
        connection, worker_end = socket.socketpair()
        for end in (connection, worker_end):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)
        # rospy gives all new sockets a timeout and with it non-blocking mode, which the process would inherit.
        worker_end.setblocking(True)
        total_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        memory_bytes = self._isolation.memory_bytes or round(MEMORY_SHARE * total_bytes)
        command = [interpreter, "-u", worker.__file__, str(worker_end.fileno()), str(os.getpid()), str(memory_bytes)]
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONHOME"}
        environment[descendants.VARIABLE] = self._mark
        self._output = b""
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=(worker_end.fileno(),),
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            connection.close()
            raise PolicyError(
                f"agent {self._name!r}: {command[0]} cannot be run: {error.strerror}", "name another interpreter"
            ) from error
        finally:
            worker_end.close()
        self._connection = connection
        if sys.platform == "linux":
            self._ender = subprocess.Popen(
                [sys.executable, "-IS", descendants.__file__, self._mark, str(os.getpid())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._reader = threading.Thread(target=self._read_output, args=(self._process,), name="agent", daemon=True)
        self._reader.start()
        return self.ask(request, {}, "loading", LOAD_S)

    def ask(
        self, request: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], what: str, limit_s: float | None = None
    ) -> dict[str, Any]:
        """The agent's answer to one request, a JSON document with its ``type``, and arrays by name.

        Raises:
            PolicyError: the agent raised, took too long, ended, or broke the protocol. In all but the first case the
                process is ended.
        """
        connection, limit_s = self._connection, limit_s or self._isolation.time_limit_s
        if connection is None:
            raise PolicyError(f"agent {self._name!r} does not run", "start the episode again")
        timer = Stopwatch()

        def wait() -> None:
            left_s = limit_s - timer.elapsed_s()
            if left_s <= 0:
                raise TimeoutError
            connection.settimeout(left_s)

        def read(count: int) -> bytearray:
            return worker.receive_exactly(connection, count, wait)

        try:
            for buffer in worker.encode(request, arrays):
                wait()
                connection.sendall(buffer)
            reply, _ = worker.decode(read, _MAX_ANSWER_BYTES)
        except TimeoutError:
            self._fail(
                f"gave no answer within {limit_s:g} s at {what}; it was ended",
                "make it faster, or give it more time with --agent-timeout-s",
            )
        except (EOFError, ConnectionError):
            self._fail(f"{self._exit_description()} at {what}", "correct the agent, of which the last output is shown")
        except worker.FrameError as error:
            self._fail(
                f"broke the protocol at {what}: {error}; it was ended",
                "leave the file descriptors alone that the agent did not open",
            )
        except BaseException:
            self._end()
            raise
        if reply.get("type") == "error":
            raised = str(reply.get("what"))
            raise PolicyError(
                f"agent {self._name!r} raised {raised} at {what}", remedy_for(raised)
            ) from _AgentTraceback(str(reply.get("traceback")))
        return reply

    def close(self) -> None:
        """End the process; it has 2 s to end by itself."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_GRACE_S)
            self._end()

    def _fail(self, message: str, remedy: str) -> NoReturn:
        self._end()
        lines = self._output.decode(errors="replace").strip().splitlines()[-_SHOWN_LINES:]
        output = "".join(f"\n  | {line}" for line in lines)
        raise PolicyError(
            f"agent {self._name!r} {message}" + (f". It printed last:{output}" if output else ""), remedy
        ) from None

    def _exit_description(self) -> str:
        assert self._process is not None
        try:
            status = self._process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            return "closed its connection"
        return f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with exit status {status}"

    def _end(self) -> None:
        """Kill the process and its children, and read the rest of their output."""
        process, self._process = self._process, None
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if self._ender is not None:
            self._ender.kill()
            self._ender.wait()
            self._ender = None
        if left := descendants.kill_marked(self._mark):
            _LOG.warning("processes that the agent started cannot be ended: %s", left)
        if self._reader is not None:
            self._reader.join(_GRACE_S)
            self._reader = None

    def _read_output(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        with process.stdout as output:
            while chunk := os.read(output.fileno(), 1 << 16):
                self._output = (self._output + chunk)[-_MAX_OUTPUT_BYTES:]


class _AgentTraceback(Exception):
    """The agent's own traceback, for ``--debug``."""


def split(values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """An agent's observation as the parts of a request: a JSON document and arrays."""
    arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
    rest = {name: value for name, value in values.items() if name not in arrays}
    return {"values": rest, "order": list(values)}, arrays
