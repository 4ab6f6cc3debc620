"""Processes for tests of ROS: masters that can be killed and come back, programs that die with the test."""

from __future__ import annotations

import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

LIMIT_S = 60.0
"""Of every wait: long enough for a busy machine, and never reached on success."""

# Dies with the test process, also when that is killed: the pipe closes.
MASTER = """
import sys, rosmaster.master
master = rosmaster.master.Master(port=int(sys.argv[1]))
master.start()
print(master.uri, flush=True)
sys.stdin.read()
"""


PORTS = range(20_000, 32_000)
"""Below those that the kernel gives to whoever connects: none of them is lost between two uses."""


def find_port() -> int:
    """A port of 127.0.0.1 that was free a moment ago."""
    while True:
        port = secrets.choice(PORTS)  # tests that run beside each other share the seed of `random`
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


class Master:
    """A ROS master in a process of its own, which keeps its address over :meth:`kill` and :meth:`start`."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = dict(environ)
        self._port = find_port()
        self._process: subprocess.Popen[str] | None = None
        self.uri = ""
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", MASTER, str(self._port)],
            env=self._environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        uri = self._process.stdout.readline().strip()
        assert uri.startswith("http://"), "the master did not start"
        # It names itself by the environment; its port is what matters.
        self._port = int(uri.rstrip("/").rpartition(":")[2])
        self.uri = f"http://127.0.0.1:{self._port}"

    def hang(self) -> None:
        """It accepts connections and answers nobody, until it is killed."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def kill(self) -> None:
        """As if the power failed; twice is harmless."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(LIMIT_S)
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.close()
            self._process.stdout.close()
            self._process = None


class Program:
    """A started program. ``lines`` is what it has printed so far, both streams."""

    def __init__(self, arguments: Sequence[str], environ: Mapping[str, str]) -> None:
        # setpriv has the kernel kill it should this process die.
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "--", *arguments],
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    @property
    def output(self) -> str:
        """All that it printed."""
        return "\n".join(self.lines)

    def wait_for_line(self, text: str, timeout_s: float = LIMIT_S) -> str:
        """The first line that contains ``text``."""
        line = eventually(lambda: next((line for line in self.lines if text in line), None), timeout_s, alive=self)
        assert line is not None, f"no line with {text!r}:\n{self.output}"
        return line

    def stop(self, sent: signal.Signals = signal.SIGTERM, timeout_s: float = LIMIT_S) -> int:
        """Send a signal, wait for the end, return the exit status (negative for a signal)."""
        if self.process.poll() is None:
            self.process.send_signal(sent)
        status = self.process.wait(timeout_s)
        self._reader.join(timeout_s)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return status


def eventually(
    probe: Callable[[], Any], timeout_s: float = LIMIT_S, poll_s: float = 0.005, alive: Program | None = None
) -> Any:
    """The first true result of ``probe``, or its last one once the time is over (or ``alive`` has ended)."""
    deadline_s = time.monotonic() + timeout_s
    while True:
        ended = alive is not None and alive.process.poll() is not None
        if (result := probe()) or ended or time.monotonic() > deadline_s:
            return result
        time.sleep(poll_s)


def is_subscribed(publisher: Any, node: str) -> bool:
    """Whether a subscriber of that node is connected to a publisher of this process.

    A bare number of connections would count those who only ask for the definition, too, and who leave at once.
    """
    return any(peer == node for _, peer, *_ in publisher.impl.get_stats_info())
