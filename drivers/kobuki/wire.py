"""Kobuki behind the guard process: readings from its frames, commands for its wheels, lights and sounds."""

import math

from drivers.kobuki import protocol
from drivers.kobuki.protocol import Basic, Inertia, RequestExtra, SoundSequence, Version, base_control, encode
from drivers.kobuki.serial_port import KOBUKI
from drivers.serial_base.wire import NO_VERSION, BaseWire, DeadReckoning, Reading, Signal, zones
from robot_runtime.common.clock import NS_PER_S, seconds_to_ns
from robot_runtime.errors import DeviceFault
from robot_runtime.hal.clock_sync import ClockSync
from robot_runtime.hal.wheels import Velocity

OLDEST_FIRMWARE = Version(1, 1, 4)
"""Before it, the gyro drifts (its own change log), and before 1.1.2 the base backs off by itself after a contact."""

FRAME_S = 0.008
"""From a measurement to its arrival: 81 bytes on the wire, and the USB adapter's latency timer of 1 ms."""

REQUEST_S = 0.5
"""Time after which an unanswered request for the firmware's version is repeated."""

MAX_UNANSWERED = 4
"""Unanswered requests after which the device is reported."""

RESTART_S = 0.5
"""By how much more time may have passed for the device than here, between two frames, before it was restarted."""

MAX_M_S = 1.5
"""Speed that no wheel reaches: encoders that say so were restarted."""

WRAP_S = 65.536
"""Time after which the device's own time restarts."""

_TURN_CDEG = 36_000
_LEDS = {
    Signal.IDLE: protocol.LED_GREEN,
    Signal.MOVING: protocol.LED_GREEN,
    Signal.HELD: protocol.LED_ORANGE,
    Signal.STOPPED: protocol.LED_RED,
}
LOW_FRACTION, CRITICAL_FRACTION = protocol.battery_fraction(14.0), protocol.battery_fraction(13.2)


