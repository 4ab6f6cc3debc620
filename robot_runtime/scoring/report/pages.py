"""Report of logs as self-contained web pages, for light and dark mode and for phones.

Few logs make one page; many make a folder with an index and a page per episode. Worker processes render one log at a
time and return its score, so that the memory needed does not grow with the images of thousands of logs.
"""

import base64
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import cv2
import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from robot_runtime.common.creating import creating
from robot_runtime.errors import ConfigError
from robot_runtime.metrics.settings import Rules
from robot_runtime.parallel.map import LIMIT_S, ONE, Workers, map_in_order
from robot_runtime.parallel.workers import WorkerLoss
from robot_runtime.scenes.scene import Scene
from robot_runtime.scoring.reference_poses import check_rule
from robot_runtime.scoring.report import episode_charts, map_drawing
from robot_runtime.scoring.report.episode_data import EpisodeData, load_episode_data
from robot_runtime.scoring.report.index_page import index_context
from robot_runtime.scoring.report.panels import ReportPanels, outcome, panels_of
from robot_runtime.scoring.report.rendering import render
from robot_runtime.scoring.report.terminal_table import columns, episode_cell
from robot_runtime.scoring.summary import ALONE, Cluster, EpisodeScore, Maps, lost_score

MOST_ON_ONE_PAGE = 100
THUMBNAIL_WIDTH = 320
JPEG_QUALITY = 80
OPEN_EPISODES = 6
"""Episodes that are unfolded when a single page opens."""

PAGES = "episodes"
"""Folder of the episodes' pages, next to the index."""


@dataclass(frozen=True)
class _Job:
    """One log, its number and the number of logs, for links between their pages."""

    index: int
    path: Path
    count: int


@dataclass(frozen=True)
class _RenderedEpisode:
    """Result for one log. fragment: its part of a single page, with the map that it refers to."""

    score: EpisodeScore
    category: str = ""
    fragment: str = ""
    map_id: str = ""
    map: str = ""


@dataclass(frozen=True)
class _StripImage:
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
    by: Sequence[str] = (),
) -> list[EpisodeScore]:
    """Write the page ``out``, or, if its name does not end in ``.html``, a folder with ``index.html``.

    Args:
        paths: logs, complete or truncated; those without a score are shown as far as they go, with the reason.
        out: page or folder.
        on_drawn: callback, called after each log, for progress.
        rules: rules of the scores.
        cluster: unit of the intervals.
        workers: processes to use, see :func:`robot_runtime.parallel.map.map_in_order`.
        limit_s: time limit for a log.
        on_retry: callback, called for a log whose worker was lost, before it is given to another.
        by: facets by which groups are divided.

    Returns:
        The scores, one per log.

    Raises:
        ConfigError: there are too many logs for one page, no episode has one of the facets, or
            the rules need something that is not installed.
        RecordingError: a page cannot be written.
    """
    single = out.suffix == ".html"
    if single and len(paths) > MOST_ON_ONE_PAGE:
        raise ConfigError(
            f"{out}: {len(paths)} episodes are too many for one page, which takes {MOST_ON_ONE_PAGE}",
            f"name a folder: --out {out.with_suffix('')}",
        )
    check_rule((rules or Rules()).referee)
    jobs = [_Job(index, path, len(paths)) for index, path in enumerate(paths)]
    with creating(out, "give another place with --out") as draft:
        page = draft if single else draft / "index.html"
        folder = None if single else draft / PAGES
        draw, reads = partial(_draw, folder=folder, rules=rules), partial(_required_paths, folder=folder)
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile("w+", encoding="utf-8") as fragments:
            drawn: list[_RenderedEpisode] = []
            maps: dict[str, Markup] = {}
            again = None if on_retry is None else lambda job, how: on_retry(job.path, how)
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
            context = index_context(scores, [one.category for one in drawn], cluster, by)
            link = "#e{}" if single else PAGES + "/{}.html"
            head, tail = render("index.html", **context, link=link, maps=maps, single=single).split("<!-- episodes -->")
            with page.open("w", encoding="utf-8") as file:
                file.write(head)
                fragments.seek(0)
                shutil.copyfileobj(fragments, file)
                file.write(tail)
    return scores


