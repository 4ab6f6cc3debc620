"""Output smoothing: the published pose follows odometry and approaches the filter's pose without jumps.

Simulators show no jumps, so policies must not see any. Each correction is spread over time by a first-order lag (the
offset decays by exp(-dt / tau)) with a limited step. The offset that remains is part of the published covariance.
"""

import math
from dataclasses import dataclass

from robot_runtime.common import config
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.common.quantities import ShortTime, SmallMove
from robot_runtime.localization.gaussian_pose import Belief
from robot_runtime.localization.odometry_preintegration import OdometrySample


@dataclass(frozen=True)
class SmoothingLimits(config.Strict):
    """Rates at which corrections are applied.

    Attributes:
        tau_s: time constant, after which 63 % of a correction is applied.
        max_step_m: largest correction between two published poses.
        max_step_deg: largest correction of the heading between two published poses.
    """

    tau_s: ShortTime = 0.1
    max_step_m: SmallMove = 0.03
    max_step_deg: float = 2.0

    def __post_init__(self) -> None:
        config.check_positive(self)


class OutputSmoother:
    """First-order lag on the difference between the published pose and the filter's."""

    def __init__(self, limits: SmoothingLimits) -> None:
        self._limits = limits
        self._last: tuple[SE2, OdometrySample] | None = None

    def reset(self) -> None:
        """Publish the filter's own pose next, without a transition."""
        self._last = None

    def step(self, belief: Belief, sample: OdometrySample, elapsed_s: float) -> tuple[SE2, SE2]:
        """Compute the pose to publish.

        Args:
            belief: belief of the filter, at ``sample``.
            sample: odometry at the stamp to publish.
            elapsed_s: time since the step before.

        Returns:
            The pose and the remaining correction along the axes of ``map``.
        """
        if self._last is None:
            pose, rest = SE2(belief[0], belief[1], wrap_angle(belief[2])), SE2()
        else:
            moved = _moved(*self._last, sample)
            dx, dy = belief[0] - moved.x_m, belief[1] - moved.y_m
            turn = wrap_angle(belief[2] - moved.yaw_rad)
            part = 1 - math.exp(-elapsed_s / self._limits.tau_s)
            distance_m = math.hypot(dx, dy)
            f = min(part, self._limits.max_step_m / distance_m) if distance_m else 0.0
            g = min(part, math.radians(self._limits.max_step_deg) / abs(turn)) if turn else 0.0
            pose = SE2(moved.x_m + f * dx, moved.y_m + f * dy, wrap_angle(moved.yaw_rad + g * turn))
            rest = SE2((1 - f) * dx, (1 - f) * dy, (1 - g) * turn)
        self._last = pose, sample
        return pose, rest


def _moved(pose: SE2, a: OdometrySample, b: OdometrySample) -> SE2:
    """A pose moved as odometry moved from ``a`` to ``b``."""
    c, s = math.cos(pose.yaw_rad - a[2]), math.sin(pose.yaw_rad - a[2])
    dx, dy = b[0] - a[0], b[1] - a[1]
    return SE2(pose.x_m + c * dx - s * dy, pose.y_m + s * dx + c * dy, pose.yaw_rad + b[2] - a[2])
