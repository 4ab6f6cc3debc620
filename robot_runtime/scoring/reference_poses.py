"""Poses by which an episode is scored: the referee's during the run, or its trajectory smoothed afterwards.

After the run a referee that measures (beacons, tags, motion capture) is more accurate, because later measurements
improve earlier poses. The log has the raw streams; ``robot-runtime score --referee smoothed`` uses them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from robot_runtime.common.geometry import SE2
from robot_runtime.errors import RecordingError
from robot_runtime.hal import PoseEstimate
from robot_runtime.metrics.settings import RefereeRule
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import StepRecord

if TYPE_CHECKING:
    from robot_runtime.localization.smoother import Trajectory

MAP_FRAME = "map"


def known_pose(record: StepRecord) -> SE2 | None:
    """The referee's pose of a step in ``map``; None if it has none."""
    pose = record.referee.pose
    finite = all(map(math.isfinite, (pose.x_m, pose.y_m, pose.yaw_rad)))
    return pose if finite and record.referee.frame == MAP_FRAME else None


def check_rule(rule: RefereeRule) -> None:
    """Raise ``ConfigError`` if smoothing is asked for and GTSAM is missing; called before the first log."""
    if rule == "smoothed":
        from robot_runtime.localization.smoother import smoother_name

        smoother_name()


def scored_steps(log: LogReader, rule: RefereeRule, verify: bool = True) -> Iterator[StepRecord]:
    """Yield the log's steps without images, with the referee's poses by the rule.

    Raises:
        ConfigError: GTSAM, which smoothing needs, is missing.
        RecordingError: the log lacks the streams to smooth.
    """
    if rule == "logged":
        yield from log.steps(images=False, verify=verify)
        return
    records = list(log.steps(images=False, verify=verify))
    trajectory = smoothed(log, records, "referee")
    for record, pose, covariance in zip(records, trajectory.poses, trajectory.covariances, strict=True):
        estimate = PoseEstimate(record.referee.stamp_ns, pose, MAP_FRAME, covariance)
        yield replace(record, referee=estimate)


def smoothed(log: LogReader, records: Sequence[StepRecord], role: str) -> Trajectory:
    """The trajectory at the steps' exposures, from odometry and the raw poses of ``policy`` or ``referee``.

    Raises:
        ConfigError: GTSAM, which smoothing needs, is missing.
        RecordingError: the log has no odometry, or no raw poses in map of that role's sources.
    """
    sources = log.header.localizers
    raw = log.poses()
    odometry = [estimate for name in sources.get("odometry", ()) for estimate in raw.get(name, ())]
    if not odometry:
        raise RecordingError(
            f"{log.path}: has no raw odometry to smooth with",
            "score it by the logged referee, or record on a robot that reports odometry",
        )
    absolute = [
        estimate
        for name in sources.get(role, ())
        if name not in sources.get("odometry", ())
        for estimate in raw.get(name, ())
        if estimate.frame == MAP_FRAME
    ]
    given = records[0].referee if role == "referee" else records[0].pose
    start = given.pose if given.frame == MAP_FRAME else log.header.episode.start
    from robot_runtime.localization.smoother import smooth

    return smooth(odometry, absolute, [record.referee.stamp_ns for record in records], start)
