"""Geometry between a hedgehog's coordinates and the robot's pose: lever arm, and beacons in map. Pure."""

import math
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from robot_runtime.common.config import Strict
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.common.quantities import PartOffset
from robot_runtime.localization.alignment import Alignment


@dataclass(frozen=True)
class Pair(Strict):
    """Two hedgehogs that together measure a heading.

    Attributes:
        base_m: distance between them.
        yaw_offset_deg: offset of the robot's heading in the beacons' frame: heading = angle + offset, or, if
            ``clockwise``, heading = offset - angle. Neither is published by the vendor; calibrate both.
        clockwise: whether the reported angle is clockwise positive.
    """

    base_m: Annotated[PartOffset, Field(gt=0)] = 0.25
    yaw_offset_deg: float = 0.0
    clockwise: bool = False

    @property
    def sign(self) -> int:
        return -1 if self.clockwise else 1


@dataclass(frozen=True)
class Mounting:
    """The geometry of a hedgehog, or of a pair.

    Attributes:
        map_from_beacons: the beacons' frame in ``map``.
        lever_m: the located point (the hedgehog; of a pair, its middle) in base_link: forward, left.
        pair: None for a single hedgehog; it measures no heading.
    """

    map_from_beacons: SE2
    lever_m: tuple[float, float] = (0.0, 0.0)
    pair: Pair | None = None

    def coordinates_of(self, base: SE2) -> tuple[float, float, float | None]:
        """Return the reported coordinates and angle (0 to 2 pi) of a robot at ``base`` in ``map``."""
        seen = self.map_from_beacons.inverse() @ base
        x_m, y_m = seen.apply(*self.lever_m)
        if self.pair is None:
            return x_m, y_m, None
        return x_m, y_m, self.pair.sign * (seen.yaw_rad - math.radians(self.pair.yaw_offset_deg)) % (2 * math.pi)

    def base(self, x_m: float, y_m: float, angle_rad: float | None) -> SE2:
        """Return base_link in ``map``; without an angle the located point in ``map``, with an arbitrary yaw."""
        if angle_rad is None or self.pair is None:
            return SE2(*self.map_from_beacons.apply(x_m, y_m))
        yaw_rad = self.map_from_beacons.yaw_rad + math.radians(self.pair.yaw_offset_deg) + self.pair.sign * angle_rad
        return Alignment(self.map_from_beacons, self.lever_m).robot_at(x_m, y_m, wrap_angle(yaw_rad))
