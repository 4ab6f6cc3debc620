"""What can be made to go wrong on the fake robot, each during a window of its own time."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Literal, TypeVar

from pydantic import Field

from robot_runtime.clock import seconds_to_ns
from robot_runtime.config import STRICT
from robot_runtime.hal import Zone

ZoneName = Literal["left", "center", "right"]


@dataclass(frozen=True)
class _Window:
    """Active while ``from_s`` <= t < ``to_s``, seconds of the robot's clock, which starts at 0."""

    from_s: float = 0.0
    to_s: float = math.inf

    __pydantic_config__ = STRICT

    def active(self, now_ns: int) -> bool:
        """Whether it is happening now."""
        return seconds_to_ns(self.from_s) <= now_ns and (math.isinf(self.to_s) or now_ns < seconds_to_ns(self.to_s))


@dataclass(frozen=True)
class LostFrames(_Window):
    """The camera exposes nothing."""

    kind: Literal["lost_frames"] = "lost_frames"


@dataclass(frozen=True)
class LatePoses(_Window):
    """Poses measured in the window arrive ``latency_s`` later than usual."""

    kind: Literal["late_poses"] = "late_poses"
    latency_s: float = 0.5


@dataclass(frozen=True)
class DroppedPoses(_Window):
    """The localizer measures nothing."""

    kind: Literal["dropped_poses"] = "dropped_poses"


@dataclass(frozen=True)
class LostTracking(_Window):
    """The localizer still reports, but says that it is lost."""

    kind: Literal["lost_tracking"] = "lost_tracking"


@dataclass(frozen=True)
class StuckBumper(_Window):
    """A bumper zone reports pressed."""

    kind: Literal["stuck_bumper"] = "stuck_bumper"
    zone: ZoneName = "center"


@dataclass(frozen=True)
class Cliff(_Window):
    """A cliff sensor sees no floor."""

    kind: Literal["cliff"] = "cliff"
    zone: ZoneName = "center"


@dataclass(frozen=True)
class WheelDrop(_Window):
    """A wheel hangs."""

    kind: Literal["wheel_drop"] = "wheel_drop"
    zone: Literal["left", "right"] = "left"


@dataclass(frozen=True)
class SilentBase(_Window):
    """The base reports nothing: its cable is out."""

    kind: Literal["silent_base"] = "silent_base"


@dataclass(frozen=True)
class StuckHead(_Window):
    """The pan-tilt does not move, whatever it is told."""

    kind: Literal["stuck_head"] = "stuck_head"


@dataclass(frozen=True)
class RefusedConnection(_Window):
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

W = TypeVar("W", bound=_Window)


@dataclass(frozen=True)
class Script:
    """All scripted faults of a robot."""

    faults: tuple[_Window, ...] = ()

    def active(self, kind: type[W], now_ns: int) -> tuple[W, ...]:
        """The faults of one kind that are happening now."""
        return tuple(fault for fault in self.faults if isinstance(fault, kind) and fault.active(now_ns))


def zones(names: Iterable[str]) -> Zone:
    """Zone names as one flag."""
    combined = Zone.NONE
    for name in names:
        combined |= Zone[name.upper()]
    return combined
