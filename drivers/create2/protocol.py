"""Open Interface of a Create 2: bytes to commands and sensor packets, and back. Pure.

A command is one opcode and its data; the base waits for missing data for ever. The stream of sensors is

::

    19 | N (u8) | identifier, data, identifier, data, ... (N bytes) | checksum: all bytes add up to 0 mod 256

every 15 ms; numbers have the most significant byte first. Source: iRobot, "Create 2 Open Interface (OI) Specification".
"""

import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from drivers.serial_wire.framing import FrameScanner

BAUD_RATE, OTHER_BAUD_RATE = 115_200, 19_200
BAUD_RATES = {7: OTHER_BAUD_RATE, 11: BAUD_RATE}
"""By the data of ``BAUD``; the base listens at the other one when Clean was held while it was switched on."""

PERIOD_S = 0.015
SEPARATION_M = 0.235
METERS_PER_TICK = math.pi * 0.072 / 508.8
MAX_MM_S = 500
"""Of each wheel."""

MAX_PWM = 255
STRAIGHT_MM = (32767, -32768)
"""Radii of ``DRIVE`` that mean straight on; 1 and -1 mean a turn on the spot, counter-clockwise and clockwise."""

STREAM_HEADER = 19


class Opcode(IntEnum):
    """First byte of a command."""

    RESET = 7
    START = 128
    BAUD = 129
    SAFE = 131
    FULL = 132
    POWER = 133
    SPOT = 134
    CLEAN = 135
    MAX = 136
    DRIVE = 137
    MOTORS = 138
    LEDS = 139
    SONG = 140
    PLAY = 141
    SENSORS = 142
    DOCK = 143
    PWM_MOTORS = 144
    DRIVE_DIRECT = 145
    DRIVE_PWM = 146
    STREAM = 148
    QUERY = 149
    PAUSE_RESUME = 150
    SCHEDULING_LEDS = 162
    RAW_DIGITS = 163
    DIGITS = 164
    PUSH_BUTTONS = 165
    SCHEDULE = 167
    SET_TIME = 168
    STOP = 173


DATA_BYTES = {
    Opcode.BAUD: 1,
    Opcode.DRIVE: 4,
    Opcode.MOTORS: 1,
    Opcode.LEDS: 3,
    Opcode.PLAY: 1,
    Opcode.SENSORS: 1,
    Opcode.PWM_MOTORS: 3,
    Opcode.DRIVE_DIRECT: 4,
    Opcode.DRIVE_PWM: 4,
    Opcode.PAUSE_RESUME: 1,
    Opcode.SCHEDULING_LEDS: 2,
    Opcode.RAW_DIGITS: 4,
    Opcode.DIGITS: 4,
    Opcode.PUSH_BUTTONS: 1,
    Opcode.SCHEDULE: 15,
    Opcode.SET_TIME: 3,
}
"""Bytes of data; none for the others, except for those whose data say themselves how long they are."""


class Mode(IntEnum):
    """Mode of the interface: only ``SAFE`` and ``FULL`` accept motion."""

    OFF = 0
    PASSIVE = 1
    SAFE = 2
    FULL = 3


class Packet(IntEnum):
    """Identifiers of the sensor packets that have names here."""

    BUMPS_AND_WHEEL_DROPS = 7
    CLIFF_LEFT = 9
    CLIFF_FRONT_LEFT = 10
    CLIFF_FRONT_RIGHT = 11
    CLIFF_RIGHT = 12
    OVERCURRENTS = 14
    BUTTONS = 18
    CHARGING_STATE = 21
    VOLTAGE_MV = 22
    CHARGE_MAH = 25
    CAPACITY_MAH = 26
    CHARGING_SOURCES = 34
    MODE = 35
    LEFT_ENCODER = 43
    RIGHT_ENCODER = 44
    LEFT_CURRENT_MA = 54
    RIGHT_CURRENT_MA = 55
    STASIS = 58


STREAMED = tuple(Packet)
"""Packets of the driver's stream: 46 bytes of the 172 that fit into a period."""

BUMP_RIGHT, BUMP_LEFT = 1, 2
BUMP_BOTH = BUMP_LEFT | BUMP_RIGHT
DROP_RIGHT, DROP_LEFT = 4, 8
OVERCURRENT_RIGHT, OVERCURRENT_LEFT = 8, 16
PLUG, HOME_BASE = 1, 2
"""Bits of ``CHARGING_SOURCES``."""

_UNSIGNED, _SIGNED, _BYTE, _SIGNED_BYTE = (struct.Struct(layout) for layout in (">H", ">h", ">B", ">b"))
_LAYOUTS: dict[int, struct.Struct] = {
    **dict.fromkeys((*range(7, 19), 21, 32, *range(34, 39), 45, 52, 53, 58), _BYTE),
    **dict.fromkeys((22, *range(25, 32), 33, *range(46, 52)), _UNSIGNED),
    **dict.fromkeys((19, 20, 23, *range(39, 45), *range(54, 58)), _SIGNED),
    24: _SIGNED_BYTE,
}
"""Layout of each packet; encoders are signed; libcreate overlooks this."""

KNOWN = frozenset(_LAYOUTS)
"""Identifiers of all packets that are not groups of others."""

GROUPS: Mapping[int, Sequence[int]] = {
    0: range(7, 27),
    1: range(7, 17),
    2: range(17, 21),
    3: range(21, 27),
    4: range(27, 35),
    5: range(35, 43),
    6: range(7, 43),
    100: range(7, 59),
    101: range(43, 59),
    106: range(46, 52),
    107: range(54, 59),
}
"""Packets by the identifier of their group, for ``SENSORS``."""