class KobukiWire(BaseWire):
    """A Kobuki; its heading is the gyro's.

    Attributes:
        firmware: its version; None until it has answered.
    """

    attachment, baud_rate, period_s = KOBUKI, protocol.BAUD_RATE, protocol.PERIOD_S

    def __init__(self) -> None:
        self._decoder = protocol.Decoder()
        self._odometry = DeadReckoning(protocol.SEPARATION_M)
        self._sync = ClockSync(FRAME_S)
        self._basic: Basic | None = None
        self._angle_cdeg: int | None = None
        self._device_ns = self._arrived_ns = 0
        self.firmware: Version | None = None
        self._requested_ns = 0
        self._unanswered = 0
        self._shown: tuple[int, int] | None = None
        self._signal = Signal.IDLE
        self._fraction = 1.0

    @property
    def version(self) -> str:
        if self.firmware is None:
            return NO_VERSION if self._unanswered >= MAX_UNANSWERED else ""
        return str(self.firmware)

    @property
    def skipped(self) -> int:
        return self._decoder.skipped

    def begin(self, now_ns: int) -> bytes:
        self._requested_ns, self._shown = now_ns, None
        stop, request = encode(base_control(0.0, 0.0)), encode(RequestExtra(protocol.HARDWARE | protocol.FIRMWARE))
        return stop + request + encode(SoundSequence(protocol.SOUND_ON))

    def feed(self, data: bytes, now_ns: int) -> list[Reading]:
        readings = []
        for parts in self._decoder.feed(data):
            basic = inertia = None
            for part in parts:
                if isinstance(part, Basic):
                    basic = part
                elif isinstance(part, Inertia):
                    inertia = part
                elif isinstance(part, protocol.FirmwareVersion):
                    self._check(part.version)
            if basic is not None:
                readings.append(self._reading(basic, inertia, now_ns))
        return readings

    def drive(self, velocity: Velocity) -> bytes:
        return encode(base_control(velocity.linear_m_s, velocity.angular_rad_s))

    def upkeep(self, signal: Signal, now_ns: int) -> bytes:
        data = b""
        if self.firmware is None and now_ns - self._requested_ns >= seconds_to_ns(REQUEST_S):
            self._requested_ns = now_ns
            self._unanswered += 1
            data += encode(RequestExtra(protocol.HARDWARE | protocol.FIRMWARE))
        battery = protocol.LED_GREEN if self._fraction > LOW_FRACTION else protocol.LED_RED
        if CRITICAL_FRACTION < self._fraction <= LOW_FRACTION:
            battery = protocol.LED_ORANGE
        shown = _LEDS[signal], battery
        if shown != self._shown:
            self._shown = shown
            data += encode(protocol.leds(*shown))
        if signal is Signal.STOPPED and self._signal is not Signal.STOPPED:
            data += encode(SoundSequence(protocol.SOUND_ERROR))
        self._signal = signal
        return data

    def end(self) -> bytes:
        return encode(base_control(0.0, 0.0)) + encode(protocol.leds(0, 0)) + encode(SoundSequence(protocol.SOUND_OFF))

    def _check(self, firmware: Version) -> None:
        self.firmware = firmware
        if firmware < OLDEST_FIRMWARE or firmware.major != OLDEST_FIRMWARE.major:
            self.fault = DeviceFault(
                f"Kobuki: its firmware is {firmware}, and {OLDEST_FIRMWARE} or a later 1.x is needed",
                "flash firmware 1.2.0 as the vendor's documentation describes",
            )

    def _reading(self, basic: Basic, inertia: Inertia | None, now_ns: int) -> Reading:
        left_m, right_m, turn_rad, seconds = self._moved(basic, inertia, now_ns)
        odometry = self._odometry
        odometry.update(left_m, right_m, turn_rad)
        rate_rad_s = (right_m - left_m) / protocol.SEPARATION_M / seconds
        if inertia is not None:
            rate_rad_s = math.radians(inertia.rate_cdeg_s / 100)
        voltage_v = basic.battery_dv / 10
        self._fraction = protocol.battery_fraction(voltage_v)
        over_current = zones(basic.overcurrent, protocol.OVERCURRENT_LEFT, 0, protocol.OVERCURRENT_RIGHT)
        self.hold = ""
        if over_current:
            self.hold = "a wheel's motor draws more than 3 A, and the firmware has cut its power: free the wheels"
        elif basic.charger & protocol.ADAPTER:
            self.hold = "the charger's plug is in: pull it out"
        return Reading(
            stamp_ns=min(now_ns, self._sync.to_clock_ns(self._device_ns)),
            x_m=odometry.x_m,
            y_m=odometry.y_m,
            yaw_rad=odometry.yaw_rad,
            linear_m_s=(left_m + right_m) / 2 / seconds,
            angular_rad_s=rate_rad_s,
            bumper=zones(basic.bumper, protocol.LEFT, protocol.CENTER, protocol.RIGHT),
            cliff=zones(basic.cliff, protocol.LEFT, protocol.CENTER, protocol.RIGHT),
            wheel_drop=zones(basic.wheel_drop, protocol.DROP_LEFT, 0, protocol.DROP_RIGHT),
            battery_v=voltage_v,
            battery_fraction=self._fraction,
            charging=basic.charger != 0,
            buttons=basic.buttons,
            over_current=over_current,
        )

    def _moved(self, basic: Basic, inertia: Inertia | None, now_ns: int) -> tuple[float, float, float | None, float]:
        """Return the ways of both wheels and the gyro's turn since the frame before, and the seconds between them."""
        before, self._basic = self._basic, basic
        angle_cdeg, self._angle_cdeg = self._angle_cdeg, None if inertia is None else inertia.angle_cdeg
        since_s = (now_ns - self._arrived_ns) / NS_PER_S
        self._arrived_ns = now_ns
        if before is None:
            return self._restart(basic, now_ns)
        elapsed_s = (protocol.difference(basic.time_ms, before.time_ms) % 65536) / 1000
        if since_s > WRAP_S / 2:
            elapsed_s += WRAP_S * max(0, round((since_s - elapsed_s) / WRAP_S))
        left_m = protocol.METERS_PER_TICK * protocol.difference(basic.left_encoder, before.left_encoder)
        right_m = protocol.METERS_PER_TICK * protocol.difference(basic.right_encoder, before.right_encoder)
        if elapsed_s > since_s + RESTART_S or max(abs(left_m), abs(right_m)) > MAX_M_S * (
            elapsed_s + protocol.PERIOD_S
        ):
            return self._restart(basic, now_ns)
        self._device_ns += seconds_to_ns(elapsed_s)
        self._sync.add(self._device_ns, now_ns)
        self.missed += max(0, round(elapsed_s / protocol.PERIOD_S) - 1)
        turn_rad = None
        if inertia is not None and angle_cdeg is not None:
            turn_rad = math.radians(protocol.difference(inertia.angle_cdeg, angle_cdeg, _TURN_CDEG) / 100)
        return left_m, right_m, turn_rad, max(elapsed_s, 0.001)

    def _restart(self, basic: Basic, now_ns: int) -> tuple[float, float, None, float]:
        """Restart: the base was switched on, and its counters and gyro mean no motion."""
        self._device_ns = basic.time_ms * 1_000_000
        self._sync = ClockSync(FRAME_S)
        self._sync.add(self._device_ns, now_ns)
        return 0.0, 0.0, None, protocol.PERIOD_S
