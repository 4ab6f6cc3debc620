"""Trajectories of recording, action replay and closed loop on the map of a replay's page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from markupsafe import Markup

from robot_runtime.common.geometry import SE2
from robot_runtime.errors import RuntimeFault
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import StepRecord
from robot_runtime.scoring.report.charts import element, points
from robot_runtime.scoring.report.map_drawing import circle
from sim_bridge.replay.action_replay import known_pose
from sim_bridge.replay.results import Divergence, Replay

Point = tuple[float, float, float]
"""x, y in meters in ``map``, heading in degrees, rounded for display."""

Track = list[Point | None]
"""One point per step from the log's first on; None where the pose is unknown or the step is missing."""


@dataclass(frozen=True)
class Tracks:
    """The known ones of the tracks ``recorded``, ``replayed`` and ``closed``, and the index of their first step."""

    first: int
    by_name: Mapping[str, Track]

    def at(self, name: str, index: int) -> Point | None:
        """The point of a track at a step."""
        track = self.by_name.get(name, [])
        return track[index - self.first] if 0 <= index - self.first < len(track) else None


def tracks_of(replay: Replay, records: Sequence[StepRecord]) -> Tracks:
    """The tracks of a replay; ``records`` are the log's."""
    first = records[0].index if records else 0
    found = {"recorded": _track(first, {record.index: known_pose(record) for record in records})}
    if replay.action is not None:
        found["replayed"] = _track(first, {step.index: step.replayed for step in replay.action.steps})
    if replay.closed_loop is not None:
        found["closed"] = _track(first, _logged_poses(Path(replay.closed_loop.log)))
    return Tracks(first, {name: track for name, track in found.items() if any(track)})


def overlay(tracks: Tracks, divergence: Divergence | None, unit: float) -> Markup:
    """The tracks as lines on the map, and the place of the first divergence."""
    parts = []
    for name, track in tracks.by_name.items():
        for known, run in groupby(track, key=lambda point: point is not None):
            if known:
                line = points((point[0], -point[1]) for point in run if point is not None)
                parts.append(element("polyline", f"path {name}", data_track=name, points=line))
    at = tracks.at("recorded", divergence.index) if divergence is not None else None
    if divergence is not None and at is not None:
        parts.append(circle("diverged", at[0], at[1], unit * 2.4, f"first divergence: step {divergence.index}"))
    return Markup("").join(parts)


def _logged_poses(path: Path) -> dict[int, SE2 | None]:
    """The poses of the closed loop's log; none if the file is gone."""
    try:
        with LogReader(path) as log:
            return {record.index: known_pose(record) for record in log.steps(images=False)}
    except RuntimeFault:
        return {}


def _track(first: int, poses: Mapping[int, SE2 | None]) -> Track:
    return [_point(poses.get(index)) for index in range(first, max(poses, default=first - 1) + 1)]


def _point(pose: SE2 | None) -> Point | None:
    return None if pose is None else (round(pose.x_m, 4), round(pose.y_m, 4), round(math.degrees(pose.yaw_rad), 2))
