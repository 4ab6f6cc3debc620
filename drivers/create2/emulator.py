"""Emulated Create 2: its stream and commands, from a simulated body."""

import logging
import math

from drivers.create2 import protocol
from drivers.create2.protocol import Command, CommandParser, Mode, Opcode, Packet
from drivers.serial_base.emulator import EmulatedBase, Sensed
from drivers.serial_base.wire import bits_of
from robot_runtime.hal import Velocity, Zone
from robot_runtime.safety.guard import STILL

DRIVES = (Opcode.DRIVE, Opcode.DRIVE_DIRECT, Opcode.DRIVE_PWM)
PASSIVE = (Opcode.POWER, Opcode.SPOT, Opcode.CLEAN, Opcode.MAX, Opcode.DOCK)
"""Commands that end control by the interface. What the base then does by itself, the emulated one does not do."""

CARRIED_OUT = (Opcode.SAFE, Opcode.FULL, Opcode.BAUD, Opcode.LEDS, Opcode.SONG, Opcode.PLAY, Opcode.SCHEDULING_LEDS)
"""Commands that have no further effect here: not in this mode, or on lights and sounds alone."""

CAPACITY_MAH = 2696
FULL_V, EMPTY_V = 16.5, 13.2
BANNER_LINES = (
    "",
    "bootloader: 4175",
    "assembly: 3.5-lite-batt",
    "",
    "flash version: 10",
    "flash info crc passed: 1",
    "",
)

log = logging.getLogger(__name__)


class EmulatedCreate2(EmulatedBase):
    """Firmware of a Create 2: it repeats the last motion for ever and does not stop on a bump."""

    usual_baud_rate, period_s, separation_m = protocol.BAUD_RATE, protocol.PERIOD_S, protocol.SEPARATION_M
    latest_firmware = "3.3.0"

    @property
    def banner(self) -> bytes:
        lines = f"r3_robot/tags/release-{self.firmware}:4182 CLEAN", *BANNER_LINES
        return "".join(f"{line}\r\n" for line in lines).encode()

    def reboot(self) -> None:
        self._parser = CommandParser()
        self.mode = Mode.OFF
        self.digits = b""
        self._packets: tuple[int, ...] = ()
        self._streams = False
        self._asked: list[int] = []
        self._text = b""
        self._noted: set[int] = set()
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
        elif opcode in DRIVES:
            if self.mode in (Mode.SAFE, Mode.FULL):
                self._command(*protocol.wheel_speeds(command))
        elif opcode in PASSIVE and self.mode is not Mode.OFF:
            self.mode = Mode.PASSIVE
            self._command(0.0, 0.0)
            self._note(opcode)
        elif opcode == Opcode.STREAM:
            self._packets, self._streams = tuple(packet for packet in data[1:] if packet in protocol.KNOWN), True
        elif opcode == Opcode.SENSORS:
            self._asked += protocol.GROUPS.get(data[0], data)
        elif opcode == Opcode.QUERY:
            self._asked += data[1:]
        elif opcode == Opcode.BAUD and data[0] in protocol.BAUD_RATES:
            self.change_baud_rate(protocol.BAUD_RATES[data[0]])
        elif opcode == Opcode.RESET:
            self.restart()
            self._text = self.banner
        elif opcode == Opcode.PAUSE_RESUME:
            self._streams = bool(data[0])
        elif opcode == Opcode.DIGITS:
            self.digits = data
        elif opcode not in CARRIED_OUT:
            self._note(opcode)

    def _note(self, opcode: int) -> None:
        """Tell once of each command that is not carried out."""
        if opcode not in self._noted:
            self._noted.add(opcode)
            name = Opcode(opcode).name if opcode in set(Opcode) else "not in the Open Interface"
            log.warning("emulated Create 2: opcode %d (%s) is not carried out", opcode, name)

    def _command(self, left_m_s: float, right_m_s: float) -> None:
        self._wheels_m_s = left_m_s, right_m_s
        self.velocity = Velocity((left_m_s + right_m_s) / 2, (right_m_s - left_m_s) / protocol.SEPARATION_M)

    def message(self, sensed: Sensed, now_ns: int) -> bytes:
        forward = self.velocity.linear_m_s > 0
        if self.mode is Mode.SAFE and (sensed.wheel_drop or (sensed.cliff and forward)):
            self.mode = Mode.PASSIVE
            self._command(0.0, 0.0)
        assert self.mode is not Mode.PASSIVE or self.velocity == STILL
        self._count(sensed)
        text, self._text = self._text, b""
        if self.mode is Mode.OFF:
            return text
        left, right = (math.floor(way_m / protocol.METERS_PER_TICK) for way_m in self._counted_m)
        fraction = min(1.0, max(0.0, (sensed.battery_v - EMPTY_V) / (FULL_V - EMPTY_V)))
        bumps = bits_of(sensed.bumper, protocol.BUMP_LEFT, protocol.BUMP_BOTH, protocol.BUMP_RIGHT)
        known: dict[int, int] = {
            Packet.BUMPS_AND_WHEEL_DROPS: bumps
            | bits_of(sensed.wheel_drop, protocol.DROP_LEFT, 0, protocol.DROP_RIGHT),
            Packet.CLIFF_LEFT: int(Zone.LEFT in sensed.cliff),
            Packet.CLIFF_FRONT_LEFT: int(Zone.CENTER in sensed.cliff),
            Packet.CLIFF_RIGHT: int(Zone.RIGHT in sensed.cliff),
            Packet.OVERCURRENTS: protocol.OVERCURRENT_LEFT if sensed.over_current else 0,
            Packet.BUTTONS: sensed.buttons,
            Packet.VOLTAGE_MV: round(1000 * sensed.battery_v),
            Packet.CHARGE_MAH: round(CAPACITY_MAH * fraction),
            Packet.CAPACITY_MAH: CAPACITY_MAH,
            Packet.MODE: int(self.mode),
            Packet.LEFT_ENCODER: (left + 32768) % 65536 - 32768,
            Packet.RIGHT_ENCODER: (right + 32768) % 65536 - 32768,
            Packet.STASIS: int(forward and not sensed.bumper),
        }
        asked, self._asked = self._asked, []
        answer = text + protocol.encode_packets(
            (packet, known.get(packet, 0)) for packet in asked if packet in protocol.KNOWN
        )
        if self._streams:
            answer += protocol.encode_stream({packet: known.get(packet, 0) for packet in self._packets})
        return answer

    def _count(self, sensed: Sensed) -> None:
        """Count as one channel can: in the direction that is commanded, and up while none is."""
        before, self._turned_m = self._turned_m, (sensed.left_m, sensed.right_m)
        for side, (then_m, now_m) in enumerate(zip(before or self._turned_m, self._turned_m, strict=True)):
            sign = -1 if self._wheels_m_s[side] < 0 else 1
            self._counted_m[side] += sign * abs(now_m - then_m)
