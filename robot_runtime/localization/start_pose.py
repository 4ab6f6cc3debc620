"""Mean pose of a standing robot: a single noisy estimate as the origin would shift the complete episode."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.clock import Clock, ns_to_seconds, seconds_to_ns
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import DeviceFault, LocalizationLost, StaleData
from robot_runtime.hal import Localizer, PoseEstimate, PoseStatus
from robot_runtime.hal.streams import STREAMS

MIN_POSES = 4
"""Fewer poses do not allow the rejection of outliers."""

OUTLIER = 4.0
"""Largest accepted distance from the median position, in units of the median distance."""

OUTLIER_M = 0.01
"""Distance from the median position that is always accepted."""

GRACE_S = 1.0
"""Time within which a source that was given the robot's pose delivers its first measurement."""

NO_VARIANCE = 1e-6
"""Added to the variance of each position, m², for sources that state none."""


def mean_pose(clock: Clock, localizer: Localizer, window_s: float) -> PoseEstimate:
    """Average the poses measured from now on for ``window_s`` while the robot stands still, in the localizer's frame.

    All arrivals count, not the newest of each poll: on a busy computer they come in pairs. There are at least
    ``MIN_POSES``, however slow the source is, and none from before the source found the robot; that may happen only
    now.

    Raises:
        StaleData: too few poses came within the window, their own periods and the stream's allowed age.
        LocalizationLost: the localizer has lost the robot, and does not find it within a second.
        DeviceFault: it measures no heading.
    """
    max_age_s = STREAMS["pose"].max_age_s
    period_s = 1 / localizer.info.rate_hz
    begin_ns = clock.now_ns()
    deadline_ns = begin_ns + seconds_to_ns(max(window_s, MIN_POSES * period_s) + max_age_s + GRACE_S)
    since_ns, mark = begin_ns, localizer.arrivals().mark
    by_stamp: dict[int, PoseEstimate] = {}
    while len(by_stamp) < MIN_POSES or max(by_stamp) + seconds_to_ns(period_s) <= since_ns + seconds_to_ns(window_s):
        now_ns = clock.now_ns()
        if now_ns > deadline_ns:
            require_tracked(localizer, localizer.latest(max_age_s))  # The error of a silent source is more specific.
            raise StaleData(
                f"localizer {localizer.info.name!r}: only {len(by_stamp)} poses came in "
                f"{ns_to_seconds(now_ns - begin_ns):.1f} s",
                "check that it runs at the rate that it states",
            )
        clock.sleep_until(now_ns + seconds_to_ns(period_s))
        arrived = localizer.arrivals(mark)
        mark = arrived.mark
        if arrived.restarted:
            by_stamp.clear()
        lost = [estimate.stamp_ns for estimate in arrived.estimates if estimate.status is not PoseStatus.OK]
        since_ns = max(since_ns, *lost, begin_ns)
        by_stamp |= {estimate.stamp_ns: estimate for estimate in arrived.estimates}
        by_stamp = {stamp_ns: estimate for stamp_ns, estimate in by_stamp.items() if stamp_ns > since_ns}
    return _mean(localizer, [by_stamp[stamp_ns] for stamp_ns in sorted(by_stamp)])


def require_tracked(localizer: Localizer, estimate: PoseEstimate) -> PoseEstimate:
    """Return the estimate. Raises ``LocalizationLost`` if its status is not ``ok``."""
    if estimate.status is not PoseStatus.OK:
        raise LocalizationLost(
            f"localizer {localizer.info.name!r}: has lost the robot", "move the robot to where it can localize itself"
        )
    return estimate


def _mean(localizer: Localizer, estimates: Sequence[PoseEstimate]) -> PoseEstimate:
    """The mean pose without outliers, and its covariance.

    Poses are weighted by the stated variances; these are larger at the start of a filter. Errors that scatter from pose
    to pose average out; the stated covariance beyond that scatter is common to all poses, as a filter's errors are, and
    stays.
    """
    stated = np.array([estimate.covariance for estimate in estimates])
    if not np.isfinite(stated[:, 2, 2]).all():
        raise DeviceFault(
            f"localizer {localizer.info.name!r}: measures positions only, and policies need headings",
            "fuse it with odometry: use a preset in launch/localizers/ whose name begins with 'fused'",
        )
    poses = np.array([(estimate.pose.x_m, estimate.pose.y_m, estimate.pose.yaw_rad) for estimate in estimates])
    reference = poses[0, 2]
    poses[:, 2] = np.remainder(poses[:, 2] - reference + math.pi, 2 * math.pi) - math.pi
    distances_m = np.hypot(*(poses[:, :2] - np.median(poses[:, :2], axis=0)).T)
    good = distances_m <= max(OUTLIER * float(np.median(distances_m)), OUTLIER_M)
    poses, stated = poses[good], stated[good]
    weights = 1 / (np.maximum(stated[:, 0, 0], stated[:, 1, 1]) + NO_VARIANCE)
    weights /= weights.sum()
    x_m, y_m, turn_rad = (weights @ poses).tolist()
    scatter = np.cov(poses.T, aweights=weights)
    covariance = _positive(np.tensordot(weights, stated, 1) - scatter) + scatter * float(weights @ weights)
    last = estimates[-1]
    return PoseEstimate(last.stamp_ns, SE2(x_m, y_m, reference + turn_rad), last.frame, covariance)


def _positive(symmetric: NDArray[np.float64]) -> NDArray[np.float64]:
    """The nearest positive semidefinite matrix."""
    values, vectors = np.linalg.eigh(symmetric)
    result: NDArray[np.float64] = (vectors * np.maximum(values, 0)) @ vectors.T
    return result
