"""An emulated Kobuki as a process of its own, which measures when commands arrive: ``python -m … PORT CONTACTS``.

It has real-time scheduling where that is permitted: it stands for hardware, which no load of this computer delays.
It prints a line for each contact, and one JSON document at the end of its standard input.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from drivers.kobuki.emulator import EmulatedKobuki
from drivers.kobuki.protocol import Basic, Decoder
from drivers.serial_base.emulator import EmulatorOptions
from drivers.serial_wire.pty_emulation import Pty
from robot_runtime.common.clock import SystemClock
from robot_runtime.hal import Zone
from robot_runtime.hal.simulated_motors import MotorOptions
from robot_runtime.hal.simulation import WheelSensors
from robot_runtime.safety.guard import STILL
from tests.support.kinematic_body import KinematicBody
from tests.support.pty_server import PtyServer

PRIORITY = 20
"""Above the guard process's."""

RELEASE_NS, PRESS_NS = 30_000_000, (25_000_000, 45_000_000)
"""Time from a stop to the release of the bumper, and from the next motion to the next contact."""

MISSED_NS = 500_000_000
"""Time after which a contact counts as missed."""


@dataclass
class Measured:
    """Measurements of the emulated base.

    Attributes:
        contact_ms: time from the arrival of the message that tells of a contact to the arrival of zero at the firmware,
            each at its last byte. The 0.9 ms that a command takes on the line are included.
        contact_ns: instants of those arrivals.
        pressed_ms: time from the contact itself to that arrival.
        missed: contacts without a zero.
        response_ns: instants of the first command after each message.
        stopped_ns: instants at which a motion ended.
        moving_ns: instants at which one began.
    """

    contact_ms: list[float] = field(default_factory=list)
    contact_ns: list[int] = field(default_factory=list)
    pressed_ms: list[float] = field(default_factory=list)
    missed: int = 0
    response_ns: list[int] = field(default_factory=list)
    stopped_ns: list[int] = field(default_factory=list)
    moving_ns: list[int] = field(default_factory=list)


class PressableBody(KinematicBody):
    """A body whose bumper is pressed by hand."""

    pressed = False

    def sensors(self) -> WheelSensors:
        return super().sensors()._replace(bumper=Zone.CENTER if self.pressed else Zone.NONE)


class MeasuringKobuki(EmulatedKobuki):
    """An emulated Kobuki that presses its own bumper, and notes when commands arrive.

    Args:
        body: body of the robot.
        contacts: number of contacts.
    """

    def __init__(self, body: PressableBody, contacts: int) -> None:
        self._random_phase = np.random.default_rng(1)
        super().__init__(body, np.random.default_rng(0), EmulatorOptions(), body.advance)
        self.measured = Measured()
        self._pressable, self._left = body, contacts
        self._told = Decoder()
        self._told_ns = self._pressed_ns = self._stopped_ns = self._message_ns = 0
        self._press_at_ns = 0
        self._was = STILL

    def transmit(self, now_ns: int) -> bytes:
        self._act(now_ns)
        data = super().transmit(now_ns)
        self._watch(now_ns)
        for parts in self._told.feed(data):
            self._message_ns = now_ns
            if self._pressed_ns and not self._told_ns and any(isinstance(p, Basic) and p.bumper for p in parts):
                self._told_ns = now_ns
        return data

    def receive(self, data: bytes, now_ns: int) -> None:
        super().receive(data, now_ns)
        if data and self._message_ns:
            self.measured.response_ns.append(now_ns)
            self._message_ns = 0

    def next_ns(self) -> int:
        waiting = self._press_at_ns if self._press_at_ns and not self._pressed_ns else 0
        return min(super().next_ns(), waiting) if waiting else super().next_ns()

    def _watch(self, now_ns: int) -> None:
        """Note when the firmware's motion begins and ends."""
        before, self._was = self._was, self.velocity
        if before == STILL and self._was != STILL:
            self.measured.moving_ns.append(now_ns)
            low_ns, high_ns = PRESS_NS
            self._press_at_ns = now_ns + int(self._random_phase.integers(low_ns, high_ns)) if self._left else 0
        elif before != STILL and self._was == STILL:
            self.measured.stopped_ns.append(now_ns)
            if self._pressed_ns:
                self._stopped_ns = now_ns
                if self._told_ns:
                    self.measured.contact_ms.append((now_ns - self._told_ns) / 1e6)
                    self.measured.contact_ns.append(now_ns)
                self.measured.pressed_ms.append((now_ns - self._pressed_ns) / 1e6)
            else:
                self._press_at_ns = 0  # its command expired, on a busy computer: there is nothing to stop

    def _act(self, now_ns: int) -> None:
        """Press and release the bumper."""
        if not self._pressed_ns and self._press_at_ns and now_ns >= self._press_at_ns and self._left:
            self._pressed_ns, self._pressable.pressed = now_ns, True
            self._left -= 1
        elif self._pressed_ns and not self._stopped_ns and now_ns - self._pressed_ns > MISSED_NS:
            self.measured.missed += 1
            self._stopped_ns = now_ns
        if self._stopped_ns and now_ns - self._stopped_ns > RELEASE_NS:
            self._pressable.pressed = False
            print("contact", flush=True)
            self._pressed_ns = self._stopped_ns = self._told_ns = self._press_at_ns = 0


def main() -> None:
    """Run until standard input ends, then print what was measured."""
    clock = SystemClock()
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    device = MeasuringKobuki(PressableBody(MotorOptions()), int(sys.argv[2]))
    server = PtyServer(Pty(Path(sys.argv[1])), device)
    gc.collect()
    gc.freeze()  # no firmware pauses for a garbage collection
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    print(clock.now_ns(), flush=True)
    sys.stdin.read()
    print(json.dumps(asdict(device.measured)), flush=True)


if __name__ == "__main__":
    main()
