"""Bus of servos by ROBOTIS' own library: every failure is typed, and one bad packet is retried.

The library has traps that this module avoids:

* It opens ports without a lock, and passes errors of the system on: :class:`SdkPort` uses the project's ``Port``.
* Any nonzero error byte looks like a failed instruction; the alert bit is none (:func:`check_reply`).
* It does not stuff what it sends; no value of a pan-tilt's registers contains a header.
* Without an answer of the expected length it hands over bytes of the checksum as data: values are read in blocks only,
  whose length is checked, and the line is silent again before an instruction is repeated.
"""

import termios
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import serial
from dynamixel_sdk import COMM_SUCCESS, GroupSyncRead, GroupSyncWrite, PortHandler, Protocol2PacketHandler

from drivers.dynamixel.protocol import ALERT, BROADCAST, MODEL, Block, Error, Register
from drivers.serial_wire.port import Port
from robot_runtime.common.clock import SystemClock, ns_to_seconds
from robot_runtime.errors import DeviceFault

ATTEMPTS = 2
"""Of each instruction: one bad packet costs a few milliseconds and no more."""

READ_S = 0.002
"""Time limit of a read; the library reads again until its own."""

REPLY_S = 0.02
"""Time for a reply, beyond its bytes': the adapter's latency timer is 16 ms unless udev sets it to 1 ms."""

QUIET_READS = 20
"""Reads within which the line must become silent, 40 ms."""

REMEDIES = {
    Error.RANGE: "keep the value within the register's range; after the bus watchdog has tripped, write 0 to it",
    Error.LIMIT: "keep the angle within the servo's position limits, registers 48 and 52",
    Error.ACCESS: "switch the torque off before an EEPROM register is written",
}

T = TypeVar("T")


class SilentServo(DeviceFault):
    """A servo does not answer."""


class SdkPort(PortHandler):  # type: ignore[misc]
    """An open port as the library uses it.

    Args:
        port: open; closed by its owner.
        baud_rate: baud rate of the port.

    Attributes:
        received: number of bytes that were read so far.
    """

    def __init__(self, port: Port, baud_rate: int) -> None:
        super().__init__(port.path)
        self._port = port
        self._clock = SystemClock()
        self.baudrate = baud_rate
        self.tx_time_per_byte = 10_000 / baud_rate
        self.is_open = True
        self.received = 0
        port.serial.timeout = READ_S

    def clearPort(self) -> None:  # noqa: N802
        """Drop what has arrived."""
        try:
            self._port.serial.reset_input_buffer()
        except (serial.SerialException, OSError, TypeError, termios.error) as error:
            raise DeviceFault(
                f"port {self._port.path}: the servos' adapter was disconnected: {error}",
                "plug it in again, and restart",
            ) from error

    def readPort(self, length: int) -> bytes:  # noqa: N802
        """Return up to ``length`` bytes, within :data:`READ_S`."""
        data = self._port.read(length) if length > 0 else b""
        self.received += len(data)
        return data

    def writePort(self, packet: Sequence[int]) -> int:  # noqa: N802
        """Send a packet."""
        self._port.write(bytes(packet))
        return len(packet)

    def setPacketTimeout(self, packet_length: int) -> None:  # noqa: N802
        """Set the time limit of a reply."""
        self.setPacketTimeoutMillis(self.tx_time_per_byte * packet_length + 1000 * REPLY_S)

    def getCurrentTime(self) -> float:  # noqa: N802
        """Milliseconds of a monotonic clock."""
        return 1000 * ns_to_seconds(self._clock.now_ns())


