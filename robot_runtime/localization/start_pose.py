"""Where the robot stands, from all poses of a while: one noisy estimate as the origin would shift a whole episode."""

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
"""Of fewer, no outlier can be told."""

OUTLIER = 4.0
"""Times the median distance from the median position."""

OUTLIER_M = 0.01

GRACE_S = 1.0
"""A source that was told where the robot is measures it for the first time within so long."""

NO_VARIANCE = 1e-6
"""m², of a source that states none."""


def mean_pose(clock: Clock, localizer: Localizer, window_s: float) -> PoseEstimate:
    """The mean of what is measured from now on for ``window_s``, while the robot stands still; localizer's frame.

    All that arrived, not the newest at every look: on a busy computer they come in pairs. At least ``MIN_POSES`` of
    them, however slow the source is, and none from before it found the robot, which it may do only now.

    Raises:
        StaleData: if they do not come within the window, their own periods and the stream's allowed age.
        LocalizationLost: if the localizer has lost the robot, and does not find it within a second.
        DeviceFault: if it knows no heading.
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
            require_tracked(
                localizer, localizer.latest(max_age_s)
            )  # what says nothing at all says here what to look at
            raise StaleData(
                f"localizer {localizer.info.name!r}: only {len(by_stamp)} poses came in "
                f"{ns_to_seconds(now_ns - begin_ns):.1f} s",
                "check that it runs at the rate that it announces",
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
    """The estimate itself. Raises ``LocalizationLost`` if it says that the robot is lost."""
    if estimate.status is not PoseStatus.OK:
        raise LocalizationLost(
            f"localizer {localizer.info.name!r}: has lost the robot", "bring the robot where it can localize itself"
        )
    return estimate


def _mean(localizer: Localizer, estimates: Sequence[PoseEstimate]) -> PoseEstimate:
    """The mean pose without outliers, and its covariance.

    Weighted by what the source says of its errors, which a filter has more of at first. Errors that scatter from pose
    to pose average out; what is stated beyond that scatter is common to all poses, as a filter's are, and stays.
    """
    stated = np.array([estimate.covariance for estimate in estimates])
    if not np.isfinite(stated[:, 2, 2]).all():
        raise DeviceFault(
            f"localizer {localizer.info.name!r}: knows positions only, and the policy is told headings",
            "fuse it with odometry: a preset in launch/localizers/ whose name begins with 'fused'",
        )
    poses = np.array([(estimate.pose.x_m, estimate.pose.y_m, estimate.pose.yaw_rad) for estimate in estimates])
    reference = poses[0, 2]
    poses[:, 2] = np.remainder(poses[:, 2] - reference + math.pi, 2 * math.pi) - math.pi
    off = np.hypot(*(poses[:, :2] - np.median(poses[:, :2], axis=0)).T)
    good = off <= max(OUTLIER * float(np.median(off)), OUTLIER_M)
    poses, stated = poses[good], stated[good]
    weights = 1 / (np.maximum(stated[:, 0, 0], stated[:, 1, 1]) + NO_VARIANCE)
    weights /= weights.sum()
    x_m, y_m, turn_rad = (weights @ poses).tolist()
    scatter = np.cov(poses.T, aweights=weights)
    covariance = _positive(np.tensordot(weights, stated, 1) - scatter) + scatter * float(weights @ weights)
    last = estimates[-1]
    return PoseEstimate(last.stamp_ns, SE2(x_m, y_m, reference + turn_rad), last.frame, covariance)


def _positive(symmetric: NDArray[np.float64]) -> NDArray[np.float64]:
    """The nearest covariance."""
    values, vectors = np.linalg.eigh(symmetric)
    result: NDArray[np.float64] = (vectors * np.maximum(values, 0)) @ vectors.T
    return result
