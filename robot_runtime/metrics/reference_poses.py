"""By whose poses an episode is scored: those that the referee gave while it ran, or its trajectory smoothed afterwards.

A referee that measures (beacons, tags, motion capture) is better after the run than during it: every later measurement
bears on every earlier pose. The raw streams are in the log; ``robot-runtime score --referee smoothed`` uses them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from robot_runtime.errors import RecordingError
from robot_runtime.hal import PoseEstimate
from robot_runtime.localization.smoother import Trajectory, smooth, smoother_name
from robot_runtime.metrics.settings import RefereeRule
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import StepRecord

MAP_FRAME = "map"


def check_rule(rule: RefereeRule) -> None:
    """Before the first log, for what would be wrong with each. Raises ``ConfigError``: smoothing needs GTSAM."""
    if rule == "smoothed":
        smoother_name()


def scored_steps(log: LogReader, rule: RefereeRule) -> Iterator[StepRecord]:
    """The log's steps without images, with the referee's poses that the rule asks for.

    Raises:
        ConfigError: smoothing needs GTSAM.
        RecordingError: what the log lacks.
    """
    if rule == "logged":
        yield from log.steps(images=False)
        return
    records = list(log.steps(images=False))
    trajectory = smoothed(log, records, "referee")
    for record, pose, covariance in zip(records, trajectory.poses, trajectory.covariances, strict=True):
        estimate = PoseEstimate(record.referee.stamp_ns, pose, MAP_FRAME, covariance)
        yield replace(record, referee=estimate)


def smoothed(log: LogReader, records: Sequence[StepRecord], role: str) -> Trajectory:
    """The trajectory at the steps' exposures, from the raw poses of ``policy`` or ``referee`` and from odometry.

    Raises:
        ConfigError: smoothing needs GTSAM.
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
    return smooth(odometry, absolute, [record.referee.stamp_ns for record in records], start)
