"""Data of a log for its report: trajectory, contacts, distances, a few images."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.geometry import SE2
from robot_runtime.errors import RuntimeFault
from robot_runtime.hal.events import Event
from robot_runtime.metrics.measures import Measures, measures_of
from robot_runtime.metrics.settings import Rules
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import EpisodeHeader, StepRecord
from robot_runtime.scenes.geodesic import DistanceField
from robot_runtime.scoring.pose_tracks import PoseTrack, pose_tracks
from robot_runtime.scoring.reference_poses import scored_steps
from robot_runtime.scoring.summary import EpisodeScore, Maps, score_log, score_steps
from robot_runtime.tasks.kind import kind_of

KEYFRAMES = 8

Point = tuple[float, float]


@dataclass(frozen=True)
class Keyframe:
    """One camera image of a step; rgb is uint8 (H, W, 3)."""

    index: int
    label: str
    contact: bool
    rgb: NDArray[np.uint8]


@dataclass(frozen=True)
class EpisodeData:
    """An episode, for drawing.

    Attributes:
        score: score of the log.
        header: header of the log.
        records: steps without images, the start first; each has a finite referee pose.
        keyframes: camera images of some steps.
        rules: choices that change scores.
        maps: cache of the maps of scenes.
        events: events of the log.
        pose_tracks: trajectories by source; empty if the log has no raw poses.
    """

    score: EpisodeScore
    header: EpisodeHeader
    records: tuple[StepRecord, ...]
    keyframes: tuple[Keyframe, ...]
    rules: Rules
    maps: Maps
    events: tuple[Event, ...] = ()
    pose_tracks: tuple[PoseTrack, ...] = ()

    @cached_property
    def measures(self) -> Measures | None:
        """The measures of the kind of task after the last step, read from the log again; None without a score."""
        if not self.score.scorable:
            return None
        with LogReader(self.score.path) as log:
            return score_steps(log, self.rules, self.maps.of(self.header)).measures

    @cached_property
    def targets(self) -> tuple[Point, ...]:
        """Points (x, y in map) that distance is measured to; empty if the kind has none, or they cannot be resolved."""
        if not measures_of(self.header.task).has_targets:
            return ()
        try:
            targets = kind_of(self.header.task).targets(self.header.task, self.header.episode, self.header.scene)
        except RuntimeFault:
            return ()
        return tuple(targets)

    @cached_property
    def _field(self) -> DistanceField:
        return self.maps.of(self.header).field(self.targets)

    @cached_property
    def distances_m(self) -> tuple[float, ...]:
        """Geodesic distance to the targets per step, inf off the map; empty without targets."""
        return tuple(self._field.at(pose.x_m, pose.y_m) for pose in self.poses) if self.targets else ()

    @cached_property
    def shortest(self) -> NDArray[np.float64]:
        """Shortest path from the start, (N, 2) in map; empty without targets."""
        return self._field.path(self.poses[0].x_m, self.poses[0].y_m) if self.targets else np.empty((0, 2))

    @cached_property
    def tracks(self) -> tuple[tuple[SE2, ...], ...]:
        """The poses of each phase; between two phases the robot was carried."""
        phases = [list(part) for _, part in groupby(self.records, key=lambda record: record.state.phase)]
        return tuple(tuple(record.referee.pose for record in part) for part in phases)

    @property
    def succeeded(self) -> bool | None:
        """Whether the episode succeeded; None without a score."""
        return bool(self.score.metrics["success"]) if self.score.scorable else None

    @cached_property
    def poses(self) -> tuple[SE2, ...]:
        """The referee's poses, one per step."""
        return tuple(record.referee.pose for record in self.records)

    @cached_property
    def contacts(self) -> tuple[int, ...]:
        """Indices of the steps whose action ended in contact."""
        return tuple(i for i, record in enumerate(self.records) if _collided(record))


def load_episode_data(
    path: Path, rules: Rules | None = None, maps: Maps | None = None
) -> tuple[EpisodeScore, EpisodeData | None]:
    """Score and data of a log; no data if the header cannot be read or there is no step."""
    maps = maps or Maps()
    score = score_log(path, rules, maps)
    try:
        with LogReader(path) as log:
            return score, _view(log, score, rules or Rules(), maps)
    except RuntimeFault:
        # The score has the reason.
        return score, None


def _view(log: LogReader, score: EpisodeScore, rules: Rules, maps: Maps) -> EpisodeData | None:
    records = []
    for record in scored_steps(log, rules.referee):
        pose = record.referee.pose
        if not all(map(math.isfinite, (pose.x_m, pose.y_m, pose.yaw_rad))):
            break  # the score has the reason
        records.append(record)
    if not records:
        return None
    header = log.header
    return EpisodeData(
        score=score,
        header=header,
        records=tuple(records),
        keyframes=tuple(_keyframe(log, records[i]) for i in keyframe_indices(records)),
        rules=rules,
        maps=maps,
        events=tuple(log.events()),
        pose_tracks=pose_tracks(log, records),
    )


def keyframe_indices(records: Sequence[StepRecord], count: int = KEYFRAMES) -> list[int]:
    """Sorted indices of steps to show: first and last, the first contacts, and others evenly spaced."""
    last = len(records) - 1
    chosen = {0, last}
    touched = [_collided(record) for record in records]
    # The first step of each contact, since the following ones look the same.
    first = [i for i in range(1, last) if touched[i] and not touched[i - 1]]
    chosen.update(first[: max(0, count // 4)])
    for step in np.linspace(0, last, count).round().astype(int).tolist():
        if len(chosen) < count:
            chosen.add(step)
    return sorted(chosen)


def _collided(record: StepRecord) -> bool:
    return record.result is not None and record.result.collided


def _keyframe(log: LogReader, record: StepRecord) -> Keyframe:
    label = str(record.action) if record.action is not None else "start"
    return Keyframe(record.index, label.replace("_", " "), _collided(record), log.frame(record).rgb)
