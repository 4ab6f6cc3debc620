"""Driver of the Pebble, a made-up differential base on a serial port; numbers are little-endian.

Report at 50 Hz: b"R", uint8 bumper (1 left, 2 center, 4 right), int32 travel of left and right wheel (0.1 mm).
Command: b"V", int16 speed of left and right wheel (mm/s). Each message ends with its CRC-16 (CCITT), high byte first.
"""

import struct
from binascii import crc_hqx
from collections.abc import Mapping
from typing import Any

from drivers.serial_base.base import GuardProcessBase
from drivers.serial_base.settings import GuardSettings
from drivers.serial_base.wire import BaseWire, DeadReckoning, Reading
from drivers.serial_wire.port import Attachment
from robot_runtime.hal import Base, BaseInfo, Robot, Velocity
from robot_runtime.robots.loader import RobotContext

TRACK_M, PERIOD_S = 0.28, 0.02
INFO = BaseInfo("pebble", 0.18, 0.5, 2.0, 1.0, 4.0, rate_hz=50.0)  # radius, largest speeds, largest accelerations
REPORT, COMMAND = struct.Struct("<cBiiH"), struct.Struct("<chh")


class PebbleWire(BaseWire):
    """The protocol; it runs in the guard process."""

    attachment, period_s = Attachment("Pebble"), PERIOD_S

    def __init__(self) -> None:
        self._buffer, self._travel, self._odometry = b"", None, DeadReckoning(TRACK_M)

    def begin(self, now_ns: int) -> bytes:
        self._travel = None  # the base may have been restarted, and its counters with it
        return super().begin(now_ns)

    def feed(self, data: bytes, now_ns: int) -> list[Reading]:
        self._buffer, readings = self._buffer + data, []
        while len(report := self._buffer[: REPORT.size]) == REPORT.size:
            if intact := report[:1] == b"R" and not crc_hqx(report, 0):
                readings.append(self._reading(*REPORT.unpack(report)[1:4], now_ns))
            self._buffer = self._buffer[REPORT.size if intact else 1 :]
        return readings

    def _reading(self, bumper: int, left: int, right: int, now_ns: int) -> Reading:
        before, self._travel, odometry = self._travel or (left, right), (left, right), self._odometry
        left_m, right_m = 1e-4 * (left - before[0]), 1e-4 * (right - before[1])
        odometry.update(left_m, right_m)
        velocity = (left_m + right_m) / 2 / PERIOD_S, (right_m - left_m) / TRACK_M / PERIOD_S
        return Reading(now_ns, odometry.x_m, odometry.y_m, odometry.yaw_rad, *velocity, bumper=bumper & 7)

    def drive(self, velocity: Velocity) -> bytes:
        turn_m_s = velocity.angular_rad_s * TRACK_M / 2
        command = COMMAND.pack(b"V", *(round(1000 * (velocity.linear_m_s + v)) for v in (-turn_m_s, turn_m_s)))
        return command + crc_hqx(command, 0).to_bytes(2, "big")


def make_base(robot: Robot, context: RobotContext, options: Mapping[str, Any], where: str) -> Base:
    """Make the base behind a guard process of its own, disconnected."""
    return GuardProcessBase(robot.clock, INFO, GuardSettings.of(PebbleWire, options["port"], INFO))
