"""Emulated servos at the other end of the wire: protocol 2.0 on bytes, control tables, and profiles of motion."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, TypeVar

import numpy as np
from pydantic import Field

from drivers.dynamixel import protocol
from drivers.dynamixel.bus import SdkPort
from drivers.dynamixel.protocol import Error, HardwareError, Instruction, Packet, Register
from drivers.dynamixel.variants import PanTiltVariant
from drivers.serial_wire.faults import DroppedBytes, Noisy, Unplugged, noisy, thinned
from drivers.serial_wire.framing import FrameScanner
from drivers.serial_wire.port import Port
from drivers.serial_wire.pty_emulation import EmulatedDevice, PacedLine, Pty, read_exactly
from robot_runtime.common.clock import ns_to_seconds, seconds_to_ns
from robot_runtime.common.config import Strict
from robot_runtime.common.quantities import Latency
from robot_runtime.hal.fault_schedule import Script, Window

STEP_S = 0.005
"""Longest step of the profiles."""

TABLE_BYTES = 147
FIRMWARE = 45
DEFAULT_TEMPERATURE_C = 32
COUNTS_S = 0.229 * protocol.COUNTS_PER_REV / 60
MAX_ACCELERATION = 32767
"""Of a profile without limit of its acceleration."""

COUNTS_S2 = 214.577 * protocol.COUNTS_PER_REV / 3600

_DEFAULTS = {
    Register(8, 1): 3,  # 1 Mbaud
    protocol.OPERATING_MODE: protocol.POSITION_MODE,
    protocol.TEMPERATURE_LIMIT: 72,
    protocol.VELOCITY_LIMIT: 265,
    protocol.SHUTDOWN: 52,
    Register(68, 1): 2,  # answers everything
    protocol.VOLTAGE: 120,
    protocol.TEMPERATURE: DEFAULT_TEMPERATURE_C,
}
_READ_ONLY = (Register(0, 7), Register(70, 1), Register(120, 27))
_GOALS = Register(100, 20)
"""Registers that a tripped bus watchdog makes read-only."""


BULK_BYTES = 5
"""Bytes of one entry of a bulk read: servo, address and length."""


class ServoFault(Window):
    """A fault of the servo ``id``, or of all with 0."""

    id: int = 0

    def concerns(self, servo: int) -> bool:
        """Whether it is this servo's."""
        return self.id in (0, servo)


class Silent(ServoFault):
    """No replies: a cable is loose."""


class LatchedError(ServoFault):
    """A hardware error, latched until a reboot; it switches the torque off if the shutdown mask has its bit."""

    bits: int = HardwareError.OVERLOAD.value


class Restarted(ServoFault):
    """The supply fails: the torque is off, and all volatile registers have their defaults."""


class Stuck(ServoFault):
    """The shaft does not turn."""


class Hot(ServoFault):
    """The servo has this temperature."""

    temperature_c: int = 70


class GoalRefused(ServoFault):
    """Goals of a sync write are lost: nothing answers a sync write."""


class Slow(Window):
    """Replies arrive only after the next instruction: later than the driver waits."""


Fault = Annotated[
    Silent | LatchedError | Restarted | Stuck | Hot | GoalRefused | Noisy | DroppedBytes | Slow | Unplugged,
    Field(discriminator="kind"),
]

F = TypeVar("F", bound=ServoFault)


@dataclass(frozen=True)
class EmulatorOptions(Strict):
    """Behavior of the emulated servos.

    Attributes:
        latency_s: latency of the adapter; only matters in real time.
        faults: see :data:`Fault`.
    """

    latency_s: Latency = 0.0
    faults: tuple[Fault, ...] = ()


