"""Emulated bases: the firmware at the other end of the line, with a body that is simulated elsewhere."""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field

from drivers.serial_wire.faults import DroppedBytes, Noisy, Silent, Unplugged, noisy, thinned
from drivers.serial_wire.pty_emulation import EmulatedDevice, PacedLine
from robot_runtime.common.clock import ns_to_seconds, seconds_to_ns
from robot_runtime.common.config import Strict
from robot_runtime.common.quantities import Response
from robot_runtime.hal import Velocity, Zone
from robot_runtime.hal.fault_schedule import Script, Window
from robot_runtime.hal.simulation import SimulatedChassis
from robot_runtime.safety.guard import STILL


class Rebooting(Window):
    """The base is switched off and on: no bytes, no motion, then all counters from zero."""


class StuckBumper(Window):
    """A bumper switch that is stuck, by the bits of ``Zone``."""

    zone: Annotated[int, Field(ge=1, le=7)] = 2


class Lifted(Window):
    """The robot is lifted: both wheels drop."""


class SlowReplies(Window):
    """Messages of the base arrive this much later."""

    by_s: Annotated[float, Field(ge=0, le=5)] = 0.05


class QuantizedSpeed(Window):
    """The wheels' speeds are multiples of this, besides what the base's motors do."""

    quantum_m_s: Annotated[float, Field(gt=0, le=0.1)] = 0.0285


class LowVoltage(Window):
    """The battery's voltage."""

    volts: float = 13.0


class OverCurrent(Window):
    """The left wheel's motor draws too much current."""


class PressedButton(Window):
    """Buttons that are held down, by bits."""

    bits: Annotated[int, Field(ge=1, le=255)] = 1


Fault = Annotated[
    Silent
    | Noisy
    | DroppedBytes
    | Unplugged
    | Rebooting
    | StuckBumper
    | Lifted
    | SlowReplies
    | QuantizedSpeed
    | LowVoltage
    | OverCurrent
    | PressedButton,
    Field(discriminator="kind"),
]


@dataclass(frozen=True)
class EmulatorOptions(Strict):
    """Behavior of an emulated base.

    Attributes:
        latency_s: latency of the USB adapter, for what the base sends.
        gyro_noise_deg: standard deviation of each heading by the gyro, white.
        gyro_drift_deg_s: rate at which the gyro's heading drifts.
        gyro_scale: turn by the gyro per turn.
        firmware: version that the base reports, for example ``1.2.0``; empty for the device's latest.
        baud_rate: baud rate at which it talks after it was switched on; None for its usual one.
        faults: see :data:`Fault`.
    """

    latency_s: Response = 0.001
    gyro_noise_deg: Annotated[float, Field(ge=0, le=10)] = 0.0
    gyro_drift_deg_s: Annotated[float, Field(ge=-10, le=10)] = 0.0
    gyro_scale: Annotated[float, Field(gt=0.5, lt=2)] = 1.0
    firmware: str = ""
    baud_rate: Literal[19_200, 115_200] | None = None
    faults: tuple[Fault, ...] = ()


class Sensed(NamedTuple):
    """Values of a base's sensors now, faults included.

    Attributes:
        left_m: way of the left wheel so far.
        right_m: way of the right wheel so far.
        gyro_rad: heading by the gyro, not wrapped.
        rate_rad_s: turning rate by the gyro.
        bumper: zones that are pressed.
        cliff: zones without a floor.
        wheel_drop: wheels that hang.
        battery_v: volts.
        over_current: whether the left wheel's motor draws too much.
        buttons: bits.
    """

    left_m: float
    right_m: float
    gyro_rad: float
    rate_rad_s: float
    bumper: Zone
    cliff: Zone
    wheel_drop: Zone
    battery_v: float
    over_current: bool
    buttons: int


