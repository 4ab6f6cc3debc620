"""Create 2 behind the guard process: readings from its stream, commands for its wheels and lights.

Its encoders have one channel: they count in the direction that is commanded, and up while none is. So the direction of
a count is that of the motor's model under the commands, and counts for which there is no command are flagged, and not
believed.
"""

import math
import re
from collections import deque

from drivers.create2 import protocol
from drivers.create2.protocol import (
    METERS_PER_TICK,
    PERIOD_S,
    SEPARATION_M,
    Command,
    Mode,
    Opcode,
    Packet,
    drive_direct,
)
from drivers.create2.serial_port import CREATE_2
from drivers.serial_base.wire import BaseWire, DeadReckoning, Reading, Signal, zones
from robot_runtime.common.clock import NS_PER_S, seconds_to_ns
from robot_runtime.hal import wheel_motor
from robot_runtime.hal.wheels import Velocity, Zone

PADDING = bytes([Opcode.START]) * 40
"""Completes a command that was cut off, whatever it is: the longest of ours has 20 bytes of data. ``START`` itself only
takes the base to ``PASSIVE``, in which it stands."""

FRAME_S = 0.005
"""From a measurement to its arrival: 46 bytes on the wire, and the USB adapter's latency timer of 1 ms."""

COAST_S = 0.5
"""Time after a wheel's last command in which it may still turn: dead time and three times the lag of its motor."""

MARGIN_M_S = 0.1
"""By how much a wheel may be faster than it was commanded within :data:`COAST_S`: more is pushed. When exactly it
follows is not known: a base that is quicker than the motor's model is none that is pushed."""

CHANGE_BAUD_RATE = Command(Opcode.BAUD, bytes([11]))
RELEASE, BANNER_BYTES = re.compile(rb"release-(\d+\.\d+\.\d+)"), 200
"""Version in the text that the base sends when it was switched on or reset; it tells it nowhere else."""

RESTORE_S = 0.2
"""Pause between two attempts to have the base accept motion again."""

SONG = Command(Opcode.SONG, bytes([0, 2, 67, 16, 60, 24]))
_COLORS = {Signal.IDLE: 0, Signal.MOVING: 0, Signal.HELD: 64, Signal.STOPPED: 255}
"""Of the power light, green to red."""

_TEXTS = {Signal.IDLE: b"  ON", Signal.MOVING: b"  GO", Signal.HELD: b"HOLD", Signal.STOPPED: b"STOP"}


class _Wheel:
    """Count and command of a wheel; the motor's model tells in which direction it turns."""

    def __init__(self) -> None:
        self.count: int | None = None
        self._motor = wheel_motor.WheelMotor(wheel_motor.CREATE_2_LAG_S, 1.0, 0.0, wheel_motor.CREATE_2_QUANTUM_M_S)
        self._under_way: deque[tuple[int, float]] = deque()
        self._recent: deque[tuple[int, float]] = deque()
        self._command_m_s = self._newest_m_s = 0.0
        self._direction = 1.0

    def command(self, speed_m_s: float, now_ns: int) -> None:
        """Take note of a command."""
        self._under_way.append((now_ns + seconds_to_ns(wheel_motor.CREATE_2_DEAD_TIME_S), speed_m_s))
        if speed_m_s:
            self._newest_m_s = speed_m_s
            self._recent.append((now_ns, abs(speed_m_s)))

    def moved(self, count: int, seconds: float, now_ns: int) -> tuple[float, bool]:
        """Return the way since the last count, meters, and whether the wheel turned without a command."""
        before, self.count = self.count, count
        way_m = 0.0 if before is None else METERS_PER_TICK * abs(protocol.difference(count, before))
        motor = self._motor
        while self._under_way and self._under_way[0][0] <= now_ns:
            self._command_m_s = self._under_way.popleft()[1]
        motor.step(self._command_m_s, seconds)
        if abs(motor.speed_m_s) > wheel_motor.STICKING_M_S:
            self._direction = math.copysign(1.0, motor.speed_m_s)
        elif self._newest_m_s:  # it stands, or almost: what moves it is the newest command
            self._direction = math.copysign(1.0, self._newest_m_s)
        # The wheel turned at any time since the last count: after a gap in the readings, by the commands before it.
        while self._recent and now_ns - self._recent[0][0] >= seconds_to_ns(COAST_S + seconds - PERIOD_S):
            self._recent.popleft()
        fastest_m_s = max((speed_m_s for _, speed_m_s in self._recent), default=None)
        limit_m = 0.0 if fastest_m_s is None else (fastest_m_s + MARGIN_M_S) * seconds + METERS_PER_TICK
        # One tick is the encoder's resolution: a wheel that rocks on its gear makes it.
        pushed = way_m > limit_m + METERS_PER_TICK
        return self._direction * min(way_m, limit_m), pushed


