"""HTML page of a replay: images, map, charts and actions, all at the step that a slider selects.

The page needs no network and no other file. Its content security policy admits its own script only, by its hash, so
that no text of a log can run.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from markupsafe import Markup

from robot_runtime.common.creating import creating
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import RuntimeFault, writing
from robot_runtime.recording.reader import LogReader, before_damage
from robot_runtime.records import EpisodeHeader, StepRecord
from robot_runtime.scoring.reference_poses import known_pose
from robot_runtime.scoring.report.charts import WIDTH, element, points
from robot_runtime.scoring.report.map_drawing import circle, map_box, scene_shapes, unit_of
from robot_runtime.scoring.report.rendering import render
from sim_bridge.replay import tables, text
from sim_bridge.replay.page import replay_charts
from sim_bridge.replay.page.thumbnails import Gallery, StepImages
from sim_bridge.replay.results import Divergence, Replay

_REMEDY = "give another folder with --out"
MARKER_NAMES = {"recorded": "recorded", "replayed": "recorded actions, simulated", "closed": "policy, simulated"}


def write_page(path: Path, replay: Replay, gallery: Gallery | None, many: bool) -> None:
    """Write the page of a replay.

    Raises:
        RecordingError: the log is gone, or the page cannot be written.
    """
    with LogReader(Path(replay.log)) as log:
        records, _ = before_damage(log.steps(images=False))  # the replay's notes name the damage
        context = _context(replay, log.header, records, gallery)
    write_text(path, render("replay.html", "sim_bridge.replay", **context, many=many))


def write_text(path: Path, text: str) -> None:
    """Write a page. Raises ``RecordingError``."""
    with creating(path, _REMEDY) as draft:
        draft.write_text(text, encoding="utf-8")


def make_folder(folder: Path) -> None:
    """Make a folder for pages. Raises ``RecordingError``."""
    with writing(folder, _REMEDY):
        folder.mkdir(parents=True, exist_ok=True)


def _context(
    replay: Replay, header: EpisodeHeader, records: Sequence[StepRecord], gallery: Gallery | None
) -> dict[str, Any]:
    tracks = tracks_of(replay, records)
    box = map_box(header.scene.map)
    unit = unit_of(box)
    images = gallery.images() if gallery is not None else []
    divergence = replay.action.divergence if replay.action is not None else None
    data = _script_data(replay, records, tracks, images)
    return {
        "replay": replay,
        "scene_text": " · ".join([text.scene_sentence(replay), *replay.facts]),
        "notes": text.group_notes(replay.notes),
        "tiles": tables.tiles(replay),
        "offset_text": text.offset_sentence(replay.pose.offset) if replay.pose is not None else "",
        "first": records[0].index if records else None,
        "last": records[-1].index if records else None,
        "divergence": divergence,
        "images": images,
        "scale": gallery.scale_mm() if gallery is not None else 0,
        "every": gallery.every if gallery is not None else 1,
        "map": {"id": "map", "box": box},
        "maps": {"map": scene_shapes(header.scene)},
        "unit": unit,
        "overlay": overlay(tracks, divergence, unit),
        "markers": list(tracks.by_name),
        "marker_names": MARKER_NAMES,
        "bands": replay_charts.bands_chart(replay),
        "plots": replay_charts.step_charts(replay, records),
        "closed": tables.closed_rows(replay),
        "headings": tables.headings(replay),
        "rows": tables.step_rows(replay, records),
        # JSON for a script element; only "<" could end it.
        "data": Markup(json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")),
    }


def _script_data(
    replay: Replay, records: Sequence[StepRecord], tracks: Tracks, images: Sequence[StepImages]
) -> dict[str, Any]:
    """The data of the script: lists by step, beginning with the first."""
    frames = {frame.index: frame for frame in replay.pose.frames} if replay.pose is not None else {}
    by_index = {record.index: record for record in records}
    # All indices, even if the log lost some steps, so that position and index differ by the first only.
    steps = range(tracks.first, max(by_index, default=tracks.first) + 1)
    divergence = replay.action.divergence if replay.action is not None else None
    return {
        "first": tracks.first,
        "last": steps[-1],
        "labels": [_label(by_index.get(index)) for index in steps],
        "divergence": divergence.index if divergence is not None else None,
        "left": replay_charts.LEFT,
        "right": replay_charts.RIGHT,
        "width": WIDTH,
        "tracks": tracks.by_name,
        "shown": [image.index for image in images],
        "images": {name: [getattr(image, name) for image in images] for name in ("recorded", "simulated", "error")},
        "texts": [text.frame_sentence(frames[index]) if index in frames else "" for index in steps],
        "bands": replay_charts.band_points(replay, steps),
    }


def _label(record: StepRecord | None) -> str:
    return "lost" if record is None else text.action(record.command or record.action)


# --- trajectories on the map ----------------------------------------------------------------------------------------


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
    tracks = {"recorded": _track(first, {record.index: known_pose(record) for record in records})}
    if replay.action is not None:
        tracks["replayed"] = _track(first, {step.index: step.replayed for step in replay.action.steps})
    if replay.closed_loop is not None:
        tracks["closed"] = _track(first, _logged_poses(Path(replay.closed_loop.log)))
    return Tracks(first, {name: track for name, track in tracks.items() if any(track)})


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
