"""Serial port of a hedgehog, with every failure as a ``DeviceFault``, and its reader."""

from __future__ import annotations

import errno
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable

import serial
from serial.tools import list_ports

from robot_runtime.errors import DeviceFault

READ_S = 0.1
"""Time limit of one read, and so of closing."""

JOIN_S = 5.0
"""Time limit for the thread to end on a busy computer: a port must not be closed during a read."""

STM_VENDOR = 0x0483
"""Hedgehogs and modems are USB serial devices of this vendor (STMicroelectronics)."""

_REMEDIES = {
    errno.EACCES: "copy drivers/marvelmind/60-marvelmind.rules to /etc/udev/rules.d and plug the hedgehog in anew, "
    "or add yourself to the group dialout",
    errno.EBUSY: "end the program that uses it",
    errno.EWOULDBLOCK: "end the program that uses it: the vendor's tool, or another robot-runtime",
}


class Port:
    """An open serial port.

    Args:
        path: of the device.
        baud_rate: of the port.

    Raises:
        DeviceFault: the port is missing, in use, or not permitted.
    """

    def __init__(self, path: str, baud_rate: int) -> None:
        self.path = path
        try:
            self._serial = serial.Serial(path, baud_rate, timeout=READ_S, exclusive=True)
        except (serial.SerialException, OSError, ValueError) as error:
            raise _open_fault(path, error) from error

    def read(self, count: int | None = None) -> bytes:
        """Return ``count`` bytes, or fewer after :data:`READ_S`; without ``count``, all available bytes.

        Raises:
            DeviceFault: the port was disconnected.
        """
        try:
            return bytes(self._serial.read(count or max(1, self._serial.in_waiting)))
        # The library passes some system errors on, and TypeError when closed by another thread.
        except (serial.SerialException, OSError, TypeError) as error:
            raise DeviceFault(
                f"port {self.path}: the hedgehog was disconnected: {error}",
                "plug it in again, check its cable and battery, and restart",
            ) from error

    def close(self) -> None:
        self._serial.close()


class Link(ABC):
    """Reader of the hedgehog's port."""

    @abstractmethod
    def open(self, on_bytes: Callable[[bytes], None]) -> None:
        """Open the port and call ``on_bytes`` with all bytes at their arrival. Raises ``DeviceFault``."""

    @abstractmethod
    def check(self) -> None:
        """Raise the ``DeviceFault`` that ended reading, if one did."""

    @abstractmethod
    def close(self) -> None:
        """Stop reading; never raises, may be called twice."""


class ThreadLink(Link):
    """Reader of a real hedgehog's port, in a thread."""

    def __init__(self, path: str, baud_rate: int) -> None:
        self._path, self._baud_rate = path, baud_rate
        self._port: Port | None = None
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self._fault: DeviceFault | None = None

    def open(self, on_bytes: Callable[[bytes], None]) -> None:
        self._fault = None
        self._stop.clear()
        port = self._port = Port(self._path, self._baud_rate)
        self._thread = threading.Thread(target=self._read, args=(port, on_bytes), name=self._path, daemon=True)
        self._thread.start()

    def check(self) -> None:
        if self._fault is not None:
            raise self._fault

    def close(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(JOIN_S)
            self._thread = None
        if self._port is not None:
            self._port.close()
            self._port = None

    def _read(self, port: Port, on_bytes: Callable[[bytes], None]) -> None:
        while not self._stop.is_set():
            try:
                data = port.read()
            except DeviceFault as fault:
                self._fault = fault
                return
            if data:
                on_bytes(data)


def _open_fault(path: str, error: Exception) -> DeviceFault:
    number = getattr(error, "errno", None)
    if number == errno.ENOENT:
        return DeviceFault(f"port {path}: there is no such device", _connected_ports_remedy())
    what = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return DeviceFault(
        f"port {path}: cannot be opened: {what}",
        _REMEDIES.get(number or 0, "check 'port' and 'baud_rate' in the localizer's options"),
    )


def _connected_ports_remedy() -> str:
    """Return the remedy for a missing port, with the connected ones."""
    found = [port.device for port in list_ports.comports() if port.vid == STM_VENDOR]
    if found:
        return f"set 'port' in the localizer's options to {' or '.join(found)}, which may be the hedgehog"
    return "plug the hedgehog in and switch it on; no USB device of its kind is connected"
