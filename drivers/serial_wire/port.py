"""Serial port with an exclusive lock, with every failure as a ``DeviceFault``."""

import errno
import os
import select
import termios
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import serial
from serial.tools import list_ports

from robot_runtime.common.clock import Stopwatch
from robot_runtime.errors import DeviceFault

READ_S = 0.1
"""Time limit of a read, and so of closing."""

WRITE_S = 0.2
"""Time limit of a write: a device that takes no bytes for so long is gone."""

IN_USE = (errno.EBUSY, errno.EWOULDBLOCK)


class Writable(Protocol):
    """An object that ``select`` takes."""

    def fileno(self) -> int:
        """File descriptor."""


@dataclass(frozen=True)
class Attachment:
    """A kind of device on a serial port, for messages.

    Attributes:
        device: name of the device, for example ``hedgehog``.
        vendors: USB vendors of its port.
        rules: file of udev rules that permits its use; empty for none.
        options: names of the options for port and baud rate.
    """

    device: str
    vendors: frozenset[int] = frozenset()
    rules: str = ""
    options: str = "'port' and 'baud_rate' in the device's options"


class PortInUse(DeviceFault):
    """Another program has the port.

    Attributes:
        holder: process id of that program; 0 if unknown.
    """

    holder = 0


def port_in_use(port: str, locked: str) -> PortInUse:
    """Return the error for a port that another program has, with that program's name.

    Args:
        port: name of the port.
        locked: path of the file that the other program has locked.
    """
    holder = _holder_of(locked)
    user = f"process {holder}{_command_of(holder)}" if holder else "another program"
    fault = PortInUse(
        f"port {port}: cannot be opened: {user} uses it",
        "end the program that uses it: the vendor's tool, or another robot-runtime",
    )
    fault.holder = holder
    return fault


def _holder_of(path: str) -> int:
    """Return the process that has locked a file by ``flock``; 0 if that cannot be found out."""
    try:
        found = os.stat(path)
        locks = Path("/proc/locks").read_text(encoding="ascii")
    except OSError:
        return 0
    file = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    entries = (line.split() for line in locks.splitlines())  # number, FLOCK, ADVISORY, WRITE, process, file, range
    return next((int(entry[4]) for entry in entries if entry[1] == "FLOCK" and entry[5] == file), 0)


def _command_of(process: int) -> str:
    try:
        command = Path(f"/proc/{process}/cmdline").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return f" ({' '.join(command.split(chr(0))[:3])})" if command else ""


def write_within(file: Writable, send: Callable[[memoryview], int], data: bytes, limit_s: float) -> None:
    """Write all bytes to a file descriptor that does not block.

    Only waiting counts: a time limit of the whole call would count the time for which a busy computer stopped this
    process.

    ``send`` writes some of the bytes and returns their number; ``limit_s`` limits all waiting.

    Raises:
        TimeoutError: the device takes the bytes too slowly, or not at all.
        OSError: the connection is lost.
    """
    left, left_s = memoryview(data), limit_s
    while left:
        waiting = Stopwatch()
        if not select.select([], [file], [], max(0.0, left_s))[1]:
            raise TimeoutError("it takes no bytes" if len(left) == len(data) else "it takes bytes too slowly")
        left_s -= waiting.elapsed_s()
        with suppress(BlockingIOError):
            left = left[send(left) :]


class Port:
    """An open serial port that no other program can open.

    Raises:
        PortInUse: another program has it.
        DeviceFault: the port is missing, or not permitted.
    """

    def __init__(self, path: str, baud_rate: int, attachment: Attachment) -> None:
        self.path, self._attachment = path, attachment
        try:
            self.serial = serial.Serial(path, baud_rate, timeout=READ_S, write_timeout=WRITE_S, exclusive=True)
        except (serial.SerialException, OSError, ValueError) as error:
            raise _open_fault(path, attachment, error) from error

    def fileno(self) -> int:
        """File descriptor, for ``select``."""
        return int(self.serial.fileno())

    def read(self, count: int | None = None) -> bytes:
        """Return ``count`` bytes, or fewer after :data:`READ_S`; without ``count``, all available bytes.

        Raises:
            DeviceFault: the port was disconnected.
        """
        try:
            return bytes(self.serial.read(count or max(1, self.serial.in_waiting)))
        # The library passes some system errors on, and TypeError when closed by another thread.
        except (serial.SerialException, OSError, TypeError) as error:
            raise self._disconnected(error) from error

    def write(self, data: bytes) -> None:
        """Write all bytes. Raises ``DeviceFault`` if the port was disconnected, or takes none for :data:`WRITE_S`."""
        try:
            write_within(self, lambda left: os.write(self.fileno(), left), data, WRITE_S)
        except (serial.SerialException, OSError, TypeError) as error:
            raise self._disconnected(error) from error

    def change_baud_rate(self, baud_rate: int) -> None:
        """Go on at another rate. Raises ``DeviceFault`` if the port was disconnected."""
        try:
            self.serial.baudrate = baud_rate
        except (serial.SerialException, OSError, termios.error) as error:
            raise self._disconnected(error) from error

    def close(self) -> None:
        """Release the port and its lock."""
        self.serial.close()

    def _disconnected(self, error: Exception) -> DeviceFault:
        return DeviceFault(
            f"port {self.path}: the {self._attachment.device} was disconnected: {error}",
            "plug it in again, check its cable and battery, and restart",
        )


def _open_fault(path: str, attachment: Attachment, error: Exception) -> DeviceFault:
    number = getattr(error, "errno", None)
    if number == errno.ENOENT:
        return DeviceFault(f"port {path}: there is no such device", _connected_ports_remedy(attachment))
    if number in IN_USE:
        return port_in_use(path, path)
    what = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return DeviceFault(f"port {path}: cannot be opened: {what}", _open_remedy(attachment, number))


def _open_remedy(attachment: Attachment, number: int | None) -> str:
    if number == errno.EACCES:
        rules = f"copy {attachment.rules} to /etc/udev/rules.d and plug the {attachment.device} in again, or "
        return f"{rules if attachment.rules else ''}add yourself to the group dialout"
    return f"check {attachment.options}"


def _connected_ports_remedy(attachment: Attachment) -> str:
    """Return the remedy for a missing port, with the connected ones."""
    device = attachment.device
    found = [port.device for port in list_ports.comports() if port.vid in attachment.vendors]
    if found:
        return f"set {attachment.options}: {' or '.join(found)} may be the {device}"
    return f"plug the {device} in and switch it on; no USB device of its kind is connected"
