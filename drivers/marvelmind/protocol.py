"""What a Marvelmind hedgehog says over USB or UART: bytes to packets to positions, and back. Pure.

Source: Marvelmind Robotics, "Interfaces" (2022-08-16). A packet is

::

    FF | 47 | code (u16) | N (u8) | N bytes | CRC-16/MODBUS of everything before it (u16)      all little-endian

Positions come as 0x0081 (millimeters, Unix time; the default from firmware 7.200), 0x0011 (millimeters) or 0x0001
(centimeters). A hedgehog also sends packets for positions that it could not find, with a flag that says so: what is
in their coordinates is not a position.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from enum import IntFlag
from functools import cache

SYNC = b"\xff\x47"
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
"""Of a hedgehog whose timestamps are not in milliseconds (firmware before 5.20)."""


class Flags(IntFlag):
    """Of a position packet; the other bits are reserved or say how it was computed."""

    UNAVAILABLE = 1 << 0
    MILLISECONDS = 1 << 1
    OTHER_HEDGEHOG = 1 << 6
    OUTSIDE_GEOFENCE = 1 << 7


@dataclass(frozen=True, slots=True)
class Packet:
    """One packet whose checksum is right."""

    code: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Position:
    """Where a hedgehog was, or that it was not found.

    Attributes:
        code: of the packet. x_m, y_m, z_m: in the beacons' own frame; no position at all while ``unavailable``.
        device_ms: when, by the sender's clock: since it was switched on, or since 1970 in 0x0081.
        age_s: from the ultrasound's emission until the packet was sent.
        address: of the hedgehog.
        angle_rad: of a pair of hedgehogs, 0 to 2 pi; None where the sender says that it does not apply. Sense and zero
            are not published: the driver's options say them.
        pair_center: the coordinates are those of the middle between the pair.
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
        """Whether the position is that of another hedgehog, passed on."""
        return Flags.OTHER_HEDGEHOG in self.flags

    @property
    def outside_geofence(self) -> bool:
        return Flags.OUTSIDE_GEOFENCE in self.flags


@dataclass(frozen=True, slots=True)
class Quality:
    """How well the positions of a hedgehog are supported, 0 to 100 %. Off unless switched on in the vendor's tool."""

    address: int
    percent: int


class Decoder:
    """Finds packets in a stream of bytes that may begin anywhere, be torn, or hold noise.

    A byte is read as the start of a packet only if a whole packet with the right length and checksum follows; after a
    packet that fails, the search goes on behind its first byte, so that nothing good behind noise is lost. Noise that
    looks like the start of a long packet holds back no good packet behind it.

    Attributes:
        skipped: bytes so far that belonged to no packet.
    """

    def __init__(self) -> None:
        self.skipped = 0
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Packet]:
        """The packets that are complete with these bytes, in order."""
        self._buffer += data
        packets: list[Packet] = []
        at = kept_from = 0
        waiting: int | None = None
        while (at := self._buffer.find(SYNC, at)) >= 0:
            end = self._end(at)
            if end is None:
                waiting = at if waiting is None else waiting
            elif end:
                code, length = struct.unpack_from("<HB", self._buffer, at + 2)
                start = at + HEAD.size
                packets.append(Packet(code, bytes(self._buffer[start : start + length])))
                self.skipped += at - kept_from
                at = kept_from = end
                waiting = None
                continue
            at += 1
        if waiting is None:
            waiting = len(self._buffer) - self._buffer.endswith(SYNC[:1])
            waiting = max(waiting, kept_from)
        self.skipped += waiting - kept_from
        del self._buffer[:waiting]
        return packets

    def _end(self, at: int) -> int | None:
        """Index behind the packet that starts at ``at``; 0 if none does, None while bytes are missing to know."""
        buffer = self._buffer
        if len(buffer) < at + HEAD.size:
            return None
        code, length = struct.unpack_from("<HB", buffer, at + 2)
        if LENGTHS.get(code, length) != length:
            return 0
        end = at + OVERHEAD + length
        if len(buffer) < end:
            return None
        # With its own checksum behind it, everything's checksum is zero.
        return end if crc16(buffer[at:end]) == 0 else 0


def parse(packet: Packet) -> Position | Quality | None:
    """What a packet says; None for the codes that say nothing about where the hedgehog is."""
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
    """A position as its hedgehog would send it, rounded to the packet's units; device times are in milliseconds.

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
    """A packet with its head and checksum. Raises ``ValueError`` for more than 255 bytes."""
    if len(packet.payload) > 255:
        raise ValueError(f"a packet holds at most 255 bytes, got {len(packet.payload)}")
    body = HEAD.pack(*SYNC, packet.code, len(packet.payload)) + packet.payload
    return body + CRC.pack(crc16(body))


def crc16(data: bytes | bytearray) -> int:
    """CRC-16/MODBUS: polynomial 0x8005 reflected, initial value 0xFFFF. Of "123456789" it is 0x4B37."""
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
