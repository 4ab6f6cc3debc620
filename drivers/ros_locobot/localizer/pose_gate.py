"""The plausibility check of poses, by covariance and by consistency with odometry. Pure.

::

    tracking ── pose inconsistent with the last good one and odometry ──► suspicious
    suspicious ── pose consistent with the last good one ──────────────► tracking   (an outlier)
    suspicious ── poses consistent with each other for recover_s ──────► tracking   (relocalized)

While suspicious, and while the covariance is too large, the status of every estimate is ``LOST``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from drivers.ros_locobot.options import LocalizerOptions
from robot_runtime.common.clock import ns_to_seconds, seconds_to_ns
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.hal import PoseEstimate, PoseStatus

FASTEST_M_S = 0.7
FASTEST_RAD_S = math.pi
"""Largest speeds of any base, for the time in which odometry is unknown."""


@dataclass(frozen=True, slots=True)
class GateLimits:
    """Limits of ``LocalizerOptions``, in meters, radians and seconds."""

    max_std_m: float
    max_std_rad: float
    max_jump_m: float
    max_jump_rad: float
    recover_s: float

    @classmethod
    def of(cls, options: LocalizerOptions) -> GateLimits:
        """Return the limits in a localizer's options."""
        return cls(
            options.max_std_m,
            math.radians(options.max_std_deg),
            options.max_jump_m,
            math.radians(options.max_jump_deg),
            options.recover_s,
        )


class PoseGate:
    """Checks the estimates of a source in the order of their stamps.

    Args:
        limits: Of standard deviations and jumps.
        odom_at: Returns odometry at a stamp or, if that has not arrived yet, the newest; None if there is none.

    Attributes:
        reason: Why the robot counts as lost; empty while it does not.
    """

    def __init__(self, limits: GateLimits, odom_at: Callable[[int], PoseEstimate | None]) -> None:
        self._limits = limits
        self._odom_at = odom_at
        self._good: PoseEstimate | None = None
        self._suspicious: PoseEstimate | None = None
        self._suspicious_since_ns = 0
        self.reason = ""

    def reset(self) -> None:
        """Accept the next estimate: the robot was placed elsewhere."""
        self._good = self._suspicious = None
        self.reason = ""

    def check(self, estimate: PoseEstimate) -> PoseEstimate:
        """Return the estimate with status ``LOST`` if it is not plausible."""
        self.reason = self._uncertain(estimate) or self._jumped(estimate)
        return replace(estimate, status=PoseStatus.LOST) if self.reason else estimate

    def _uncertain(self, estimate: PoseEstimate) -> str:
        variance = estimate.covariance.diagonal()
        std_m, std_rad = math.sqrt(max(variance[0], variance[1], 0.0)), math.sqrt(max(variance[2], 0.0))
        if std_m <= self._limits.max_std_m and std_rad <= self._limits.max_std_rad:
            return ""
        return f"its standard deviation is {std_m:.2f} m and {math.degrees(std_rad):.0f} degrees"

    def _jumped(self, estimate: PoseEstimate) -> str:
        if self._good is None or self._consistent(self._good, estimate):
            self._good, self._suspicious = estimate, None
            return ""
        if self._suspicious is None or not self._consistent(self._suspicious, estimate):
            self._suspicious_since_ns = estimate.stamp_ns
        self._suspicious = estimate
        if estimate.stamp_ns - self._suspicious_since_ns >= seconds_to_ns(self._limits.recover_s):
            self._good, self._suspicious = estimate, None
            return ""
        expected, _ = self._predicted(self._good, estimate.stamp_ns)
        jump_deg = math.degrees(abs(wrap_angle(estimate.pose.yaw_rad - expected.yaw_rad)))
        return f"it jumped by {expected.distance_to(estimate.pose):.2f} m and {jump_deg:.0f} degrees against odometry"

    def _consistent(self, before: PoseEstimate, after: PoseEstimate) -> bool:
        expected, unknown_s = self._predicted(before, after.stamp_ns)
        limits = self._limits
        allowed_m = limits.max_jump_m + FASTEST_M_S * unknown_s
        allowed_rad = limits.max_jump_rad + FASTEST_RAD_S * unknown_s
        turned_rad = abs(wrap_angle(after.pose.yaw_rad - expected.yaw_rad))
        return expected.distance_to(after.pose) <= allowed_m and turned_rad <= allowed_rad

    def _predicted(self, before: PoseEstimate, stamp_ns: int) -> tuple[SE2, float]:
        """Return a pose propagated by odometry to a stamp, and for how many seconds odometry is unknown."""
        begin, end = self._odom_at(before.stamp_ns), self._odom_at(stamp_ns)
        if begin is None or end is None:
            return before.pose, max(0.0, ns_to_seconds(stamp_ns - before.stamp_ns))
        unknown_ns = abs(before.stamp_ns - begin.stamp_ns) + abs(stamp_ns - end.stamp_ns)
        return before.pose @ end.pose.relative_to(begin.pose), ns_to_seconds(unknown_ns)
