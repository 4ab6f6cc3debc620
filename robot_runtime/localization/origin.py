"""Where the robot stands, from several poses: one noisy estimate as the origin would shift a whole episode."""

from __future__ import annotations

import math

from robot_runtime.clock import Clock, seconds_to_ns
from robot_runtime.errors import DeviceFault, StaleData
from robot_runtime.geometry import SE2
from robot_runtime.hal import Localizer, PoseEstimate, PoseStatus
from robot_runtime.streams import STREAMS


def mean_pose(clock: Clock, localizer: Localizer, samples: int) -> SE2:
    """The mean of ``samples`` estimates measured from now on, while the robot stands still; localizer's frame.

    Raises:
        StaleData: if they take longer than that many periods and the stream's allowed age.
        DeviceFault: if the localizer has lost the robot.
    """
    max_age_s = STREAMS["pose"].max_age_s
    period_ns = seconds_to_ns(1 / localizer.info.rate_hz)
    tick_ns = last_ns = clock.now_ns()
    deadline_ns = tick_ns + samples * period_ns + seconds_to_ns(max_age_s)
    poses: list[SE2] = []
    while len(poses) < samples:
        tick_ns += period_ns
        clock.sleep_until(tick_ns)
        late = tick_ns > deadline_ns
        try:
            estimate = tracked(localizer, localizer.latest(max_age_s))
        except StaleData:
            if late:
                raise
            continue  # placing the robot made the localizer forget the past: the first new pose is on its way
        if late:
            raise StaleData(
                f"localizer {localizer.info.name!r}: only {len(poses)} of {samples} poses came in time",
                "check that it runs at the rate that it announces",
            )
        if estimate.stamp_ns > last_ns:
            poses.append(estimate.pose)
            last_ns = estimate.stamp_ns
    yaw_rad = math.atan2(sum(math.sin(pose.yaw_rad) for pose in poses), sum(math.cos(pose.yaw_rad) for pose in poses))
    return SE2(sum(pose.x_m for pose in poses) / samples, sum(pose.y_m for pose in poses) / samples, yaw_rad)


def tracked(localizer: Localizer, estimate: PoseEstimate) -> PoseEstimate:
    """The estimate itself. Raises ``DeviceFault`` if it says that the robot is lost."""
    if estimate.status is not PoseStatus.OK:
        raise DeviceFault(
            f"localizer {localizer.info.name!r}: has lost the robot", "bring the robot where it can localise itself"
        )
    return estimate
