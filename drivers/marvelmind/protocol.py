"""Protocol of a Marvelmind hedgehog over USB or UART: bytes to packets to positions, and back. Pure.

Source: Marvelmind Robotics, "Interfaces" (2022-08-16). A packet is

::

    FF | 47 | code (u16) | N (u8) | N bytes | CRC-16/MODBUS of everything before it (u16)      all little-endian

Positions come as 0x0081 (millimeters, Unix time; the default from firmware 7.200), 0x0011 (millimeters) or 0x0001
(centimeters). Packets without a fix have a flag, and their coordinates are invalid.
"""

import math
import re
import struct
from dataclasses import dataclass
from enum import IntFlag
from functools import cache

from drivers.serial_wire.framing import FrameScanner

SYNC = b"\xff\x47"
NMEA = re.compile(rb"\$[A-Z]{5},[ -~]*\*[0-9A-Fa-f]{2}")
"""A sentence of NMEA 0183, the other format in which a hedgehog can send positions."""

HEAD = struct.Struct("<BBHB")
CRC = struct.Struct("<H")
OVERHEAD = HEAD.size + CRC.size
MAX_FRAME = OVERHEAD + 255

POSITION_CM = 0x0001
POSITION_MM = 0x0011
POSITION_MM_UNIX = 0x0081
QUALITY = 0x0007

LENGTHS = {
    POSITION_CM: 16,
    POSITION_MM: 22,
    POSITION_MM_UNIX: 26,
    0x0003: 32,  # raw inertial measurements
    0x0004: 32,  # raw distances
    0x0005: 42,  # inertial fusion
    0x0006: 16,  # telemetry
    QUALITY: 16,
    0x0083: 36,  # the same three with Unix time
    0x0084: 36,
    0x0085: 46,
}
"""Bytes of payload by code. The stationary beacons' positions (0x0002, 0x0012) have no fixed length."""

_POSITIONS = {
    POSITION_CM: (struct.Struct("<IhhhBBHH"), 0.01),
    POSITION_MM: (struct.Struct("<IiiiBBHH"), 0.001),
    POSITION_MM_UNIX: (struct.Struct("<qiiiBBHH"), 0.001),
}
_QUALITY = struct.Struct("<BBB13x")

_PAIR_CENTER = 1 << 12
_NO_ORIENTATION = 1 << 13
_DECIDEGREES = 0x0FFF
_OLD_TICKS_1_S = 64
"""Ticks per second of timestamps that are not in milliseconds (firmware before 5.20)."""


class Flags(IntFlag):
    """Flags of a position packet; the other bits are reserved or describe the computation."""

    UNAVAILABLE = 1 << 0
    MILLISECONDS = 1 << 1
    OTHER_HEDGEHOG = 1 << 6
    OUTSIDE_GEOFENCE = 1 << 7


@dataclass(frozen=True, slots=True)
class Packet:
    """One packet with a valid checksum."""

    code: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Position:
    """A hedgehog's position, or the lack of one.

    Attributes:
        code: type code of the packet.
        device_ms: time by the sender's clock: since it was switched on, or since 1970 in 0x0081.
        x_m: coordinate in the beacons' frame; invalid while ``unavailable``.
        y_m: y coordinate in the beacons' frame; invalid while ``unavailable``.
        z_m: z coordinate in the beacons' frame; invalid while ``unavailable``.
        age_s: time from the ultrasound's emission until the packet was sent.
        angle_rad: direction of a pair of hedgehogs, 0 to 2 pi; None if not applicable. Its sign and zero are not
            published and come from the driver's options.
        pair_center: whether the coordinates are those of the middle between the pair.
    """

    code: int
    device_ms: int
    x_m: float
    y_m: float
    z_m: float
    address: int
    age_s: float = 0.0
    angle_rad: float | None = None
    pair_center: bool = False
    flags: Flags = Flags.MILLISECONDS

    @property
    def unavailable(self) -> bool:
        return Flags.UNAVAILABLE in self.flags

    @property
    def from_other_hedgehog(self) -> bool:
        """Whether the packet is a forwarded one of another hedgehog."""
        return Flags.OTHER_HEDGEHOG in self.flags


