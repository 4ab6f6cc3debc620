"""A report about some logs as web pages: no network, no other file, light and dark, on a phone too.

Few logs make one page; many make a folder with an index and a page per episode. Logs are drawn one at a time by several
processes, and of each only its score is kept, so that a report of thousands takes no more memory than one of ten.
"""

from __future__ import annotations

import base64
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import TextIO

import cv2
import numpy as np
import yaml
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from numpy.typing import NDArray

from robot_runtime.common.clock import utc_now_iso
from robot_runtime.errors import ConfigError, writing
from robot_runtime.metrics.episode_metrics import SCORER_VERSION
from robot_runtime.metrics.reference_poses import check_rule
from robot_runtime.metrics.settings import Rules
from robot_runtime.parallel.map import LIMIT_S, ONE, Workers, map_in_order
from robot_runtime.parallel.workers import WorkerLoss
from robot_runtime.recording.json_records import plain
from robot_runtime.scenes.scene import Scene
from robot_runtime.scoring.report import outcome, svg_map, svg_plots
from robot_runtime.scoring.report.episode_data import EpisodeData, load_episode_data
from robot_runtime.scoring.report.index_page import index_context
from robot_runtime.scoring.report.objects_table import object_changes, objects_overlay
from robot_runtime.scoring.report.svg_trajectories import pose_plot
from robot_runtime.scoring.report.terminal_table import COLUMNS, episode_cell
from robot_runtime.scoring.summary import ALONE, Cluster, EpisodeScore, Maps, lost_score

MOST_ON_ONE_PAGE = 100
THUMBNAIL_WIDTH = 320
JPEG_QUALITY = 80
OPEN_EPISODES = 6
"""So many episodes are unfolded when a single page opens."""

PAGES = "episodes"
"""The folder of the pages of episodes, beside the index."""


@dataclass(frozen=True)
class _Job:
    """One log to be drawn: its number among all, whose pages lead to each other."""

    index: int
    path: Path
    count: int


@dataclass(frozen=True)
class _Drawn:
    """What is kept of a drawn log. fragment: its part of a single page, with the map that it refers to."""

    score: EpisodeScore
    category: str = ""
    fragment: str = ""
    map_id: str = ""
    map: str = ""


@dataclass(frozen=True)
class _Strip:
    label: str
    contact: bool
    uri: str


def write_report(
    paths: Sequence[Path],
    out: Path,
    on_drawn: Callable[[Path], None] | None = None,
    rules: Rules | None = None,
    cluster: Cluster = "none",
    workers: Workers = ONE,
    limit_s: float = LIMIT_S,
    on_retry: Callable[[Path, WorkerLoss], None] | None = None,
) -> list[EpisodeScore]:
    """Write the page ``out``, or, if its name does not end in ``.html``, a folder with ``index.html``.

    Args:
        paths: logs, whole or torn; what cannot be scored is shown as far as it goes, with the reason.
        on_drawn: called after each log, for progress.
        workers, limit_s: see :func:`robot_runtime.parallel.map.map_in_order`.
        on_retry: told of a log whose worker was lost, and which is given to another.

    Returns:
        The scores, a log each.

    Raises:
        ConfigError: too many logs for one page, or something that the rules need is not installed.
        RecordingError: a page cannot be written.
    """
    single = out.suffix == ".html"
    if single and len(paths) > MOST_ON_ONE_PAGE:
        raise ConfigError(
            f"{out}: {len(paths)} episodes are too many for one page, which takes {MOST_ON_ONE_PAGE}",
            f"name a folder: --out {out.with_suffix('')}",
        )
    check_rule((rules or Rules()).referee)
    page = out if single else out / "index.html"
    jobs = [_Job(index, path, len(paths)) for index, path in enumerate(paths)]
    folder = None if single else out / PAGES
    draw, reads = partial(_draw, folder=folder, rules=rules), partial(_needed, folder=folder)
    with writing(page, "give another place with --out"):
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile("w+", encoding="utf-8") as fragments:
            drawn: list[_Drawn] = []
            maps: dict[str, Markup] = {}
            again = None if on_retry is None else partial(_again, on_retry)
            results = map_in_order(
                draw, jobs, workers, _lost, limit_s=limit_s, on_retry=again, required_paths=reads, serial_up_to=ALONE
            )
            for job, result in zip(jobs, results, strict=True):
                fragments.write(result.fragment)
                if result.map_id:
                    maps.setdefault(result.map_id, Markup(result.map))
                drawn.append(replace(result, fragment="", map=""))
                if on_drawn is not None:
                    on_drawn(job.path)
            scores = [one.score for one in drawn]
            context = index_context(scores, [one.category for one in drawn], cluster)
            link = "#e{}" if single else PAGES + "/{}.html"
            head, tail = _page("index.html", **context, link=link, maps=maps, single=single).split("<!-- episodes -->")
            with page.open("w", encoding="utf-8") as file:
                file.write(head)
                _append(file, fragments)
                file.write(tail)
    return scores


