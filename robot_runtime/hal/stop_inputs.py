"""Emergency stops that are wired to the robot's computer: the field ``stop_inputs`` of a robot's YAML file."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from robot_runtime.common import config


@dataclass(frozen=True)
class StopButton(config.Strict):
    """A button of an input device: a gamepad, a push button or pedal on USB, a keyboard.

    Attributes:
        device: path of the device, ``/dev/input/by-id/...-event-joystick`` or ``-event-kbd``.
        code: code of the button, as ``evtest`` shows it, for instance 305 (``BTN_EAST``); None for any.
    """

    device: str
    code: int | None = None


@dataclass(frozen=True)
class StopSwitch(config.Strict):
    """A wired switch behind a file, for instance ``/sys/class/gpio/gpio17/value``; one that cannot be read stops, too.

    Attributes:
        path: path of the file, read 50 times per second.
        stop: text of the file while the switch is pressed. Wire it so that a broken wire reads as pressed.
    """

    path: str
    stop: str = "1"


@dataclass(frozen=True)
class StopLine(config.Strict):
    """A switch between RTS and an input of a serial port; pressed, or with a broken wire, it is open.

    Attributes:
        port: port of the adapter, which has no other use.
        line: input that the switch connects to RTS.
    """

    port: str
    line: Literal["cts", "dsr", "dcd", "ri"] = "cts"


@dataclass(frozen=True)
class StopPin(config.Strict):
    """A switch between a pin of a computer's GPIO and ground; pressed, or with a broken wire, it is open.

    Attributes:
        chip: device of the pins, as ``gpiodetect`` shows it.
        pin: number of the pin at the chip; it is pulled up.
    """

    chip: str
    pin: Annotated[int, Field(ge=0)]


@dataclass(frozen=True)
class StopInputs(config.Strict):
    """All inputs of a robot. Each engages the emergency stop, which holds until the operator releases it."""

    buttons: tuple[StopButton, ...] = ()
    switches: tuple[StopSwitch, ...] = ()
    lines: tuple[StopLine, ...] = ()
    pins: tuple[StopPin, ...] = ()


NO_STOP_INPUTS = StopInputs()
"""Default of the field ``stop_inputs``."""
