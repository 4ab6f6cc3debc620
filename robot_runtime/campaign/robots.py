"""The campaign's side of a robot's process: start, requests, answers, and its end."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

from robot_runtime.campaign.ledger import take_lock
from robot_runtime.campaign.plan import Plan
from robot_runtime.campaign.robot_process import RunRequest
from robot_runtime.common.clock import Stopwatch
from robot_runtime.errors import ConfigError

COMMAND = (sys.executable, "-m", "robot_runtime.campaign.robot_process")
END_S = 30.0
"""Time for a robot's process to stop the wheels and close the log before it is killed."""

_BACKOFF_S = (0.0, 1.0, 2.0, 5.0, 10.0, 30.0)


class RobotProcess:
    """The process of a robot, started when it is needed and again after it died.

    Attributes:
        attempt: the run that it carries out; empty for none.
        ready: whether it takes requests.
        battery: last known charge, 0 to 1.
        deaths: number of deaths in a row, without a run that ended.
    """

    def __init__(
        self,
        plan: Plan,
        number: int,
        folder: Path,
        command: Sequence[str] = COMMAND,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.number, self._command, self._environment = number, command, {**os.environ, **(environment or {})}
        self._plan, self._folder = plan, folder
        self._process: subprocess.Popen[bytes] | None = None
        self._rest = b""
        self._since_death = Stopwatch()
        self.attempt = ""
        self.ready = False
        self.battery: float | None = None
        self.deaths = 0

    @property
    def pid(self) -> int | None:
        """Id of the process; None while there is none."""
        return None if self._process is None else self._process.pid

    @property
    def descriptor(self) -> int | None:
        """Descriptor on which answers arrive."""
        return None if self._process is None or self._process.stdout is None else self._process.stdout.fileno()

    @property
    def may_start(self) -> bool:
        """Whether it is not running, and enough time has passed since it died."""
        wait_s = _BACKOFF_S[min(self.deaths, len(_BACKOFF_S) - 1)]
        return self._process is None and self._since_death.elapsed_s() >= wait_s

    def start(self, episode: int) -> None:
        """Start the process in the scene of an episode, by its number in the file. Answers ``ready`` once connected."""
        folder = self._folder / "robots"
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / f"{self.number}.txt").open("ab") as log:
            self._process = self._spawn(log)
        assert self._process.stdout is not None
        os.set_blocking(self._process.stdout.fileno(), False)
        self._rest, self.ready = b"", False
        lock = str(lock_of(self._folder, self.number))
        self._send({"plan": self._plan.document(), "robot": self.number, "lock": lock, "episode": episode})

    def run(self, request: RunRequest) -> None:
        """Ask for a run."""
        self.attempt = request.attempt
        self._send({"do": "run", **asdict(request)})

    def ask_status(self) -> None:
        """Ask for the battery's charge."""
        self._send({"do": "status"})

    def answers(self) -> list[Mapping[str, Any]]:
        """The answers since the last call; the last is ``gone`` if the process has ended."""
        if self._process is None or self._process.stdout is None:
            return []
        gone = False
        with suppress(BlockingIOError):
            while not gone:
                data = os.read(self._process.stdout.fileno(), 1 << 16)
                self._rest += data
                gone = not data
        *lines, self._rest = self._rest.split(b"\n")
        replies: list[Mapping[str, Any]] = [json.loads(line) for line in lines]
        self._take(replies)
        if gone:
            self._reap()
            replies.append({"is": "gone"})
        return replies

    def _take(self, answers: Sequence[Mapping[str, Any]]) -> None:
        for answer in answers:
            if answer.get("battery") is not None:
                self.battery = answer["battery"]
            if answer["is"] == "ready":
                self.ready = True
            if answer["is"] == "ended":
                self.deaths = 0

    def end(self) -> None:
        """End the process: an episode is interrupted, the wheels are stopped, and the log is closed."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._reap()

    def _spawn(self, log: BinaryIO) -> subprocess.Popen[bytes]:
        # A session of its own: Ctrl-C and a closed terminal reach the campaign's process; that one ends this one.
        return subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=self._environment,
            start_new_session=True,
        )

    def _reap(self) -> None:
        assert self._process is not None
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(END_S)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()
        self._process, self.ready = None, False
        self.deaths += 1
        self._since_death.restart()

    def _send(self, request: Mapping[str, Any]) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it has died, and answers() reports it
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()


def lock_of(folder: Path, number: int) -> Path:
    """The file that a robot's process locks for as long as it lasts."""
    return folder / "robots" / f"{number}.lock"


def wait_until_free(folder: Path, number: int, limit_s: float = 2 * END_S) -> None:
    """Wait for the process of an earlier session to end by itself. Raises ``ConfigError``."""
    path = lock_of(folder, number)
    if not path.exists():
        return
    with path.open("a") as file:
        if not take_lock(file, limit_s):
            raise ConfigError(
                f"robot {number} is still driven by the process of an earlier session",
                "stop it with `robot-runtime stop`, end it with `kill`, and repeat the command",
            )