def _required_paths(job: _Job, folder: Path | None) -> list[Path]:
    return [job.path] if folder is None else [job.path, folder]


def _lost(job: _Job, how: WorkerLoss) -> _RenderedEpisode:
    return _RenderedEpisode(lost_score(job.path, how))


def _draw(jobs: Iterable[_Job], folder: Path | None, rules: Rules | None) -> Iterator[_RenderedEpisode]:
    """Render logs into their own pages or, without a folder, as parts of one."""
    maps = Maps()
    drawings: dict[str, _Map] = {}
    for job in jobs:
        score, data = load_episode_data(job.path, rules, maps)
        subject, body, drawn = "", Markup(""), None
        if data is not None:
            scene = data.header.scene
            if scene.digest not in drawings:
                drawings = {scene.digest: _Map.of(scene)}  # one at a time: episodes of a scene follow each other
            drawn = drawings[scene.digest]
            panels = panels_of(data.header.task.kind)(data)
            subject, body = panels.subject(), Markup(render("episode.html", **_episode_context(data, panels, drawn)))
        facts = {"job": job, "score": score, "data": data, "body": body, "outcome": outcome, "subject": subject}
        if folder is not None:
            own = {} if drawn is None else {drawn.id: drawn.shapes}
            (folder / f"{job.index}.html").write_text(render("page.html", **facts, maps=own), encoding="utf-8")
            yield _RenderedEpisode(score, subject)
        elif drawn is None:
            yield _RenderedEpisode(score)
        else:
            part = render("fragment.html", **facts, open=OPEN_EPISODES)
            yield _RenderedEpisode(score, subject, part, drawn.id, drawn.shapes)


@dataclass(frozen=True)
class _Map:
    """Drawing of a scene's map, which all its episodes share."""

    id: str
    box: map_drawing.Box
    shapes: Markup

    @classmethod
    def of(cls, scene: Scene) -> "_Map":
        return cls(f"map-{scene.digest[:12]}", map_drawing.map_box(scene.map), map_drawing.scene_shapes(scene))


def _episode_context(data: EpisodeData, panels: ReportPanels, drawn: _Map) -> dict[str, object]:
    unit = map_drawing.unit_of(drawn.box)
    marks, goals, route = panels.marks(unit), panels.goals(unit), panels.route(unit)
    return {
        "data": data,
        "panels": panels,
        "criteria": panels.criteria(),
        "map": drawn,
        "overlay": marks.shapes + goals.shapes + route.shapes + map_drawing.run_shapes(data, unit),
        "legend": (*route.legend, *marks.legend, *goals.legend),
        "plots": (*panels.plots(), episode_charts.pose_plot(data)),
        "strip": [_StripImage(f"{f.index} · {f.label}", f.contact, jpeg_uri(f.rgb)) for f in data.keyframes],
        "metrics": [
            (metric.episode_title, episode_cell(metric.name, data.score.metrics[metric.name]))
            for metric in columns(data.score.metrics, summary=False)
            if data.score.metrics.get(metric.name) is not None
            and not metric.name.startswith("criterion_")
            and metric.name != "success"
        ],
    }


def jpeg_uri(rgb: NDArray[np.uint8], width: int = THUMBNAIL_WIDTH) -> str:
    """A small JPEG of an image as a data URI."""
    if rgb.shape[1] > width:
        height = max(1, round(rgb.shape[0] * width / rgb.shape[1]))
        rgb = np.asarray(cv2.resize(rgb, (width, height), interpolation=cv2.INTER_AREA), np.uint8)
    _, jpeg = cv2.imencode(".jpg", cv2.cvtColor(rgb, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])
    return "data:image/jpeg;base64," + base64.b64encode(jpeg.tobytes()).decode()
