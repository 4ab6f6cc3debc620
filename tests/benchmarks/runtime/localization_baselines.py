"""Baselines of ``bench localization``: other ways of fusion on the same data and with the same odometry noise.

The two Kalman filters predict with every sample of odometry and take a measurement as one of the instant at which it
arrives, as ``robot_localization`` does unless ``smooth_lagged_data`` is set; filterpy has no notion of time at all. The
fixed-lag smoother of gtsam takes each measurement at its own stamp.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import astuple
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.clock import ns_to_seconds, seconds_to_ns
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.hal import PoseEstimate
from robot_runtime.localization.ekf import GATES
from robot_runtime.localization.fused import OutputSmoother, SmoothingLimits
from robot_runtime.localization.odometry_preintegration import (
    OdometryNoise,
    OdometrySample,
    PreintegratedOdometry,
    motion,
)

if TYPE_CHECKING:
    from tests.benchmarks.runtime.synthetic_drives import Drive

Array = NDArray[np.float64]
Arriving = list[tuple[int, PoseEstimate]]

H = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])


def undelayed_track(drive: Drive, arrivals: Arriving) -> list[PoseEstimate]:
    """Track of an EKF with the same noise and gate as the fused localizer, without delays."""
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
    """Track of ``filterpy.kalman.ExtendedKalmanFilter``; None if it is not installed."""
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


def fixed_lag_track(drive: Drive, arrivals: Arriving, smooth_output: bool = True) -> list[PoseEstimate] | None:
    """``gtsam.IncrementalFixedLagSmoother`` over 5 s, with the filter's odometry noise; None without gtsam.

    Each measurement adds a pose at its own stamp, however late it arrives, with a Cauchy kernel against outliers. The
    published pose is the newest one moved on by odometry; ``smooth_output`` spreads corrections as ``FusedLocalizer``
    does.
    """
    try:
        smoother = _FixedLag(drive.truth[0])
    except ImportError:
        return None
    output, track, coming, before_ns = OutputSmoother(SmoothingLimits()), [], 0, drive.stamps_ns[0]
    for stamp_ns, odometry in zip(drive.stamps_ns, drive.odometry, strict=True):
        smoother.odometry.add(stamp_ns, odometry)
        while coming < len(arrivals) and arrivals[coming][0] <= stamp_ns:
            smoother.add(arrivals[coming][1])
            coming += 1
        sample = smoother.odometry.at(stamp_ns)
        assert sample is not None
        pose = smoother.pose(stamp_ns, sample)
        if smooth_output:
            belief = (pose.x_m, pose.y_m, pose.yaw_rad, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
            pose, _ = output.step(belief, sample, ns_to_seconds(stamp_ns - before_ns))
        before_ns = stamp_ns
        track.append(PoseEstimate(stamp_ns, pose, "map"))
    return track


class _FixedLag:
    """A pose graph of the last seconds; poses stand at the stamps of the measurements."""

    LAG_S = 5.0
    CAUCHY = 2.3849

    def __init__(self, start: SE2) -> None:
        import gtsam

        self._gtsam, self._start = gtsam, start
        parameters = gtsam.ISAM2Params()
        parameters.setRelinearizeThreshold(0.01)
        parameters.relinearizeSkip = 1
        self._smoother = gtsam.IncrementalFixedLagSmoother(self.LAG_S, parameters)
        self.odometry = PreintegratedOdometry(OdometryNoise(), 20.0)
        self._nodes: list[tuple[int, int, OdometrySample]] = []
        """Stamp, key and odometry of the poses in the graph, by stamp."""
        self._keys = 0
        self._newest: Any = None

    def add(self, measured: PoseEstimate) -> None:
        """Take in a measured position, in any order."""
        gtsam, stamp_ns, sample = self._gtsam, measured.stamp_ns, self.odometry.at(measured.stamp_ns)
        index = bisect_right(self._nodes, stamp_ns, key=lambda node: node[0]) - 1
        if index < 0 or sample is None:
            return
        _, before, before_sample = self._nodes[index]
        step, covariance = self._step(before_sample, sample)
        guess = self._smoother.calculateEstimatePose2(before).compose(step)
        kernel = gtsam.noiseModel.mEstimator.Cauchy.Create(self.CAUCHY)
        position = gtsam.noiseModel.Gaussian.Covariance(measured.covariance[:2, :2] + 0.005**2 * np.eye(2))
        graph = gtsam.NonlinearFactorGraph()
        graph.add(gtsam.BetweenFactorPose2(before, self._keys, step, gtsam.noiseModel.Gaussian.Covariance(covariance)))
        graph.add(
            gtsam.PoseTranslationPrior2D(
                self._keys,
                np.array([measured.pose.x_m, measured.pose.y_m]),
                gtsam.noiseModel.Robust.Create(kernel, position),
            )
        )
        self._update(graph, guess, stamp_ns, sample, last=index == len(self._nodes) - 1)

    def pose(self, stamp_ns: int, sample: OdometrySample) -> SE2:
        """The pose at an instant: the newest of the graph, moved on by odometry. The first call starts the graph."""
        if not self._nodes:
            graph, start = self._gtsam.NonlinearFactorGraph(), self._gtsam.Pose2(*astuple(self._start))
            sigmas = self._gtsam.noiseModel.Diagonal.Sigmas(np.array([0.05, 0.05, math.radians(5)]))
            graph.add(self._gtsam.PriorFactorPose2(0, start, sigmas))
            self._update(graph, start, stamp_ns, sample, last=True)
        pose = self._newest.compose(self._step(self._nodes[-1][2], sample)[0])
        return SE2(pose.x(), pose.y(), pose.theta())

    def _update(self, graph: Any, guess: Any, stamp_ns: int, sample: OdometrySample, last: bool) -> None:
        values, stamps = self._gtsam.Values(), self._gtsam.FixedLagSmootherKeyTimestampMap()
        values.insert(self._keys, guess)
        stamps.insert((self._keys, ns_to_seconds(stamp_ns)))  # type: ignore[no-untyped-call]
        self._smoother.update(graph, values, stamps)
        if last:
            oldest_ns = stamp_ns - seconds_to_ns(self.LAG_S - 0.5)
            self._nodes = [node for node in self._nodes if node[0] >= oldest_ns] + [(stamp_ns, self._keys, sample)]
        self._keys += 1
        self._newest = self._smoother.calculateEstimatePose2(self._nodes[-1][1])

    def _step(self, a: OdometrySample, b: OdometrySample) -> tuple[Any, Array]:
        """The motion between two samples as Pose2, and its covariance along the axes of the end, as gtsam wants it."""
        dx, dy, turn, xx, xy, xt, yy, yt, tt = motion(a, b)
        moved = SE2(0.0, 0.0, -a[2]).apply(dx, dy)
        c, s = math.cos(b[2]), math.sin(b[2])
        axes = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
        covariance = axes.T @ np.array([[xx, xy, xt], [xy, yy, yt], [xt, yt, tt]]) @ axes + 1e-8 * np.eye(3)
        return self._gtsam.Pose2(*moved, turn), covariance


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
        distance_m = math.hypot(moved.x_m, moved.y_m)
        place = noise.position_m**2 * distance_m
        predict(
            moved,
            np.diag([place, place, math.radians(noise.heading_deg) ** 2 * distance_m + turn_var * abs(moved.yaw_rad)]),
        )
        while coming < len(arrivals) and arrivals[coming][0] <= stamp_ns:
            seen = arrivals[coming][1]
            update(np.array([seen.pose.x_m, seen.pose.y_m]), seen.covariance[:2, :2] + 0.005**2 * np.eye(2))
            coming += 1
        x, covariance = state()
        pose = SE2(float(x[0]), float(x[1]), wrap_angle(float(x[2])))
        track.append(PoseEstimate(stamp_ns, pose, "map", np.array(covariance)))
    return track
