"""Reader of a serial port: bytes at their arrival, from a thread or from an emulated device."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import ExitStack

from drivers.serial_wire.port import Attachment, Port
from robot_runtime.common.threads import background
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
        self._ends = ExitStack()
        self._fault: DeviceFault | None = None

    def open(self, on_bytes: Callable[[bytes], None]) -> None:
        self._fault = None
        port = Port(self._path, self._baud_rate, self._attachment)
        self._ends.callback(port.close)
        self._ends.enter_context(background(lambda ended: self._read(port, on_bytes, ended), self._path, JOIN_S))

    def check(self) -> None:
        if self._fault is not None:
            raise self._fault

    def close(self) -> None:
        self._ends.close()

    def _read(self, port: Port, on_bytes: Callable[[bytes], None], ended: threading.Event) -> None:
        while not ended.is_set():
            try:
                data = port.read()
            except DeviceFault as fault:
                self._fault = fault
                return
            if data:
                on_bytes(data)
