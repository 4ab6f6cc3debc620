"""Protocol of a Kobuki: bytes to commands and feedback, and back. Pure.

A frame is

::

    AA | 55 | N (u8) | N bytes of sub-payloads | XOR of N and those bytes        all little-endian

and a sub-payload ``identifier | n | n bytes``. The base sends one frame of several sub-payloads every 20 ms.
Source: kobuki_core (kobuki-base/kobuki_core e2f0fea), where its documentation differs from it the code.
"""

import struct
from functools import reduce
from operator import xor
from typing import ClassVar, NamedTuple

from drivers.serial_wire.framing import FrameScanner

SYNC = b"\xaa\x55"
MIN_LENGTH, MAX_LENGTH = 3, 255
BAUD_RATE = 115_200
PERIOD_S = 0.02

SEPARATION_M = 0.23
METERS_PER_TICK = 8.52920905e-5
"""52 ticks per turn of the motor, gear 6545/132, wheels of 35 mm radius."""

FULL_V, EMPTY_V = 16.5, 13.2
SUPPLIES_ON = 0x00F0
"""General purpose output: 3.3 V, 5 V and both 12 V supplies. They feed camera and arm, and share a word with LEDs."""

LED_RED, LED_GREEN = 1, 2
LED_ORANGE = LED_RED | LED_GREEN

SOUND_ON, SOUND_OFF, SOUND_RECHARGE, SOUND_BUTTON, SOUND_ERROR, SOUND_CLEANING_START, SOUND_CLEANING_END = range(7)

HARDWARE, FIRMWARE, SERIAL_NUMBER = 0x01, 0x02, 0x08
"""Flags of :class:`RequestExtra`."""

RIGHT, CENTER, LEFT = 1, 2, 4
"""Bits of bumpers and cliff sensors."""

DROP_RIGHT, DROP_LEFT = 1, 2
OVERCURRENT_LEFT, OVERCURRENT_RIGHT = 1, 2
ADAPTER = 0x10
"""Bit of ``Basic.charger``: the plug of the adapter is in; without it, charging is by the dock."""


# --- commands -------------------------------------------------------------------------------------------------------


class BaseControl(NamedTuple):
    """Motion: speed of the outer wheel, mm/s, and radius, mm (0: straight, 1: turn on the spot)."""

    speed_mm_s: int
    radius_mm: int


class Sound(NamedTuple):
    """A tone: ``note`` is 1 / (frequency in Hz * 2.75e-6)."""

    note: int
    duration_ms: int


class SoundSequence(NamedTuple):
    """A melody, one of ``SOUND_*``."""

    number: int


class RequestExtra(NamedTuple):
    """Request of versions and serial number, answered in one of the next frames."""

    flags: int


class GeneralOutput(NamedTuple):
    """All digital outputs, supplies and LEDs at once."""

    word: int


class SetGain(NamedTuple):
    """Gains of the wheel controllers times 1000; ``kind`` is 0 for the factory's, 1 for these."""

    kind: int
    p: int
    i: int
    d: int


class GetGain(NamedTuple):
    """Request of :class:`ControllerInfo`."""

    unused: int = 0


Command = BaseControl | Sound | SoundSequence | RequestExtra | GeneralOutput | SetGain | GetGain


# --- feedback -------------------------------------------------------------------------------------------------------


class Basic(NamedTuple):
    """Basic sensors.

    Attributes:
        time_ms: device time, wraps at 65536.
        bumper: bits ``LEFT``, ``CENTER``, ``RIGHT``.
        wheel_drop: bits ``DROP_LEFT``, ``DROP_RIGHT``.
        cliff: bits ``LEFT``, ``CENTER``, ``RIGHT`` of the cliff sensors.
        left_encoder: ticks, wrap at 65536.
        right_encoder: ticks of the right wheel, wrap at 65536.
        left_pwm: percent, -100 to 100.
        right_pwm: duty cycle of the right motor, percent, -100 to 100.
        buttons: bits 1, 2, 4 of B0, B1, B2.
        charger: 0 discharging; low bits 2 charged, 6 charging; ``ADAPTER``.
        battery_dv: 0.1 V.
        overcurrent: bits ``OVERCURRENT_LEFT``, ``OVERCURRENT_RIGHT``.
    """

    time_ms: int
    bumper: int = 0
    wheel_drop: int = 0
    cliff: int = 0
    left_encoder: int = 0
    right_encoder: int = 0
    left_pwm: int = 0
    right_pwm: int = 0
    buttons: int = 0
    charger: int = 0
    battery_dv: int = 165
    overcurrent: int = 0


