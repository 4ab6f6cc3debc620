"""A gamepad by Linux's input events, read from the device file without a library.

The layout is that of the kernel's gamepad specification (Documentation/input/gamepad.rst): the hat drives, north and
south look up and down, start ends the episode, east is the emergency stop. Sticks count only while the left shoulder
button is held; releasing it releases the robot. A gamepad that is gone stops the robot. One that is out of range of its
receiver goes quiet while its device file stays: after ``SILENCE_S`` without an event, nothing counts as held until the
next press.
"""

import fcntl
import os
import select
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from typing_extensions import Self

from robot_runtime.actions.discrete import Action
from robot_runtime.errors import DeviceFault
from robot_runtime.policies.human.inbox import ActionInbox, Choice

EVENT = struct.Struct("llHHi")
"""``struct input_event``: seconds, microseconds, type, code, value."""

EV_KEY, EV_ABS = 1, 3
SOUTH, EAST, NORTH, LEFT_SHOULDER, START = 0x130, 0x131, 0x133, 0x136, 0x13B
ABS_X, ABS_Y, HAT_X, HAT_Y = 0x00, 0x01, 0x10, 0x11

FOLDER = Path("/dev/input/by-id")
DEAD_ZONE = 0.12
"""Share of a stick's way around its center that counts as center."""

SILENCE_S = 2.0
"""Longest time without an event for which something counts as held."""

UP, LEFT, RIGHT = 0x220, 0x222, 0x223
"""The hat of gamepads that report it as buttons."""

_BUTTONS = {
    UP: Action.MOVE_FORWARD,
    LEFT: Action.TURN_LEFT,
    RIGHT: Action.TURN_RIGHT,
    NORTH: Action.LOOK_UP,
    SOUTH: Action.LOOK_DOWN,
    START: Action.STOP,
}
_ABSINFO = struct.Struct("6i")
_EVENTS_AT_ONCE = 64


@dataclass
class GamepadState:
    """Buttons and axes, and what they ask for.

    Attributes:
        ranges: lowest and highest value of the stick's axes, by code.
    """

    ranges: dict[int, tuple[int, int]] = field(default_factory=dict)
    _pressed: set[int] = field(default_factory=set)
    _axes: dict[int, int] = field(default_factory=dict)

    def update(self, kind: int, code: int, value: int) -> bool:
        """Take an event; return whether it is the emergency stop."""
        if kind == EV_KEY:
            (self._pressed.add if value else self._pressed.discard)(code)
            return code == EAST and value == 1
        if kind == EV_ABS:
            self._axes[code] = value
        return False

    def release(self) -> None:
        """Forget what is pressed: nobody knows whether it still is."""
        self._pressed.clear()
        self._axes.clear()

    def choice(self) -> Choice | None:
        """The action that is asked for now; None for none."""
        for button, action in _BUTTONS.items():
            if button in self._pressed:
                return Choice(action, "gamepad")
        across, along = self._axes.get(HAT_X, 0), self._axes.get(HAT_Y, 0)
        if across:
            return Choice(Action.TURN_LEFT if across < 0 else Action.TURN_RIGHT, "gamepad")
        if along < 0:
            return Choice(Action.MOVE_FORWARD, "gamepad")
        if LEFT_SHOULDER in self._pressed:
            stick = -self._share(ABS_Y), -self._share(ABS_X)
            if any(stick):
                return Choice(Action.VELOCITY_CONTROL, "gamepad", stick)
        return None

    def _share(self, code: int) -> float:
        low, high = self.ranges.get(code, (-32768, 32767))
        middle, half = (low + high) / 2, (high - low) / 2
        share = max(-1.0, min(1.0, (self._axes.get(code, middle) - middle) / half)) if half > 0 else 0.0
        return share if abs(share) > DEAD_ZONE else 0.0


class Gamepad:
    """Reader of a gamepad in a thread of its own; a context. Its button, or its loss, calls ``stop`` with the reason.

    Raises:
        DeviceFault: the device cannot be opened.
    """

    def __init__(self, path: Path, inbox: ActionInbox, stop: Callable[[str], None]) -> None:
        self._inbox, self._stop = inbox, stop
        try:
            self._device = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        except OSError as error:
            raise DeviceFault(
                f"{path}: cannot be opened: {error.strerror}",
                "switch the gamepad on, and add the user to the group `input`",
            ) from error
        self._state = GamepadState(_stick_ranges(self._device))
        self._woken, self._wake = os.pipe()
        self._thread = threading.Thread(target=self._read, name="gamepad", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._wake)
        self._thread.join()
        os.close(self._woken)
        os.close(self._device)

    def _read(self) -> None:
        rest = b""
        while True:
            ready = select.select([self._device, self._woken], [], [], SILENCE_S)[0]
            if self._woken in ready:
                return
            if not ready:
                self._state.release()
                self._inbox.release()
                continue
            try:
                data = os.read(self._device, EVENT.size * _EVENTS_AT_ONCE)
            except OSError:  # unplugged
                data = b""
            if not data:
                self._inbox.release()
                self._stop("the gamepad is gone")
                return
            rest += data
            whole = len(rest) - len(rest) % EVENT.size
            for _, _, kind, code, value in EVENT.iter_unpack(rest[:whole]):
                if self._state.update(kind, code, value):
                    self._stop("the gamepad's stop button")
            rest = rest[whole:]
            self._ask()

    def _ask(self) -> None:
        choice = self._state.choice()
        if choice is None:
            self._inbox.release()
        else:
            self._inbox.hold(choice)


def find_gamepad(folder: Path = FOLDER) -> Path:
    """The gamepad that is connected. Raises ``DeviceFault`` if there is none."""
    found: list[Path] = sorted(folder.glob("*-event-joystick"))
    if not found:
        raise DeviceFault(
            f"{folder}: no gamepad is connected", "switch it on, or name its file with --gamepad /dev/input/eventN"
        )
    return found[0]


def _stick_ranges(device: int) -> dict[int, tuple[int, int]]:
    """Ranges of the stick's axes as the kernel knows them (EVIOCGABS); nothing of what is not an input device."""
    ranges = {}
    for code in (ABS_X, ABS_Y):
        request = 2 << 30 | _ABSINFO.size << 16 | ord("E") << 8 | 0x40 + code
        try:
            answer = fcntl.ioctl(device, request, bytes(_ABSINFO.size))
        except OSError:
            continue
        _, low, high, *_ = _ABSINFO.unpack(answer)
        ranges[code] = low, high
    return ranges
