"""Driver of the Brook, a made-up base on the network, written from ``docs/robots/own-robot.md`` alone.

It is a TCP server. It sends 25 lines per second, ``state LEFT RIGHT BUMPER CLIFF DROP``: counters of its encoders (5000
per meter, 0 to 65535, then 0 again) and active zones, as ``LC``, ``-`` for none. It takes ``wheels LEFT RIGHT``, m/s.
It does not know its battery, and keeps the last command for ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drivers.serial_base.base import GuardProcessBase
from drivers.serial_base.settings import GuardSettings
from drivers.serial_base.tcp import connect_tcp
from drivers.serial_base.wire import BaseWire, DeadReckoning, Reading, Transport
from drivers.serial_wire.port import Attachment
from robot_runtime.hal import Base, BaseInfo, Robot, Velocity
from robot_runtime.robots.loader import RobotContext

TRACK_M, TICKS_PER_M, PERIOD_S = 0.25, 5000, 0.04
INFO = BaseInfo("brook", 0.2, 0.6, 2.5, 1.2, 6.0, rate_hz=1 / PERIOD_S)
BITS = {"L": 1, "C": 2, "R": 4}


class BrookWire(BaseWire):
    """The lines."""

    attachment, period_s = Attachment("Brook"), PERIOD_S

    def __init__(self) -> None:
        self._rest = b""
        self._ticks: tuple[int, int] | None = None
        self._odometry = DeadReckoning(TRACK_M)

    def open(self, port: str) -> Transport:
        return connect_tcp(port, "Brook")

    def begin(self, now_ns: int) -> bytes:
        self._rest, self._ticks = b"", None
        return super().begin(now_ns)

    def feed(self, data: bytes, now_ns: int) -> list[Reading]:
        *lines, self._rest = (self._rest + data).split(b"\n")
        fields = [line.decode("ascii", "replace").split() for line in lines]
        return [self._reading(line, now_ns) for line in fields if len(line) == 6 and line[0] == "state"]

    def _reading(self, line: list[str], now_ns: int) -> Reading:
        ticks = int(line[1]), int(line[2])
        before, self._ticks, odometry = self._ticks or ticks, ticks, self._odometry
        left_m, right_m = (((a - b + 32768) % 65536 - 32768) / TICKS_PER_M for a, b in zip(ticks, before, strict=True))
        odometry.update(left_m, right_m)
        velocity = (left_m + right_m) / 2 / PERIOD_S, (right_m - left_m) / TRACK_M / PERIOD_S
        levels = (sum(BITS.get(letter, 0) for letter in field) for field in line[3:])
        return Reading(now_ns, odometry.x_m, odometry.y_m, odometry.yaw_rad, *velocity, *levels)

    def drive(self, velocity: Velocity) -> bytes:
        half_m_s = velocity.angular_rad_s * TRACK_M / 2
        return f"wheels {velocity.linear_m_s - half_m_s:.4f} {velocity.linear_m_s + half_m_s:.4f}\n".encode()


def make_base(robot: Robot, context: RobotContext, options: Mapping[str, Any], where: str) -> Base:
    """Make the base, disconnected."""
    return GuardProcessBase(robot.clock, INFO, GuardSettings.of(BrookWire, options["address"], INFO))
