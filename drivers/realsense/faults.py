"""Faults of the emulated RealSense, each during a window of the robot's clock."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from robot_runtime.hal.fault_schedule import Window


@dataclass(frozen=True)
class Unplugged(Window):
    """The cable is disconnected; the context loses the device."""

    kind: Literal["unplugged"] = "unplugged"


@dataclass(frozen=True)
class Silent(Window):
    """The device is connected and delivers nothing."""

    kind: Literal["silent"] = "silent"


@dataclass(frozen=True)
class LostColor(Window):
    """The port loses every image of the color sensor."""

    kind: Literal["lost_color"] = "lost_color"


@dataclass(frozen=True)
class Blind(Window):
    """The stereo module finds no matches: depth images without a measurement."""

    kind: Literal["blind"] = "blind"


@dataclass(frozen=True)
class Frozen(Window):
    """The device repeats its last images under new stamps."""

    kind: Literal["frozen"] = "frozen"


Fault = Annotated[Unplugged | Silent | LostColor | Blind | Frozen, Field(discriminator="kind")]
