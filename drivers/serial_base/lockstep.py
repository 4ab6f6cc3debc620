"""A base emulated in simulated time: bytes cross a real pty and a real guard process, which go step by step with it.

At each step of the simulated robot's physics the emulated base sends what is due, the guard process reads exactly that
and answers, and the base reads exactly what the guard wrote. So an episode is reproducible, and as fast as it can be.
"""

import tempfile
from contextlib import ExitStack
from pathlib import Path

from drivers.serial_base.emulator import EmulatedBase
from drivers.serial_base.guard_link import GuardLink
from drivers.serial_base.messages import STEP
from drivers.serial_wire.pty_emulation import Pty
from robot_runtime.errors import DeviceFault
from robot_runtime.hal import Velocity
from robot_runtime.hal.simulation import SimulatedChassis

LINE_STEP_NS = 1_000_000
MAX_STEP_NS = TICK_NS = 20_000_000
"""Steps of the line, the longest time that they cover at once (after a pause, bytes are not late), and how often the
guard process is told the time if nothing arrives."""


class LockstepEmulation:
    """An emulated base at the other end of the guard process's port."""

    def __init__(self, chassis: SimulatedChassis, device: EmulatedBase) -> None:
        self._chassis, self._device = chassis, device
        self._opened = ExitStack()
        self._terminal: Pty | None = None
        self._guard: GuardLink | None = None
        self._read = self._now_ns = self._told_ns = 0
        self._fault: DeviceFault | None = None

    def plug(self) -> str:
        """Connect the device to a new pty, and return its path."""
        folder = self._opened.enter_context(tempfile.TemporaryDirectory())
        self._terminal = Pty(Path(folder) / "base")
        self._opened.callback(self._terminal.unplug)
        self._fault = None
        self._read = 0
        return self._terminal.path

    def start(self, guard: GuardLink) -> None:
        """Let the device drive the simulated robot from the next step on."""
        self._guard = guard
        self._opened.callback(self._chassis.attach(self._step).close)

    def stop(self) -> None:
        """Take the device away from the robot, wheels at zero."""
        self._opened.close()
        self._terminal = None

    def check(self) -> None:
        """Raise the ``DeviceFault`` that ended the emulation, if one did."""
        if self._fault is not None:
            raise self._fault

    def _step(self, now_ns: int) -> Velocity:
        device, terminal, guard = self._device, self._terminal, self._guard
        before_ns, self._now_ns = self._now_ns, now_ns
        if self._fault is None and terminal is not None and guard is not None:
            try:
                # Finer than the physics: a stop takes some milliseconds on the line.
                for instant_ns in range(max(before_ns, now_ns - MAX_STEP_NS) + LINE_STEP_NS, now_ns, LINE_STEP_NS):
                    self._exchange(terminal, guard, instant_ns)
                self._exchange(terminal, guard, now_ns)
            except DeviceFault as fault:
                self._fault = fault
        return device.drive(now_ns)

    def _exchange(self, terminal: Pty, guard: GuardLink, now_ns: int) -> None:
        """Let bytes that are due arrive at the guard process, and its own at the device."""
        device = self._device
        data = device.transmit(now_ns)
        if device.unplugged(now_ns):
            terminal.unplug()
        else:
            terminal.plug()
        if data or now_ns - self._told_ns >= TICK_NS:
            self._told_ns = now_ns
            terminal.baud_rate = device.baud_rate
            terminal.write(data)
            guard.request(STEP, now_ns, len(data) if terminal.plugged else 1)
        sent = terminal.read_exactly(guard.written - self._read)
        self._read = guard.written
        device.receive(sent, now_ns)
