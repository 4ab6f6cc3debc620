"""The referee's best trajectory, after the run: every measurement bears on every pose, the later ones included.

A factor graph of planar poses (Dellaert and Kaess 2006, Square Root SAM), solved by GTSAM: a node wherever an absolute
source measured or a pose is asked for, odometry between neighboring nodes, and a robust factor (Cauchy) per
measurement, so that outliers lose their weight instead of being cut off by a threshold.

A filter may not look ahead; a referee may. Needs the extra ``smoother``.
"""

from __future__ import annotations

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

CAUCHY = 2.3849
"""In standard deviations: 95 % as efficient as least squares where noise is normal (Holland and Welsch 1977)."""

MAX_OUTSIDE_S = 0.5
"""How long after its last pose odometry still tells where a robot is that stands still."""


@dataclass(frozen=True)
class OdometryNoise:
    """How wheel odometry errs between two nodes; the defaults are a calibrated Kobuki with gyro, doubled.

    Attributes:
        linear_m: along and across, after 1 m. angular_rad: of the heading, after turning 1 rad. heading_rad: of the
            heading, after 1 m. All grow with the square root of the way.
        still_m, still_rad: between two nodes even if nothing moved.
    """

    linear_m: float = 0.02
    angular_rad: float = 0.02
    heading_rad: float = 0.01
    still_m: float = 1e-4
    still_rad: float = 1e-4

    def sigmas(self, step: SE2) -> NDArray[np.float64]:
        """Standard deviations of a step along, across and about, (3,)."""
        way_m, turn_rad = math.hypot(step.x_m, step.y_m), abs(step.yaw_rad)
        linear_m = math.hypot(self.still_m, self.linear_m * math.sqrt(way_m))
        about_rad = math.hypot(
            self.still_rad, self.angular_rad * math.sqrt(turn_rad), self.heading_rad * math.sqrt(way_m)
        )
        return np.array([linear_m, linear_m, about_rad])


@dataclass(frozen=True)
class Trajectory:
    """What :func:`smooth` found, in ``map``.

    Attributes:
        stamps_ns: (N,), as asked for, in order. poses: as many.
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
    """The most probable poses at ``stamps_ns``, given everything.

    Args:
        odometry: in its own frame, in any order.
        measurements: of absolute sources, all in ``map``; those that say ``lost`` are left out. An infinite variance of
            the yaw means that only the position was measured.
        start: about where the robot was at the first of ``stamps_ns``: where the solver begins, no measurement.

    Raises:
        ConfigError: GTSAM is not installed.
        RecordingError: odometry does not cover ``stamps_ns``, or no measurement falls between them.
    """
    gtsam = _gtsam()
    wheels = _Odometry(odometry, stamps_ns)
    used = [
        measured
        for measured in measurements
        if measured.status is PoseStatus.OK and wheels.first_ns <= measured.stamp_ns <= wheels.last_ns
    ]
    if not used:
        raise RecordingError(
            "smoothing: no absolute pose was measured while odometry was recorded",
            "record the episode with a beacon, tag or map localizer beside the odometry",
        )
    nodes_ns = sorted({*stamps_ns, *(measured.stamp_ns for measured in used)})
    number = {stamp_ns: index for index, stamp_ns in enumerate(nodes_ns)}
    driven = [wheels.at(stamp_ns) for stamp_ns in nodes_ns]
    noise = noise or OdometryNoise()

    graph, values = gtsam.NonlinearFactorGraph(), gtsam.Values()
    map_from_odom = start @ driven[number[stamps_ns[0]]].inverse()
    for index, pose in enumerate(driven):
        values.insert(index, _pose2(gtsam, map_from_odom @ pose))
        if index:
            step = pose.relative_to(driven[index - 1])
            sigmas = gtsam.noiseModel.Diagonal.Sigmas(noise.sigmas(step))
            graph.add(gtsam.BetweenFactorPose2(index - 1, index, _pose2(gtsam, step), sigmas))
    for measured in used:
        graph.add(_measurement(gtsam, number[measured.stamp_ns], measured))
    result = gtsam.LevenbergMarquardtOptimizer(graph, values).optimize()
    marginals = gtsam.Marginals(graph, result)

    nodes = [number[stamp_ns] for stamp_ns in stamps_ns]
    found = [result.atPose2(node) for node in nodes]
    poses = tuple(SE2(pose.x(), pose.y(), pose.theta()) for pose in found)
    covariances = [
        _along_map(marginals.marginalCovariance(node), pose.yaw_rad) for node, pose in zip(nodes, poses, strict=True)
    ]
    return Trajectory(tuple(stamps_ns), poses, np.array(covariances))


class _Odometry:
    """Where the wheels say that the robot was, at any instant that they tell of."""

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
                f"smoothing: a pose is asked for {outside_ns / NS_PER_S:.2f} s outside the time that odometry covers",
                "the log is torn, or its odometry went silent: score it by the logged referee",
            )
        span_s = (self.last_ns - self.first_ns) / NS_PER_S + 1.0
        self._history = PoseHistory("odometry", ordered[0].frame, span_s, max_gap_s=span_s)
        for estimate in ordered:
            self._history.add(estimate)

    def at(self, stamp_ns: int) -> SE2:
        # At either end the robot stands still: there its first and last pose hold a little longer.
        found = self._history.at(min(max(stamp_ns, self.first_ns), self.last_ns))
        assert found is not None
        return found.pose


def smoother_name() -> str:
    """What :func:`smooth` computes with, for the scores that depend on it. Raises ``ConfigError``."""
    _gtsam()
    return f"gtsam {metadata.version('gtsam')}"


def _gtsam() -> Any:
    try:
        import gtsam
    except ImportError as error:
        raise ConfigError(
            "smoothing needs GTSAM, which is not installed", "install the extra: pip install 'robot-runtime[smoother]'"
        ) from error
    return gtsam


def _pose2(gtsam: Any, pose: SE2) -> Any:
    return gtsam.Pose2(pose.x_m, pose.y_m, pose.yaw_rad)


def _measurement(gtsam: Any, node: int, measured: PoseEstimate) -> Any:
    """A factor that an outlier can pull only a little."""
    models, kernel = gtsam.noiseModel, gtsam.noiseModel.mEstimator.Cauchy.Create(CAUCHY)
    covariance = _at_least(measured.covariance)
    if math.isfinite(covariance[2, 2]):
        # GTSAM's Pose2 errors lie along the robot's axes, ours along the map's.
        turned = _along_robot(covariance, measured.pose.yaw_rad)
        robust = models.Robust.Create(kernel, models.Gaussian.Covariance(turned))
        return gtsam.PriorFactorPose2(node, _pose2(gtsam, measured.pose), robust)
    robust = models.Robust.Create(kernel, models.Gaussian.Covariance(covariance[:2, :2]))
    return gtsam.PoseTranslationPrior2D(node, np.array([measured.pose.x_m, measured.pose.y_m]), robust)


def _at_least(covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    """A source that claims to be exact would leave the solver nothing to weigh."""
    return covariance + np.diag([1e-8, 1e-8, 1e-8])


def _along_robot(covariance: NDArray[np.float64], yaw_rad: float) -> NDArray[np.float64]:
    turn = _turn(yaw_rad)
    return np.asarray(turn.T @ covariance @ turn)


def _along_map(covariance: NDArray[np.float64], yaw_rad: float) -> NDArray[np.float64]:
    turn = _turn(yaw_rad)
    return np.asarray(turn @ covariance @ turn.T)


def _turn(yaw_rad: float) -> NDArray[np.float64]:
    c, s = math.cos(yaw_rad), math.sin(yaw_rad)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
