"""Interface of a base's protocol to the guard process: bytes in, readings out; velocities in, bytes out."""

import math
from abc import ABC, abstractmethod
from enum import IntEnum
from functools import reduce
from operator import or_
from typing import ClassVar, NamedTuple, Protocol

from drivers.serial_wire.port import Attachment, Port
from robot_runtime.errors import DeviceFault
from robot_runtime.hal.wheels import Velocity, Zone
from robot_runtime.safety.guard import STILL


class DeadReckoning:
    """Pose of base_link in ``odom``, which begins at zero.

    Attributes:
        yaw_rad: heading, within -pi to pi.
    """

    def __init__(self, separation_m: float) -> None:
        self._separation_m = separation_m
        self.x_m = self.y_m = self.yaw_rad = 0.0

    def update(self, left_m: float, right_m: float, turn_rad: float | None = None) -> None:
        """Add a small motion.

        Args:
            left_m: way of the left wheel.
            right_m: way of the right wheel.
            turn_rad: turn that a gyro measured; None takes the wheels'.
        """
        forward_m = (left_m + right_m) / 2
        if turn_rad is None:
            turn_rad = (right_m - left_m) / self._separation_m
        heading_rad = self.yaw_rad + turn_rad / 2  # the chord of an arc lies along its mean heading
        self.x_m += forward_m * math.cos(heading_rad)
        self.y_m += forward_m * math.sin(heading_rad)
        self.yaw_rad = math.remainder(self.yaw_rad + turn_rad, 2 * math.pi)


class Reading(NamedTuple):
    """Measurements of a base at one instant.

    Attributes:
        stamp_ns: time of the measurement, on the guard's clock.
        x_m: position of base_link in ``odom``, by odometry.
        y_m: position of base_link in ``odom``, by odometry.
        yaw_rad: heading of base_link in ``odom``, by odometry, within -pi to pi.
        linear_m_s: measured velocity, forward positive.
        angular_rad_s: measured velocity, counter-clockwise positive.
        bumper: pressed zones, bits of :class:`~robot_runtime.hal.wheels.Zone`.
        cliff: zones without a floor, bits of ``Zone``.
        wheel_drop: wheels that hang, bits of ``Zone``.
        battery_v: voltage of the battery; NaN if the base does not measure it.
        battery_fraction: charge, 0 empty .. 1 full; NaN if the base does not know it.
        charging: whether it is on a charger.
        buttons: bits, one for each button that is pressed.
        over_current: bits of ``Zone``: wheels whose motors draw too much current.
        pushed: whether the wheels turned in a way that was not commanded, which makes odometry doubtful.
    """

    stamp_ns: int
    x_m: float = 0.0
    y_m: float = 0.0
    yaw_rad: float = 0.0
    linear_m_s: float = 0.0
    angular_rad_s: float = 0.0
    bumper: int = 0
    cliff: int = 0
    wheel_drop: int = 0
    battery_v: float = float("nan")
    battery_fraction: float = float("nan")
    charging: bool = False
    buttons: int = 0
    over_current: int = 0
    pushed: bool = False


class Transport(Protocol):
    """An open connection to a base: a serial port, a socket, or any object with these methods."""

    def fileno(self) -> int:
        """File descriptor that ``select`` finds readable when bytes have arrived."""

    def read(self) -> bytes:
        """Return the bytes that have arrived. Raises ``DeviceFault`` if the connection is lost."""

    def write(self, data: bytes) -> None:
        """Write all bytes without a long wait. Raises ``DeviceFault`` if the connection is lost."""

    def close(self) -> None:
        """Release the connection."""


class Signal(IntEnum):
    """State that the base's lights and sounds show to people."""

    IDLE = 0
    """No command, or standing."""
    MOVING = 1
    HELD = 2
    """Contact, cliff or wheel drop holds the wheels."""
    STOPPED = 3
    """An emergency stop or a fault does."""


NO_VERSION = "the device does not answer the request for its version"
"""``BaseWire.version`` of a device that should tell it."""


class BaseWire(ABC):
    """Protocol of a base, with its memory. It uses no clock, and but for :meth:`open` no port.

    Attributes:
        attachment: kind of device, for messages.
        other_baud_rate: baud rate of a device that was just switched on, if it may be another; None if not.
        period_s: time between two readings; at 0.05 s the feedback timeout of 0.1 s tolerates no lost reading.
        fault: reason why the device cannot be used; None while it can.
        hold: reason why the device must not move now, in one sentence; empty if it may.
        missed: number of readings so far that were lost on the way.
    """

    attachment: ClassVar[Attachment]
    baud_rate: ClassVar[int] = 115_200
    other_baud_rate: ClassVar[int | None] = None
    period_s: ClassVar[float]

    fault: DeviceFault | None = None
    hold: str = ""
    missed: int = 0

    def open(self, port: str) -> Transport:
        """Open the connection; the default opens a serial port.

        Args:
            port: path of a serial device, or another address that the wire understands.

        Raises:
            DeviceFault: no connection; within 0.4 s, because the guard process does nothing else meanwhile.
        """
        return Port(port, self.baud_rate, self.attachment)

    def begin(self, now_ns: int) -> bytes:
        """Return what is sent after :meth:`open`, and again to a silent base; wheels at zero."""
        return self.drive(STILL)

    def call(self) -> bytes:
        """Return what, sent at ``other_baud_rate``, has the device talk at ``baud_rate``."""
        return b""

    @abstractmethod
    def feed(self, data: bytes, now_ns: int) -> list[Reading]:
        """Return the readings that are complete with these bytes, which may end in the middle of a message."""

    @abstractmethod
    def drive(self, velocity: Velocity) -> bytes:
        """Return the command for a velocity; for zero it stops the base in any state of its protocol."""

    def upkeep(self, signal: Signal, now_ns: int) -> bytes:
        """Return what else is to be sent now: requests, lights, sounds; called once per reading."""
        return b""

    def end(self) -> bytes:
        """Return what is sent before the connection is closed; wheels at zero."""
        return self.drive(STILL)

    @property
    def version(self) -> str:
        """Version of the firmware, as far as the device tells it."""
        return ""

    @property
    def skipped(self) -> int:
        """Number of bytes so far that belonged to no message, if the wire counts them."""
        return 0


def zones(bits: int, left: int, center: int, right: int) -> int:
    """Return bits of ``Zone`` for a device's own bits; a device without a center sensor has both sides for it."""
    pairs = ((left, Zone.LEFT), (center, Zone.CENTER), (right, Zone.RIGHT))
    return sum(zone.value for bit, zone in pairs if bit and bits & bit == bit)


def bits_of(zone: Zone, left: int, center: int, right: int) -> int:
    """Return a device's own bits for zones, the inverse of :func:`zones`."""
    pairs = ((left, Zone.LEFT), (center, Zone.CENTER), (right, Zone.RIGHT))
    return reduce(or_, (bit for bit, single in pairs if single in zone), 0)