class DockInfrared(NamedTuple):
    """Signals of the docking station, 6 bits at each receiver."""

    right: int
    center: int
    left: int


class Inertia(NamedTuple):
    """Heading by the gyro, 0.01 deg, and its rate, 0.01 deg/s; counter-clockwise."""

    angle_cdeg: int
    rate_cdeg_s: int


class CliffReadings(NamedTuple):
    """Readings of the cliff sensors, 0 to 4095."""

    right: int
    center: int
    left: int


class Current(NamedTuple):
    """Currents of the wheels' motors, 10 mA."""

    left: int
    right: int


class Version(NamedTuple):
    """A version of hardware or firmware."""

    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


class HardwareVersion(NamedTuple):
    """Version of the hardware."""

    version: Version


class FirmwareVersion(NamedTuple):
    """Version of the firmware."""

    version: Version


class RawGyro(NamedTuple):
    """Raw samples of the gyro, 0.00875 deg/s, about the sensor's x, y and z."""

    frame: int
    samples: tuple[tuple[int, int, int], ...]


class GeneralInput(NamedTuple):
    """Digital inputs as bits, and four analog ones, 0 to 4095."""

    digital: int
    analog: tuple[int, int, int, int]


class UniqueId(NamedTuple):
    """Serial number."""

    words: tuple[int, int, int]


class ControllerInfo(NamedTuple):
    """Gains of the wheel controllers times 1000."""

    kind: int
    p: int
    i: int
    d: int


Feedback = (
    Basic
    | DockInfrared
    | Inertia
    | CliffReadings
    | Current
    | HardwareVersion
    | FirmwareVersion
    | RawGyro
    | GeneralInput
    | UniqueId
    | ControllerInfo
)

_COMMANDS: dict[type, tuple[int, struct.Struct]] = {
    BaseControl: (0x01, struct.Struct("<hh")),
    Sound: (0x03, struct.Struct("<HB")),
    SoundSequence: (0x04, struct.Struct("<B")),
    RequestExtra: (0x09, struct.Struct("<H")),
    GeneralOutput: (0x0C, struct.Struct("<H")),
    SetGain: (0x0D, struct.Struct("<BIII")),
    GetGain: (0x0E, struct.Struct("<B")),
}
_FLAT: dict[type, tuple[int, struct.Struct]] = {
    Basic: (0x01, struct.Struct("<HBBBHHbbBBBB")),
    DockInfrared: (0x03, struct.Struct("<BBB")),
    Inertia: (0x04, struct.Struct("<hh3x")),
    CliffReadings: (0x05, struct.Struct("<HHH")),
    Current: (0x06, struct.Struct("<BB")),
    ControllerInfo: (0x15, struct.Struct("<BIII")),
}
"""Feedback whose fields are those of its layout."""

_VERSIONS: dict[type, int] = {HardwareVersion: 0x0A, FirmwareVersion: 0x0B}
_VERSION = struct.Struct("<BBBx")
_OLD_VERSION = struct.Struct("<H")
_OLD_VERSIONS = {104: Version(1, 0, 4), 123: Version(1, 0, 0), 110: Version(1, 1, 0), 10100: Version(1, 1, 0)} | {
    111: Version(1, 1, 1),
    10101: Version(1, 1, 1),
}
"""Firmware before 1.1.2 sends one number; of others, the digits are the version: 112, or 10200."""

_RAW_GYRO, _GENERAL_INPUT, _UNIQUE_ID = 0x0D, 0x10, 0x13
_INPUT, _ID_WORDS, _SAMPLE = struct.Struct("<H4H6x"), struct.Struct("<III"), struct.Struct("<hhh")
_LENGTHS = {identifier: {layout.size} for identifier, layout in _FLAT.values()} | {
    0x0A: {_VERSION.size, _OLD_VERSION.size},
    0x0B: {_VERSION.size, _OLD_VERSION.size},
    _GENERAL_INPUT: {_INPUT.size},
    _UNIQUE_ID: {_ID_WORDS.size},
}
"""Bytes of each sub-payload of fixed length, in feedback."""

