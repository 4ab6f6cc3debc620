"""How well a robot was placed: from what was measured while it stood there."""

from __future__ import annotations

import math

import numpy as np

from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.hal import Localizer, PoseEstimate, PoseStatus, Robot
from robot_runtime.records import Placement


def placement(robot: Robot, goal: SE2, since_ns: int) -> Placement | None:
    """Where the robot stands, as its referee saw it since ``since_ns``; or its localizer, if that knows no headings.

    The robot must have stood still since then. Nothing is waited for.

    Returns:
        None if neither has seen it in ``map``.
    """
    seen = [
        found
        for source in dict.fromkeys((robot.referee, robot.localizer))
        if source.info.frame == "map" and (found := _seen(source, since_ns)) is not None
    ]
    # A source without headings still knows more about the position than nobody does.
    best = next((found for found in seen if found[3] is not None), seen[0] if seen else None)
    if best is None:
        return None
    source, x_m, y_m, yaw_rad, std_m = best
    error_rad = None if yaw_rad is None else wrap_angle(yaw_rad - goal.yaw_rad)
    here = SE2(x_m, y_m, goal.yaw_rad if yaw_rad is None else yaw_rad)
    return Placement(robot.placer.way, source, goal, here, here.distance_to(goal), error_rad, std_m)


def _seen(source: Localizer, since_ns: int) -> tuple[str, float, float, float | None, float] | None:
    """Name, mean x, y and yaw (None if unknown), and the position's standard deviation from pose to pose."""
    estimates = [e for e in source.arrivals().estimates if e.stamp_ns >= since_ns and e.status is PoseStatus.OK]
    if not estimates:
        return None
    # Medians: one jump among a second's poses must not move the mean of eight of them.
    points = np.array([(e.pose.x_m, e.pose.y_m) for e in estimates])
    x_m, y_m = np.median(points, axis=0).tolist()
    return source.info.name, x_m, y_m, _yaw(estimates), float(points.std(axis=0).max())


def _yaw(estimates: list[PoseEstimate]) -> float | None:
    yaws = [e.pose.yaw_rad for e in estimates if math.isfinite(e.covariance[2, 2])]
    if not yaws:
        return None
    return math.atan2(float(np.median(np.sin(yaws))), float(np.median(np.cos(yaws))))
