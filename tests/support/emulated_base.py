"""Emulated bases without a simulator: on an open floor with one wall, step by step or in real time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from kinematic_body import KinematicBody
from pty_server import PtyServer

from drivers.serial_base.base import GuardProcessBase
from drivers.serial_base.emulator import EmulatedBase, EmulatorOptions, Fault
from drivers.serial_base.guard import WireGuard
from drivers.serial_base.messages import COMMAND, Answer, Request, State
from drivers.serial_base.settings import GuardSettings
from drivers.serial_base.wire import BaseWire
from drivers.serial_wire.pty_emulation import Pty
from robot_runtime.common.clock import SystemClock, seconds_to_ns
from robot_runtime.hal import BaseInfo, Velocity
from robot_runtime.hal.simulated_motors import MotorOptions
from robot_runtime.safety.guard import GuardLimits

INFO = BaseInfo("emulated base", 0.18, 0.7, 3.0, 1.0, 7.0, 50.0)
STEP_NS = 1_000_000

MakeDevice = Callable[..., EmulatedBase]


def make_body(**motors: object) -> KinematicBody:
    return KinematicBody(MotorOptions(**motors))  # type: ignore[arg-type]


def make_device(kind: MakeDevice, body: KinematicBody, *faults: Fault, **options: object) -> EmulatedBase:
    emulator = EmulatorOptions(faults=tuple(faults), **options)  # type: ignore[arg-type]
    return kind(body, np.random.default_rng(0), emulator, body.advance)


class Bench:
    """A wire's Guard and an emulated base, joined by two lines of the right pace; no pty, no process."""

    def __init__(
        self,
        wire: BaseWire,
        kind: MakeDevice,
        *faults: Fault,
        stop_buttons: int = 0,
        motors: str = "ideal",
        **options: object,
    ) -> None:
        self.wire, self.body = wire, make_body(type=motors)
        self.device = make_device(kind, self.body, *faults, **options)
        self.states: list[State] = []
        self.sent = b""
        self._out = b""
        self.guard = WireGuard(wire, GuardLimits.of(INFO), stop_buttons, self._send, self.states.append)
        self.now_ns = 0
        self.connected = True
        self.guard.begin(0)

    @property
    def state(self) -> State:
        return self.states[-1]

    def command(self, linear_m_s: float, angular_rad_s: float = 0.0) -> Answer:
        return self.guard.handle(Request(COMMAND, 1, self.now_ns, (linear_m_s, angular_rad_s)), self.now_ns, lambda: 0)

    def run(self, seconds: float, linear_m_s: float | None = None, angular_rad_s: float = 0.0) -> State:
        """Let time pass, a command repeated every 20 ms, and return the newest state."""
        end_ns = self.now_ns + seconds_to_ns(seconds)
        while self.now_ns < end_ns:
            self.now_ns += STEP_NS
            if linear_m_s is not None and self.now_ns % 20_000_000 == 0:
                self.command(linear_m_s, angular_rad_s)
            data = self.device.transmit(self.now_ns)
            if data and self.connected:
                self.guard.feed(data, self.now_ns)
            self.guard.tick(self.now_ns)
            out, self._out = self._out, b""
            if self.connected:
                self.device.receive(out, self.now_ns)
        return self.state

    def _send(self, data: bytes) -> None:
        self.sent += data
        self._out += data


@contextmanager
def in_real_time(
    kind: MakeDevice, wire: str, folder: Path, *faults: Fault
) -> Iterator[tuple[GuardProcessBase, KinematicBody]]:
    """A base behind a guard process of its own, with an emulated device at the other end of a pty; not connected."""
    body = make_body()
    device = make_device(kind, body, *faults)
    settings = GuardSettings(wire, str(folder / "base"), GuardLimits.of(INFO))
    base = GuardProcessBase(SystemClock(), INFO, settings, 0.05)
    with PtyServer(Pty(folder / "base"), device):
        try:
            yield base, body
        finally:
            base.close()


def drive(base: GuardProcessBase, velocity: Velocity, seconds: float) -> None:
    """Repeat a command every 20 ms."""
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        base.command(velocity)
        time.sleep(0.02)


def comes_to_rest(body: KinematicBody, within_s: float) -> bool:
    """Whether the body stands still for 0.1 s within a time."""
    end_s = time.monotonic() + within_s
    while time.monotonic() < end_s:
        before = body.wheels_m
        time.sleep(0.1)
        if body.wheels_m == before:
            return True
    return False


@contextmanager
def another_device(path: Path) -> Iterator[str]:
    """A port whose device sends bytes of its own all the time, of no protocol of ours."""
    terminal, over = Pty(path), threading.Event()

    def chatter() -> None:
        while not over.wait(0.02):
            terminal.write(bytes(range(200)))
            terminal.read()

    thread = threading.Thread(target=chatter)
    thread.start()
    try:
        yield terminal.path
    finally:
        over.set()
        thread.join()
        terminal.unplug()
