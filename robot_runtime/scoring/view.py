"""What a report shows of one log, gathered in one place: path, contacts, distances, a few images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from robot_runtime.errors import RuntimeFault
from robot_runtime.geodesic import GeodesicMap
from robot_runtime.geometry import SE2
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import EpisodeHeader, StepRecord
from robot_runtime.scoring.rules import Rules
from robot_runtime.scoring.summary import EpisodeScore, score_log
from robot_runtime.tasks.rules import task_module

KEYFRAMES = 8


@dataclass(frozen=True)
class Keyframe:
    """One image of the first-person strip: rgb is uint8 (H, W, 3)."""

    index: int
    label: str
    contact: bool
    rgb: NDArray[np.uint8]


@dataclass(frozen=True)
class EpisodeView:
    """One episode, ready to be drawn.

    Attributes:
        poses: the referee's, one per step, the start first.
        contacts: indices into ``poses`` where an action ended in contact.
        distances_m: per pose, geodesic, inf off the map; empty if it cannot be computed.
        targets: (x, y) that distance is measured to. shortest: (N, 2), a shortest path from the start.
    """

    score: EpisodeScore
    header: EpisodeHeader
    poses: tuple[SE2, ...]
    contacts: tuple[int, ...]
    distances_m: tuple[float, ...]
    targets: tuple[tuple[float, float], ...]
    shortest: NDArray[np.float64]
    keyframes: tuple[Keyframe, ...]

    @property
    def succeeded(self) -> bool | None:
        """None if the episode has no score."""
        return bool(self.score.metrics["success"]) if self.score.scorable else None


def load_view(path: Path, rules: Rules | None = None) -> tuple[EpisodeScore, EpisodeView | None]:
    """The score of a log, and what can be shown of it: None if not even the header can be read."""
    score = score_log(path, rules)
    try:
        with LogReader(path) as log:
            return score, _view(log, score)
    except RuntimeFault:
        # The score says what is wrong.
        return score, None


def _view(log: LogReader, score: EpisodeScore) -> EpisodeView | None:
    records = list(log.steps(images=False))
    if not records:
        return None
    header = log.header
    poses = tuple(record.referee.pose for record in records)
    targets, distances, shortest = _distances(header, poses)
    return EpisodeView(
        score=score,
        header=header,
        poses=poses,
        contacts=tuple(i for i, record in enumerate(records) if record.result is not None and record.result.collided),
        distances_m=distances,
        targets=targets,
        shortest=shortest,
        keyframes=tuple(_keyframe(log, records[i]) for i in keyframe_indices(records)),
    )


def _distances(
    header: EpisodeHeader, poses: Sequence[SE2]
) -> tuple[tuple[tuple[float, float], ...], tuple[float, ...], NDArray[np.float64]]:
    try:
        targets = task_module(header.task).targets(header.task, header.episode, header.scene)
    except RuntimeFault:
        return (), (), np.empty((0, 2))
    field = GeodesicMap(header.scene.map, header.task.robot_radius_m).field(targets)
    distances = tuple(field.at(pose.x_m, pose.y_m) for pose in poses)
    return tuple(targets), distances, field.path(poses[0].x_m, poses[0].y_m)


def keyframe_indices(records: Sequence[StepRecord], count: int = KEYFRAMES) -> list[int]:
    """Which steps to show: first and last, the first contacts, and the rest evenly spread; sorted, without repeats."""
    last = len(records) - 1
    chosen = {0, last}
    touched = [record.result is not None and record.result.collided for record in records]
    # The first step of each contact: those that follow look the same.
    first = [i for i in range(1, last) if touched[i] and not touched[i - 1]]
    chosen.update(first[: max(0, count // 4)])
    for step in np.linspace(0, last, count).round().astype(int).tolist():
        if len(chosen) < count:
            chosen.add(step)
    return sorted(chosen)


def _keyframe(log: LogReader, record: StepRecord) -> Keyframe:
    contact = record.result is not None and record.result.collided
    label = str(record.action) if record.action is not None else "start"
    return Keyframe(record.index, label.replace("_", " "), contact, log.frame(record).rgb)
