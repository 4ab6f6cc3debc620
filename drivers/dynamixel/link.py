"""Connection to the servos: a thread on a real port, or emulated servos in lockstep with simulated time."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from drivers.dynamixel.bus import SdkPort, ServoBus
from drivers.dynamixel.emulator import LockstepPort, ServoLine, emulated_servos
from drivers.dynamixel.options import DynamixelOptions
from drivers.dynamixel.protocol import angle_rad_of, position_of
from drivers.dynamixel.serial_port import SERVOS
from drivers.serial_wire.port import Port
from drivers.serial_wire.pty_emulation import Pty
from drivers.serial_wire.reader import JOIN_S
from robot_runtime.common.clock import Clock, seconds_to_ns
from robot_runtime.hal import Head
from robot_runtime.hal.simulation import Simulation, Subscription

EMULATOR_HZ = 100.0
"""Rate at which emulated servos move the simulated robot's head."""


class ServoLink(ABC):
    """Connection to the servos."""

    @abstractmethod
    def open(self) -> ServoBus:
        """Open the port. Raises ``DeviceFault``."""

    @abstractmethod
    def start(self, poll: Callable[[], None], on_placed: Callable[[], None]) -> None:
        """Call ``poll`` at the options' rate until :meth:`close`, and ``on_placed`` after a placement in simulation."""

    @abstractmethod
    def close(self, last: Callable[[], None] | None = None) -> None:
        """End the calls, call ``last``, and close the port; never raises, may be called twice."""


class PortLink(ServoLink):
    """Real servos, polled by a thread."""

    def __init__(self, clock: Clock, options: DynamixelOptions) -> None:
        self._clock, self._options = clock, options
        self._port: Port | None = None
        self._thread: threading.Thread | None = None
        self._over = threading.Event()

    def open(self) -> ServoBus:
        options = self._options
        self._port = Port(options.port, options.baud_rate, SERVOS)
        return ServoBus(SdkPort(self._port, options.baud_rate))

    def start(self, poll: Callable[[], None], on_placed: Callable[[], None]) -> None:
        self._over.clear()
        self._thread = threading.Thread(target=self._run, args=(poll,), name=self._options.port, daemon=True)
        self._thread.start()

    def close(self, last: Callable[[], None] | None = None) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join(JOIN_S)
            self._thread = None
        if self._port is not None:
            if last is not None:
                last()
            self._port.close()
            self._port = None

    def _run(self, poll: Callable[[], None]) -> None:
        period_ns = seconds_to_ns(1 / self._options.rate_hz)
        next_ns = self._clock.now_ns()
        while not self._over.is_set():
            poll()
            next_ns = max(next_ns + period_ns, self._clock.now_ns())
            self._clock.sleep_until(next_ns)


class EmulatedLink(ServoLink):
    """Emulated servos that turn a simulated robot's own head."""

    def __init__(self, simulation: Simulation, head: Head, options: DynamixelOptions) -> None:
        self._simulation, self._head, self._options = simulation, head, options
        variant = options.pan_tilt
        self._signs = (variant.pan.sign, variant.tilt.sign)
        self.servos = emulated_servos(variant)
        random = simulation.random(f"dynamixel on {options.port}")
        self._line = ServoLine(self.servos, options.emulator, random, self._turn)
        self._subscriptions: list[Subscription] = []
        self._terminal: Pty | None = None
        self._port: Port | None = None
        self._aims: Sequence[float] = ()

    def open(self) -> ServoBus:
        self._head.connect()
        options, terminal = self._options, Pty()
        self._terminal = terminal
        self._port = Port(terminal.path, options.baud_rate, SERVOS)
        self._placed()
        self._subscriptions = [
            self._simulation.on_placed(self._placed),
            self._simulation.every(EMULATOR_HZ, self._advance),
        ]
        return ServoBus(LockstepPort(terminal, self._port, self._exchange, options.baud_rate))

    def start(self, poll: Callable[[], None], on_placed: Callable[[], None]) -> None:
        self._subscriptions += [
            self._simulation.every(self._options.rate_hz, lambda now_ns: poll()),
            self._simulation.on_placed(on_placed),
        ]

    def close(self, last: Callable[[], None] | None = None) -> None:
        for subscription in self._subscriptions:
            subscription.close()
        self._subscriptions = []
        if self._port is not None:
            if last is not None:
                last()
            self._port.close()
            self._port = None
        if self._terminal is not None:
            self._terminal.unplug()
            self._terminal = None
        self._head.close()

    def _exchange(self, data: bytes) -> bytes:
        return self._line.replies(data, self._simulation.clock.now_ns())

    def _advance(self, now_ns: int) -> None:
        self._line.advance(now_ns)
        if self._terminal is not None and self._line.unplugged(now_ns):
            self._terminal.unplug()

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
