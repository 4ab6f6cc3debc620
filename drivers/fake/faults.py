"""Faults of the fake robot, each during a window of its own time."""

from collections.abc import Iterable
from functools import reduce
from operator import or_
from typing import Annotated, Literal

from pydantic import Field

from robot_runtime.hal import Zone
from robot_runtime.hal.fault_schedule import Window

ZoneName = Literal["left", "center", "right"]


class LostFrames(Window):
    """The camera exposes nothing."""


class LatePoses(Window):
    """Poses measured in the window arrive ``latency_s`` later than usual."""

    latency_s: float = 0.5


class DroppedPoses(Window):
    """The localizer measures nothing."""


class LostTracking(Window):
    """The localizer reports poses with the status lost."""


class StuckBumper(Window):
    """A bumper zone reports pressed."""

    zone: ZoneName = "center"


class Cliff(Window):
    """A cliff sensor sees no floor."""

    zone: ZoneName = "center"


class WheelDrop(Window):
    """A wheel has dropped."""

    zone: Literal["left", "right"] = "left"


class SilentBase(Window):
    """The base reports nothing: its cable is disconnected."""


class StuckHead(Window):
    """The pan-tilt ignores commands."""


class RefusedConnection(Window):
    """A device cannot be opened."""

    device: Literal["base", "head", "camera", "localizer"] = "camera"


Fault = Annotated[
    LostFrames
    | LatePoses
    | DroppedPoses
    | LostTracking
    | StuckBumper
    | Cliff
    | WheelDrop
    | SilentBase
    | StuckHead
    | RefusedConnection,
    Field(discriminator="kind"),
]


def zones(names: Iterable[str]) -> Zone:
    """Return zone names as one flag."""
    return reduce(or_, (Zone[name.upper()] for name in names), Zone.NONE)
