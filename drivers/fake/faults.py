"""Faults of the fake robot, each during a window of its own time."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from robot_runtime.hal import Zone
from robot_runtime.hal.fault_schedule import Window

ZoneName = Literal["left", "center", "right"]


@dataclass(frozen=True)
class LostFrames(Window):
    """The camera exposes nothing."""

    kind: Literal["lost_frames"] = "lost_frames"


@dataclass(frozen=True)
class LatePoses(Window):
    """Poses measured in the window arrive ``latency_s`` later than usual."""

    kind: Literal["late_poses"] = "late_poses"
    latency_s: float = 0.5


@dataclass(frozen=True)
class DroppedPoses(Window):
    """The localizer measures nothing."""

    kind: Literal["dropped_poses"] = "dropped_poses"


@dataclass(frozen=True)
class LostTracking(Window):
    """The localizer reports poses with the status lost."""

    kind: Literal["lost_tracking"] = "lost_tracking"


@dataclass(frozen=True)
class StuckBumper(Window):
    """A bumper zone reports pressed."""

    kind: Literal["stuck_bumper"] = "stuck_bumper"
    zone: ZoneName = "center"


@dataclass(frozen=True)
class Cliff(Window):
    """A cliff sensor sees no floor."""

    kind: Literal["cliff"] = "cliff"
    zone: ZoneName = "center"


@dataclass(frozen=True)
class WheelDrop(Window):
    """A wheel has dropped."""

    kind: Literal["wheel_drop"] = "wheel_drop"
    zone: Literal["left", "right"] = "left"


@dataclass(frozen=True)
class SilentBase(Window):
    """The base reports nothing: its cable is disconnected."""

    kind: Literal["silent_base"] = "silent_base"


@dataclass(frozen=True)
class StuckHead(Window):
    """The pan-tilt ignores commands."""

    kind: Literal["stuck_head"] = "stuck_head"


@dataclass(frozen=True)
class RefusedConnection(Window):
    """A device cannot be opened."""

    kind: Literal["refused_connection"] = "refused_connection"
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
    combined = Zone.NONE
    for name in names:
        combined |= Zone[name.upper()]
    return combined
