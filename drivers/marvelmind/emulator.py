"""Emulated hedgehog at the other end of a pty: packets from a simulated robot's true pose.

The kernel delivers bytes of a pty with a delay. For reproducible runs the reader waits for all written bytes before
simulated time advances.
"""

import math
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from drivers.marvelmind import protocol
from drivers.marvelmind.mounting import Mounting
from drivers.marvelmind.protocol import Flags, Packet, Position
from drivers.marvelmind.serial_port import HEDGEHOG
from drivers.serial_wire.faults import Noisy, Silent, Unplugged, noisy
from drivers.serial_wire.port import Port
from drivers.serial_wire.pty_emulation import Pty, read_exactly
from drivers.serial_wire.reader import Link
from robot_runtime.common.clock import ns_to_seconds, seconds_to_ns
from robot_runtime.common.config import Strict
from robot_runtime.common.quantities import CameraHeight, Latency, ShortTime, Spread
from robot_runtime.errors import DeviceFault
from robot_runtime.hal.fault_schedule import Script, Window
from robot_runtime.hal.simulation import Simulation


class NoFix(Window):
    """Packets without a fix: the line of sight is blocked."""


class Frozen(Window):
    """Fresh packets with the coordinates of the window's first fix."""


class Repeating(Window):
    """The window's first packet again and again, its timestamp included."""


class ClockBack(Window):
    """The hedgehog's clock is ``by_s`` behind what it was."""

    by_s: float = 5.0


class MovedAnchor(Window):
    """A moved beacon: all positions are off by this much."""

    dx_m: float = 0.5
    dy_m: float = 0.0


class Mirrored(Window):
    """A mirrored beacon map: y has the opposite sign."""


class Scaled(Window):
    """A wrong unit: factor 1000 for millimeters read as meters, 0.001 for the reverse."""

    factor: float = 1000.0


class Stranger(Window):
    """Additional packets of hedgehog ``address``; a hedgehog marks them as another's, a modem does not."""

    address: int = 99
    marked: bool = True


Fault = Annotated[
    NoFix | Silent | Frozen | Repeating | ClockBack | MovedAnchor | Mirrored | Scaled | Stranger | Noisy | Unplugged,
    Field(discriminator="kind"),
]


WIRE_HZ = 100.0
"""Rate at which due packets are written."""

EPOCH_MS = 1_700_000_000_000
"""The hedgehog's Unix time at time 0 of the simulated clock."""

CODES = {"cm": protocol.POSITION_CM, "mm": protocol.POSITION_MM, "mm_unix": protocol.POSITION_MM_UNIX}
MIN_OUTLIER_M = 0.2
Probability = Annotated[float, Field(ge=0, lt=1)]


@dataclass(frozen=True)
class EmulatorOptions(Strict):
    """Behavior of the emulated hedgehog on a simulated robot.

    Attributes:
        packet: type of the position packets.
        latency_s: time from the ultrasound's emission to the packet, stated in the packet's age.
        noise_m: standard deviation of each hedgehog's position, white, in x and in y.
        outlier_probability: probability of a fix with an additional error.
        outlier_m: greatest additional error, in any direction.
        dropout_probability: probability that a series without a fix begins.
        dropout_s: duration of such a series.
        height_m: height of the hedgehog.
        chatter: whether packets without a position are sent as well.
        mounting: true mounting of hedgehog and beacons; None for the driver's.
        faults: see :data:`Fault`.
    """

    packet: Literal["cm", "mm", "mm_unix"] = "mm_unix"
    latency_s: Latency = 0.08
    noise_m: Spread = 0.02
    outlier_probability: Probability = 0.0
    outlier_m: Annotated[float, Field(ge=MIN_OUTLIER_M)] = 1.5
    dropout_probability: Probability = 0.0
    dropout_s: ShortTime = 2.0
    height_m: CameraHeight = 0.45
    chatter: bool = True
    mounting: Mounting | None = None
    faults: tuple[Fault, ...] = ()


