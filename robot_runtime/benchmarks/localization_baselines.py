"""Fusion as others do it, on the same data: what ``bench localization`` compares with.

Both predict with every sample of odometry, with the noise that ``localization.track`` assumes, and take a measurement
as one of the instant at which it arrives. ``robot_localization`` does so unless ``smooth_lagged_data`` is set; filterpy
has no notion of time at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.hal import PoseEstimate
from robot_runtime.localization.ekf import GATES
from robot_runtime.localization.odometry_preintegration import OdometryNoise

if TYPE_CHECKING:
    from robot_runtime.benchmarks.synthetic_drives import Drive

Array = NDArray[np.float64]
Arriving = list[tuple[int, PoseEstimate]]

H = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])


def undelayed_track(drive: Drive, arrivals: Arriving) -> list[PoseEstimate]:
    """An EKF with the same noise and the same gate as ours, and no notion of delays."""
    state, covariance = _first(drive)

    def predict(moved: SE2, noise: Array) -> None:
        nonlocal state, covariance
        state, jacobian = _moved(state, moved)
        covariance = jacobian @ covariance @ jacobian.T + noise

    def update(z: Array, r: Array) -> None:
        nonlocal state, covariance
        innovation = z - state[:2]
        s = covariance[:2, :2] + r
        if innovation @ np.linalg.solve(s, innovation) > GATES[2]:
            return
        gain = covariance[:, :2] @ np.linalg.inv(s)
        state = state + gain @ innovation
        covariance = (np.eye(3) - gain @ H) @ covariance

    return _run(drive, arrivals, predict, update, lambda: (state, covariance))


def filterpy_track(drive: Drive, arrivals: Arriving) -> list[PoseEstimate] | None:
    """``filterpy.kalman.ExtendedKalmanFilter``; None if it is not installed."""
    try:
        from filterpy.kalman import ExtendedKalmanFilter
    except ImportError:
        return None
    ekf: Any = ExtendedKalmanFilter(3, 2)
    ekf.x, ekf.P = _first(drive)

    def predict(moved: SE2, noise: Array) -> None:
        ahead, jacobian = _moved(ekf.x, moved)
        ekf.F, ekf.Q = jacobian, noise
        ekf.predict_x = lambda _=0: setattr(ekf, "x", ahead)
        ekf.predict()

    def update(z: Array, r: Array) -> None:
        ekf.update(z, lambda _: H, lambda x: x[:2], r)

    return _run(drive, arrivals, predict, update, lambda: (ekf.x, ekf.P))


def _first(drive: Drive) -> tuple[Array, Array]:
    start = drive.truth[0]
    std_rad = math.radians(5)
    return np.array([start.x_m, start.y_m, start.yaw_rad]), np.diag([0.05**2, 0.05**2, std_rad**2])


def _moved(state: Array, moved: SE2) -> tuple[Array, Array]:
    c, s = math.cos(state[2]), math.sin(state[2])
    u, v = c * moved.x_m - s * moved.y_m, s * moved.x_m + c * moved.y_m
    jacobian = np.array([[1.0, 0.0, -v], [0.0, 1.0, u], [0.0, 0.0, 1.0]])
    return state + np.array([u, v, moved.yaw_rad]), jacobian


def _run(
    drive: Drive,
    arrivals: Arriving,
    predict: Callable[[SE2, Array], None],
    update: Callable[[Array, Array], None],
    state: Callable[[], tuple[Array, Array]],
) -> list[PoseEstimate]:
    noise = OdometryNoise()
    turn_var = math.radians(noise.turn_deg) ** 2 / (2 * math.pi)
    track, coming, before = [], 0, drive.odometry[0]
    for stamp_ns, odometry in zip(drive.stamps_ns, drive.odometry, strict=True):
        moved = odometry.relative_to(before)
        before = odometry
        way_m = math.hypot(moved.x_m, moved.y_m)
        place = noise.position_m**2 * way_m
        predict(
            moved, np.diag([place, place, math.radians(noise.heading_deg) ** 2 * way_m + turn_var * abs(moved.yaw_rad)])
        )
        while coming < len(arrivals) and arrivals[coming][0] <= stamp_ns:
            seen = arrivals[coming][1]
            update(np.array([seen.pose.x_m, seen.pose.y_m]), seen.covariance[:2, :2] + 0.005**2 * np.eye(2))
            coming += 1
        x, covariance = state()
        pose = SE2(float(x[0]), float(x[1]), wrap_angle(float(x[2])))
        track.append(PoseEstimate(stamp_ns, pose, "map", np.array(covariance)))
    return track