class EmulatedServo:
    """One servo: control table, profile and bus watchdog.

    Limits are in counts; ``reversed_mode`` sets the drive mode's reversing bit.

    Attributes:
        angle: measured position, in counts.
        aim: position by the profile, in counts; the shaft follows it unless it is stuck.
    """

    def __init__(self, servo: int, limits: tuple[int, int] = (0, 4095), reversed_mode: bool = False) -> None:
        self.id = servo
        self.angle = self.aim = float(protocol.CENTER)
        self._speed = 0.0
        self._quiet_s = 0.0
        self._table = bytearray(TABLE_BYTES)
        for register, value in _DEFAULTS.items():
            self.set(register, value)
        self.set(protocol.MODEL, 1060)
        self.set(protocol.FIRMWARE, FIRMWARE)
        self.set(protocol.ID, servo)
        self.set(protocol.DRIVE_MODE, protocol.REVERSED if reversed_mode else 0)
        self.set(protocol.MIN_POSITION, limits[0])
        self.set(protocol.MAX_POSITION, limits[1])
        self.put(self.angle)

    def get(self, register: Register) -> int:
        """Return a value of the control table."""
        return protocol.Block(0, bytes(self._table)).get(register)

    def set(self, register: Register, value: int) -> None:
        """Change a value of the control table from inside."""
        self._table[register.address : register.end] = value.to_bytes(register.size, "little", signed=value < 0)

    def restart(self) -> None:
        """Clear the volatile registers, torque and latched errors among them."""
        self._table[protocol.SETTINGS.end :] = bytes(TABLE_BYTES - protocol.SETTINGS.end)
        for register, value in _DEFAULTS.items():
            if register.address >= protocol.SETTINGS.end:
                self.set(register, value)
        self.put(self.angle)

    def put(self, angle: float) -> None:
        """Turn the shaft to an angle by hand, at rest there."""
        self.angle = self.aim = angle
        self._speed = 0.0
        self.set(protocol.GOAL_POSITION, round(angle))

    def latch(self, bits: int) -> None:
        """Latch hardware errors; those of the shutdown mask switch the torque off."""
        self.set(protocol.HARDWARE_ERROR, self.get(protocol.HARDWARE_ERROR) | bits)
        if bits & self.get(protocol.SHUTDOWN):
            self.set(protocol.TORQUE, 0)

    def addressed(self) -> None:
        """Take notice of an instruction on the bus, for the watchdog."""
        self._quiet_s = 0.0

    def advance(self, seconds: float) -> None:
        """Let the profile and the watchdog go on by at most :data:`STEP_S`; the torque holds the shaft."""
        if not self.get(protocol.TORQUE):
            self.aim, self._speed = self.angle, 0.0
            return
        self._quiet_s += seconds
        watchdog = self.get(protocol.BUS_WATCHDOG)
        if 0 < watchdog <= 127 and self._quiet_s > watchdog * protocol.WATCHDOG_UNIT_S:
            watchdog = protocol.WATCHDOG_TRIPPED
            self.set(protocol.BUS_WATCHDOG, watchdog)
        if watchdog == protocol.WATCHDOG_TRIPPED:
            # The manual does not say what becomes of the goal: once cleared, this servo continues, the worst case.
            self.aim, self._speed = self.angle, 0.0
            return
        goal = self.get(protocol.GOAL_POSITION)
        fastest = COUNTS_S * (self.get(protocol.PROFILE_VELOCITY) or self.get(protocol.VELOCITY_LIMIT))
        acceleration = COUNTS_S2 * (self.get(protocol.PROFILE_ACCELERATION) or MAX_ACCELERATION)
        ahead = goal - self.aim
        wanted = math.copysign(min(fastest, math.sqrt(2 * acceleration * abs(ahead)), abs(ahead) / seconds), ahead)
        change = acceleration * seconds
        if not 0 <= wanted * self._speed <= self._speed**2:  # braking is in what is wanted
            wanted = min(max(wanted, self._speed - change), self._speed + change)
        self._speed = wanted
        self.aim += self._speed * seconds

    def read(self, register: Register) -> tuple[int, bytes]:
        """Carry out a read; return the error and the data."""
        if register.end > TABLE_BYTES or not register.size:
            return Error.RANGE, b""
        self.set(protocol.POSITION, round(self.angle))
        return Error.NONE, bytes(self._table[register.address : register.end])

    def write(self, address: int, data: bytes) -> int:
        """Carry out a write; return the error, with which nothing was written."""
        error = self._write_error(Register(address, len(data)), data)
        if error == Error.NONE:
            self._table[address : address + len(data)] = data
            if address == protocol.BUS_WATCHDOG.address:
                self._quiet_s = 0.0
        return error

    def _write_error(self, register: Register, data: bytes) -> Error:
        if register.end > TABLE_BYTES or not data:
            return Error.RANGE
        if any(_overlap(register, other) for other in _READ_ONLY):
            return Error.ACCESS
        if register.address < protocol.SETTINGS.end and self.get(protocol.TORQUE):
            return Error.ACCESS
        if _overlap(register, _GOALS) and self.get(protocol.BUS_WATCHDOG) == protocol.WATCHDOG_TRIPPED:
            return Error.RANGE
        if register == protocol.BUS_WATCHDOG and data[0] > 127:
            return Error.RANGE
        if register == protocol.GOAL_POSITION:
            goal = int.from_bytes(data, "little", signed=True)
            if not self.get(protocol.MIN_POSITION) <= goal <= self.get(protocol.MAX_POSITION):
                return Error.LIMIT
        return Error.NONE


