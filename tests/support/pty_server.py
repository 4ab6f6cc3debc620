"""An emulated device at a pty, in real time."""

from __future__ import annotations

import select
import threading

from drivers.serial_wire.pty_emulation import EmulatedDevice, Pty
from robot_runtime.common.clock import NS_PER_S, SystemClock

MAX_WAIT_S = 0.02
"""Longest pause between two looks at an emulated device."""


class PtyServer:
    """A thread that runs an emulated device in real time."""

    def __init__(self, terminal: Pty, device: EmulatedDevice) -> None:
        self._terminal, self._device = terminal, device
        self._over = threading.Event()
        self._thread = threading.Thread(target=self.run, name=f"emulator of {terminal.path}", daemon=True)

    def __enter__(self) -> PtyServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(5.0)
        self._terminal.unplug()

    def run(self) -> None:
        """Run the device in this thread, until :meth:`__exit__` in another."""
        clock, terminal, device = SystemClock(), self._terminal, self._device
        while not self._over.is_set():
            wait_s = min(MAX_WAIT_S, max(0.0, (device.next_ns() - clock.now_ns()) / NS_PER_S))
            if terminal.plugged:
                ready, _, _ = select.select([terminal], [], [], wait_s)
                terminal.baud_rate = device.baud_rate
                if ready:
                    device.receive(terminal.read(), clock.now_ns())
            else:
                clock.sleep(max(wait_s, 0.001))
            now_ns = clock.now_ns()
            if device.unplugged(now_ns):
                terminal.unplug()
            else:
                terminal.plug()
            terminal.write(device.transmit(now_ns))
