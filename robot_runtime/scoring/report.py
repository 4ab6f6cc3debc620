"""One self-contained HTML page about some logs: no network, no other file, light and dark, on a phone too."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from numpy.typing import NDArray

from robot_runtime.clock import utc_now_iso
from robot_runtime.errors import RecordingError
from robot_runtime.scene import Scene
from robot_runtime.scoring import drawing
from robot_runtime.scoring.rules import Rules
from robot_runtime.scoring.scorer import SCORER_VERSION
from robot_runtime.scoring.summary import CONFIDENCE, EpisodeScore, summarise
from robot_runtime.scoring.table import COLUMNS, cell, episode_cell, interval_text, unscored_line
from robot_runtime.scoring.view import EpisodeView, load_view

THUMBNAIL_WIDTH = 320
JPEG_QUALITY = 80
OPEN_EPISODES = 6
"""So many episodes are unfolded when the page opens."""


@dataclass(frozen=True)
class _Map:
    """A scene's map, drawn once and shown in each of its episodes."""

    id: str
    box: drawing.Box
    paths: Markup
    rooms: Markup


@dataclass(frozen=True)
class _Strip:
    label: str
    contact: bool
    uri: str


@dataclass(frozen=True)
class _Row:
    """One episode of the page; ``view`` and ``map`` are None if its log shows nothing."""

    id: str
    score: EpisodeScore
    view: EpisodeView | None
    map: _Map | None
    overlay: Markup
    plot: Markup
    strip: list[_Strip]


def write_report(
    paths: Sequence[Path], out: Path, on_drawn: Callable[[Path], None] | None = None, rules: Rules | None = None
) -> None:
    """Write the page.

    Args:
        paths: logs, whole or torn; what cannot be scored is shown as far as it goes, with the reason.
        on_drawn: called after each log, for progress.

    Raises:
        RecordingError: ``out`` cannot be written.
    """
    maps: dict[str, _Map] = {}
    rows = []
    for index, path in enumerate(paths):
        rows.append(_row(index, path, maps, rules))
        if on_drawn is not None:
            on_drawn(path)
    scores = [row.score for row in rows]
    groups = summarise(scores)
    environment = Environment(
        loader=PackageLoader("robot_runtime.scoring"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    page = environment.get_template("report.html").render(
        rows=rows,
        maps=list(maps.values()),
        groups=groups,
        unscored=[unscored_line(score) for score in scores if not score.scorable],
        columns={name: column for name, column in COLUMNS.items() if any(name in group.intervals for group in groups)},
        cell=cell,
        episode_cell=episode_cell,
        interval_text=interval_text,
        confidence=CONFIDENCE,
        created=utc_now_iso(),
        scorer=SCORER_VERSION,
        open_episodes=OPEN_EPISODES,
    )
    try:
        out.write_text(page, encoding="utf-8")
    except OSError as error:
        raise RecordingError(f"{out}: cannot be written: {error.strerror}", "give another file with --out") from error


def _row(index: int, path: Path, maps: dict[str, _Map], rules: Rules | None) -> _Row:
    score, view = load_view(path, rules)
    if view is None:
        return _Row(f"e{index}", score, None, None, Markup(""), Markup(""), [])
    scene = view.header.scene
    if scene.digest not in maps:
        maps[scene.digest] = _draw_map(f"map{len(maps)}", scene)
    drawn = maps[scene.digest]
    return _Row(
        id=f"e{index}",
        score=score,
        view=view,
        map=drawn,
        overlay=drawing.episode_overlay(view, drawn.box),
        plot=drawing.distance_plot(view),
        strip=[_Strip(f"{f.index} · {f.label}", f.contact, jpeg_uri(f.rgb)) for f in view.keyframes],
    )


def _draw_map(name: str, scene: Scene) -> _Map:
    box = drawing.map_box(scene.map)
    return _Map(name, box, drawing.map_paths(scene.map) + drawing.object_shapes(scene), drawing.room_labels(scene, box))


def jpeg_uri(rgb: NDArray[np.uint8], width: int = THUMBNAIL_WIDTH) -> str:
    """A small JPEG of an image as a data URI."""
    if rgb.shape[1] > width:
        height = max(1, round(rgb.shape[0] * width / rgb.shape[1]))
        rgb = np.asarray(cv2.resize(rgb, (width, height), interpolation=cv2.INTER_AREA), np.uint8)
    _, jpeg = cv2.imencode(".jpg", cv2.cvtColor(rgb, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])
    return "data:image/jpeg;base64," + base64.b64encode(jpeg.tobytes()).decode()
