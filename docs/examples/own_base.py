"""Driver of the Pebble, a made-up differential base on a serial port.

The base sends 50 reports per second, little-endian, and takes commands at any time::

    report   "R" | uint8 bumper (1 left, 2 center, 4 right) | int32 left, right travel in 0.1 mm | uint16 battery in mV
    command  "V" | int16 left, right: wheel speed in mm/s

Each message ends with a byte that makes the sum of all its bytes 0 modulo 256.
"""

import contextlib
import math
import os
import select
import struct
import threading
import tty
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from robot_runtime.common import config
from robot_runtime.common.clock import Clock, SystemClock
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import DeviceFault, InvalidCommand, NotConnected
from robot_runtime.hal import Base, BaseInfo, BaseState, LocalizerInfo, PoseEstimate, Robot, Velocity, Zone
from robot_runtime.hal.pose_history import PoseHistory
from robot_runtime.hal.stand_ins import FixedHead, HistoryLocalizer, MissingCamera
from robot_runtime.hal.streams import fresh
from robot_runtime.placement.operator import OperatorPlacer
from robot_runtime.robots.loader import RobotContext
from robot_runtime.safety.guard import Feedback, Guard, GuardLimits

TRACK_M = 0.28
INFO = BaseInfo("pebble", 0.18, 0.5, 2.0, 1.0, 4.0, rate_hz=50.0)  # radius, largest speeds, largest accelerations
REPORT, COMMAND = struct.Struct("<cBiiH"), struct.Struct("<chh")


@dataclass(frozen=True)
class PebbleOptions:
    """Options of the robot's file.

    Attributes:
        port: the serial device.
    """

    port: str = "/dev/ttyUSB0"

    __pydantic_config__ = config.STRICT


def sealed(message: bytes) -> bytes:
    """Append the checksum."""
    return message + bytes([-sum(message) & 0xFF])


def reports(buffer: bytearray):
    """Take the whole reports out of a buffer; bytes that belong to none are dropped."""
    size = REPORT.size + 1
    while len(buffer) >= size:
        if buffer[0] == ord("R") and sum(buffer[:size]) & 0xFF == 0:
            yield REPORT.unpack(bytes(buffer[: REPORT.size]))[1:]
            del buffer[:size]
        else:
            del buffer[0]


class PebbleBase(Base):
    """The base behind its Guard; a thread reads the port, and the Guard ticks at every report."""

    def __init__(self, clock: Clock, port: str) -> None:
        self._clock, self._port_name = clock, port
        self._lock = threading.RLock()  # of the Guard, the state and the port
        self._guard = Guard(GuardLimits.of(INFO))
        self._port = None
        self._thread = None
        self.history = PoseHistory("pebble odometry", "odom")

    @property
    def info(self) -> BaseInfo:
        return INFO

    def connect(self) -> None:
        if self._port is not None:
            return
        port = None
        try:
            port = os.open(self._port_name, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
            tty.setraw(port)
        except (OSError, tty.error) as error:
            if port is not None:
                os.close(port)
            raise DeviceFault(f"{self._port_name}: {error}", "plug in the base, or correct 'port'") from error
        self._port, self._state, self._travel, self._odom = port, None, None, SE2()
        self.history.clear()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def close(self) -> None:
        with self._lock:
            port, thread = self._port, self._thread
            if port is None:
                return
            self._guard.stop()
            self._send(Velocity())
            self._port = self._thread = None  # ends the thread
        thread.join(1.0)
        os.close(port)

    def state(self, max_age_s: float) -> BaseState:
        with self._lock:
            self._require_connected()
            return fresh("base", self._state, self._clock.now_ns(), max_age_s)

    def command(self, velocity: Velocity) -> Velocity:
        with self._lock:
            self._require_connected()
            try:
                self._guard.command(velocity, self._clock.now_ns())
            except InvalidCommand:
                self._send(Velocity())
                raise
            return self._tick().velocity

    def stop(self) -> None:
        self._at_once(self._guard.stop)

    def emergency_stop(self) -> None:
        self._at_once(self._guard.emergency_stop)

    def release_emergency_stop(self) -> None:
        self._at_once(self._guard.release_emergency_stop)

    def _at_once(self, act) -> None:
        with self._lock:
            self._require_connected()
            act()
            self._send(Velocity())

    def _require_connected(self) -> None:
        if self._port is None:
            raise NotConnected("the pebble base is not connected", "call connect() first")

    def _tick(self):
        decision = self._guard.tick(self._clock.now_ns())
        self._send(decision.velocity)
        return decision

    def _send(self, velocity: Velocity) -> None:
        turn_m_s = velocity.angular_rad_s * TRACK_M / 2
        left, right = (round(1000 * (velocity.linear_m_s + side * turn_m_s)) for side in (-1, 1))
        with contextlib.suppress(OSError):  # unplugged: the state grows stale, which is what readers are told
            os.write(self._port, sealed(COMMAND.pack(b"V", left, right)))

    def _read(self) -> None:
        """Tick the Guard at every report, and every 40 ms whatever the port delivers, until the port is closed."""
        buffer, port = bytearray(), self._port
        while self._port == port:
            ready, _, _ = select.select([port], [], [], 0.04)
            try:
                buffer += os.read(port, 4096) if ready else b""
            except OSError:
                self._clock.sleep(0.04)  # unplugged: there is nothing to wait for
            with self._lock:
                if self._port != port:
                    return
                for report in reports(buffer):
                    self._take(*report)
                self._tick()

    def _take(self, bumper: int, left: int, right: int, battery_mv: int) -> None:
        """Integrate the odometry, feed the Guard, and keep the state."""
        now_ns = self._clock.now_ns()
        before, self._travel = self._travel or (left, right), (left, right)
        left_m, right_m = ((now - then) * 1e-4 for now, then in zip((left, right), before, strict=True))
        forward_m, turn_rad = (left_m + right_m) / 2, (right_m - left_m) / TRACK_M
        heading_rad = self._odom.yaw_rad + turn_rad / 2
        self._odom = SE2(
            self._odom.x_m + forward_m * math.cos(heading_rad),
            self._odom.y_m + forward_m * math.sin(heading_rad),
            self._odom.yaw_rad + turn_rad,
        )
        pressed = Zone(bumper & 7)
        self._guard.feedback(Feedback(now_ns, pressed))
        halt = self._tick().halt
        velocity = Velocity(forward_m * INFO.rate_hz, turn_rad * INFO.rate_hz)
        levels = (pressed, Zone.NONE, Zone.NONE, halt)
        charge = min(1.0, max(0.0, (battery_mv - 13200) / 3000))
        self._state = BaseState(now_ns, self._odom, velocity, *levels, battery_mv / 1000, charge)
        self.history.add(PoseEstimate(now_ns, self._odom, "odom"))


def make_robot(context: RobotContext, name: str, options: Mapping[str, Any], where: str) -> Robot:
    """Make a robot of the base, a camera that the robot's file names, and a person who places it."""
    chosen, clock = config.parse(options, PebbleOptions, where), SystemClock()
    base, head = PebbleBase(clock, chosen.port), FixedHead(clock)
    odometry = HistoryLocalizer(LocalizerInfo("pebble odometry", "odom", INFO.rate_hz), clock, base.history)
    placer = OperatorPlacer(clock, base, head, odometry, odometry)
    return Robot(name, clock, base, head, MissingCamera(), odometry, odometry, placer, odometry=odometry)