_COMMAND_OF = {identifier: (kind, layout) for kind, (identifier, layout) in _COMMANDS.items()}
_FLAT_OF = {identifier: (kind, layout) for kind, (identifier, layout) in _FLAT.items()}
_VERSION_OF = {identifier: kind for kind, identifier in _VERSIONS.items()}


def encode(*parts: Command | Feedback) -> bytes:
    """Return one frame with these sub-payloads. Raises ``ValueError`` for numbers that do not fit."""
    try:
        payload = b"".join(_encoded(part) for part in parts)
        body = bytes([len(payload)]) + payload
    except (struct.error, ValueError) as error:
        raise ValueError(f"{parts} do not fit a frame: {error}") from error
    return SYNC + body + bytes([checksum(body)])


def checksum(data: bytes | bytearray) -> int:
    """Return the XOR of all bytes."""
    return reduce(xor, data, 0)


def _encoded(part: Command | Feedback) -> bytes:
    if isinstance(part, (HardwareVersion, FirmwareVersion)):
        major, minor, patch = part.version
        identifier, data = _VERSIONS[type(part)], _VERSION.pack(patch, minor, major)
    elif isinstance(part, RawGyro):
        samples = b"".join(_SAMPLE.pack(*sample) for sample in part.samples)
        identifier, data = _RAW_GYRO, bytes([part.frame, 3 * len(part.samples)]) + samples
    elif isinstance(part, GeneralInput):
        identifier, data = _GENERAL_INPUT, _INPUT.pack(part.digital, *part.analog)
    elif isinstance(part, UniqueId):
        identifier, data = _UNIQUE_ID, _ID_WORDS.pack(*part.words)
    else:
        identifier, layout = (_COMMANDS | _FLAT)[type(part)]
        data = layout.pack(*part)
    return bytes([identifier, len(data)]) + data


class Decoder(FrameScanner[list[Command | Feedback]]):
    """Decoder of the known sub-payloads of each frame.

    Args:
        from_base: whether the frames are feedback of the base; if not, commands to it.
    """

    LENGTHS: ClassVar[dict[bool, dict[int, set[int]]]] = {
        True: _LENGTHS,
        False: {identifier: {layout.size} for identifier, layout in _COMMANDS.values()},
    }

    def __init__(self, from_base: bool = True) -> None:
        self._parse = _feedback if from_base else _command
        self._lengths = self.LENGTHS[from_base]
        super().__init__(SYNC, self._end, self._parts)

    def _parts(self, frame: bytes) -> list[Command | Feedback]:
        parts = ((frame[at], frame[at + 2 : end]) for at, end in _sub_payloads(frame, 3, len(frame) - 1))
        return [part for identifier, raw in parts if (part := self._parse(identifier, raw)) is not None]

    def _end(self, buffer: bytearray, at: int) -> int | None:
        if len(buffer) < at + 3:
            return None
        length = buffer[at + 2]
        if length < MIN_LENGTH:
            return 0
        end = at + 3 + length + 1
        if len(buffer) < end:
            return None
        if checksum(buffer[at + 2 : end]):
            return 0
        # The checksum is weak: one frame of noise in 256 has it. The sub-payloads must fill the frame as well.
        last = at + 3
        for begin, last in _sub_payloads(buffer, at + 3, end - 1):
            size = last - begin - 2
            if size not in self._lengths.get(buffer[begin], {size}):
                return 0
        return end if last == end - 1 else 0


def _sub_payloads(buffer: bytes | bytearray, at: int, end: int) -> list[tuple[int, int]]:
    """Return the beginnings and ends of the sub-payloads between two indices, as far as they are complete."""
    found = []
    while at + 2 <= end and (after := at + 2 + buffer[at + 1]) <= end:
        found.append((at, after))
        at = after
    return found


def _command(identifier: int, data: bytes) -> Command | None:
    if identifier not in _COMMAND_OF:
        return None
    kind, layout = _COMMAND_OF[identifier]
    return kind(*layout.unpack(data))  # type: ignore[no-any-return]


