"""Smoothed referee trajectory after a run; it uses later measurements too, unlike a filter.

Needs the extra ``smoother``. A factor graph of planar poses (Dellaert and Kaess 2006, Square Root SAM), solved by
GTSAM: a node at each absolute measurement and each requested pose, odometry between neighboring nodes, and a robust
factor (Cauchy) per measurement, so that outliers lose weight gradually instead of at a threshold.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.clock import NS_PER_S
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import ConfigError, RecordingError
from robot_runtime.hal import PoseEstimate, PoseStatus
from robot_runtime.hal.pose_history import PoseHistory
from robot_runtime.localization.odometry_preintegration import OdometryNoise

CAUCHY = 2.3849
"""Scale of the loss, in standard deviations: 95 % as efficient as least squares under normal noise (Holland and Welsch
1977)."""

MAX_OUTSIDE_S = 0.5
"""Time beyond the first and last odometry for which poses may be requested, while the robot stands still."""


STILL_SIGMA = 1e-4
"""Standard deviation, m and rad, between two nodes without motion: a constraint without noise has no weight."""


@dataclass(frozen=True)
class Trajectory:
    """The result of :func:`smooth`, in ``map``.

    Attributes:
        stamps_ns: (N,), as requested.
        poses: (N,).
        covariances: float64 (N, 3, 3) of (x, y, yaw) along the axes of map, m², m·rad, rad².
    """

    stamps_ns: tuple[int, ...]
    poses: tuple[SE2, ...]
    covariances: NDArray[np.float64]


def smooth(
    odometry: Sequence[PoseEstimate],
    measurements: Iterable[PoseEstimate],
    stamps_ns: Sequence[int],
    start: SE2,
    noise: OdometryNoise | None = None,
) -> Trajectory:
    """The most probable poses at ``stamps_ns``, given all measurements.

    Args:
        odometry: odometry in its own frame, in any order.
        measurements: measurements of absolute sources, all in ``map``; those with the status ``lost`` are left out. An
            infinite variance of the yaw marks a position without heading.
        stamps_ns: times of the requested poses, ascending.
        start: approximate pose at the first of ``stamps_ns``, where the solver begins, not a measurement.
        noise: noise of odometry.

    Raises:
        ConfigError: GTSAM is not installed.
        RecordingError: odometry does not cover ``stamps_ns``, or no measurement lies within it.
    """
    gtsam = _gtsam()
    odometry_path = _Odometry(odometry, stamps_ns)
    used = [
        measured
        for measured in measurements
        if measured.status is PoseStatus.OK and odometry_path.first_ns <= measured.stamp_ns <= odometry_path.last_ns
    ]
    if not used:
        raise RecordingError(
            "smoothing: no absolute pose was measured while odometry was recorded",
            "record the episode with a beacon, tag or map localizer in addition to the odometry",
        )
    nodes_ns = sorted({*stamps_ns, *(measured.stamp_ns for measured in used)})
    number = {stamp_ns: index for index, stamp_ns in enumerate(nodes_ns)}
    by_odometry = [odometry_path.at(stamp_ns) for stamp_ns in nodes_ns]
    noise = noise or OdometryNoise()

    graph, values = gtsam.NonlinearFactorGraph(), gtsam.Values()
    map_from_odom = start @ by_odometry[number[stamps_ns[0]]].inverse()
    for index, pose in enumerate(by_odometry):
        values.insert(index, _pose2(gtsam, map_from_odom @ pose))
        if index:
            step = pose.relative_to(by_odometry[index - 1])
            sigmas = gtsam.noiseModel.Diagonal.Sigmas(_sigmas(step, noise))
            graph.add(gtsam.BetweenFactorPose2(index - 1, index, _pose2(gtsam, step), sigmas))
    for measured in used:
        graph.add(_measurement(gtsam, number[measured.stamp_ns], measured))
    result = gtsam.LevenbergMarquardtOptimizer(graph, values).optimize()
    marginals = gtsam.Marginals(graph, result)

    nodes = [number[stamp_ns] for stamp_ns in stamps_ns]
    estimates = [result.atPose2(node) for node in nodes]
    poses = tuple(SE2(pose.x(), pose.y(), pose.theta()) for pose in estimates)
    turns = np.array([_turn(pose.yaw_rad) for pose in poses])
    covariances = turns @ [marginals.marginalCovariance(node) for node in nodes] @ turns.transpose(0, 2, 1)
    return Trajectory(tuple(stamps_ns), poses, covariances)


class _Odometry:
    """The pose by odometry at any instant."""

    def __init__(self, estimates: Sequence[PoseEstimate], stamps_ns: Sequence[int]) -> None:
        if not (estimates and stamps_ns):
            raise RecordingError(
                "smoothing: the log has no odometry, or no step", "record the episode on a robot that reports odometry"
            )
        ordered = sorted(estimates, key=lambda estimate: estimate.stamp_ns)
        self.first_ns, self.last_ns = ordered[0].stamp_ns, ordered[-1].stamp_ns
        outside_ns = max(self.first_ns - min(stamps_ns), max(stamps_ns) - self.last_ns)
        if outside_ns > MAX_OUTSIDE_S * NS_PER_S:
            raise RecordingError(
                f"smoothing: a requested pose lies {outside_ns / NS_PER_S:.2f} s outside the time that odometry covers",
                "the log is truncated, or its odometry stopped: score it by the logged referee",
            )
        span_s = (self.last_ns - self.first_ns) / NS_PER_S + 1.0
        self._history = PoseHistory("odometry", ordered[0].frame, span_s, max_gap_s=span_s)
        for estimate in ordered:
            self._history.add(estimate)

    def at(self, stamp_ns: int) -> SE2:
        # The robot stands still at either end, so the first and last pose remain valid a little longer.
        estimate = self._history.at(min(max(stamp_ns, self.first_ns), self.last_ns))
        assert estimate is not None
        return estimate.pose


def smoother_name() -> str:
    """Name and version of the solver, for scores that depend on it. Raises ``ConfigError``."""
    _gtsam()
    return f"gtsam {metadata.version('gtsam')}"


def _gtsam() -> Any:
    try:
        import gtsam
    except ImportError as error:
        raise ConfigError(
            "smoothing needs GTSAM; it is not installed", "install the extra: pip install 'robot-runtime[smoother]'"
        ) from error
    return gtsam


def _sigmas(step: SE2, noise: OdometryNoise) -> NDArray[np.float64]:
    """Standard deviations of a step along x, y and yaw, float64 (3,)."""
    length_m, turn_rad = math.hypot(step.x_m, step.y_m), abs(step.yaw_rad)
    linear_m = math.hypot(STILL_SIGMA, noise.position_m * math.sqrt(length_m))
    heading_rad = math.radians(noise.heading_deg) * math.sqrt(length_m)
    turned_rad = math.radians(noise.turn_deg) * math.sqrt(turn_rad / (2 * math.pi))
    return np.array([linear_m, linear_m, math.hypot(STILL_SIGMA, heading_rad, turned_rad)])


def _pose2(gtsam: Any, pose: SE2) -> Any:
    return gtsam.Pose2(pose.x_m, pose.y_m, pose.yaw_rad)


def _measurement(gtsam: Any, node: int, measured: PoseEstimate) -> Any:
    """A factor with a robust kernel."""
    models, kernel = gtsam.noiseModel, gtsam.noiseModel.mEstimator.Cauchy.Create(CAUCHY)
    covariance = measured.covariance + np.diag([1e-8] * 3)  # an exact source leaves the solver nothing to weigh
    if math.isfinite(covariance[2, 2]):
        # GTSAM's Pose2 errors lie along the robot's axes, ours along the map's.
        turn = _turn(measured.pose.yaw_rad)
        robust = models.Robust.Create(kernel, models.Gaussian.Covariance(turn.T @ covariance @ turn))
        return gtsam.PriorFactorPose2(node, _pose2(gtsam, measured.pose), robust)
    robust = models.Robust.Create(kernel, models.Gaussian.Covariance(covariance[:2, :2]))
    return gtsam.PoseTranslationPrior2D(node, np.array([measured.pose.x_m, measured.pose.y_m]), robust)


def _turn(yaw_rad: float) -> NDArray[np.float64]:
    c, s = math.cos(yaw_rad), math.sin(yaw_rad)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