_WHEELS = struct.Struct(">hh")


class Command(NamedTuple):
    """One command with its data."""

    opcode: int
    data: bytes = b""

    @property
    def encoded(self) -> bytes:
        """The command as bytes."""
        return bytes([self.opcode]) + self.data


def drive_direct(left_m_s: float, right_m_s: float) -> Command:
    """Return the command for the wheels' speeds, saturated; the right wheel comes first on the wire."""
    left, right = (round(1000 * max(-0.5, min(0.5, speed))) for speed in (left_m_s, right_m_s))
    return Command(Opcode.DRIVE_DIRECT, _WHEELS.pack(right, left))


def wheel_speeds(command: Command) -> tuple[float, float]:
    """Return the speeds of the left and the right wheel of a ``DRIVE``, ``DRIVE_DIRECT`` or ``DRIVE_PWM``, m/s."""
    first, second = _WHEELS.unpack(command.data)
    if command.opcode == Opcode.DRIVE:
        right, left = _arc(first, second)
    elif command.opcode == Opcode.DRIVE_PWM:
        right, left = (MAX_MM_S * duty / MAX_PWM for duty in (first, second))
    else:
        right, left = first, second
    left, right = (max(-MAX_MM_S, min(MAX_MM_S, speed)) / 1000 for speed in (left, right))
    return left, right


def _arc(speed_mm_s: int, radius_mm: int) -> tuple[float, float]:
    """Return the speeds of the right and the left wheel, mm/s; a positive radius is that of a left turn."""
    if radius_mm in STRAIGHT_MM or not radius_mm:
        return speed_mm_s, speed_mm_s
    if abs(radius_mm) == 1:
        return speed_mm_s * radius_mm, -speed_mm_s * radius_mm
    difference_mm_s = speed_mm_s * 1000 * SEPARATION_M / 2 / radius_mm
    return speed_mm_s + difference_mm_s, speed_mm_s - difference_mm_s


def stream(packets: Iterable[int]) -> Command:
    """Return the command that has these packets sent every 15 ms."""
    identifiers = bytes(packets)
    return Command(Opcode.STREAM, bytes([len(identifiers)]) + identifiers)


class CommandParser:
    """Parser of the base: it waits for the data of a command for ever, and skips unknown opcodes."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Command]:
        """Return the commands completed by these bytes."""
        self._buffer += data
        commands = []
        while (length := self._length()) is not None and len(self._buffer) > length:
            commands.append(Command(self._buffer[0], bytes(self._buffer[1 : 1 + length])))
            del self._buffer[: 1 + length]
        return commands

    def _length(self) -> int | None:
        """Return the bytes of data of the first command; None if that is not known yet."""
        buffer = self._buffer
        if not buffer:
            return None
        if buffer[0] in (Opcode.STREAM, Opcode.QUERY):
            return None if len(buffer) < 2 else 1 + buffer[1]
        if buffer[0] == Opcode.SONG:
            return None if len(buffer) < 3 else 2 + 2 * buffer[2]
        return DATA_BYTES.get(Opcode(buffer[0]), 0) if buffer[0] in set(Opcode) else 0


def encode_packets(values: Iterable[tuple[int, int]]) -> bytes:
    """Return the answer to a query: the packets' data alone, in this order."""
    return b"".join(_LAYOUTS[packet].pack(value) for packet, value in values)


def encode_stream(values: Mapping[int, int]) -> bytes:
    """Return one frame of the stream. Raises ``ValueError`` for an unknown packet, or a number that does not fit."""
    try:
        payload = b"".join(bytes([packet]) + _LAYOUTS[packet].pack(value) for packet, value in values.items())
        body = bytes([STREAM_HEADER, len(payload)]) + payload
    except (KeyError, struct.error, ValueError) as error:
        raise ValueError(f"{dict(values)} does not fit the stream: {error}") from error
    return body + bytes([-sum(body) % 256])


class Decoder(FrameScanner[dict[int, int]]):
    """Decoder of the stream of sensors: the values by packet of each frame."""

    def __init__(self) -> None:
        super().__init__(bytes([STREAM_HEADER]), _end, _values)


def _values(frame: bytes) -> dict[int, int]:
    values, at = {}, 2
    while at < len(frame) - 1:
        layout = _LAYOUTS[frame[at]]
        (values[frame[at]],) = layout.unpack_from(frame, at + 1)
        at += 1 + layout.size
    return values


def _end(buffer: bytearray, at: int) -> int | None:
    """Return the index after the frame at ``at``; 0 if there is none, None if more bytes are needed to decide."""
    if len(buffer) < at + 2:
        return None
    length = buffer[at + 1]
    end, inner = at + 2 + length + 1, at + 2
    # The checksum is weak: the packets must be known, and fill the frame.
    while inner < min(end - 1, len(buffer)):
        layout = _LAYOUTS.get(buffer[inner])
        if layout is None or inner + 1 + layout.size > end - 1:
            return 0
        inner += 1 + layout.size
    if not length:
        return 0
    if len(buffer) < end:
        return None
    return end if sum(buffer[at:end]) % 256 == 0 else 0


def difference(now: int, before: int) -> int:
    """Return the change of an encoder that wraps around, by the shorter way, in either direction."""
    return (now - before + 32768) % 65536 - 32768