class EmulatedBase(EmulatedDevice):
    """Firmware of a base.

    Where nothing else moves the body, ``advance`` is called with the commanded velocity and the present time before
    sensors are read.

    Attributes:
        period_s: between two messages.
        latest_firmware: version without another in the options.
        velocity: that the firmware commands its motors.
    """

    usual_baud_rate: ClassVar[int]
    period_s: ClassVar[float]
    separation_m: ClassVar[float]
    latest_firmware: ClassVar[str]

    def __init__(
        self,
        body: SimulatedChassis,
        random: np.random.Generator,
        options: EmulatorOptions,
        advance: Callable[[Velocity, int], None] | None = None,
    ) -> None:
        self.velocity = STILL
        self._body, self._random, self._options = body, random, options
        self._advance = advance
        self.firmware = options.firmware or self.latest_firmware
        self._script = Script(options.faults)
        self._period_ns = seconds_to_ns(self.period_s)
        self.baud_rate = options.baud_rate or self.usual_baud_rate
        self._to_driver = PacedLine(self.baud_rate, options.latency_s)
        self._from_driver = PacedLine(self.baud_rate)
        self._next_ns: int | None = None
        self._begun_ns = 0
        self._last: tuple[int, float] | None = None
        self._rebooting = False
        self.reboot()

    # --- the device's own part --------------------------------------------------------------------------------------

    @abstractmethod
    def take(self, data: bytes) -> None:
        """Take bytes that have arrived from the driver; sets ``velocity``."""

    @abstractmethod
    def message(self, sensed: Sensed, now_ns: int) -> bytes:
        """Return the message of a period."""

    @abstractmethod
    def reboot(self) -> None:
        """Forget what is the device's own, as after a loss of power."""

    @property
    def banner(self) -> bytes:
        """Text that it sends after a restart."""
        return b""

    def restart(self) -> None:
        """Stand still and forget everything."""
        self.velocity = STILL
        self.change_baud_rate(self._options.baud_rate or self.usual_baud_rate)
        self.reboot()

    def change_baud_rate(self, baud_rate: int) -> None:
        """Talk at another rate from now on."""
        self.baud_rate = self._to_driver.baud_rate = self._from_driver.baud_rate = baud_rate

    # --- as seen from the line --------------------------------------------------------------------------------------

    def unplugged(self, now_ns: int) -> bool:
        return bool(self._script.active(Unplugged, self._own_ns(now_ns)))

    def receive(self, data: bytes, now_ns: int) -> None:
        if data and not self._rebooting:
            self._from_driver.put(self._thinned(data, self._own_ns(now_ns)), now_ns)

    def transmit(self, now_ns: int) -> bytes:
        if self._next_ns is None:
            self._begun_ns = self._next_ns = now_ns
        own_ns = self._own_ns(now_ns)
        self._run(now_ns, own_ns)
        while self._next_ns <= now_ns:
            sampled_ns = self._own_ns(self._next_ns)
            self._next_ns += self._period_ns
            if not (self._rebooting or self._script.active(Silent, own_ns)):
                self._send(self.message(self._sensed(sampled_ns), sampled_ns), now_ns, own_ns)
        return b"" if self.unplugged(now_ns) else self._to_driver.due(now_ns)

    def next_ns(self) -> int:
        instants = (self._next_ns, self._to_driver.next_ns, self._from_driver.next_ns)
        return min(instant for instant in instants if instant is not None) if any(instants) else 0

    def drive(self, now_ns: int) -> Velocity:
        """Return the velocity that the motors are commanded now, with what has arrived so far."""
        self._run(now_ns, self._own_ns(now_ns))
        return self._quantized(self._own_ns(now_ns))

    def _own_ns(self, now_ns: int) -> int:
        """Time since the device was first used, which is that of its faults."""
        return now_ns - self._begun_ns

    def _run(self, now_ns: int, own_ns: int) -> None:
        if self._advance is not None:
            self._advance(self._quantized(own_ns), now_ns)
        rebooting = bool(self._script.active(Rebooting, own_ns))
        if rebooting and not self._rebooting:
            self._from_driver.clear()
            self._to_driver.clear()
            self.restart()
        elif self._rebooting and not rebooting:
            self._send(self.banner, now_ns, own_ns)
        self._rebooting = rebooting
        arrived = self._from_driver.due(now_ns)
        if arrived:
            self.take(arrived)

    def _quantized(self, own_ns: int) -> Velocity:
        velocity, half_m = self.velocity, self.separation_m / 2
        for fault in self._script.active(QuantizedSpeed, own_ns):
            speeds = (velocity.linear_m_s + side * half_m * velocity.angular_rad_s for side in (-1, 1))
            left, right = (fault.quantum_m_s * round(speed / fault.quantum_m_s) for speed in speeds)
            velocity = Velocity((left + right) / 2, (right - left) / self.separation_m)
        return velocity

    def _send(self, data: bytes, now_ns: int, own_ns: int) -> None:
        if not data:
            return
        data = self._thinned(data, own_ns)
        if self._script.active(Noisy, own_ns):
            data = noisy(data, self._random)
        late_ns = sum(seconds_to_ns(fault.by_s) for fault in self._script.active(SlowReplies, own_ns))
        self._to_driver.put(data, now_ns + late_ns)

    def _thinned(self, data: bytes, own_ns: int) -> bytes:
        for fault in self._script.active(DroppedBytes, own_ns):
            data = thinned(data, fault.probability, self._random)
        return data

    def _sensed(self, own_ns: int) -> Sensed:
        body, options, script = self._body.sensors(), self._options, self._script
        left_m, right_m = body.wheels_m
        seconds = ns_to_seconds(own_ns)
        gyro_rad = options.gyro_scale * body.heading_rad + math.radians(
            options.gyro_drift_deg_s * seconds + options.gyro_noise_deg * float(self._random.standard_normal())
        )
        last, self._last = self._last, (own_ns, body.heading_rad)
        turned_rad = 0.0 if last is None else body.heading_rad - last[1]
        rate_rad_s = 0.0 if last is None or own_ns == last[0] else turned_rad / ns_to_seconds(own_ns - last[0])
        bumper, wheel_drop, battery_v = body.bumper, body.wheel_drop, body.battery_v
        for stuck in script.active(StuckBumper, own_ns):
            bumper |= Zone(stuck.zone)
        if script.active(Lifted, own_ns):
            wheel_drop = Zone.LEFT | Zone.RIGHT
        for low in script.active(LowVoltage, own_ns):
            battery_v = low.volts
        buttons = 0
        for pressed in script.active(PressedButton, own_ns):
            buttons |= pressed.bits
        over_current = bool(script.active(OverCurrent, own_ns))
        return Sensed(
            left_m, right_m, gyro_rad, rate_rad_s, bumper, body.cliff, wheel_drop, battery_v, over_current, buttons
        )