class ServoLine(EmulatedDevice):
    """Several servos on one line: bytes of instructions to bytes of replies.

    ``follow`` is called with the servos' aims in counts after each step, and returns the measured positions; without
    it, shafts follow their profiles exactly.
    """

    def __init__(
        self,
        servos: Sequence[EmulatedServo],
        options: EmulatorOptions,
        random: np.random.Generator,
        follow: Callable[[Sequence[float]], Sequence[float]] | None = None,
        baud_rate: int = 1_000_000,
    ) -> None:
        self.servos = {servo.id: servo for servo in servos}
        self._script = Script(options.faults)
        self._random, self._follow = random, follow
        self._scanner = FrameScanner(protocol.SYNC, protocol.end_of, protocol.decode)
        self.baud_rate = baud_rate
        self._line = PacedLine(baud_rate, options.latency_s)
        self._late = b""
        self._now_ns: int | None = None
        self._happened: set[tuple[int, int]] = set()

    def unplugged(self, now_ns: int) -> bool:
        return bool(self._script.active(Unplugged, now_ns))

    def next_ns(self) -> int:
        due_ns, step_ns = self._line.next_ns, (self._now_ns or 0) + seconds_to_ns(STEP_S)
        return step_ns if due_ns is None else min(due_ns, step_ns)

    def transmit(self, now_ns: int) -> bytes:
        self.advance(now_ns)
        return self._line.due(now_ns)

    def receive(self, data: bytes, now_ns: int) -> None:
        self._line.put(self.replies(data, now_ns), now_ns)

    def replies(self, data: bytes, now_ns: int) -> bytes:
        """Carry out instructions and return the replies."""
        self.advance(now_ns)
        before, self._late = self._late, b""
        replied = b""
        for packet in self._scanner.feed(data):
            if packet.instruction == Instruction.STATUS:
                continue
            for servo in self.servos.values():
                servo.addressed()
            for reply in self._carry_out(packet, now_ns):
                if not self._active(Silent, reply.id, now_ns):
                    replied += self._damaged(protocol.encode(reply), now_ns)
        if self._script.active(Slow, now_ns):
            replied, self._late = b"", replied
        return before + replied

    def advance(self, now_ns: int) -> None:
        """Let the servos move on to ``now_ns``."""
        last_ns = now_ns if self._now_ns is None else self._now_ns
        self._now_ns = max(last_ns, now_ns)
        self._begin_faults(now_ns)
        left_s = min(1.0, ns_to_seconds(self._now_ns - last_ns))
        while left_s > 1e-9:
            step_s = min(STEP_S, left_s)
            left_s -= step_s
            for servo in self.servos.values():
                servo.advance(step_s)
            self._move(now_ns)

    def _move(self, now_ns: int) -> None:
        servos = list(self.servos.values())
        aims = [servo.angle if self._active(Stuck, servo.id, now_ns) else servo.aim for servo in servos]
        angles = aims if self._follow is None else self._follow(aims)
        for servo, angle in zip(servos, angles, strict=True):
            servo.angle = angle

    def _begin_faults(self, now_ns: int) -> None:
        for servo in self.servos.values():
            hot = self._active(Hot, servo.id, now_ns)
            servo.set(protocol.TEMPERATURE, hot[0].temperature_c if hot else DEFAULT_TEMPERATURE_C)
            for fault in (*self._active(LatchedError, servo.id, now_ns), *self._active(Restarted, servo.id, now_ns)):
                if (servo.id, id(fault)) in self._happened:
                    continue
                self._happened.add((servo.id, id(fault)))
                if isinstance(fault, LatchedError):
                    servo.latch(fault.bits)
                else:
                    servo.restart()

    def _active(self, kind: type[F], servo: int, now_ns: int) -> tuple[F, ...]:
        return tuple(fault for fault in self._script.active(kind, now_ns) if fault.concerns(servo))

    def _carry_out(self, packet: Packet, now_ns: int) -> list[Packet]:
        """Return the replies to an instruction, in the order of the wire."""
        code, data = packet.instruction, packet.parameters
        if code == Instruction.SYNC_READ and len(data) >= 4:
            register = _register(data[:4])
            asked = [self.servos[servo] for servo in data[4:] if servo in self.servos]
            return [self._reply(servo, *servo.read(register)) for servo in asked]
        if code == Instruction.BULK_READ and len(data) % BULK_BYTES == 0:
            entries = [data[at : at + BULK_BYTES] for at in range(0, len(data), BULK_BYTES)]
            return [
                self._reply(self.servos[entry[0]], *self.servos[entry[0]].read(_register(entry[1:])))
                for entry in entries
                if entry[0] in self.servos
            ]
        if code == Instruction.SYNC_WRITE and len(data) >= 4:
            self._sync_write(data, now_ns)
            return []
        if packet.id == protocol.BROADCAST:
            return [self._ping(servo) for servo in self.servos.values()] if code == Instruction.PING else []
        found = self.servos.get(packet.id)
        return [] if found is None else [self._answer(found, code, data)]

    def _answer(self, servo: EmulatedServo, code: int, data: bytes) -> Packet:
        if code == Instruction.PING:
            return self._ping(servo)
        if code == Instruction.READ:
            if len(data) != 4:
                return self._reply(servo, Error.LENGTH)
            return self._reply(servo, *servo.read(_register(data)))
        if code == Instruction.WRITE:
            if len(data) < 3:
                return self._reply(servo, Error.LENGTH)
            return self._reply(servo, servo.write(int.from_bytes(data[:2], "little"), data[2:]))
        if code == Instruction.REBOOT:
            reply = self._reply(servo, Error.NONE)
            servo.restart()
            return reply
        return self._reply(servo, Error.INSTRUCTION)

    def _ping(self, servo: EmulatedServo) -> Packet:
        return self._reply(servo, Error.NONE, servo.read(protocol.MODEL)[1] + servo.read(protocol.FIRMWARE)[1])

    def _reply(self, servo: EmulatedServo, error: int, data: bytes = b"") -> Packet:
        alert = protocol.ALERT if servo.get(protocol.HARDWARE_ERROR) else 0
        return protocol.status(servo.id, error | alert, data)

    def _sync_write(self, data: bytes, now_ns: int) -> None:
        address, size = int.from_bytes(data[:2], "little"), int.from_bytes(data[2:4], "little")
        for at in range(4, len(data) - size, 1 + size):
            servo = self.servos.get(data[at])
            if servo is not None and not self._active(GoalRefused, servo.id, now_ns):
                servo.write(address, data[at + 1 : at + 1 + size])

    def _damaged(self, reply: bytes, now_ns: int) -> bytes:
        for fault in self._script.active(DroppedBytes, now_ns):
            reply = thinned(reply, fault.probability, self._random)
        return noisy(reply, self._random) if self._script.active(Noisy, now_ns) else reply


