"""Page of all runs below a folder, with filters; it needs no server."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from robot_runtime.common.creating import creating
from robot_runtime.scoring.groups import summarize_groups
from robot_runtime.scoring.report.rendering import render
from robot_runtime.scoring.report.terminal_table import cell, interval_text
from robot_runtime.scoring.summary import EpisodeScore

FILTERS = ("policy", "task", "robot", "scene")
_RESULTS = {".html": "replay or page", ".mp4": "video", ".rrd": "Rerun"}


def run_folders(logs: Sequence[Path]) -> dict[Path, list[Path]]:
    """The logs by the folder that holds them."""
    folders: dict[Path, list[Path]] = {}
    for log in logs:
        folders.setdefault(log.parent, []).append(log)
    return folders


def write_runs(
    root: Path, logs: Sequence[Path], out: Path, write_one: Callable[[Sequence[Path], Path], list[EpisodeScore]]
) -> list[EpisodeScore]:
    """Write ``index.html`` with a row per run and policy, and, by ``write_one``, each run's report in a folder.

    Raises:
        RecordingError: a page cannot be written.
    """
    rows: list[Mapping[str, Any]] = []
    everything: list[EpisodeScore] = []
    for folder, found in run_folders(logs).items():
        name = str(folder.relative_to(root)).replace(os.sep, ".").strip(".") or root.resolve().name
        scores = write_one(found, out / name)
        everything += scores
        links = [("report and map", f"{quote(name)}/index.html")]
        results = [path for path in sorted(folder.rglob("*")) if path.suffix in _RESULTS]
        links += [(f"{_RESULTS[path.suffix]} {path.stem}", quote(os.path.relpath(path, out))) for path in results]
        rows += [{"run": name, "links": links, **row} for row in _rows(scores)]
    rows.sort(key=lambda row: str(row["date"]), reverse=True)
    choices = {name: sorted({row[name] for row in rows}) for name in FILTERS}
    page = out / "index.html"
    with creating(page, "give another place with --out") as draft:
        draft.write_text(render("runs.html", rows=rows, choices=choices), encoding="utf-8")
    return everything


def _rows(scores: Sequence[EpisodeScore]) -> list[dict[str, Any]]:
    dates = [str(score.provenance.get("created", ""))[:16].replace("T", " ") for score in scores]
    return [
        {
            "date": max(dates, default=""),
            "policy": group.agent or "no agent",
            "task": group.task,
            "robot": group.robot,
            "scene": group.scene,
            "episodes": group.episodes,
            "unscored": group.unscored,
            "metrics": [
                (cell(name, interval.mean), interval_text(name, interval)) if interval else ("–", "")
                for name in ("success", "spl")
                for interval in (group.intervals.get(name),)
            ],
        }
        for group in summarize_groups(scores, "none")
    ]
