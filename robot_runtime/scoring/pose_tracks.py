"""Trajectories of an episode by source of poses: odometry, measurements, the policy's, smoothed, the referee's."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.geometry import SE2
from robot_runtime.errors import ConfigError, RecordingError
from robot_runtime.hal import PoseEstimate, PoseStatus
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import StepRecord
from robot_runtime.scoring.reference_poses import MAP_FRAME, smoothed

LINE_STEP_M = 0.02
"""Spacing of the points of a raw stream."""

CONFIDENCE_SIGMAS = 2.448
"""Half axes of the 95 % ellipse of a planar normal distribution, in standard deviations."""

TrackKind = Literal["odometry", "measured", "policy", "smoothed", "referee"]


@dataclass(frozen=True)
class Ellipse:
    """95 % ellipse of a position: center and half axes in meters, angle of the longer one from x."""

    x_m: float
    y_m: float
    long_m: float
    short_m: float
    angle_rad: float


@dataclass(frozen=True)
class PoseTrack:
    """Trajectory of a source in ``map``.

    Attributes:
        kind: kind of source.
        name: name of the source.
        points: positions, (N, 2).
        ellipses: ellipses at the ends of actions, where the source has covariances.
    """

    kind: TrackKind
    name: str
    points: NDArray[np.float64]
    ellipses: tuple[Ellipse, ...] = ()


def pose_tracks(log: LogReader, records: Sequence[StepRecord]) -> tuple[PoseTrack, ...]:
    """The trajectories of a log; none without raw poses. Raises ``RecordingError``: the log is damaged.

    Raw poses that are not finite are left out.
    """
    sources = log.header.localizers
    raw = {name: [e for e in estimates if _is_finite(e.pose)] for name, estimates in log.poses().items()}
    if not raw:
        return ()
    wheels = sources.get("odometry", ())
    tracks = [_odometry(name, raw[name], records[0].referee) for name in wheels if raw.get(name)]
    measured = [name for name in sources.get("policy", ()) if name not in wheels and raw.get(name)]
    tracks += [_measured(name, raw[name]) for name in measured]
    if records[0].pose.frame == MAP_FRAME:
        tracks.append(_by_step("policy", "what the policy was told", [record.pose for record in records]))
    if measured and wheels:
        try:
            after = smoothed(log, records, "policy")
        except (ConfigError, RecordingError):
            pass  # GTSAM is not installed, or odometry does not cover the episode
        else:
            tracks.append(_track("smoothed", "smoothed afterwards", after.poses, after.covariances))
    tracks.append(_by_step("referee", "the referee", [record.referee for record in records]))
    return tuple(tracks)


def _is_finite(pose: SE2) -> bool:
    return math.isfinite(pose.x_m) and math.isfinite(pose.y_m) and math.isfinite(pose.yaw_rad)


def _odometry(name: str, estimates: Sequence[PoseEstimate], at_start: PoseEstimate) -> PoseTrack:
    """Odometry aligned with the referee's first pose."""
    ordered = sorted(estimates, key=lambda estimate: estimate.stamp_ns)
    first = min(ordered, key=lambda estimate: abs(estimate.stamp_ns - at_start.stamp_ns))
    map_from_odom = at_start.pose @ first.pose.inverse()
    return PoseTrack("odometry", name, _thinned([map_from_odom @ estimate.pose for estimate in ordered]))


def _measured(name: str, estimates: Sequence[PoseEstimate]) -> PoseTrack:
    valid = [e for e in estimates if e.frame == MAP_FRAME and e.status is PoseStatus.OK]
    return PoseTrack("measured", name, np.array([(e.pose.x_m, e.pose.y_m) for e in valid]).reshape(-1, 2))


def _by_step(kind: TrackKind, name: str, estimates: Sequence[PoseEstimate]) -> PoseTrack:
    return _track(kind, name, [e.pose for e in estimates], np.array([e.covariance for e in estimates]))


def _track(kind: TrackKind, name: str, poses: Sequence[SE2], covariances: NDArray[np.float64]) -> PoseTrack:
    ellipses = tuple(
        ellipse(pose, covariance[:2, :2])
        for pose, covariance in zip(poses, covariances, strict=True)
        if covariance[0, 0] + covariance[1, 1] > 0
    )
    return PoseTrack(kind, name, np.array([(pose.x_m, pose.y_m) for pose in poses]).reshape(-1, 2), ellipses)


def ellipse(pose: SE2, covariance: NDArray[np.float64]) -> Ellipse:
    """The 95 % ellipse of a pose with the covariance (2, 2) of x and y."""
    variances, axes = np.linalg.eigh(covariance)
    short_m, long_m = (CONFIDENCE_SIGMAS * math.sqrt(max(0.0, float(value))) for value in variances)
    return Ellipse(pose.x_m, pose.y_m, long_m, short_m, math.atan2(axes[1, 1], axes[0, 1]))


def _thinned(poses: Sequence[SE2]) -> NDArray[np.float64]:
    thinned = [poses[0]]
    for pose in poses[1:]:
        if pose.distance_to(thinned[-1]) >= LINE_STEP_M:
            thinned.append(pose)
    return np.array([(pose.x_m, pose.y_m) for pose in thinned])
