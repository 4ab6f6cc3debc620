"""Faults of the emulated hedgehog, each during a window of the robot's clock."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from drivers.serial_wire.faults import Noisy, Silent, Unplugged
from robot_runtime.hal.fault_schedule import Window


@dataclass(frozen=True)
class NoFix(Window):
    """Packets without a fix: the line of sight is blocked."""

    kind: Literal["no_fix"] = "no_fix"


@dataclass(frozen=True)
class Frozen(Window):
    """Fresh packets with the coordinates of the window's first fix."""

    kind: Literal["frozen"] = "frozen"


@dataclass(frozen=True)
class Repeating(Window):
    """The window's first packet again and again, its timestamp included."""

    kind: Literal["repeating"] = "repeating"


@dataclass(frozen=True)
class ClockBack(Window):
    """The hedgehog's clock is ``by_s`` behind what it was."""

    kind: Literal["clock_back"] = "clock_back"
    by_s: float = 5.0


@dataclass(frozen=True)
class MovedAnchor(Window):
    """A moved beacon: all positions are off by this much."""

    kind: Literal["moved_anchor"] = "moved_anchor"
    dx_m: float = 0.5
    dy_m: float = 0.0


@dataclass(frozen=True)
class Mirrored(Window):
    """A mirrored beacon map: y has the opposite sign."""

    kind: Literal["mirrored"] = "mirrored"


@dataclass(frozen=True)
class Scaled(Window):
    """A wrong unit: factor 1000 for millimeters read as meters, 0.001 for the reverse."""

    kind: Literal["scaled"] = "scaled"
    factor: float = 1000.0


@dataclass(frozen=True)
class ForeignHedgehog(Window):
    """Additional packets of hedgehog ``address``; a hedgehog marks them as another's, a modem does not."""

    kind: Literal["stranger"] = "stranger"
    address: int = 99
    marked: bool = True


Fault = Annotated[
    NoFix
    | Silent
    | Frozen
    | Repeating
    | ClockBack
    | MovedAnchor
    | Mirrored
    | Scaled
    | ForeignHedgehog
    | Noisy
    | Unplugged,
    Field(discriminator="kind"),
]
