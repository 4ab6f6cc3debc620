"""Interface of a base's protocol to the guard process: bytes in, readings out; velocities in, bytes out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import IntEnum
from typing import ClassVar, NamedTuple

from drivers.serial_wire.port import Attachment
from robot_runtime.errors import DeviceFault
from robot_runtime.hal.wheels import Velocity, Zone


class Reading(NamedTuple):
    """Measurements of a base at one instant.

    Attributes:
        stamp_ns: of the measurement, on the guard's clock.
        x_m: odometry, pose of base_link in ``odom``.
        y_m: likewise.
        yaw_rad: likewise.
        linear_m_s: measured velocity.
        angular_rad_s: likewise.
        bumper: bits of :class:`~robot_runtime.hal.wheels.Zone`.
        cliff: likewise.
        wheel_drop: likewise.
        battery_v: volts.
        battery_fraction: 0 empty .. 1 full.
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


class Signal(IntEnum):
    """State that the base's lights and sounds show to people."""

    IDLE = 0
    """No command, or standing."""
    MOVING = 1
    HELD = 2
    """Contact, cliff or wheel drop holds the wheels."""
    STOPPED = 3
    """An emergency stop or a fault does."""


class BaseWire(ABC):
    """Protocol of one base, with its memory. Pure: no port, no clock.

    Attributes:
        attachment: the kind of device, for messages.
        baud_rate: of the port.
        other_baud_rate: at which the device may talk instead after it was switched on; None for none.
        period_s: between two readings.
        fault: why the device cannot be used; None while it can.
        hold: why it must not move now, in one sentence; empty if it may.
        missed: number of readings so far that were lost on the way.
    """

    attachment: ClassVar[Attachment]
    baud_rate: ClassVar[int]
    other_baud_rate: ClassVar[int | None] = None
    period_s: ClassVar[float]

    fault: DeviceFault | None = None
    hold: str = ""
    missed: int = 0

    @abstractmethod
    def begin(self, now_ns: int) -> bytes:
        """Return what is sent when the port was opened; wheels at zero."""

    def call(self) -> bytes:
        """Return what, sent at ``other_baud_rate``, has the device talk at ``baud_rate``."""
        return b""

    @abstractmethod
    def feed(self, data: bytes, now_ns: int) -> list[Reading]:
        """Return the readings completed by these bytes."""

    @abstractmethod
    def drive(self, velocity: Velocity) -> bytes:
        """Return the command for a velocity; for zero it stops the base in any state of its protocol."""

    @abstractmethod
    def upkeep(self, signal: Signal, now_ns: int) -> bytes:
        """Return what else is to be sent now: requests, lights, sounds; called once per reading."""

    @abstractmethod
    def end(self) -> bytes:
        """Return what is sent before the port is closed; wheels at zero."""

    @property
    def version(self) -> str:
        """Version of the firmware, as far as the device tells it."""
        return ""

    @property
    @abstractmethod
    def skipped(self) -> int:
        """Number of bytes so far that belonged to no frame."""


def zones(bits: int, left: int, center: int, right: int) -> int:
    """Return bits of ``Zone`` for a device's own bits; a device without a center sensor has both sides for it."""
    found = Zone.NONE
    for bit, zone in ((left, Zone.LEFT), (center, Zone.CENTER), (right, Zone.RIGHT)):
        if bit and bits & bit == bit:
            found |= zone
    return int(found.value)
