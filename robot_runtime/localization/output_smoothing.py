"""Corrections without jumps: what is published moves as odometry does, and drifts to where the filter is.

A policy that sees its position jump has seen something that no simulator shows. So each correction is spread over time
by a first-order lag (the offset decays by exp(-dt / tau)), and no step of it is longer than a limit, whatever the
filter says. What is left of the offset is part of the published uncertainty.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from robot_runtime.common import config
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.localization.gaussian_pose import Belief
from robot_runtime.localization.odometry_preintegration import OdometrySample


@dataclass(frozen=True)
class SmoothingLimits:
    """How fast corrections are taken over.

    Attributes:
        tau_s: after so long, 63 % of a correction is done.
        max_step_m, max_step_deg: of a correction, between two published poses.
    """

    tau_s: float = 0.1
    max_step_m: float = 0.03
    max_step_deg: float = 2.0

    __pydantic_config__ = config.STRICT

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f"{name} must be a positive number, got {value}")


class OutputSmoother:
    """The published pose."""

    def __init__(self, limits: SmoothingLimits) -> None:
        self._limits = limits
        self._last: tuple[SE2, OdometrySample] | None = None

    def reset(self) -> None:
        """The next pose is the filter's: it is known that the robot is somewhere else than was published."""
        self._last = None

    def step(self, belief: Belief, waypoint: OdometrySample, elapsed_s: float) -> tuple[SE2, SE2]:
        """The pose to publish, and what is left of the correction (in map's axes).

        Args:
            belief: the filter's, at ``waypoint``. elapsed_s: since the step before.
        """
        if self._last is None:
            pose, rest = SE2(belief[0], belief[1], wrap_angle(belief[2])), SE2()
        else:
            carried = _carried(*self._last, waypoint)
            dx, dy = belief[0] - carried.x_m, belief[1] - carried.y_m
            turn = wrap_angle(belief[2] - carried.yaw_rad)
            part = 1 - math.exp(-elapsed_s / self._limits.tau_s)
            way = math.hypot(dx, dy)
            f = min(part, self._limits.max_step_m / way) if way else 0.0
            g = min(part, math.radians(self._limits.max_step_deg) / abs(turn)) if turn else 0.0
            pose = SE2(carried.x_m + f * dx, carried.y_m + f * dy, wrap_angle(carried.yaw_rad + g * turn))
            rest = SE2((1 - f) * dx, (1 - f) * dy, (1 - g) * turn)
        self._last = pose, waypoint
        return pose, rest


def _carried(pose: SE2, a: OdometrySample, b: OdometrySample) -> SE2:
    """A pose moved as odometry moved from ``a`` to ``b``."""
    c, s = math.cos(pose.yaw_rad - a[2]), math.sin(pose.yaw_rad - a[2])
    dx, dy = b[0] - a[0], b[1] - a[1]
    return SE2(pose.x_m + c * dx - s * dy, pose.y_m + s * dx + c * dy, pose.yaw_rad + b[2] - a[2])
