"""The runtime's end of the link to a guard process: starts it, exchanges messages, and stops the wheels if it dies."""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

from drivers.serial_base.messages import MAX_PACKET, Answer, Request, State, Trouble, pack, unpack
from drivers.serial_base.ownership import LOST_STATES, PROGRAM, process_state
from drivers.serial_base.settings import GuardSettings
from robot_runtime.common.clock import SystemClock, seconds_to_ns
from robot_runtime.errors import DeviceFault

START_S = 20.0
"""Time limit for the process to start and open the port, also on a busy computer."""

ANSWER_S = 0.5
"""Time limit of an answer in real time; it takes a fraction of a millisecond."""

LOCKSTEP_ANSWER_S = 20.0
"""Likewise in simulated time, in which a delay does no harm."""

POLL_S = 0.05
MAX_WAIT_S = 0.1
"""Most that one poll counts as silence of the process: in a longer one, the runtime itself was stopped."""

STOPPED_S = 0.1
"""Silence of the process after which its state is looked up."""

TAKE_OVER_S = 1.0
END_S = 3.0
"""Time limits for stopping the wheels in its place, and for its end."""


class GuardLink:
    """A guard process and the link to it.

    Attributes:
        written: bytes that the process has written to the port so far.
        fault: why the process has ended; None while it runs.
    """

    def __init__(
        self, settings: GuardSettings, on_state: Callable[[State], None], on_trouble: Callable[[Trouble], None]
    ) -> None:
        self.written = 0
        self.fault: DeviceFault | None = None
        self._settings = settings
        self._on_state, self._on_trouble = on_state, on_trouble
        self._clock = SystemClock()
        self._link: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._thread: threading.Thread | None = None
        self._closing = self._opened = False
        self._changed = threading.Condition()
        self._requests = threading.Lock()
        self._number = 0
        self._answer: Answer | None = None
        self._heard_ns = 0

    @property
    def process_id(self) -> int:
        """Of the process; 0 if there is none."""
        return 0 if self._process is None else self._process.pid

    def open(self) -> None:
        """Start the process and wait until it has opened the port. Raises ``DeviceFault`` if it cannot."""
        near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with far:
            command = [sys.executable, "-m", PROGRAM, self._settings.pack(), str(far.fileno()), str(os.getpid())]
            # The wire is imported from where this process finds it.
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
            # A session of its own: what a terminal sends to the runtime must not reach it.
            self._process = subprocess.Popen(command, pass_fds=(far.fileno(),), start_new_session=True, env=environment)
        near.settimeout(POLL_S)
        self._link, self._heard_ns = near, self._clock.now_ns()
        if not self._settings.lockstep:
            self._thread = threading.Thread(target=self._receive_all, name="link to the guard process", daemon=True)
            self._thread.start()
        deadline_ns = self._clock.now_ns() + seconds_to_ns(START_S)
        while not self._opened and self.fault is None and self._clock.now_ns() < deadline_ns:
            self._wait()
        if not self._opened:
            fault = self.fault or DeviceFault("guard process: it does not start", "reduce this computer's load")
            self.close()
            raise fault

    def request(self, kind: str, now_ns: int, *arguments: object) -> Answer:
        """Send a request and return its answer. Raises ``DeviceFault`` if the process is gone."""
        with self._requests:
            if self.fault is not None or self._link is None:
                raise self.fault or DeviceFault("guard process: it has ended", "connect again")
            self._number += 1
            self._answer = None
            self._send(pack(Request(kind, self._number, now_ns, arguments)))
            left_ns = seconds_to_ns(LOCKSTEP_ANSWER_S if self._settings.lockstep else ANSWER_S)
            while (answer := self._answer) is None and self.fault is None:
                if left_ns <= 0:
                    self._lose("it does not answer")
                    break
                begin_ns = self._clock.now_ns()
                self._wait()
                left_ns -= min(self._clock.now_ns() - begin_ns, seconds_to_ns(MAX_WAIT_S))
            if answer is None:
                assert self.fault is not None
                raise self.fault
            return answer

    def close(self) -> None:
        """End the process, which leaves the wheels at zero; never raises, may be called twice."""
        self._closing = True
        link, process = self._link, self._process
        if process is not None:
            process.terminate()
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                self._lose("it does not end")
        thread, self._thread = self._thread, None
        if thread is not None and thread is not threading.current_thread():
            thread.join(END_S)
        if link is not None:
            link.close()
        self._link = self._process = None

    # --- messages ---------------------------------------------------------------------------------------------------

    def _send(self, data: bytes) -> None:
        assert self._link is not None
        try:
            self._link.send(data)
        except (BrokenPipeError, ConnectionResetError):
            return  # the process has ended; the reason that it sent is read next, then the end of the link
        except OSError as error:
            self._lose(f"the link to it broke: {error}")

    def _wait(self) -> None:
        """Wait for a message, at most ``POLL_S``."""
        if self._settings.lockstep:
            self._receive()
            return
        with self._changed:
            if self._answer is None and self.fault is None:
                self._changed.wait(POLL_S)

    def _receive_all(self) -> None:
        while self.fault is None and not self._closing:
            self._receive()

    def _receive(self) -> None:
        link = self._link
        if link is None:
            return
        try:
            data = link.recv(MAX_PACKET)
        except TimeoutError:
            self._look_after_process()
            return
        except ConnectionResetError:
            return  # reported once, before the last messages and the end of the link
        except OSError:
            data = b""
        self._heard_ns = self._clock.now_ns()
        if data:
            try:
                self._dispatch(data)
            except Exception as error:  # noqa: BLE001 - this thread stops the wheels if the process dies
                self._lose(f"its message cannot be used: {type(error).__name__}: {error}")
        elif not self._closing:
            self._lose("it has ended")

    def _dispatch(self, data: bytes) -> None:
        message = unpack(data)
        if isinstance(message, State):
            self._on_state(message)
            return
        with self._changed:
            if isinstance(message, Answer):
                self.written = message.written
                if message.number == self._number:
                    self._answer = message
            elif isinstance(message, Trouble):
                if message.final and not self._closing:
                    self.fault = DeviceFault(message.message, message.remedy)
                self._opened = self._opened or not message.message
                if not self._closing:
                    self._on_trouble(message)
            self._changed.notify_all()

    # --- a process that stops no wheels -----------------------------------------------------------------------------

    def _look_after_process(self) -> None:
        """Give a process up that is stopped or dead; one that only waits for a busy computer is left alone."""
        silent_ns = self._clock.now_ns() - self._heard_ns
        if self._closing or silent_ns <= seconds_to_ns(STOPPED_S):
            return
        if process_state(self.process_id)[0] in LOST_STATES:
            self._lose("it was stopped, or has died")

    def _lose(self, why: str) -> None:
        """End the process for good, and stop the wheels in its place."""
        with self._changed:
            if self.fault is not None and self._process is None:
                return
            process = self._process
            if process is not None:
                with suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)
                process.wait()
            failure = self._stop_wheels()
            if self.fault is None:
                done = f"THE WHEELS MAY STILL TURN ({failure}): switch the base off"
                if not failure:
                    done = "the wheels were stopped"
                self.fault = DeviceFault(f"guard process: {why}; {done}", "connect again, which starts a new one")
            self._changed.notify_all()

    def _stop_wheels(self) -> str:
        """Open the port and send zero, again until that is possible; return why it was not, empty if it was."""
        clock, failure = self._clock, ""
        deadline_ns = clock.now_ns() + seconds_to_ns(TAKE_OVER_S)
        while clock.now_ns() < deadline_ns:
            try:
                self._send_zeros()
            except Exception as error:  # noqa: BLE001, PERF203 - a wire and its connection are anybody's code
                failure = error.message if isinstance(error, DeviceFault) else f"{type(error).__name__}: {error}"
                clock.sleep(0.02)
            else:
                return ""
        return failure

    def _send_zeros(self) -> None:
        wire = self._settings.make_wire()
        port = wire.open(self._settings.port)
        try:
            port.write(wire.end())
            self._clock.sleep(wire.period_s)
            port.write(wire.end())
        finally:
            port.close()
