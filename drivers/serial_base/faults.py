"""Faults of emulated bases, each during a window of the robot's clock."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from drivers.serial_wire.faults import DroppedBytes, Noisy, Silent, Unplugged
from robot_runtime.hal.fault_schedule import Window


@dataclass(frozen=True)
class Rebooting(Window):
    """The base is switched off and on: no bytes, no motion, then all counters from zero."""

    kind: Literal["rebooting"] = "rebooting"


@dataclass(frozen=True)
class StuckBumper(Window):
    """A bumper switch that is stuck, by the bits of ``Zone``."""

    kind: Literal["stuck_bumper"] = "stuck_bumper"
    zone: Annotated[int, Field(ge=1, le=7)] = 2


@dataclass(frozen=True)
class Lifted(Window):
    """The robot is lifted: both wheels drop."""

    kind: Literal["lifted"] = "lifted"


@dataclass(frozen=True)
class SlowReplies(Window):
    """Messages of the base arrive this much later."""

    kind: Literal["slow_replies"] = "slow_replies"
    by_s: Annotated[float, Field(ge=0, le=5)] = 0.05


@dataclass(frozen=True)
class QuantizedSpeed(Window):
    """The wheels' speeds are multiples of this, besides what the base's motors do."""

    kind: Literal["quantized_speed"] = "quantized_speed"
    quantum_m_s: Annotated[float, Field(gt=0, le=0.1)] = 0.0285


@dataclass(frozen=True)
class LowVoltage(Window):
    """The battery's voltage."""

    kind: Literal["low_voltage"] = "low_voltage"
    volts: float = 13.0


@dataclass(frozen=True)
class OverCurrent(Window):
    """The left wheel's motor draws too much current."""

    kind: Literal["over_current"] = "over_current"


@dataclass(frozen=True)
class PressedButton(Window):
    """Buttons that are held down, by bits."""

    kind: Literal["pressed_button"] = "pressed_button"
    bits: Annotated[int, Field(ge=1, le=255)] = 1


Fault = Annotated[
    Silent
    | Noisy
    | DroppedBytes
    | Unplugged
    | Rebooting
    | StuckBumper
    | Lifted
    | SlowReplies
    | QuantizedSpeed
    | LowVoltage
    | OverCurrent
    | PressedButton,
    Field(discriminator="kind"),
]
