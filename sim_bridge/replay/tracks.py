"""Where recording, action replay and closed loop were at each step, for the map."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from robot_runtime.errors import RuntimeFault
from robot_runtime.geometry import SE2
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import StepRecord
from sim_bridge.replay.action_replay import known_pose
from sim_bridge.replay.results import Replay

Point = tuple[float, float, float]
"""x, y in metres in ``map``, heading in degrees, rounded to what a map shows."""

Track = list[Point | None]
"""One per step from the start on; None where the pose is not known."""


@dataclass(frozen=True)
class Tracks:
    """The tracks that there are, by ``recorded``, ``replayed`` and ``closed``."""

    by_name: Mapping[str, Track]


def tracks_of(replay: Replay, records: Sequence[StepRecord]) -> Tracks:
    """The tracks of a replay; ``records`` are the log's."""
    found = {"recorded": _track(map(known_pose, records))}
    if replay.action is not None:
        found["replayed"] = _track(step.replayed for step in replay.action.steps)
    if replay.closed_loop is not None:
        found["closed"] = _closed(Path(replay.closed_loop.log))
    return Tracks({name: track for name, track in found.items() if any(track)})


def _closed(path: Path) -> Track:
    """Of the closed loop's own log; none if somebody took it away since."""
    try:
        with LogReader(path) as log:
            return _track(map(known_pose, log.steps(images=False)))
    except RuntimeFault:
        return []


def _track(poses: Iterable[SE2 | None]) -> Track:
    return [
        None if pose is None else (round(pose.x_m, 4), round(pose.y_m, 4), round(math.degrees(pose.yaw_rad), 2))
        for pose in poses
    ]
