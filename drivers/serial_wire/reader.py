"""Reader of a serial port: bytes at their arrival, from a thread or from an emulated device."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable

from drivers.serial_wire.port import Attachment, Port
from robot_runtime.errors import DeviceFault

JOIN_S = 5.0
"""Time limit for the thread to end on a busy computer: a port must not be closed during a read."""


class Link(ABC):
    """Reader of a device's port."""

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
    """Reader of a real device's port, in a thread."""

    def __init__(self, path: str, baud_rate: int, attachment: Attachment) -> None:
        self._path, self._baud_rate, self._attachment = path, baud_rate, attachment
        self._port: Port | None = None
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self._fault: DeviceFault | None = None

    def open(self, on_bytes: Callable[[bytes], None]) -> None:
        self._fault = None
        self._stop.clear()
        port = self._port = Port(self._path, self._baud_rate, self._attachment)
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
