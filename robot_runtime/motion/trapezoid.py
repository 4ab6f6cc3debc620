"""Trapezoidal speed profile: speed up, cruise, slow down. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Trapezoid:
    """The quickest motion from rest to rest over a signed distance under a speed and an acceleration limit.

    Attributes:
        distance: meters or radians.
        accel: of both ramps.
        ramp_s: duration of one ramp.
        duration_s: of the whole.
    """

    distance: float
    accel: float
    ramp_s: float
    duration_s: float

    @classmethod
    def plan(cls, distance: float, max_speed: float, max_accel: float) -> Trapezoid:
        """Plan a motion with positive limits; short distances never reach ``max_speed`` (a triangle)."""
        length = abs(distance)
        ramp_s = min(max_speed / max_accel, math.sqrt(length / max_accel))
        cruise_s = max(0.0, length - max_accel * ramp_s * ramp_s) / (max_accel * ramp_s) if ramp_s > 0 else 0.0
        return cls(distance, math.copysign(max_accel, distance), ramp_s, 2 * ramp_s + cruise_s)

    def position(self, elapsed_s: float) -> float:
        """Distance covered at a time; 0 before the start, all of it after the end."""
        if elapsed_s <= 0:
            return 0.0
        remaining_s = self.duration_s - elapsed_s
        if remaining_s <= 0:
            return self.distance
        if elapsed_s < self.ramp_s:
            return 0.5 * self.accel * elapsed_s * elapsed_s
        if remaining_s < self.ramp_s:
            return self.distance - 0.5 * self.accel * remaining_s * remaining_s
        return self.accel * self.ramp_s * (elapsed_s - 0.5 * self.ramp_s)
