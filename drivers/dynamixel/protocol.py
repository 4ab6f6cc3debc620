"""Protocol 2.0 of Dynamixel servos: bytes to packets and back, and the servos' control table. Pure.

Source: ROBOTIS e-Manual, "DYNAMIXEL Protocol 2.0", "XL430-W250", "2XL430-W250". A packet is

::

    FF FF FD 00 | ID | length (u16) | instruction | parameters | CRC-16 of everything before it (u16)   little-endian

``length`` counts the bytes behind it. In the instruction and its parameters, FF FF FD is sent as FF FF FD FD, so the
header occurs nowhere else. A servo answers with a status packet: instruction 0x55, and an error byte as the first
parameter. The error byte's lowest seven bits say whether the instruction failed; bit 7, the alert, says on every reply
that a hardware error is latched, whatever became of the instruction.
"""

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from functools import cache
from typing import NamedTuple

SYNC = b"\xff\xff\xfd\x00"
BROADCAST = 0xFE
MAX_ID = 0xFC

_HEAD = struct.Struct("<4sBH")
_CRC = struct.Struct("<H")
_MIN_LENGTH, _MAX_LENGTH = 3, 1024
_HEADER, _STUFFED = b"\xff\xff\xfd", b"\xff\xff\xfd\xfd"

ALERT = 0x80


class Instruction(IntEnum):
    """Instructions that a pan-tilt needs, and those that other clients of the emulated servos send."""

    PING = 0x01
    READ = 0x02
    WRITE = 0x03
    REBOOT = 0x08
    STATUS = 0x55
    SYNC_READ = 0x82
    SYNC_WRITE = 0x83
    BULK_READ = 0x92


class Error(IntEnum):
    """Reason of a failed instruction: the error byte of a status packet without its alert bit."""

    NONE = 0
    RESULT = 1
    INSTRUCTION = 2
    CRC = 3
    RANGE = 4
    LENGTH = 5
    LIMIT = 6
    ACCESS = 7


class HardwareError(IntFlag):
    """Latched errors of register 70; those of the shutdown mask, register 63, also switch the torque off."""

    INPUT_VOLTAGE = 1 << 0
    OVERHEATING = 1 << 2
    ENCODER = 1 << 3
    ELECTRICAL_SHOCK = 1 << 4
    OVERLOAD = 1 << 5


class Register(NamedTuple):
    """Address and size in bytes of a value of the control table, or of a block of them."""

    address: int
    size: int

    @property
    def end(self) -> int:
        return self.address + self.size


MODEL = Register(0, 2)
FIRMWARE = Register(6, 1)
ID = Register(7, 1)
DRIVE_MODE = Register(10, 1)
OPERATING_MODE = Register(11, 1)
HOMING_OFFSET = Register(20, 4)
TEMPERATURE_LIMIT = Register(31, 1)
VELOCITY_LIMIT = Register(44, 4)
MAX_POSITION = Register(48, 4)
MIN_POSITION = Register(52, 4)
SHUTDOWN = Register(63, 1)
TORQUE = Register(64, 1)
HARDWARE_ERROR = Register(70, 1)
BUS_WATCHDOG = Register(98, 1)
PROFILE_ACCELERATION = Register(108, 4)
PROFILE_VELOCITY = Register(112, 4)
GOAL_POSITION = Register(116, 4)
POSITION = Register(132, 4)
VOLTAGE = Register(144, 2)
TEMPERATURE = Register(146, 1)

SETTINGS = Register(0, 64)
"""EEPROM: writable only while the torque is off."""

STATE = Register(64, 83)
"""All values that change, from torque to temperature."""

REVERSED = 1
"""Bit of the drive mode: positions count in the opposite direction."""

POSITION_MODE = 3
WATCHDOG_UNIT_S = 0.02
WATCHDOG_TRIPPED = 0xFF
"""Value of the bus watchdog after it has stopped the servo: the goals are read-only until 0 is written."""

