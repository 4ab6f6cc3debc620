"""Guard process: it owns the connection to a base, and stops the wheels whatever happens to the runtime.

One thread reads the wire, decides and writes, so that a stop after a contact waits for no other thread. The process is
connected to the runtime by one Unix socket; when the runtime dies, the socket ends and the wheels stop. Beside the
standard library it imports pyserial alone.
"""

import ctypes
import gc
import os
import select
import signal
import socket
import sys
import traceback
from collections import deque
from contextlib import ExitStack, suppress
from types import FrameType

from drivers.serial_base.guard import WireGuard
from drivers.serial_base.messages import MAX_PACKET, STEP, Message, Request, State, Trouble, pack, unpack
from drivers.serial_base.ownership import OwnerLock, end_orphan
from drivers.serial_base.settings import EStopMemory, GuardSettings
from drivers.serial_base.wire import Transport
from drivers.serial_wire.port import Port, PortInUse
from drivers.serial_wire.pty_emulation import read_exactly
from robot_runtime.common.clock import SystemClock, ns_to_seconds, seconds_to_ns, wait_for
from robot_runtime.errors import DeviceFault

SILENT_S = 1.0
"""Time without a reading after which the base is reported as silent."""

REOPEN_S = 0.25
"""Pause between two attempts to open a port that was lost."""

LINGER_S = 0.3
"""Time for which zeros are sent before the port is closed: one may be lost."""

HANDOVER_S = 2.0
"""Time for which the port may still be held at the start: the guard process of a runtime that was killed lingers."""

ORPHAN_S = LINGER_S + 0.3
"""Part of it after which a guard process without a runtime, which should have ended by then, is ended."""

GREET_S, CALL_S = 0.5, 0.1
"""Silence after which a base is greeted again, and for how long it may take to change its baud rate."""

TICK_S = 0.005
"""Longest pause between two looks at the clock."""

OUTBOX = 100
"""Messages kept for a runtime that reads none; a request has one answer, so that they are few."""

PR_SET_PDEATHSIG = 1
"""Of ``prctl``: the signal that the kernel sends when the parent ends."""

PRIORITY = 10
"""Of the real-time scheduling, where the system permits it: above all ordinary processes."""


