"""The Brook through a library of its vendor, which has a callback for reports and no file descriptor."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Mapping
from typing import Any

from brook_base import INFO, BrookWire

from drivers.serial_base.base import GuardProcessBase
from drivers.serial_base.settings import GuardSettings
from drivers.serial_base.wire import Transport
from robot_runtime.errors import DeviceFault
from robot_runtime.hal import Base, Robot
from robot_runtime.robots.loader import RobotContext


class Library:
    """The vendor's part."""

    def __init__(self, address: str, on_report: Callable[[bytes], object]) -> None:
        host, _, port = address.rpartition(":")
        self._socket, self._on_report = socket.create_connection((host, int(port))), on_report
        threading.Thread(target=self._run, daemon=True).start()

    def send(self, command: bytes) -> None:
        self._socket.sendall(command)

    def _run(self) -> None:
        while report := self._socket.recv(4096):
            self._on_report(report)


class LibraryTransport:
    """The library, with the end of a pipe to wait for."""

    def __init__(self, address: str) -> None:
        self._out, self._in = os.pipe()
        try:
            self._library = Library(address, lambda report: os.write(self._in, report))
        except OSError as error:
            raise DeviceFault(f"Brook at {address}: {error}", "switch it on") from error

    def fileno(self) -> int:
        return self._out

    def read(self) -> bytes:
        return os.read(self._out, 65536)

    def write(self, data: bytes) -> None:
        self._library.send(data)

    def close(self) -> None:
        """The process ends soon, and its descriptors with it."""


class LibraryWire(BrookWire):
    """The Brook's lines over the library."""

    def open(self, port: str) -> Transport:
        return LibraryTransport(port)


def make_base(robot: Robot, context: RobotContext, options: Mapping[str, Any], where: str) -> Base:
    """Make the base, disconnected."""
    return GuardProcessBase(robot.clock, INFO, GuardSettings.of(LibraryWire, options["address"], INFO))