class LockstepPort(SdkPort):
    """Port whose emulated servos answer within the call that sends an instruction: no time of any clock passes.

    The bytes travel over a pty. A reply ends where the emulator's bytes end, so a busy computer causes no timeout.
    """

    def __init__(self, terminal: Pty, port: Port, exchange: Callable[[bytes], bytes], baud_rate: int) -> None:
        super().__init__(port, baud_rate)
        self._terminal, self._exchange = terminal, exchange
        self._unread = 0

    def clearPort(self) -> None:  # noqa: N802
        read_exactly(self._port, self._unread)
        self._unread = 0
        super().clearPort()

    def readPort(self, length: int) -> bytes:  # noqa: N802
        data = super().readPort(min(length, self._unread))
        self._unread -= len(data)
        return data

    def writePort(self, packet: Sequence[int]) -> int:  # noqa: N802
        count = super().writePort(packet)
        replied = self._exchange(self._terminal.read_exactly(count))
        self._terminal.write(replied)
        self._unread += len(replied)
        return count

    def isPacketTimeout(self) -> bool:  # noqa: N802
        return self._unread == 0


def emulated_servos(variant: PanTiltVariant) -> list[EmulatedServo]:
    """Return the pan-tilt's servos, configured as the robot's own stack leaves them."""
    low, high = variant.position_limits
    return [EmulatedServo(servo.id, (low, high), servo.reversed) for servo in (variant.pan, variant.tilt)]


def _register(data: bytes) -> Register:
    return Register(int.from_bytes(data[:2], "little"), int.from_bytes(data[2:], "little"))


def _overlap(one: Register, other: Register) -> bool:
    return one.address < other.end and other.address < one.end
