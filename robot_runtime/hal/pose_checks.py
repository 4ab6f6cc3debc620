"""The checks of every source of poses, live and imported: localizers, referees, bags.

A pose that fails a check gets the status ``lost``, with the reason as an event. What a source says about one pose is in
:func:`implausible`; what only odometry and the map show is in ``hal.pose_health`` and ``hal.pose_jumps``.
"""

import math
from dataclasses import replace

from robot_runtime.common.clock import ns_to_seconds
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.hal.events import Event
from robot_runtime.hal.localizer import LocalizerInfo, PoseEstimate, PoseStatus
from robot_runtime.hal.pose_health import Bounds, HealthLimits, MeasuredPoint, SourceHealth
from robot_runtime.hal.pose_jumps import JumpGate
from robot_runtime.hal.pose_limits import PoseLimits

MAX_TILT_RAD = math.radians(20)
"""Largest tilt of a robot on a floor: a ramp, or markers that were mounted askew."""

MAX_ODOMETRY_LAG_S = 0.2
"""Largest distance in time between a pose and the odometry that it is compared with for the checks of its path."""


def implausible(
    position_m: tuple[float, float, float], quaternion: tuple[float, float, float, float]
) -> tuple[SE2, str]:
    """Project a pose in space onto the floor.

    Args:
        position_m: x, y and z, meters.
        quaternion: x, y, z and w.

    Returns:
        The planar pose, and why it cannot be that of a robot on a floor; empty if it can. Trackers send a zero
        quaternion, or values that are not finite, for a body that they do not see.
    """
    x, y, z, w = quaternion
    norm = math.sqrt(x * x + y * y + z * z + w * w)
    if not all(map(math.isfinite, (*position_m, norm))):
        return SE2(), f"position {position_m} and quaternion {quaternion} are not finite"
    if norm < 1e-3:
        return SE2(), "its quaternion is zero: the tracker does not see the body"
    if not 0.7 < norm < 1.4:
        return SE2(), f"its quaternion {quaternion} has the length {norm:.3g} instead of 1"
    x, y, z, w = x / norm, y / norm, z / norm, w / norm
    pose = SE2(position_m[0], position_m[1], math.atan2(2 * (w * z + x * y), w * w + x * x - y * y - z * z))
    tilt_rad = math.acos(max(-1.0, min(1.0, 1 - 2 * (x * x + y * y))))
    if tilt_rad > MAX_TILT_RAD:
        return pose, (
            f"it is tilted by {math.degrees(tilt_rad):.0f} degrees: its frame has another axis up than z, or its "
            "quaternion another order than x, y, z, w"
        )
    return pose, ""


class PoseChecks:
    """The checks of one source that is not fused.

    Attributes:
        reason: why the robot counts as lost since the last estimate; empty while it does not.
    """

    def __init__(self, info: LocalizerInfo, bounds: Bounds | None = None) -> None:
        self._info, self._limits = info, info.limits or PoseLimits()
        self._health = SourceHealth(info.name, HealthLimits(), bounds)
        self._jumps = JumpGate(self._limits, info.mark_m)
        self._events: list[Event] = []
        self.reset()

    def reset(self) -> None:
        """Forget all poses: the robot was placed elsewhere, or time has a new origin."""
        self._health.clear()
        self._jumps.reset()
        self._yaw_rad: float | None = None
        self.reason = ""

    @property
    def frozen_since_ns(self) -> int | None:
        """Stamp from which on the poses are known to be frozen; None if they are not."""
        return self._health.frozen_since_ns

    @property
    def broken(self) -> str:
        """Why all poses of the source are wrong, also the earlier ones: scale or axes of its frame; else empty."""
        return self._health.broken

    def check(self, estimate: PoseEstimate, odom: PoseEstimate | None) -> PoseEstimate:
        """Return an estimate, with the status ``lost`` if it fails a check.

        Args:
            estimate: the next estimate in the order of stamps.
            odom: odometry at its stamp or, if that has not arrived yet, the newest; None if there is none.
        """
        before, self.reason = self.reason, self._judge(estimate, odom)
        # A source that reports a loss says why itself.
        health = [event for event in self._health.events() if event.kind not in ("no_fix", "fix")]
        self._events += health
        if self.reason and not before and not health:
            self._events.append(Event(estimate.stamp_ns, self._info.name, "lost", self.reason))
        elif before and not self.reason:
            self._health.relocalized()
            self._events.append(Event(estimate.stamp_ns, self._info.name, "regained", "its poses are plausible again"))
        return replace(estimate, status=PoseStatus.LOST) if self.reason else estimate

    def events(self) -> list[Event]:
        """Events since the last call."""
        events, self._events = self._events, []
        return events

    def _judge(self, estimate: PoseEstimate, odom: PoseEstimate | None) -> str:
        health = self._health
        if not health.arrives(estimate, None):
            return health.why
        if self._is_frozen_or_distorted(estimate, odom):
            return health.broken or health.why
        return self._uncertain(estimate) or self._jumps.judge(estimate, odom)

    def _is_frozen_or_distorted(self, estimate: PoseEstimate, odom: PoseEstimate | None) -> bool:
        if odom is None or abs(ns_to_seconds(estimate.stamp_ns - odom.stamp_ns)) > MAX_ODOMETRY_LAG_S:
            return False
        yaw_rad, last_rad = odom.pose.yaw_rad, self._yaw_rad
        self._yaw_rad = yaw_rad if last_rad is None else last_rad + wrap_angle(yaw_rad - last_rad)
        sample = (odom.pose.x_m, odom.pose.y_m, self._yaw_rad)
        pose, variance = estimate.pose, estimate.covariance.diagonal()
        heading_rad = pose.yaw_rad if math.isfinite(variance[2]) else None
        std_m = math.sqrt(max(float(variance[0] + variance[1]) / 2, 0.0))
        point = MeasuredPoint(estimate.stamp_ns, pose.x_m, pose.y_m, heading_rad, std_m, self._info.mark_m)
        return not self._health.admit(point, sample)

    def _uncertain(self, estimate: PoseEstimate) -> str:
        variance = estimate.covariance.diagonal()
        std_m, std_rad = math.sqrt(max(variance[0], variance[1], 0.0)), math.sqrt(max(variance[2], 0.0))
        if std_m <= self._limits.max_std_m and (std_rad <= self._limits.max_std_rad or math.isinf(std_rad)):
            return ""
        return f"its standard deviation is {std_m:.2f} m and {math.degrees(std_rad):.0f} degrees"
