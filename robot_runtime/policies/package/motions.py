"""Motions that networks answer instead of choosing an action: velocities, waypoints and trajectories."""

import numpy as np
from numpy.typing import NDArray

from robot_runtime.actions.discrete import Action
from robot_runtime.actions.timed import Decision, trajectory, velocity, waypoint
from robot_runtime.policies.package.manifest import VELOCITY, WAYPOINT, Timing


def motions_of(role: str, answer: NDArray[np.float32], timing: Timing) -> tuple[Decision, ...]:
    """The decisions of a network's answer: one of each velocity, else one.

    Args:
        role: ``velocity``, ``waypoint`` or ``trajectory``.
        answer: [forward, left turn] or rows of it; [x, y, yaw]; or (points, columns) of x, y, and yaw or its cosine and
            sine.
        timing: meaning of its numbers.
    """
    rows = np.atleast_2d(answer).astype(np.float64)
    if role == VELOCITY:
        return tuple(_velocity(row[0], row[1], timing) for row in rows * (timing.scale, timing.turn_scale))
    if (np.hypot(rows[:, 0], rows[:, 1]) * timing.scale < timing.stop_m).all():
        return (Action.STOP,)
    yaw = np.arctan2(rows[:, 3], rows[:, 2]) if rows.shape[1] == 4 else rows[:, 2:3].sum(1) * timing.turn_scale
    points = np.column_stack((rows[:, :2] * timing.scale, yaw))
    if role == WAYPOINT and timing.settle:
        x_m, y_m, yaw_rad = map(float, points[0])
        return (waypoint(x_m, y_m, yaw_rad, max_duration_s=timing.period_s),)
    if timing.deltas:
        points = points.cumsum(0)
    return (trajectory(points[:, : min(rows.shape[1], 3)].tolist(), timing.period_s),)


def _velocity(forward_m_s: float, turn_rad_s: float, timing: Timing) -> Decision:
    if max(abs(forward_m_s), abs(turn_rad_s)) < timing.stop_m:
        return Action.STOP
    return velocity(float(forward_m_s), float(turn_rad_s), 0.0, timing.period_s, timing.settle)
