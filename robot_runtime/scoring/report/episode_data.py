"""Data of one log for its report: trajectory, contacts, distances, rooms, a few images."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.geometry import SE2
from robot_runtime.errors import RuntimeFault
from robot_runtime.hal.events import Event
from robot_runtime.metrics.settings import Rules
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import ANSWER, EVIDENCE, EpisodeHeader, StepRecord
from robot_runtime.scenes.scene import Room
from robot_runtime.scoring.pose_tracks import PoseTrack, pose_tracks
from robot_runtime.scoring.reference_poses import scored_steps
from robot_runtime.scoring.summary import EpisodeScore, Maps, score_log, score_steps
from robot_runtime.task_kinds.areagoal import task as areagoal
from robot_runtime.task_kinds.eqa import task as eqa
from robot_runtime.task_kinds.rearrangement.measures import RearrangementMeasures
from robot_runtime.task_kinds.vln import measures as vln
from robot_runtime.tasks.registry import task_module

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
class ObjectCriteria:
    """Test results of a rearrangement.

    Attributes:
        criteria: results of the criteria that apply, by object with a goal.
        harmed: ids of displaced objects that were to stay; None without such a test.
    """

    criteria: Mapping[str, Mapping[str, bool]]
    harmed: tuple[str, ...] | None

    def of(self, object_id: str) -> Mapping[str, bool]:
        """Return the tests of one object."""
        if object_id in self.criteria or self.harmed is None:
            return self.criteria.get(object_id, {})
        return {"unharmed": object_id not in self.harmed}


@dataclass(frozen=True)
class EpisodeData:
    """One episode, for drawing.

    Attributes:
        score: score of the log.
        header: header of the log.
        records: steps without images, the start first; each has a finite referee pose.
        targets: points (x, y) that distance is measured to.
        distances_m: geodesic distance per step, inf off the map; empty if it cannot be computed.
        shortest: (N, 2), a shortest path from the start.
        keyframes: camera images of some steps.
        reference: path that a route is compared with.
        pairs: points of path and reference that DTW aligns.
        goal_rooms: rooms of the goal; empty if the task is not about rooms.
        criteria: tests of a rearrangement's objects; None for other tasks, and without a score.
        events: events of the log.
        pose_tracks: trajectories by source; empty if the log has no raw poses.
    """

    score: EpisodeScore
    header: EpisodeHeader
    records: tuple[StepRecord, ...]
    targets: tuple[Point, ...]
    distances_m: tuple[float, ...]
    shortest: NDArray[np.float64]
    keyframes: tuple[Keyframe, ...]
    reference: tuple[Point, ...] = ()
    pairs: tuple[tuple[Point, Point], ...] = ()
    goal_rooms: tuple[Room, ...] = ()
    criteria: ObjectCriteria | None = None
    events: tuple[Event, ...] = ()
    pose_tracks: tuple[PoseTrack, ...] = ()

    @cached_property
    def tracks(self) -> tuple[tuple[SE2, ...], ...]:
        """The poses of each phase; between two phases the robot was carried."""
        phases = [list(part) for _, part in groupby(self.records, key=lambda record: record.phase)]
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

    @cached_property
    def rooms(self) -> tuple[Room | None, ...]:
        """Per step, the first room of the scene that contains the robot's center."""
        scene = self.header.scene
        return tuple(next((r for r in scene.rooms if r.contains(p.x_m, p.y_m)), None) for p in self.poses)

    @property
    def answer(self) -> Any:
        """The agent's answer; None if it did not answer."""
        given = [record.policy_info[ANSWER] for record in self.records if ANSWER in record.policy_info]
        return given[-1] if given else None

    @property
    def answer_evidence(self) -> tuple[str, ...]:
        """Evidence of the answer, or the reason why there is none, in the agent's words; empty if it gives none."""
        given = [record.policy_info[EVIDENCE] for record in self.records if EVIDENCE in record.policy_info]
        return tuple(map(str, given[-1])) if given and isinstance(given[-1], list | tuple) else ()


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
    poses = [record.referee.pose for record in records]
    targets, distances, shortest = _distances(header, poses, maps)
    is_route = header.task.kind == "vln"
    return EpisodeData(
        score=score,
        header=header,
        records=tuple(records),
        targets=targets,
        distances_m=distances,
        shortest=shortest,
        keyframes=tuple(_keyframe(log, records[i]) for i in keyframe_indices(records)),
        reference=tuple((p[0], p[1]) for p in vln.reference_of(header.episode, rules)[0]) if is_route else (),
        pairs=tuple(vln.alignment(header.episode, poses, rules)) if is_route else (),
        goal_rooms=_goal_rooms(header),
        criteria=_judged(log, score, rules, maps),
        events=tuple(log.events()),
        pose_tracks=pose_tracks(log, records),
    )


def _distances(
    header: EpisodeHeader, poses: Sequence[SE2], maps: Maps
) -> tuple[tuple[Point, ...], tuple[float, ...], NDArray[np.float64]]:
    if header.task.success.rule == "objects":  # the robot has no goal
        return (), (), np.empty((0, 2))
    try:
        targets = task_module(header.task).targets(header.task, header.episode, header.scene)
    except RuntimeFault:
        return (), (), np.empty((0, 2))
    field = maps.of(header).field(targets)
    distances = tuple(field.at(pose.x_m, pose.y_m) for pose in poses)
    return tuple(targets), distances, field.path(poses[0].x_m, poses[0].y_m)


def _goal_rooms(header: EpisodeHeader) -> tuple[Room, ...]:
    module = {"areagoal": areagoal, "eqa": eqa}.get(header.task.kind)
    try:
        return module.goal_rooms(header.task, header.scene, header.episode) if module is not None else ()
    except RuntimeFault:
        return ()


def _judged(log: LogReader, score: EpisodeScore, rules: Rules, maps: Maps) -> ObjectCriteria | None:
    if not score.scorable or log.header.task.kind != "rearrangement":
        return None
    measures = score_steps(log, rules, maps.of(log.header)).measures
    assert isinstance(measures, RearrangementMeasures)
    harmed = None if score.metrics["criterion_no_harm"] is None else tuple(measures.harmed())
    return ObjectCriteria(measures.criteria(), harmed)


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