def _append(file: TextIO, fragments: TextIO) -> None:
    fragments.seek(0)
    shutil.copyfileobj(fragments, file)


def _needed(job: _Job, folder: Path | None) -> list[Path]:
    return [job.path] if folder is None else [job.path, folder]


def _again(on_retry: Callable[[Path, WorkerLoss], None], job: _Job, how: WorkerLoss) -> None:
    on_retry(job.path, how)


def _lost(job: _Job, how: WorkerLoss) -> _Drawn:
    return _Drawn(lost_score(job.path, how))


def _draw(jobs: Iterable[_Job], folder: Path | None, rules: Rules | None) -> Iterator[_Drawn]:
    """Draw logs: into their own pages, or, without a folder, as parts of one."""
    maps = Maps()
    drawings: dict[str, _Map] = {}
    for job in jobs:
        score, data = load_episode_data(job.path, rules, maps)
        if data is None:
            if folder is not None:
                _write_page(folder, job, score, data, "", None)
            yield _Drawn(score)
            continue
        scene = data.header.scene
        if scene.digest not in drawings:
            drawings = {scene.digest: _draw_map(scene)}  # one at a time: runs of a scene follow each other
        drawn = drawings[scene.digest]
        body = _page("episode.html", **_episode_context(data, drawn))
        category = data.header.episode.category or ""
        if folder is not None:
            _write_page(folder, job, score, data, body, drawn)
            yield _Drawn(score, category)
        else:
            part = _page("fragment.html", job=job, score=score, data=data, body=Markup(body), open=OPEN_EPISODES)
            yield _Drawn(score, category, part, drawn.id, drawn.shapes)


def _write_page(
    folder: Path, job: _Job, score: EpisodeScore, data: EpisodeData | None, body: str, drawn: _Map | None
) -> None:
    maps = {drawn.id: drawn.shapes} if drawn is not None else {}
    text = _page("page.html", job=job, score=score, data=data, body=Markup(body), maps=maps)
    (folder / f"{job.index}.html").write_text(text, encoding="utf-8")


@dataclass(frozen=True)
class _Map:
    """A scene's map, drawn once and shown in each of its episodes."""

    id: str
    box: svg_map.Box
    shapes: Markup


def _draw_map(scene: Scene) -> _Map:
    box = svg_map.map_box(scene.map)
    shapes = svg_map.map_paths(scene.map) + svg_map.object_shapes(scene) + svg_map.room_labels(scene, box)
    return _Map(f"map-{scene.digest[:12]}", box, shapes)


def _episode_context(data: EpisodeData, drawn: _Map) -> dict[str, object]:
    said = {name: pose for one in data.score.evidence for name, pose in one.objects.items()}
    changes = object_changes(data.header, data.records, said, data.verdicts)
    return {
        "data": data,
        "map": drawn,
        "overlay": objects_overlay(changes, svg_map.unit_of(drawn.box)) + svg_map.episode_overlay(data, drawn.box),
        "changes": changes,
        "program": _program(data),
        "plots": [plot for plot in (svg_plots.distance_plot(data), svg_plots.room_plot(data), pose_plot(data)) if plot],
        "criteria": outcome.criteria(data),
        "question_result": outcome.question_result(data),
        "strip": [_Strip(f"{f.index} · {f.label}", f.contact, jpeg_uri(f.rgb)) for f in data.keyframes],
        "metrics": [
            (label if unit == "%" else f"{label} {unit}".strip(), episode_cell(name, data.score.metrics[name]))
            for name, (label, unit, _, _) in COLUMNS.items()
            if data.score.metrics.get(name) is not None and not name.startswith("criterion_") and name != "success"
        ],
    }


def _program(data: EpisodeData) -> str:
    """The evaluation program as its author wrote it; empty if there is none."""
    program = data.header.episode.program
    return yaml.safe_dump(plain(program.to_document()), sort_keys=False) if program is not None else ""


def _page(template: str, **context: object) -> str:
    return _environment().get_template(template).render(
        created=utc_now_iso(), scorer=SCORER_VERSION, outcome=outcome.outcome, **context
    )  # fmt: skip


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("robot_runtime.scoring"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )


def jpeg_uri(rgb: NDArray[np.uint8], width: int = THUMBNAIL_WIDTH) -> str:
    """A small JPEG of an image as a data URI."""
    if rgb.shape[1] > width:
        height = max(1, round(rgb.shape[0] * width / rgb.shape[1]))
        rgb = np.asarray(cv2.resize(rgb, (width, height), interpolation=cv2.INTER_AREA), np.uint8)
    _, jpeg = cv2.imencode(".jpg", cv2.cvtColor(rgb, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])
    return "data:image/jpeg;base64," + base64.b64encode(jpeg.tobytes()).decode()
