"""Jumps of a pose source against odometry, also those that build up over many poses. Pure.

::

    tracking ── pose that disagrees with a recent one and odometry ────────► suspicious
    suspicious ── pose that agrees with the last good ones ────────────────► tracking   (an outlier)
    suspicious ── poses that agree with each other for recover_s ──────────► tracking   (relocalized)

A pose is compared with several poses of the last meter, not only with the one before: the pose of a source that has
stopped following the robot differs little from its neighbor. Where a source did not follow (odometry moved, it did
not), poses of a standing robot agree with each other and prove nothing: the robot must move as well.
"""

import math
from collections import deque
from dataclasses import dataclass

from robot_runtime.common.clock import ns_to_seconds, seconds_to_ns
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.hal.localizer import PoseEstimate
from robot_runtime.hal.pose_limits import PoseLimits

FASTEST_M_S = 0.7
FASTEST_RAD_S = math.pi
"""Largest speeds of any base, for the time in which odometry is unknown."""

SPACING_M, SPACING_RAD = 0.1, math.radians(15)
ANCHORS = 10
"""Number of poses that are kept for comparison; at this spacing they cover 1 m or 150 degrees."""

PROOF_M, PROOF_RAD, PROOF_SHARE = 0.15, math.radians(10), 0.5
"""Motion by odometry, and the least share of it that a source must show after it did not follow."""


@dataclass(frozen=True, slots=True)
class _Anchor:
    estimate: PoseEstimate
    odom: PoseEstimate | None


class _Track:
    """Consistent poses: the last one, and some of those before."""

    def __init__(self, limits: PoseLimits, mark_m: tuple[float, float]) -> None:
        self._limits, self._mark_m = limits, mark_m
        self._anchors: deque[_Anchor] = deque(maxlen=ANCHORS)
        self._since: _Anchor | None = None

    def add(self, estimate: PoseEstimate, odom: PoseEstimate | None) -> None:
        """Append a pose that agrees."""
        new, anchors = _Anchor(estimate, odom), self._anchors
        self._since = self._since or new
        if len(anchors) > 1 and not _is_apart(anchors[-2], new, SPACING_M, SPACING_RAD):
            anchors.pop()
        anchors.append(new)

    def disagrees(self, estimate: PoseEstimate, odom: PoseEstimate | None) -> tuple[float, float, bool] | None:
        """The deviation from odometry in meters and radians, and whether the source did not follow; None if it agrees.

        Args:
            estimate: the next pose.
            odom: odometry at its stamp, or the newest; None if unknown.
        """
        for anchor in reversed(self._anchors):
            off_m, off_rad, moved_less, unknown_s = self._deviation(anchor, _Anchor(estimate, odom))
            limits = self._limits
            too_far = off_m > limits.max_jump_m + FASTEST_M_S * unknown_s
            if too_far or off_rad > limits.max_jump_rad + FASTEST_RAD_S * unknown_s:
                return off_m, off_rad, moved_less
        return None

    def has_proved(self, needs_motion: bool) -> bool:
        """Whether the poses agree for long enough and, if that is needed, follow a motion."""
        if self._since is None:
            return False
        since, last = self._since, self._anchors[-1]
        lasted_ns = last.estimate.stamp_ns - since.estimate.stamp_ns
        return lasted_ns >= seconds_to_ns(self._limits.recover_s) and (not needs_motion or _followed(since, last))

    def _deviation(self, before: _Anchor, after: _Anchor) -> tuple[float, float, bool, float]:
        """Deviation in meters and radians, whether the source lagged, and seconds without odometry."""
        a, b, limits = before.estimate, after.estimate, self._limits
        driven, unknown_s = SE2(), abs(ns_to_seconds(b.stamp_ns - a.stamp_ns))
        if before.odom is not None and after.odom is not None:
            unknown_s = ns_to_seconds(abs(before.odom.stamp_ns - a.stamp_ns) + abs(after.odom.stamp_ns - b.stamp_ns))
            driven = after.odom.pose.relative_to(before.odom.pose)
        measured_m = a.pose.distance_to(b.pose)
        if not (math.isfinite(a.covariance[2, 2]) and math.isfinite(b.covariance[2, 2])):
            mark = SE2(*self._mark_m, 0.0)
            driven_m = mark.distance_to(driven @ mark)
            return abs(measured_m - driven_m), 0.0, measured_m < driven_m, unknown_s
        turned_rad = wrap_angle(b.pose.yaw_rad - a.pose.yaw_rad)
        lag_m, lag_rad = SE2().distance_to(driven) - measured_m, abs(driven.yaw_rad) - abs(turned_rad)
        lagged = lag_m > limits.max_jump_m / 2 or lag_rad > limits.max_jump_rad / 2
        off_rad = abs(wrap_angle(turned_rad - driven.yaw_rad))
        return (a.pose @ driven).distance_to(b.pose), off_rad, lagged, unknown_s


