"""Where recording, action replay and closed loop were at each step, for the map."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from robot_runtime.common.geometry import SE2
from robot_runtime.errors import RuntimeFault
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import StepRecord
from sim_bridge.replay.action_replay import known_pose
from sim_bridge.replay.results import Replay

Point = tuple[float, float, float]
"""x, y in metres in ``map``, heading in degrees, rounded to what a map shows."""

Track = list[Point | None]
"""One per step from the log's first on; None where the pose is not known, or the log has lost the step."""


@dataclass(frozen=True)
class Tracks:
    """The tracks that there are, by ``recorded``, ``replayed`` and ``closed``; ``first`` is their first step."""

    first: int
    by_name: Mapping[str, Track]

    def at(self, name: str, index: int) -> Point | None:
        """Where one of them is at a step."""
        track = self.by_name.get(name, [])
        return track[index - self.first] if 0 <= index - self.first < len(track) else None


def tracks_of(replay: Replay, records: Sequence[StepRecord]) -> Tracks:
    """The tracks of a replay; ``records`` are the log's."""
    first = records[0].index if records else 0
    found = {"recorded": _track(first, {record.index: known_pose(record) for record in records})}
    if replay.action is not None:
        found["replayed"] = _track(first, {step.index: step.replayed for step in replay.action.steps})
    if replay.closed_loop is not None:
        found["closed"] = _track(first, _closed(Path(replay.closed_loop.log)))
    return Tracks(first, {name: track for name, track in found.items() if any(track)})


def _closed(path: Path) -> dict[int, SE2 | None]:
    """Of the closed loop's own log; none if somebody took it away since."""
    try:
        with LogReader(path) as log:
            return {record.index: known_pose(record) for record in log.steps(images=False)}
    except RuntimeFault:
        return {}


def _track(first: int, poses: Mapping[int, SE2 | None]) -> Track:
    return [_point(poses.get(index)) for index in range(first, max(poses, default=first - 1) + 1)]


def _point(pose: SE2 | None) -> Point | None:
    return None if pose is None else (round(pose.x_m, 4), round(pose.y_m, 4), round(math.degrees(pose.yaw_rad), 2))