class Hedgehog:
    """Emulated hedgehog: measurements, and the packets due at a time."""

    def __init__(
        self, simulation: Simulation, name: str, mounting: Mounting, address: int, options: EmulatorOptions
    ) -> None:
        self._simulation, self._name = simulation, name
        self._mounting, self._address, self._options = options.mounting or mounting, address, options
        self._script = Script(options.faults)
        self._latency_ns = seconds_to_ns(options.latency_s)
        self.restart()

    def restart(self) -> None:
        """Drop all packets in transit and start a new random stream, as at every placement."""
        self._random: np.random.Generator = self._simulation.random(self._name)
        self._due: deque[tuple[int, Position]] = deque()
        self._lost_until_ns = 0
        self._frozen: tuple[float, float, float | None] | None = None
        self._repeated: bytes | None = None

    def unplugged(self, now_ns: int) -> bool:
        return bool(self._script.active(Unplugged, now_ns))

    def measure(self, now_ns: int) -> None:
        """Measure the position now."""
        if self._script.active(Silent, now_ns):
            return
        position = self._position(now_ns)
        self._due.append((now_ns, position))
        for foreign in self._script.active(Stranger, now_ns):
            flags = position.flags | (Flags.OTHER_HEDGEHOG if foreign.marked else Flags(0))
            other = replace(position, address=foreign.address, x_m=position.x_m + 3.0, flags=flags)
            self._due.append((now_ns, other))

    def transmit(self, now_ns: int) -> bytes:
        """Return the due packets."""
        data = b""
        while self._due and self._due[0][0] + self._latency_ns <= now_ns:
            measured_ns, position = self._due.popleft()
            packet = protocol.encode(replace(position, age_s=ns_to_seconds(now_ns - measured_ns)))
            if not self._script.active(Repeating, now_ns):
                self._repeated = None
            elif self._repeated is None:
                self._repeated = packet
            data += self._corrupted(self._repeated or packet, now_ns)
            if self._options.chatter:
                data += protocol.frame(Packet(protocol.QUALITY, bytes([self._address, 90]) + bytes(14)))
                data += protocol.frame(Packet(0x0003, self._random.bytes(32)))
        return data

    def _position(self, now_ns: int) -> Position:
        x_m, y_m, angle_rad = self._measured(now_ns)
        fixed = self._has_fix(now_ns)
        flags = Flags.MILLISECONDS if fixed else Flags.MILLISECONDS | Flags.UNAVAILABLE
        behind_s = sum(fault.by_s for fault in self._script.active(ClockBack, now_ns))
        code = CODES[self._options.packet]
        epoch_ms = EPOCH_MS if code == protocol.POSITION_MM_UNIX else 0
        return Position(
            code=code,
            device_ms=epoch_ms + round((ns_to_seconds(now_ns) - behind_s) * 1000),
            x_m=x_m,
            y_m=y_m,
            z_m=self._options.height_m,
            address=self._address,
            angle_rad=angle_rad if fixed else None,
            pair_center=self._mounting.pair is not None,
            flags=flags,
        )

    def _measured(self, now_ns: int) -> tuple[float, float, float | None]:
        """Return coordinates in the beacons' frame and the pair's angle, with noise and faults."""
        options, random = self._options, self._random
        x_m, y_m, angle_rad = self._mounting.coordinates_of(self._simulation.pose())
        # Each hedgehog of a pair has the noise: their mean has less, the direction between them has it twice.
        pair = self._mounting.pair
        noise_m = options.noise_m / math.sqrt(1 if pair is None else 2)
        off_x_m, off_y_m, off_angle = (float(value) for value in random.standard_normal(3))
        x_m, y_m = x_m + noise_m * off_x_m, y_m + noise_m * off_y_m
        if angle_rad is not None and pair is not None:
            angle_rad = (angle_rad + off_angle * math.sqrt(2) * options.noise_m / pair.base_m) % (2 * math.pi)
        chance, direction_rad, share = random.random(), random.uniform(-math.pi, math.pi), random.random()
        if chance < options.outlier_probability:
            away_m = MIN_OUTLIER_M + share * (options.outlier_m - MIN_OUTLIER_M)
            x_m, y_m = x_m + away_m * math.cos(direction_rad), y_m + away_m * math.sin(direction_rad)
        for moved in self._script.active(MovedAnchor, now_ns):
            x_m, y_m = x_m + moved.dx_m, y_m + moved.dy_m
        if self._script.active(Mirrored, now_ns):
            y_m, angle_rad = -y_m, None if angle_rad is None else -angle_rad % (2 * math.pi)
        for scaled in self._script.active(Scaled, now_ns):
            x_m, y_m = x_m * scaled.factor, y_m * scaled.factor
        if not self._script.active(Frozen, now_ns):
            self._frozen = None
        elif self._frozen is None:
            self._frozen = x_m, y_m, angle_rad
        return self._frozen or (x_m, y_m, angle_rad)

    def _has_fix(self, now_ns: int) -> bool:
        chance = self._random.random()
        if now_ns >= self._lost_until_ns and chance < self._options.dropout_probability:
            self._lost_until_ns = now_ns + seconds_to_ns(self._options.dropout_s)
        return now_ns >= self._lost_until_ns and not self._script.active(NoFix, now_ns)

    def _corrupted(self, packet: bytes, now_ns: int) -> bytes:
        return noisy(packet, self._random) if self._script.active(Noisy, now_ns) else packet


class EmulatedLink(Link):
    """Reader of a pty in lockstep with simulated time, with the emulated hedgehog at its other end."""

    def __init__(self, simulation: Simulation, hedgehog: Hedgehog, rate_hz: float, baud_rate: int) -> None:
        self._simulation, self._hedgehog = simulation, hedgehog
        self._rate_hz, self._baud_rate = rate_hz, baud_rate
        self._opened = ExitStack()
        self._fault: DeviceFault | None = None

    def open(self, on_bytes: Callable[[bytes], None]) -> None:
        self._fault = None
        terminal = Pty()
        self._opened.callback(terminal.unplug)
        port = Port(terminal.path, self._baud_rate, HEDGEHOG)
        self._opened.callback(port.close)
        self._hedgehog.restart()
        simulation, transmit = self._simulation, partial(self._transmit, terminal, port, on_bytes)
        self._opened.callback(simulation.on_placed(self._hedgehog.restart).close)
        self._opened.callback(simulation.every(self._rate_hz, self._hedgehog.measure).close)
        self._opened.callback(simulation.every(WIRE_HZ, transmit).close)

    def check(self) -> None:
        if self._fault is not None:
            raise self._fault

    def close(self) -> None:
        self._opened.close()

    def _transmit(self, terminal: Pty, port: Port, on_bytes: Callable[[bytes], None], now_ns: int) -> None:
        if self._fault is not None:
            return
        data = self._hedgehog.transmit(now_ns)
        if self._hedgehog.unplugged(now_ns):
            terminal.unplug()
            data = b"gone"
        terminal.write(data)
        try:
            received = read_exactly(port, len(data))
        except DeviceFault as fault:
            self._fault = fault
            return
        if received:
            on_bytes(received)
