"""Whether a pose can be believed: its covariance, and whether odometry can have carried the robot there. Pure.

::

    tracking ── pose far from where odometry carries the last good one ──► suspicious
    suspicious ── pose agrees with the last good one, carried on ──────────► tracking   (an outlier)
    suspicious ── poses agree with each other, carried on, for recover_s ──► tracking   (it has relocalised)

While suspicious, and while the covariance is too large, every estimate says that the robot is lost.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from robot_runtime.common.clock import ns_to_seconds, seconds_to_ns
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.hal import PoseEstimate, PoseStatus

FASTEST_M_S = 0.7
FASTEST_RAD_S = math.pi
"""Of any base here: how far it can have gone while odometry is not known."""


@dataclass(frozen=True, slots=True)
class GateLimits:
    """As ``LocalizerOptions``, in metres, radians and seconds."""

    max_std_m: float
    max_std_rad: float
    max_jump_m: float
    max_jump_rad: float
    recover_s: float


class PoseGate:
    """Judges the estimates of one source in the order of their stamps.

    Args:
        odom_at: odometry at a stamp or, where that has not come yet, the newest; None where nothing is known.
    """

    def __init__(self, limits: GateLimits, odom_at: Callable[[int], PoseEstimate | None]) -> None:
        self._limits = limits
        self._odom_at = odom_at
        self._good: PoseEstimate | None = None
        self._doubtful: PoseEstimate | None = None
        self._doubtful_since_ns = 0
        self.reason = ""
        """Why the robot counts as lost; empty while it does not."""

    def forget(self) -> None:
        """The robot was put somewhere else: the next estimate is believed."""
        self._good = self._doubtful = None
        self.reason = ""

    def judge(self, estimate: PoseEstimate) -> PoseEstimate:
        """The estimate, with the status that it deserves."""
        self.reason = self._unsure(estimate) or self._jumped(estimate)
        return replace(estimate, status=PoseStatus.LOST) if self.reason else estimate

    def _unsure(self, estimate: PoseEstimate) -> str:
        variance = estimate.covariance.diagonal()
        std_m, std_rad = math.sqrt(max(variance[0], variance[1], 0.0)), math.sqrt(max(variance[2], 0.0))
        if std_m <= self._limits.max_std_m and std_rad <= self._limits.max_std_rad:
            return ""
        return f"it is unsure by {std_m:.2f} m and {math.degrees(std_rad):.0f} degrees (one standard deviation)"

    def _jumped(self, estimate: PoseEstimate) -> str:
        if self._good is None or self._agree(self._good, estimate):
            self._good, self._doubtful = estimate, None
            return ""
        if self._doubtful is None or not self._agree(self._doubtful, estimate):
            self._doubtful_since_ns = estimate.stamp_ns
        self._doubtful = estimate
        if estimate.stamp_ns - self._doubtful_since_ns >= seconds_to_ns(self._limits.recover_s):
            self._good, self._doubtful = estimate, None
            return ""
        expected, _ = self._carried(self._good, estimate.stamp_ns)
        jump_deg = math.degrees(abs(wrap_angle(estimate.pose.yaw_rad - expected.yaw_rad)))
        return f"it jumped by {expected.distance_to(estimate.pose):.2f} m and {jump_deg:.0f} degrees against odometry"

    def _agree(self, before: PoseEstimate, after: PoseEstimate) -> bool:
        expected, unknown_s = self._carried(before, after.stamp_ns)
        limits = self._limits
        allowed_m = limits.max_jump_m + FASTEST_M_S * unknown_s
        allowed_rad = limits.max_jump_rad + FASTEST_RAD_S * unknown_s
        turned_rad = abs(wrap_angle(after.pose.yaw_rad - expected.yaw_rad))
        return expected.distance_to(after.pose) <= allowed_m and turned_rad <= allowed_rad

    def _carried(self, before: PoseEstimate, stamp_ns: int) -> tuple[SE2, float]:
        """Where odometry carries a pose by a stamp, and for how many seconds of the way there is none."""
        begin, end = self._odom_at(before.stamp_ns), self._odom_at(stamp_ns)
        if begin is None or end is None:
            return before.pose, max(0.0, ns_to_seconds(stamp_ns - before.stamp_ns))
        unknown_ns = abs(before.stamp_ns - begin.stamp_ns) + abs(stamp_ns - end.stamp_ns)
        return before.pose @ end.pose.relative_to(begin.pose), ns_to_seconds(unknown_ns)