@dataclass(frozen=True, slots=True)
class Quality:
    """Quality of a hedgehog's positions, 0 to 100 %; sent only if enabled in the vendor's tool."""

    address: int
    percent: int


class Decoder(FrameScanner[Packet]):
    """Decoder of packets."""

    def __init__(self) -> None:
        super().__init__(SYNC, _end, lambda data: Packet(HEAD.unpack_from(data)[2], data[HEAD.size : -CRC.size]))


def _end(buffer: bytearray, at: int) -> int | None:
    """Return the index after the packet at ``at``; 0 if there is none, None if more bytes are needed to decide."""
    if len(buffer) < at + HEAD.size:
        return None
    code, length = struct.unpack_from("<HB", buffer, at + 2)
    if LENGTHS.get(code, length) != length:
        return 0
    end = at + OVERHEAD + length
    if len(buffer) < end:
        return None
    # The checksum of data followed by its own checksum is zero.
    return end if crc16(buffer[at:end]) == 0 else 0


def parse(packet: Packet) -> Position | Quality | None:
    """Return the content of a packet; None for codes without position or quality."""
    if packet.code == QUALITY:
        address, percent, _ = _QUALITY.unpack(packet.payload)
        return Quality(address, percent)
    if packet.code not in _POSITIONS:
        return None
    layout, unit_m = _POSITIONS[packet.code]
    time, x, y, z, bits, address, word, age_ms = layout.unpack(packet.payload)
    flags = Flags(bits)
    in_ms = packet.code == POSITION_MM_UNIX or Flags.MILLISECONDS in flags
    return Position(
        code=packet.code,
        device_ms=time if in_ms else time * 1000 // _OLD_TICKS_1_S,
        x_m=x * unit_m,
        y_m=y * unit_m,
        z_m=z * unit_m,
        address=address,
        age_s=age_ms / 1000,
        angle_rad=None if word & _NO_ORIENTATION else math.radians((word & _DECIDEGREES) / 10),
        pair_center=bool(word & _PAIR_CENTER),
        flags=flags,
    )


def encode(position: Position) -> bytes:
    """Return a position as a packet, rounded to the packet's units; device times are in milliseconds.

    Raises:
        ValueError: for a code that is not a position's, or a number that does not fit the packet.
    """
    if position.code not in _POSITIONS:
        raise ValueError(f"packet {position.code:#06x} carries no position")
    layout, unit_m = _POSITIONS[position.code]
    word = _NO_ORIENTATION
    if position.angle_rad is not None:
        word = round(math.degrees(position.angle_rad) * 10) % 3600
    if position.pair_center:
        word |= _PAIR_CENTER
    time = position.device_ms if position.code == POSITION_MM_UNIX else position.device_ms % 2**32
    flags = position.flags | Flags.MILLISECONDS
    coordinates = (round(value / unit_m) for value in (position.x_m, position.y_m, position.z_m))
    try:
        payload = layout.pack(time, *coordinates, flags, position.address, word, round(position.age_s * 1000))
    except struct.error as error:
        raise ValueError(f"{position} does not fit packet {position.code:#06x}: {error}") from error
    return frame(Packet(position.code, payload))


def frame(packet: Packet) -> bytes:
    """Return a packet with header and checksum. Raises ``ValueError`` for more than 255 bytes."""
    if len(packet.payload) > 255:
        raise ValueError(f"a packet holds at most 255 bytes, got {len(packet.payload)}")
    body = HEAD.pack(*SYNC, packet.code, len(packet.payload)) + packet.payload
    return body + CRC.pack(crc16(body))


def crc16(data: bytes | bytearray) -> int:
    """Return the CRC-16/MODBUS: polynomial 0x8005 reflected, initial value 0xFFFF; 0x4B37 for "123456789"."""
    table = _crc_table()
    crc = 0xFFFF
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 0xFF]
    return crc


@cache
def _crc_table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (0xA001 if crc & 1 else 0)
        table.append(crc)
    return tuple(table)
