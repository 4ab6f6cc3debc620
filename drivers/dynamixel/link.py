"""Connection to the servos: a thread on a real port, or emulated servos in lockstep with simulated time."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial

from drivers.dynamixel.bus import SdkPort, ServoBus
from drivers.dynamixel.emulator import LockstepPort, ServoLine, emulated_servos
from drivers.dynamixel.options import DynamixelOptions
from drivers.dynamixel.protocol import angle_rad_of, position_of
from drivers.dynamixel.serial_port import SERVOS
from drivers.serial_wire.port import Port
from drivers.serial_wire.pty_emulation import Pty
from drivers.serial_wire.reader import JOIN_S
from robot_runtime.common.clock import Clock, seconds_to_ns
from robot_runtime.common.threads import background
from robot_runtime.hal import Head
from robot_runtime.hal.simulation import Simulation

EMULATOR_HZ = 100.0
"""Rate at which emulated servos move the simulated robot's head."""


class ServoLink(ABC):
    """Connection to the servos."""

    def __init__(self) -> None:
        self._opened, self._calls = ExitStack(), ExitStack()

    @abstractmethod
    def open(self) -> ServoBus:
        """Open the port. Raises ``DeviceFault``."""

    @abstractmethod
    def start(self, poll: Callable[[], None], on_placed: Callable[[], None]) -> None:
        """Call ``poll`` at the options' rate until :meth:`close`, and ``on_placed`` after a placement in simulation."""

    def close(self, last: Callable[[], None] | None = None) -> None:
        """End the calls, call ``last``, and close the port; never raises, may be called twice."""
        self._calls.close()
        if last is not None:
            last()
        self._opened.close()


class PortLink(ServoLink):
    """Real servos, polled by a thread."""

    def __init__(self, clock: Clock, options: DynamixelOptions) -> None:
        super().__init__()
        self._clock, self._options = clock, options

    def open(self) -> ServoBus:
        options = self._options
        port = Port(options.port, options.baud_rate, SERVOS)
        self._opened.callback(port.close)
        return ServoBus(SdkPort(port, options.baud_rate))

    def start(self, poll: Callable[[], None], on_placed: Callable[[], None]) -> None:
        self._calls.enter_context(background(partial(self._run, poll), self._options.port, JOIN_S))

    def _run(self, poll: Callable[[], None], ended: threading.Event) -> None:
        period_ns = seconds_to_ns(1 / self._options.rate_hz)
        next_ns = self._clock.now_ns()
        while not ended.is_set():
            poll()
            next_ns = max(next_ns + period_ns, self._clock.now_ns())
            self._clock.sleep_until(next_ns)


class EmulatedLink(ServoLink):
    """Emulated servos that turn a simulated robot's own head."""

    def __init__(self, simulation: Simulation, head: Head, options: DynamixelOptions) -> None:
        super().__init__()
        self._simulation, self._head, self._options = simulation, head, options
        variant = options.pan_tilt
        self._signs = (variant.pan.sign, variant.tilt.sign)
        self.servos = emulated_servos(variant)
        random = simulation.random(f"dynamixel on {options.port}")
        self._line = ServoLine(self.servos, options.emulator, random, self._turn)
        self._aims: Sequence[float] = ()

    def open(self) -> ServoBus:
        self._head.connect()
        self._opened.callback(self._head.close)
        options, terminal = self._options, Pty()
        self._opened.callback(terminal.unplug)
        port = Port(terminal.path, options.baud_rate, SERVOS)
        self._opened.callback(port.close)
        self._placed()
        self._calls.callback(self._simulation.on_placed(self._placed).close)
        self._calls.callback(self._simulation.every(EMULATOR_HZ, partial(self._advance, terminal)).close)
        return ServoBus(LockstepPort(terminal, port, self._exchange, options.baud_rate))

    def start(self, poll: Callable[[], None], on_placed: Callable[[], None]) -> None:
        self._calls.callback(self._simulation.every(self._options.rate_hz, lambda now_ns: poll()).close)
        self._calls.callback(self._simulation.on_placed(on_placed).close)

    def _exchange(self, data: bytes) -> bytes:
        return self._line.replies(data, self._simulation.clock.now_ns())

    def _advance(self, terminal: Pty, now_ns: int) -> None:
        self._line.advance(now_ns)
        if self._line.unplugged(now_ns):
            terminal.unplug()

    def _placed(self) -> None:
        """Take over the angles to which a placement has turned the head."""
        for servo, counts in zip(self.servos, self._measured(), strict=True):
            servo.put(counts)

    def _measured(self) -> list[float]:
        angles = self._simulation.head_angles()
        return [position_of(sign * angle) for sign, angle in zip(self._signs, angles, strict=True)]

    def _turn(self, aims: Sequence[float]) -> Sequence[float]:
        """Turn the simulated head towards the servos' aims, and return where it is."""
        if aims != self._aims:
            self._aims = aims
            pan_rad, tilt_rad = (sign * angle_rad_of(aim) for sign, aim in zip(self._signs, aims, strict=True))
            self._head.command(pan_rad, tilt_rad)
        return self._measured()
