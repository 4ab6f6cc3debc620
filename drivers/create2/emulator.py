"""Emulated Create 2: its stream and commands, from a simulated body."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from drivers.create2.protocol import (
    BAUD_RATE,
    BUMP_BOTH,
    BUMP_LEFT,
    BUMP_RIGHT,
    DROP_LEFT,
    DROP_RIGHT,
    KNOWN,
    METERS_PER_TICK,
    OVERCURRENT_LEFT,
    PERIOD_S,
    SEPARATION_M,
    Command,
    CommandParser,
    Mode,
    Opcode,
    Packet,
    encode_stream,
    wheel_speeds,
)
from drivers.serial_base.emulator import EmulatedBase, EmulatorOptions, Sensed
from robot_runtime.hal import Velocity, Zone
from robot_runtime.hal.simulation import WheelSensors
from robot_runtime.safety import STILL

CAPACITY_MAH = 2696
FULL_V, EMPTY_V = 16.5, 13.2


class EmulatedCreate2(EmulatedBase):
    """Firmware of a Create 2, which repeats the last motion for ever and does not stop on a bump.

    Args:
        body: wheels and sensors.
        random: source of its errors.
        options: of the emulator.
        advance: as for :class:`~drivers.serial_base.emulator.EmulatedBase`.

    Attributes:
        mode: of the interface.
        digits: text of its display.
    """

    def __init__(
        self,
        body: WheelSensors,
        random: np.random.Generator,
        options: EmulatorOptions,
        advance: Callable[[Velocity, int], None] | None = None,
    ) -> None:
        super().__init__(body, random, options, BAUD_RATE, PERIOD_S, SEPARATION_M, advance)
        self.reboot()

    def reboot(self) -> None:
        self._parser = CommandParser()
        self.mode = Mode.OFF
        self.digits = b""
        self._packets: tuple[int, ...] = ()
        self._streams = False
        self._wheels_m_s = (0.0, 0.0)
        self._turned_m: tuple[float, float] | None = None
        self._counted_m = [0.0, 0.0]

    def take(self, data: bytes) -> None:
        for command in self._parser.feed(data):
            self._obey(command)

    def _obey(self, command: Command) -> None:
        opcode, data = command
        if opcode in (Opcode.START, Opcode.STOP):
            self.mode = Mode.PASSIVE if opcode == Opcode.START else Mode.OFF
            self._command(0.0, 0.0)
        elif opcode in (Opcode.SAFE, Opcode.FULL) and self.mode is not Mode.OFF:
            self.mode = Mode.SAFE if opcode == Opcode.SAFE else Mode.FULL
        elif opcode == Opcode.DRIVE_DIRECT and self.mode in (Mode.SAFE, Mode.FULL):
            self._command(*wheel_speeds(command))
        elif opcode == Opcode.STREAM:
            self._packets, self._streams = tuple(packet for packet in data[1:] if packet in KNOWN), True
        elif opcode == Opcode.PAUSE_RESUME:
            self._streams = bool(data[0])
        elif opcode == Opcode.DIGITS:
            self.digits = data

    def _command(self, left_m_s: float, right_m_s: float) -> None:
        self._wheels_m_s = left_m_s, right_m_s
        self.velocity = Velocity((left_m_s + right_m_s) / 2, (right_m_s - left_m_s) / SEPARATION_M)

    def message(self, sensed: Sensed, now_ns: int) -> bytes:
        forward = self.velocity.linear_m_s > 0
        if self.mode is Mode.SAFE and (sensed.wheel_drop or (sensed.cliff and forward)):
            self.mode = Mode.PASSIVE
            self._command(0.0, 0.0)
        assert self.mode is not Mode.PASSIVE or self.velocity == STILL
        self._count(sensed)
        if not self._streams or self.mode is Mode.OFF:
            return b""
        left, right = (math.floor(way_m / METERS_PER_TICK) for way_m in self._counted_m)
        fraction = min(1.0, max(0.0, (sensed.battery_v - EMPTY_V) / (FULL_V - EMPTY_V)))
        known: dict[int, int] = {
            Packet.BUMPS_AND_WHEEL_DROPS: _bumps(sensed.bumper) | _drops(sensed.wheel_drop),
            Packet.CLIFF_LEFT: int(Zone.LEFT in sensed.cliff),
            Packet.CLIFF_FRONT_LEFT: int(Zone.CENTER in sensed.cliff),
            Packet.CLIFF_RIGHT: int(Zone.RIGHT in sensed.cliff),
            Packet.OVERCURRENTS: OVERCURRENT_LEFT if sensed.over_current else 0,
            Packet.BUTTONS: sensed.buttons,
            Packet.VOLTAGE_MV: round(1000 * sensed.battery_v),
            Packet.CHARGE_MAH: round(CAPACITY_MAH * fraction),
            Packet.CAPACITY_MAH: CAPACITY_MAH,
            Packet.MODE: int(self.mode),
            Packet.LEFT_ENCODER: (left + 32768) % 65536 - 32768,
            Packet.RIGHT_ENCODER: (right + 32768) % 65536 - 32768,
            Packet.STASIS: int(forward and not sensed.bumper),
        }
        return encode_stream({packet: known.get(packet, 0) for packet in self._packets})

    def _count(self, sensed: Sensed) -> None:
        """Count as one channel can: in the direction that is commanded, and up while none is."""
        before, self._turned_m = self._turned_m, (sensed.left_m, sensed.right_m)
        for side, (then_m, now_m) in enumerate(zip(before or self._turned_m, self._turned_m, strict=True)):
            sign = -1 if self._wheels_m_s[side] < 0 else 1
            self._counted_m[side] += sign * abs(now_m - then_m)


def _bumps(zone: Zone) -> int:
    bits = BUMP_BOTH if Zone.CENTER in zone else 0
    return bits | (BUMP_LEFT if Zone.LEFT in zone else 0) | (BUMP_RIGHT if Zone.RIGHT in zone else 0)


def _drops(zone: Zone) -> int:
    return (DROP_LEFT if Zone.LEFT in zone else 0) | (DROP_RIGHT if Zone.RIGHT in zone else 0)
