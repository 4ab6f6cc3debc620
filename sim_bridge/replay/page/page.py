"""HTML page of a replay: images, map, charts and actions, all at the step that a slider selects.

The page needs no network and no other file. Its content security policy admits its own script only, by its hash, so
that no text of a log can run.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from robot_runtime.errors import RecordingError, writing
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import EpisodeHeader, StepRecord
from robot_runtime.scoring.report.charts import WIDTH
from robot_runtime.scoring.report.map_drawing import map_box, scene_shapes, unit_of
from robot_runtime.scoring.report.rendering import render
from sim_bridge.replay.page import replay_charts, tables, text
from sim_bridge.replay.page.thumbnails import Gallery, StepImages
from sim_bridge.replay.page.trajectories import Tracks, overlay, tracks_of
from sim_bridge.replay.results import Replay

_REMEDY = "give another folder with --out"
MARKER_NAMES = {"recorded": "recorded", "replayed": "recorded actions, simulated", "closed": "policy, simulated"}


def write_page(path: Path, replay: Replay, gallery: Gallery | None, many: bool) -> None:
    """Write the page of a replay.

    Args:
        path: path of the page.
        replay: its content.
        gallery: the images of its pose replay; None if it has none.
        many: whether there is an index next to it.

    Raises:
        RecordingError: the log is gone, or the page cannot be written.
    """
    with LogReader(Path(replay.log)) as log:
        header, records = log.header, _readable_steps(log)
    write_text(
        path, render("replay.html", "sim_bridge.replay", **_context(replay, header, records, gallery), many=many)
    )


def _readable_steps(log: LogReader) -> list[StepRecord]:
    """The steps before the first that cannot be read, which the replay's notes name."""
    records = []
    try:
        for record in log.steps(images=False):
            records.append(record)  # noqa: PERF402 (those before an error are wanted)
    except RecordingError:
        return records
    return records


def write_text(path: Path, text: str) -> None:
    """Write a page. Raises ``RecordingError``."""
    make_folder(path.parent)
    with writing(path, _REMEDY):
        path.write_text(text, encoding="utf-8")


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
    script = (Path(__file__).parents[1] / "templates" / "replay.js").read_text(encoding="utf-8")
    return {
        "replay": replay,
        "scene_text": text.scene_sentence(replay),
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
        "rows": tables.rows(replay, records),
        "data": _json(_script_data(replay, records, tracks, images)),
        "script": Markup(script),
        "script_hash": Markup(_hash(script)),
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
        "shown": [one.index for one in images],
        "images": {name: [getattr(one, name) for one in images] for name in ("recorded", "simulated", "error")},
        "texts": [text.frame_sentence(frames[index]) if index in frames else "" for index in steps],
        "bands": replay_charts.band_points(replay, steps),
    }


def _label(record: StepRecord | None) -> str:
    return "lost" if record is None else text.action(record.command or record.action)


def _json(data: Mapping[str, Any]) -> Markup:
    """JSON for a script element, which only ``<`` could end."""
    return Markup(json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c"))


def _hash(script: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