COUNTS_PER_REV = 4096
CENTER = 2048
PROFILE_RAD_S = 0.229 * 2 * math.pi / 60
"""Unit of velocities: 0.229 revolutions per minute."""

MODELS: Mapping[int, str] = {1060: "XL430-W250", 1090: "2XL430-W250"}


@dataclass(frozen=True, slots=True)
class Packet:
    """One packet; ``parameters`` are without stuffing."""

    id: int
    instruction: int
    parameters: bytes = b""


class Block(NamedTuple):
    """Content of a block of the control table."""

    start: int
    data: bytes

    def get(self, register: Register) -> int:
        """Return a value of the block; those of four bytes are signed. Raises ``IndexError`` outside the block."""
        at = register.address - self.start
        data = self.data[at : at + register.size] if at >= 0 else b""
        if len(data) != register.size:
            raise IndexError(f"{register} lies outside of {len(self.data)} bytes from {self.start}")
        return int.from_bytes(data, "little", signed=register.size == 4)


def encode(packet: Packet) -> bytes:
    """Return a packet as bytes. Raises ``ValueError`` for an id or a length that no packet has."""
    body = (bytes([packet.instruction]) + packet.parameters).replace(_HEADER, _STUFFED)
    length = len(body) + _CRC.size
    if not (0 <= packet.id <= BROADCAST and length <= _MAX_LENGTH):
        raise ValueError(f"a packet has an id up to {BROADCAST} and up to {_MAX_LENGTH} bytes, got {packet!r:.100}")
    data = _HEAD.pack(SYNC, packet.id, length) + body
    return data + _CRC.pack(crc16(data))


def status(servo: int, error: int = 0, parameters: bytes = b"") -> Packet:
    """Return a servo's answer."""
    return Packet(servo, Instruction.STATUS, bytes([error]) + parameters)


def end_of(buffer: bytes | bytearray, at: int) -> int | None:
    """Return the index behind the packet that starts at ``at``; 0 if none does, None if more bytes must decide."""
    if len(buffer) < at + _HEAD.size:
        return None
    sync, servo, length = _HEAD.unpack_from(buffer, at)
    if sync != SYNC or servo > BROADCAST or not _MIN_LENGTH <= length <= _MAX_LENGTH:
        return 0
    end = at + _HEAD.size + int(length)
    if len(buffer) < end:
        return None
    return end if crc16(buffer[at : end - _CRC.size]) == _CRC.unpack_from(buffer, end - _CRC.size)[0] else 0


def decode(frame: bytes) -> Packet:
    """Return the packet of a frame that :func:`end_of` found complete."""
    body = frame[_HEAD.size : -_CRC.size]
    return Packet(frame[4], body[0], body[1:].replace(_STUFFED, _HEADER))


def position_of(angle_rad: float) -> float:
    """Return an angle in the unit of a position register, 2048 at 0 rad."""
    return CENTER + angle_rad * COUNTS_PER_REV / (2 * math.pi)


def counts_of(angle_rad: float) -> int:
    """Return an angle as the value of a position register."""
    return round(position_of(angle_rad))


def angle_rad_of(counts: float) -> float:
    """Return the angle of a position register; the inverse of :func:`position_of`."""
    return (counts - CENTER) * 2 * math.pi / COUNTS_PER_REV


def watchdog_units(timeout_s: float) -> int:
    """Return the value of the bus watchdog for a timeout, at least 20 ms and at most 2.54 s."""
    return min(127, max(1, round(timeout_s / WATCHDOG_UNIT_S)))


def crc16(data: bytes | bytearray) -> int:
    """Return the CRC-16/BUYPASS: polynomial 0x8005, not reflected, initial value 0; 0xFEE8 for "123456789"."""
    table = _crc_table()
    crc = 0
    for byte in data:
        crc = (crc << 8 & 0xFFFF) ^ table[crc >> 8 ^ byte]
    return crc


@cache
def _crc_table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        crc = byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x8005 if crc & 0x8000 else crc << 1) & 0xFFFF
        table.append(crc)
    return tuple(table)
