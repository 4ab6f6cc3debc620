"""Where the robot stands, from several poses: one noisy estimate as the origin would shift a whole episode."""

from __future__ import annotations

import math

from robot_runtime.clock import Clock, seconds_to_ns
from robot_runtime.errors import DeviceFault, StaleData
from robot_runtime.geometry import SE2
from robot_runtime.hal import Localizer, PoseEstimate, PoseStatus
from robot_runtime.streams import STREAMS


def mean_pose(clock: Clock, localizer: Localizer, samples: int) -> SE2:
    """The mean of ``samples`` or a few more estimates of a robot that stands still, from now on; localizer's frame.

    Raises:
        StaleData: if they take longer than that many periods and the stream's allowed age.
        DeviceFault: if the localizer has lost the robot.
    """
    max_age_s = STREAMS["pose"].max_age_s
    period_ns = seconds_to_ns(1 / localizer.info.rate_hz)
    begin_ns = tick_ns = clock.now_ns()
    deadline_ns = begin_ns + samples * period_ns + seconds_to_ns(max_age_s)
    mark = localizer.arrivals().mark
    by_stamp: dict[int, SE2] = {}
    while len(by_stamp) < samples:
        if tick_ns > deadline_ns:
            localizer.latest(max_age_s)  # a source that says nothing at all says here what to look at
            raise StaleData(
                f"localizer {localizer.info.name!r}: only {len(by_stamp)} of {samples} poses came in time",
                "check that it runs at the rate that it announces",
            )
        tick_ns += period_ns
        clock.sleep_until(tick_ns)
        # All that arrived, not the newest at every tick: those of a busy computer come in pairs.
        arrived = localizer.arrivals(mark)
        mark = arrived.mark
        if arrived.restarted:
            by_stamp.clear()
        new = (estimate for estimate in arrived.estimates if estimate.stamp_ns > begin_ns)
        by_stamp |= {estimate.stamp_ns: tracked(localizer, estimate).pose for estimate in new}
    poses = by_stamp.values()
    yaw_rad = math.atan2(sum(math.sin(pose.yaw_rad) for pose in poses), sum(math.cos(pose.yaw_rad) for pose in poses))
    return SE2(sum(pose.x_m for pose in poses) / len(poses), sum(pose.y_m for pose in poses) / len(poses), yaw_rad)


def tracked(localizer: Localizer, estimate: PoseEstimate) -> PoseEstimate:
    """The estimate itself. Raises ``DeviceFault`` if it says that the robot is lost."""
    if estimate.status is not PoseStatus.OK:
        raise DeviceFault(
            f"localizer {localizer.info.name!r}: has lost the robot", "bring the robot where it can localise itself"
        )
    return estimate