class JumpGate:
    """Judges the estimates of a source in the order of their stamps.

    Args:
        limits: limits of deviations.
        mark_m: measured point in base_link of a source without headings: forward, left.
    """

    def __init__(self, limits: PoseLimits, mark_m: tuple[float, float] = (0.0, 0.0)) -> None:
        self._limits, self._mark_m = limits, mark_m
        self.reset()

    def reset(self) -> None:
        """Accept the next estimate: the robot was placed elsewhere."""
        self._good, self._suspicious = self._new_track(), self._new_track()
        self._did_not_follow = False

    def judge(self, estimate: PoseEstimate, odom: PoseEstimate | None) -> str:
        """Return why an estimate is not plausible; empty if it is.

        Args:
            estimate: the estimate.
            odom: odometry at its stamp or, if that has not arrived yet, the newest; None if there is none.
        """
        jump = self._good.disagrees(estimate, odom)
        if jump is None:
            self._good.add(estimate, odom)
            self._suspicious, self._did_not_follow = self._new_track(), False
            return ""
        if self._suspicious.disagrees(estimate, odom) is not None:
            self._suspicious = self._new_track()
        self._suspicious.add(estimate, odom)
        off_m, off_rad, lagged = jump
        self._did_not_follow = self._did_not_follow or lagged
        if self._suspicious.has_proved(self._did_not_follow):
            self._good, self._suspicious, self._did_not_follow = self._suspicious, self._new_track(), False
            return ""
        how_far = f"by {off_m:.2f} m and {math.degrees(off_rad):.0f} degrees"
        if self._did_not_follow:
            return f"it deviates {how_far} from odometry, which it did not follow: a stuck source, or slipping wheels"
        return f"it jumped {how_far} against odometry"

    def _new_track(self) -> _Track:
        return _Track(self._limits, self._mark_m)


def _is_apart(before: _Anchor, after: _Anchor, by_m: float, by_rad: float) -> bool:
    """Whether odometry moved between two poses; without odometry, only neighbors are compared."""
    if before.odom is None or after.odom is None:
        return False
    moved = after.odom.pose.relative_to(before.odom.pose)
    return SE2().distance_to(moved) >= by_m or abs(moved.yaw_rad) >= by_rad


def _followed(before: _Anchor, after: _Anchor) -> bool:
    """Whether odometry moved or turned between two poses, and the source showed it."""
    if before.odom is None or after.odom is None:
        return False
    driven = after.odom.pose.relative_to(before.odom.pose)
    driven_m, measured_m = SE2().distance_to(driven), before.estimate.pose.distance_to(after.estimate.pose)
    turned_rad = abs(wrap_angle(after.estimate.pose.yaw_rad - before.estimate.pose.yaw_rad))
    moved = driven_m >= PROOF_M and measured_m >= PROOF_SHARE * driven_m
    return moved or (abs(driven.yaw_rad) >= PROOF_RAD and turned_rad >= PROOF_SHARE * abs(driven.yaw_rad))