def _feedback(identifier: int, data: bytes) -> Feedback | None:
    if identifier in _FLAT_OF:
        kind, layout = _FLAT_OF[identifier]
        return kind(*layout.unpack(data))  # type: ignore[no-any-return]
    if identifier in _VERSION_OF:
        return _VERSION_OF[identifier](_version(data))  # type: ignore[no-any-return]
    if identifier == _RAW_GYRO and len(data) >= 2:
        count = min(data[1] // 3, (len(data) - 2) // _SAMPLE.size)
        return RawGyro(data[0], tuple(_SAMPLE.unpack_from(data, 2 + _SAMPLE.size * index) for index in range(count)))
    if identifier == _GENERAL_INPUT:
        digital, *analog = _INPUT.unpack(data)
        return GeneralInput(digital, (analog[0], analog[1], analog[2], analog[3]))
    if identifier == _UNIQUE_ID:
        return UniqueId(_ID_WORDS.unpack(data))
    return None


def _version(data: bytes) -> Version:
    if len(data) == _OLD_VERSION.size:
        number = _OLD_VERSION.unpack(data)[0]
        major, rest = divmod(number, 10_000) if number >= 10_000 else divmod(number, 100)
        return _OLD_VERSIONS.get(number, Version(major, *divmod(rest, 100 if number >= 10_000 else 10)))
    patch, minor, major = _VERSION.unpack(data)
    return Version(major, minor, patch)


# --- values -------------------------------------------------------------------------------------------------------


def difference(now: int, before: int, modulus: int = 65536) -> int:
    """Return the change of a counter that wraps around, by the shorter way."""
    return (now - before + modulus // 2) % modulus - modulus // 2


def base_control(linear_m_s: float, angular_rad_s: float) -> BaseControl:
    """Return the command for a velocity, saturated, and rounded toward zero as the vendor's driver does.

    The radius ends at 32767 mm, so that the least turning on the way is the speed over 32.9 m.
    """
    half_mm = 1000 * SEPARATION_M / 2
    if abs(angular_rad_s) < 1e-4:
        return BaseControl(_int16(1000 * linear_m_s), 0)
    radius_mm = 1000 * linear_m_s / angular_rad_s
    if abs(linear_m_s) < 1e-4 or abs(radius_mm) <= 1:
        return BaseControl(_int16(half_mm * angular_rad_s), 1)
    # A radius of -1 is not documented, and 0 and 1 mean something else.
    rounded_mm = _int16(radius_mm)
    if abs(rounded_mm) < 2:
        return BaseControl(_int16(half_mm * angular_rad_s), 1)
    outer_mm = radius_mm + half_mm if radius_mm > 0 else radius_mm - half_mm
    return BaseControl(_int16(outer_mm * angular_rad_s), rounded_mm)


def wheel_speeds(command: BaseControl) -> tuple[float, float]:
    """Return the speeds of the left and the right wheel, m/s, that a command asks for."""
    speed_m_s, radius_mm, half_mm = command.speed_mm_s / 1000, command.radius_mm, 1000 * SEPARATION_M / 2
    if radius_mm == 0:
        return speed_m_s, speed_m_s
    if abs(radius_mm) < 2:
        return -speed_m_s, speed_m_s
    if radius_mm > 0:
        return speed_m_s * (radius_mm - half_mm) / (radius_mm + half_mm), speed_m_s
    return speed_m_s, speed_m_s * (radius_mm + half_mm) / (radius_mm - half_mm)


def _int16(value: float) -> int:
    return int(max(1 - 2**15, min(2**15 - 1, value)))


def leds(left: int, right: int) -> GeneralOutput:
    """Return the command that sets both LEDs to 0 or ``LED_*`` and leaves all supplies on."""
    return GeneralOutput(SUPPLIES_ON | left << 8 | right << 10)


def tone(frequency_hz: float, duration_ms: int) -> Sound:
    """Return the command for a tone of at most 255 ms."""
    return Sound(round(1 / (frequency_hz * 2.75e-6)), duration_ms)


def battery_fraction(voltage_v: float) -> float:
    """Return the charge, 0 to 1, by the vendor's rule."""
    return max(0.0, min(1.0, 0.05 + 0.95 * (voltage_v - EMPTY_V) / (FULL_V - EMPTY_V)))