class Create2Wire(BaseWire):
    """A Create 2 in Safe mode; its heading is the encoders'."""

    attachment, baud_rate, period_s = CREATE_2, protocol.BAUD_RATE, PERIOD_S
    other_baud_rate = protocol.OTHER_BAUD_RATE

    def __init__(self) -> None:
        self._decoder = protocol.Decoder()
        self._odometry = DeadReckoning(SEPARATION_M)
        self._left, self._right = _Wheel(), _Wheel()
        self._arrived_ns: int | None = None
        self._commanded_ns = 0
        self._mode = Mode.PASSIVE
        self._on_floor = True
        self._restored_ns = 0
        self._pushed_ns = -NS_PER_S
        self._signal: Signal | None = None
        self._text = b""
        self._release = ""

    @property
    def version(self) -> str:
        return self._release

    @property
    def skipped(self) -> int:
        return self._decoder.skipped

    def begin(self, now_ns: int) -> bytes:
        self._restored_ns, self._signal = now_ns, None
        self._left.count = self._right.count = None
        commands = (Command(Opcode.SAFE), drive_direct(0.0, 0.0), SONG, protocol.stream(protocol.STREAMED))
        return PADDING + b"".join(command.encoded for command in commands)

    def call(self) -> bytes:
        return PADDING + CHANGE_BAUD_RATE.encoded

    def feed(self, data: bytes, now_ns: int) -> list[Reading]:
        self._commanded_ns = now_ns
        self._text = (self._text + data)[-BANNER_BYTES:]
        if found := RELEASE.search(self._text):
            self._release = found.group(1).decode()
        return [
            self._reading(values, now_ns)
            for values in self._decoder.feed(data)
            if set(protocol.STREAMED) <= values.keys()
        ]

    def drive(self, velocity: Velocity) -> bytes:
        half_m_s = velocity.angular_rad_s * SEPARATION_M / 2
        command = drive_direct(velocity.linear_m_s - half_m_s, velocity.linear_m_s + half_m_s)
        self._left.command(velocity.linear_m_s - half_m_s, self._commanded_ns)
        self._right.command(velocity.linear_m_s + half_m_s, self._commanded_ns)
        return command.encoded

    def upkeep(self, signal: Signal, now_ns: int) -> bytes:
        data = b""
        due = now_ns - self._restored_ns >= seconds_to_ns(RESTORE_S)
        if self._mode is not Mode.SAFE and self._on_floor and not self.hold and due:
            # A wheel drop, a cliff or a charger took it to Passive, or a damaged command elsewhere.
            self._restored_ns = now_ns
            data += Command(Opcode.SAFE).encoded + drive_direct(0.0, 0.0).encoded
        if signal is not self._signal:
            stops = signal is Signal.STOPPED and self._signal is not None
            self._signal = signal
            lights = Command(Opcode.LEDS, bytes([0, _COLORS[signal], 255]))
            data += lights.encoded + Command(Opcode.DIGITS, _TEXTS[signal]).encoded
            if stops:
                data += Command(Opcode.PLAY, b"\x00").encoded
        return data

    def end(self) -> bytes:
        # Passive: the base stands, charges when it is docked, and falls asleep after five minutes.
        pause = Command(Opcode.PAUSE_RESUME, b"\x00")
        return PADDING + Command(Opcode.SAFE).encoded + drive_direct(0.0, 0.0).encoded + pause.encoded + PADDING[:1]

    def _reading(self, values: dict[int, int], now_ns: int) -> Reading:
        seconds = PERIOD_S
        if self._arrived_ns is not None:
            # Frames that a busy computer was late to read come in a burst, and are a period apart all the same.
            periods = round((now_ns - self._arrived_ns) / NS_PER_S / PERIOD_S)
            seconds = PERIOD_S * max(1, periods)
            self.missed += max(0, periods - 1)
        self._arrived_ns = now_ns
        left_m, left_pushed = self._left.moved(values[Packet.LEFT_ENCODER], seconds, now_ns)
        right_m, right_pushed = self._right.moved(values[Packet.RIGHT_ENCODER], seconds, now_ns)
        if left_pushed or right_pushed:
            self._pushed_ns = now_ns
        odometry = self._odometry
        odometry.update(left_m, right_m)
        bits = values[Packet.BUMPS_AND_WHEEL_DROPS]
        cliff, wheel_drop = _cliffs(values), zones(bits, protocol.DROP_LEFT, 0, protocol.DROP_RIGHT)
        over_current = zones(values[Packet.OVERCURRENTS], protocol.OVERCURRENT_LEFT, 0, protocol.OVERCURRENT_RIGHT)
        self._mode, self._on_floor = Mode(values[Packet.MODE] & 3), not (cliff or wheel_drop)
        self.hold = ""
        if over_current:
            self.hold = "a wheel's motor draws too much current: free the wheels"
        elif values[Packet.CHARGING_SOURCES] & protocol.PLUG:
            self.hold = "the charger's plug is in: pull it out"
        return Reading(
            stamp_ns=now_ns - seconds_to_ns(FRAME_S),
            x_m=odometry.x_m,
            y_m=odometry.y_m,
            yaw_rad=odometry.yaw_rad,
            linear_m_s=(left_m + right_m) / 2 / seconds,
            angular_rad_s=(right_m - left_m) / SEPARATION_M / seconds,
            bumper=zones(bits, protocol.BUMP_LEFT, protocol.BUMP_BOTH, protocol.BUMP_RIGHT),
            cliff=cliff,
            wheel_drop=wheel_drop,
            battery_v=values[Packet.VOLTAGE_MV] / 1000,
            battery_fraction=min(1.0, values[Packet.CHARGE_MAH] / max(1, values[Packet.CAPACITY_MAH])),
            charging=values[Packet.CHARGING_SOURCES] != 0,
            buttons=values[Packet.BUTTONS],
            over_current=over_current,
            pushed=now_ns - self._pushed_ns < NS_PER_S // 2,
        )


def _cliffs(values: dict[int, int]) -> int:
    center = values[Packet.CLIFF_FRONT_LEFT] or values[Packet.CLIFF_FRONT_RIGHT]
    seen = ((values[Packet.CLIFF_LEFT], Zone.LEFT), (center, Zone.CENTER), (values[Packet.CLIFF_RIGHT], Zone.RIGHT))
    return sum(zone.value for found, zone in seen if found)
