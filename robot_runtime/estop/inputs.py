"""Monitor of a robot's wired emergency stops: buttons of input devices, files, serial ports and GPIO pins."""

from __future__ import annotations

import fcntl
import os
import select
import struct
import termios
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from typing_extensions import Self

from robot_runtime.errors import DeviceFault, RuntimeFault
from robot_runtime.estop.requests import carry_out
from robot_runtime.hal import Robot
from robot_runtime.hal.stop_inputs import StopButton, StopLine, StopPin, StopSwitch

if TYPE_CHECKING:
    from gpiod import LineRequest

POLL_S = 0.02
"""Period at which switches are read; a button's event is noticed at once."""

REPEAT_POLLS = 5
"""Polls after which a stop that still holds is repeated, so that releasing it does not help."""

_EVENT = struct.Struct("llHHi")  # input_event: seconds, microseconds, type, code, value
_EV_KEY, _PRESSED = 1, 1
_EVENTS_AT_ONCE = 64

_LEVELS = struct.Struct("i")
_LINES = {"cts": termios.TIOCM_CTS, "dsr": termios.TIOCM_DSR, "dcd": termios.TIOCM_CD, "ri": termios.TIOCM_RI}


class _Input(ABC):
    """One input.

    Attributes:
        name: name for messages.
    """

    name: str

    @abstractmethod
    def open(self) -> None:
        """Open the input. Raises ``OSError``."""

    @abstractmethod
    def engaged(self) -> bool:
        """Whether it was pressed since the last call, or is. Raises ``OSError`` if it is gone."""

    def fileno(self) -> int:
        """File descriptor to wait on; -1 for none."""
        return -1

    def close(self) -> None:
        """Release the input; may be called twice."""


class _File(_Input):
    """An input behind an open file."""

    _file = -1

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


class _Button(_File):
    def __init__(self, options: StopButton) -> None:
        self.name = f"stop button {options.device}"
        self._options = options

    def open(self) -> None:
        self._file = os.open(self._options.device, os.O_RDONLY | os.O_NONBLOCK)

    def engaged(self) -> bool:
        if self._file < 0:
            self.open()
        try:
            data = os.read(self._file, _EVENT.size * _EVENTS_AT_ONCE)
        except BlockingIOError:
            return False
        if not data:
            raise OSError("the device has ended")
        complete = len(data) - len(data) % _EVENT.size
        return any(
            kind == _EV_KEY and value == _PRESSED and self._options.code in (None, code)
            for _, _, kind, code, value in _EVENT.iter_unpack(data[:complete])
        )

    def fileno(self) -> int:
        return self._file


class _Switch(_Input):
    def __init__(self, options: StopSwitch) -> None:
        self.name = f"stop switch {options.path}"
        self._options = options

    def open(self) -> None:
        self.engaged()

    def engaged(self) -> bool:
        return Path(self._options.path).read_text(encoding="ascii", errors="replace").strip() == self._options.stop


class _Line(_File):
    """An input of a serial port."""

    def __init__(self, options: StopLine) -> None:
        self.name = f"stop line {options.line} of {options.port}"
        self._port, self._bit = options.port, _LINES[options.line]

    def open(self) -> None:
        # Opening the port sets RTS, which feeds the switch.
        self._file = os.open(self._port, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        self.engaged()

    def engaged(self) -> bool:
        if self._file < 0:
            self.open()
        (levels,) = _LEVELS.unpack(fcntl.ioctl(self._file, termios.TIOCMGET, bytes(_LEVELS.size)))
        return not levels & self._bit


class _Pin(_Input):
    """A pin of the computer's GPIO, with a resistor that pulls it up."""

    def __init__(self, options: StopPin) -> None:
        self.name = f"stop pin {options.pin} of {options.chip}"
        self._options = options
        self._request: LineRequest | None = None

    def open(self) -> None:
        gpiod = _gpiod()
        settings = gpiod.LineSettings(gpiod.line.Direction.INPUT, bias=gpiod.line.Bias.PULL_UP)
        pin = self._options.pin
        self._request = gpiod.request_lines(self._options.chip, {pin: settings}, consumer="robot-runtime stop")

    def engaged(self) -> bool:
        if self._request is None:
            self.open()
        assert self._request is not None
        return bool(self._request.get_value(self._options.pin).value)

    def close(self) -> None:
        if self._request is not None:
            self._request.release()
            self._request = None


def _gpiod() -> ModuleType:
    try:
        import gpiod
    except ImportError as missing:
        raise DeviceFault(f"stop pins: {missing}", "pip install 'robot-runtime[gpio]'") from missing
    return gpiod


class StopInputMonitor:
    """Thread that engages the emergency stop at the robot's wired inputs; a context.

    An input that is gone counts as pressed until it is back.
    """

    def __init__(self, robot: Robot, tell: Callable[[str], None]) -> None:
        self._robot, self._tell = robot, tell
        chosen = robot.stop_inputs
        self._inputs: list[_Input] = [
            *map(_Button, chosen.buttons),
            *map(_Switch, chosen.switches),
            *map(_Line, chosen.lines),
            *map(_Pin, chosen.pins),
        ]
        self._pressed: set[str] = set()
        self._thread = threading.Thread(target=self._watch, name="stop inputs", daemon=True)
        self._woken, self._wake = os.pipe()

    def __enter__(self) -> Self:
        for item in self._inputs:
            self._open(item)
        if self._inputs:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        os.write(self._wake, b"x")
        if self._inputs:
            self._thread.join()
        self._close()

    def _open(self, item: _Input) -> None:
        try:
            item.open()
        except DeviceFault:
            self._close()
            raise
        except OSError as error:
            self._close()
            raise DeviceFault(
                f"{self._robot.name}: {item.name} cannot be read: {error.strerror or error}",
                "connect it, or fix 'stop_inputs' in the robot's file; input devices need the group input",
            ) from error

    def _close(self) -> None:
        for item in self._inputs:
            item.close()
        os.close(self._woken)
        os.close(self._wake)

    def _watch(self) -> None:
        polls = 0
        while True:
            files = [item.fileno() for item in self._inputs if item.fileno() >= 0]
            ready, _, _ = select.select([self._woken, *files], [], [], POLL_S)
            if self._woken in ready:
                return
            polls += 1
            for item in self._inputs:
                self._poll(item, repeat=polls % REPEAT_POLLS == 0)

    def _poll(self, item: _Input, repeat: bool) -> None:
        why = "is pressed"
        try:
            engaged = item.engaged()
        except OSError as error:
            item.close()
            engaged, why = True, f"is gone ({error.strerror or error})"
        if not engaged:
            self._pressed.discard(item.name)
            return
        if item.name not in self._pressed:
            self._pressed.add(item.name)
            self._stop(f"{item.name} {why}: ")
        elif repeat:
            with suppress(RuntimeFault):  # reported when it began
                carry_out("stop", self._robot)

    def _stop(self, why: str) -> None:
        try:
            self._tell(why + carry_out("stop", self._robot))
        except RuntimeFault as error:
            self._tell(why + error.message)