class GuardProcess:
    """The process's port, link and decisions.

    The runtime is the parent process by default. The scheduling policy is ``fifo`` or ``normal``.
    """

    def __init__(
        self, settings: GuardSettings, link: socket.socket, runtime: int | None = None, scheduling: str = "normal"
    ) -> None:
        link.settimeout(None)  # with a time limit of its own, send() waits, whatever its flags
        self._settings, self._link, self._scheduling = settings, link, scheduling
        self._wire = settings.make_wire()
        self._outbox: deque[Message] = deque(maxlen=OUTBOX)
        self._memory = EStopMemory(settings.e_stop_file)
        self._owner = OwnerLock(settings.lock_file, settings.port)
        self._runtime = os.getppid() if runtime is None else runtime
        self._orphan = ""
        self._guard = WireGuard(self._wire, settings.limits, settings.stop_buttons, self._send, self._tell)
        if settings.e_stop or self._memory.engaged:
            self._guard.emergency_stop(0)
        self._port: Transport | None = None
        self._written = 0
        self._clock = SystemClock()
        self._retried_ns = 0
        self._opened_ns: int | None = None
        self._silent_ns: int | None = None
        self._troubled = self._calling = False
        self._final: Trouble | None = None
        self.ended = ""
        """Reason for the end of the process; empty while it runs."""

    def run(self) -> None:
        """Serve until the runtime is gone, a signal asks for the end, or the base cannot be used."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._terminate)
        with ExitStack() as ends:  # the last one first, and each of them whatever another raises
            ends.callback(self._owner.release)
            ends.callback(self._linger)
            ends.callback(self._tell_end)
            ends.callback(self._guard.end)
            ends.callback(self._end_call)
            try:
                self._start()
                if self._settings.lockstep:
                    self._serve_in_lockstep()
                else:
                    self._serve()
            except DeviceFault as fault:
                self._final = Trouble.of(fault, final=True)
            except Exception as error:  # noqa: BLE001 - a wire is anybody's code; the runtime learns the reason
                traceback.print_exc()
                self.ended = f"{self._settings.wire}: {type(error).__name__}: {error}"

    def _start(self) -> None:
        if not wait_for(self._clock, self._opened_if_free, ORPHAN_S, TICK_S) and not wait_for(
            self._clock, self._opened_after_orphan, HANDOVER_S - ORPHAN_S, TICK_S
        ):
            self._open(self._now_ns())

    # --- loops ------------------------------------------------------------------------------------------------------

    def _serve(self) -> None:
        while not self.ended:
            waiting: list[Transport | socket.socket] = [self._link] if self._port is None else [self._port, self._link]
            ready, _, _ = select.select(waiting, [], [], TICK_S)
            if self._port is not None and self._port in ready:
                self._read()
            now_ns = self._now_ns()
            if self._link in ready:
                self._answer(now_ns)
            self._guard.tick(now_ns)
            self._check(now_ns)
            self._remember()
            self._deliver()
            if os.getppid() != self._runtime:
                self.ended = "the runtime has ended"

    def _serve_in_lockstep(self) -> None:
        self._link.settimeout(TICK_S * 20)
        while not self.ended:
            self._answer(0)

    def _answer(self, now_ns: int) -> None:
        """Receive a request and answer it."""
        try:
            data = self._link.recv(MAX_PACKET)
        except TimeoutError:
            return
        except OSError:
            data = b""
        if not data:
            self.ended = "the runtime has ended"
            return
        request = unpack(data)
        assert isinstance(request, Request)
        if self._settings.lockstep:
            now_ns = request.now_ns
        if request.kind == STEP:
            self._step(int(request.arguments[0]), now_ns)
        self._tell(self._guard.handle(request, now_ns, lambda: self._written))

    def _step(self, count: int, now_ns: int) -> None:
        """Read what has arrived by a simulated instant."""
        if isinstance(self._port, Port) and count:
            try:
                self._guard.feed(read_exactly(self._port, count), now_ns)
            except DeviceFault as fault:
                self._lose(fault, now_ns)
        self._guard.tick(now_ns)
        self._check(now_ns)

    # --- port -------------------------------------------------------------------------------------------------------

    def _now_ns(self) -> int:
        return 0 if self._settings.lockstep else self._clock.now_ns()

    def _open(self, now_ns: int) -> None:
        try:
            self._owner.take()
        except PortInUse:
            raise
        except DeviceFault as fault:  # told, and no reason not to drive
            self._tell(Trouble.of(fault, final=False))
        try:
            self._port = self._wire.open(self._settings.port)
        except DeviceFault:
            raise
        except Exception as error:
            raise self._failed(error) from error
        self._opened_ns = self._silent_ns = None
        self._calling = False
        self._guard.begin(now_ns, self._scheduling)
        self._troubled = False
        if self._orphan:
            self._tell(Trouble(f"{self._orphan}; it was ended, and the wheels were stopped", "", final=False))
            self._orphan = ""
        if self._port is not None:
            self._tell(Trouble("", ""))

    def _opened_if_free(self, at_once: bool = True) -> bool | None:
        try:
            self._open(self._now_ns())
        except PortInUse as in_use:
            self._orphan = self._orphan or end_orphan(in_use, at_once)
            return None
        return True

    def _opened_after_orphan(self) -> bool | None:
        return self._opened_if_free(at_once=False)

    def _failed(self, error: Exception) -> DeviceFault:
        """Return the fault for an exception of the wire's connection."""
        if isinstance(error, DeviceFault):
            return error
        return DeviceFault(
            f"port {self._settings.port}: {type(error).__name__}: {error}",
            f"check the {self._wire.attachment.device}, its cable and its driver",
        )

    def _read(self) -> None:
        assert self._port is not None
        try:
            data = self._port.read()
        except Exception as error:  # noqa: BLE001 - a connection is anybody's code
            self._lose(self._failed(error), self._now_ns())
            return
        self._guard.feed(data, self._now_ns())

    def _send(self, data: bytes) -> None:
        if self._port is None or self._calling or not data:
            return
        try:
            self._port.write(data)
        except Exception as error:  # noqa: BLE001 - a connection is anybody's code
            self._lose(self._failed(error), self._now_ns())
            return
        self._written += len(data)

    def _lose(self, fault: DeviceFault, now_ns: int) -> None:
        port, self._port = self._port, None
        if port is not None:
            with suppress(Exception):  # lost already
                port.close()
        self._retried_ns = now_ns
        self._tell(Trouble.of(fault, final=False))

    def _check(self, now_ns: int) -> None:
        """Open a lost port again, and report a base that is silent or cannot be used."""
        if self._port is None:
            if now_ns - self._retried_ns >= seconds_to_ns(REOPEN_S):
                self._retried_ns = now_ns
                try:
                    self._open(now_ns)
                except DeviceFault as fault:
                    self._tell(Trouble.of(fault, final=False))
        elif self._wire.fault is not None:
            self._final, self.ended = Trouble.of(self._wire.fault, final=True), "the base cannot be used"
        else:
            self._look_after_silence(now_ns)

    def _remember(self) -> None:
        """Keep the emergency stop for the next process; after the zeros, because a disk may be slow."""
        try:
            self._memory.note(self._guard.e_stop)
        except DeviceFault as fault:
            self._tell(Trouble.of(fault, final=False))

    def _look_after_silence(self, now_ns: int) -> None:
        """Greet a silent base again: it was switched on, or restarted, or talks at another baud rate."""
        guard = self._guard
        if self._opened_ns is None or self._silent_ns is None:
            self._opened_ns = self._silent_ns = now_ns
        heard = guard.heard_ns is not None and guard.heard_ns >= self._opened_ns
        if heard and guard.heard_ns is not None:
            self._silent_ns = max(self._silent_ns, guard.heard_ns)
        silent_s = ns_to_seconds(now_ns - self._silent_ns)
        try:
            if self._calling and silent_s >= CALL_S:
                self._end_call()
                guard.greet(now_ns)
            elif not self._calling and silent_s >= GREET_S:
                self._silent_ns = now_ns
                self._begin_call(now_ns)
        except DeviceFault as fault:
            self._lose(fault, now_ns)
            return
        last_ns = guard.heard_ns if heard and guard.heard_ns is not None else self._opened_ns
        silent = ns_to_seconds(now_ns - last_ns) >= SILENT_S
        if silent is not self._troubled:
            self._troubled = silent
            self._tell(Trouble.of(self._silence(heard), final=False) if silent else Trouble("", ""))

    def _begin_call(self, now_ns: int) -> None:
        """Ask a base that may talk at another baud rate to change it; greet one that knows no other."""
        other = self._wire.other_baud_rate
        if other is None or not isinstance(self._port, Port):
            self._guard.greet(now_ns)
            return
        self._port.change_baud_rate(other)
        self._send(self._wire.call())
        self._calling = True

    def _end_call(self) -> None:
        if self._calling and isinstance(self._port, Port):
            self._port.change_baud_rate(self._wire.baud_rate)
        self._calling = False

    def _silence(self, heard: bool) -> DeviceFault:
        port, device, skipped = self._settings.port, self._wire.attachment.device, self._wire.skipped
        if skipped and not heard:
            return DeviceFault(
                f"port {port}: {skipped} bytes came, and none of them was a {device}'s message",
                "another device is at this port: look for the right one with `robot-runtime hardware find-port`",
            )
        return DeviceFault(f"port {port}: the {device} is silent", f"switch the {device} on, and charge its battery")

    def _linger(self) -> None:
        """Send zeros for a while, because a command may be lost; then release the port."""
        deadline_ns = self._clock.now_ns() + (0 if self._settings.lockstep else seconds_to_ns(LINGER_S))
        try:
            while self._port is not None and self._clock.now_ns() < deadline_ns:
                self._clock.sleep(self._wire.period_s)
                self._send(self._wire.end())
        finally:
            if self._port is not None:
                self._port.close()

    # --- link -------------------------------------------------------------------------------------------------------

    def _tell_end(self) -> None:
        self._tell(self._final or Trouble(f"guard process: {self.ended}", "connect again", final=True))

    def _tell(self, message: Message) -> None:
        """Send a message; a runtime that reads none or is gone must not delay a stop."""
        self._outbox.append(message)
        self._deliver()

    def _deliver(self) -> None:
        """Send what the link takes now. Of what it does not take, states are dropped: the next one is newer."""
        outbox = self._outbox
        try:
            while outbox:
                self._link.send(pack(outbox[0]), socket.MSG_DONTWAIT)
                outbox.popleft()
        except BlockingIOError:  # the runtime is stopped, or very slow: it gets its answer when it reads again
            kept = [message for message in outbox if not isinstance(message, State)]
            outbox.clear()
            outbox.extend(kept)
        except OSError:
            outbox.clear()

    def _terminate(self, number: int, frame: FrameType | None) -> None:
        self.ended = f"ended by signal {signal.Signals(number).name}"


def _raise_priority() -> str:
    """Ask for real-time scheduling, which few systems permit to ordinary users; return what was granted."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    except OSError:
        return "normal"
    return "fifo"


def main() -> None:
    """Run the process; its arguments are the settings, the link's file descriptor and the runtime's process id."""
    # A guard process that somebody has stopped goes on when its runtime ends, and stops the wheels.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGCONT)
    settings = GuardSettings.unpack(sys.argv[1])
    with socket.socket(fileno=int(sys.argv[2])) as link:
        scheduling = "normal" if settings.lockstep else _raise_priority()
        process = GuardProcess(settings, link, int(sys.argv[3]), scheduling)
        gc.collect()
        gc.freeze()  # the modules stay: a garbage collection of them would delay a stop by 10 ms
        process.run()
