"""Accuracy of a placement, from poses measured while the robot stood still."""

import math

import numpy as np

from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.hal import Localizer, PoseEstimate, PoseStatus, Robot
from robot_runtime.records import Placement


def placement(robot: Robot, goal: SE2, since_ns: int) -> Placement | None:
    """The pose measured since ``since_ns`` by the referee, or by the localizer if the referee measures no heading.

    The robot must have stood still since then. Only poses that have already arrived are used.

    Returns:
        None if neither source has a pose in ``map``.
    """
    poses = [
        pose
        for source in dict.fromkeys((robot.referee, robot.localizer))
        if source.info.frame == "map" and (pose := _median_pose(source, since_ns)) is not None
    ]
    # A position without heading is better than nothing.
    best = next((pose for pose in poses if pose[3] is not None), poses[0] if poses else None)
    if best is None:
        return None
    source, x_m, y_m, yaw_rad, std_m = best
    error_rad = None if yaw_rad is None else wrap_angle(yaw_rad - goal.yaw_rad)
    here = SE2(x_m, y_m, goal.yaw_rad if yaw_rad is None else yaw_rad)
    return Placement(robot.placer.way, source, goal, here, here.distance_to(goal), error_rad, std_m)


def _median_pose(source: Localizer, since_ns: int) -> tuple[str, float, float, float | None, float] | None:
    """Name, median x, y and yaw (None if unknown), and the standard deviation of the position."""
    estimates = [e for e in source.arrivals().estimates if e.stamp_ns >= since_ns and e.status is PoseStatus.OK]
    if not estimates:
        return None
    # Medians, because one jump would move the mean of the few poses of a second.
    points = np.array([(e.pose.x_m, e.pose.y_m) for e in estimates])
    x_m, y_m = np.median(points, axis=0).tolist()
    return source.info.name, x_m, y_m, _yaw(estimates), float(points.std(axis=0).max())


def _yaw(estimates: list[PoseEstimate]) -> float | None:
    yaws = [e.pose.yaw_rad for e in estimates if math.isfinite(e.covariance[2, 2])]
    if not yaws:
        return None
    return math.atan2(float(np.median(np.sin(yaws))), float(np.median(np.cos(yaws))))