class ServoBus:
    """Instructions to the servos of a bus; for one thread at a time.

    Attributes:
        retries: number of instructions so far that had to be repeated.
    """

    def __init__(self, port: SdkPort) -> None:
        self._port = port
        self._packets = Protocol2PacketHandler()
        self.retries = 0

    @property
    def received(self) -> int:
        """Number of bytes that came so far, whatever they were."""
        return self._port.received

    def model(self, servo: int) -> int | None:
        """Return the model number of a servo, or None if it does not answer."""
        try:
            return self.read(servo, Register(MODEL.address, 7)).get(MODEL)
        except SilentServo:
            return None

    def read(self, servo: int, block: Register) -> Block:
        """Return a block of the control table.

        Raises:
            SilentServo: no valid answer, twice.
            DeviceFault: the servo refuses, or the port was disconnected.
        """

        def attempt() -> Block | None:
            data, result, error = self._packets.readTxRx(self._port, servo, *block)
            if result != COMM_SUCCESS:
                return None
            check_reply(servo, f"read register {block.address}", error)
            return Block(block.address, bytes(data)) if len(data) == block.size else None

        return self._repeated(attempt, (servo,))

    def write(self, servo: int, register: Register, value: int) -> None:
        """Write a value.

        Raises:
            SilentServo: no valid answer, twice.
            DeviceFault: the servo refuses the value, or the port was disconnected.
        """
        data = list(value.to_bytes(register.size, "little", signed=value < 0))

        def attempt() -> bool | None:
            result, error = self._packets.writeTxRx(self._port, servo, *register, data)
            if result != COMM_SUCCESS:
                return None
            check_reply(servo, f"write {value} to register {register.address}", error)
            return True

        self._repeated(attempt, (servo,))

    def reboot(self, servo: int) -> None:
        """Restart a servo to clear its latched errors; it answers again after a fraction of a second."""
        self._repeated(lambda: self._packets.reboot(self._port, servo)[0] == COMM_SUCCESS or None, (servo,))

    def sync_read(self, servos: Sequence[int], block: Register) -> dict[int, Block]:
        """Return the same block of several servos, measured at the same time.

        Raises:
            SilentServo: a servo gave no valid answer, twice; the message says which.
            DeviceFault: the port was disconnected.
        """
        group = GroupSyncRead(self._port, self._packets, *block)
        for servo in servos:
            group.addParam(servo)

        def attempt() -> dict[int, Block] | None:
            if group.txRxPacket() != COMM_SUCCESS:
                return None
            blocks = {servo: Block(block.address, bytes(group.data_dict[servo])) for servo in servos}
            return blocks if all(len(found.data) == block.size for found in blocks.values()) else None

        return self._repeated(attempt, servos)

    def sync_write(self, register: Register, values: Mapping[int, int]) -> None:
        """Write a value to each of several servos. Nothing answers: read back what was written."""
        group = GroupSyncWrite(self._port, self._packets, *register)
        for servo, value in values.items():
            group.addParam(servo, list(value.to_bytes(register.size, "little")))
        group.txPacket()

    def _repeated(self, attempt: Callable[[], T | None], servos: Sequence[int]) -> T:
        for number in range(ATTEMPTS):
            if number:
                self.retries += 1
                self._await_silence()
            found = attempt()
            if found is not None:
                return found
        raise self._silence(servos)

    def _await_silence(self) -> None:
        """Wait for the end of a reply that is late, lest it is taken for the next one's."""
        for _ in range(QUIET_READS):
            if not self._port.readPort(BROADCAST):
                return

    def _silence(self, servos: Sequence[int]) -> SilentServo:
        """Name the servos that do not answer: a sync read fails for all servos."""
        silent = list(servos)
        if len(silent) > 1:
            self._await_silence()
            silent = [servo for servo in servos if self._packets.ping(self._port, servo)[1] != COMM_SUCCESS]
        names = ", ".join(map(str, silent or servos))
        return SilentServo(
            f"port {self._port.getPortName()}: servo {names} does not answer",
            "check its cable, the servos' power supply, and id and baud rate in the head's options",
        )


def check_reply(servo: int, instruction: str, error: Any) -> None:
    """Raise ``DeviceFault`` if an instruction failed; the alert bit alone is not a failure."""
    code = int(error) & ~ALERT
    if code == Error.NONE:
        return
    known = code in set(Error)
    name = Error(code).name.lower() if known else f"number {code}"
    remedy = REMEDIES.get(Error(code), "") if known else ""
    raise DeviceFault(
        f"servo {servo} refuses to {instruction}: {name} error",
        remedy or "check that the servo is an XL430 or 2XL430 with protocol 2.0",
    )
