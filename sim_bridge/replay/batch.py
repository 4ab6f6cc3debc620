"""Many logs: their pages, their JSON files and an index, whoever does the work."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from robot_runtime.common import config
from robot_runtime.errors import RuntimeFault
from robot_runtime.parallel.map import Workers, map_in_order
from robot_runtime.parallel.result_journal import ResultJournal, file_key
from robot_runtime.parallel.workers import WorkerLoss
from robot_runtime.recording import json_records
from robot_runtime.records import StepRecord
from robot_runtime.robots.loader import read_robot_file
from sim_bridge.replay import summary_table
from sim_bridge.replay.backends.mujoco import RECORDED
from sim_bridge.replay.log_replay import replay_log
from sim_bridge.replay.options import ADAPTERS, ReplayOptions
from sim_bridge.replay.page.page import make_folder, render, write_page, write_text
from sim_bridge.replay.page.thumbnails import Gallery
from sim_bridge.replay.resource_cache import Kept
from sim_bridge.replay.results import SCHEMA, write_replay
from sim_bridge.replay.summary import Line, line_of

CHUNK = 4
"""Logs that a worker gets at once: a replay takes seconds, so few keep all workers busy."""

LEDGER = "replays.jsonl"

LIMIT_S = 600.0
"""For one log, in a process of its own."""


@dataclass(frozen=True)
class Job:
    """One log, and the name that it has in the folder of results."""

    path: Path
    name: str


def named(paths: Sequence[Path]) -> list[Job]:
    """Logs with names that tell them apart: the file's, with as many of its folders as that takes."""
    jobs = []
    resolved = [path.resolve() for path in paths]
    for path, whole in zip(paths, resolved, strict=True):
        parts = [*whole.parts[1:-1], whole.stem]
        depth = 1
        while depth < len(parts) and sum(_tail(other, depth) == _tail(whole, depth) for other in resolved) > 1:
            depth += 1
        jobs.append(Job(path, "-".join(parts[-depth:])))
    return jobs


def _tail(path: Path, depth: int) -> tuple[str, ...]:
    return (*path.parts[1:-1], path.stem)[-depth:]


def replay_logs(
    jobs: Sequence[Job],
    options: ReplayOptions,
    workers: Workers,
    pages: bool = True,
    overwrite: bool = False,
    on_done: Callable[[Line], None] | None = None,
    on_retry: Callable[[Path, WorkerLoss], None] | None = None,
) -> list[Line]:
    """Replay logs into ``options.out``: NAME.json, and NAME.html where pages are wanted; of several an index.html.

    Of several, a ledger in that folder knows which are finished: the same command goes on where it was ended.

    Args:
        overwrite: begin anew, whatever is finished.
        on_done: called after each log, in their order.
        on_retry: told of a log whose worker was lost, and which is given to another.

    Raises:
        ConfigError: workers cannot be started, no twin is of that name, or the folder is of other settings.
        RecordingError: nothing can be written.
    """
    many = len(jobs) > 1
    work = partial(_replay_each, options=options, pages=pages, many=many)
    lines = []
    with ExitStack() as stack:
        ledger = stack.enter_context(_ledger(options, pages, overwrite)) if many else None
        reads = partial(_needed, out=options.out)
        again = None if on_retry is None else partial(_again, on_retry)
        results = map_in_order(
            work, jobs, workers, _lost, CHUNK, LIMIT_S, on_retry=again, required_paths=reads, journal=ledger
        )
        for line in results:
            lines.append(line)
            if on_done is not None:
                on_done(line)
    if many and pages:
        write_text(options.out / "index.html", _index(lines, options))
    return lines


def _ledger(options: ReplayOptions, pages: bool, overwrite: bool) -> ResultJournal[Job, Line]:
    make_folder(options.out)
    settings = {**json_records.plain(options), "pages": pages, "schema": SCHEMA}
    del settings["out"]
    if options.into not in (RECORDED, *ADAPTERS):
        # What the name stands for: the file of a fitted robot is written anew with every fit.
        robot = json.dumps(json_records.plain(read_robot_file(options.into)[1]), sort_keys=True)
        settings["robot"] = hashlib.sha256(robot.encode()).hexdigest()[:12]
    return ResultJournal(options.out / LEDGER, settings, _key, _encode, _decode, overwrite)


def _key(job: Job) -> str:
    return f"{job.name} {file_key(job.path)}"


def _encode(line: Line) -> object:
    return json_records.plain(line) if not line.reason else None


def _decode(document: object) -> Line:
    return config.parse(document, Line, LEDGER)


def _needed(job: Job, out: Path) -> list[Path]:
    return [job.path, out]


def write_lines(path: Path, lines: Sequence[Line], options: ReplayOptions) -> None:
    """A JSON file with a row per log. Raises ``RecordingError``."""
    document = {"schema": SCHEMA, "into": options.into, "replays": [json_records.plain(line) for line in lines]}
    write_text(path, json.dumps(document, indent=1, allow_nan=False) + "\n")


def _replay_each(jobs: Iterator[Job], options: ReplayOptions, pages: bool, many: bool) -> Iterator[Line]:
    """A worker's share: twins and policies are kept from log to log."""
    with Kept(options) as kept:
        for job in jobs:
            yield _replay(job, options, kept, pages, many)


def _replay(job: Job, options: ReplayOptions, kept: Kept, pages: bool, many: bool) -> Line:
    galleries: list[Gallery] = []

    def watch(records: Sequence[StepRecord]) -> Gallery:
        galleries.append(Gallery([record.index for record in records]))
        return galleries[-1]

    try:
        replay = replay_log(job.path, options, kept, job.name, watch if pages else None)
    except RuntimeFault as error:
        return Line(str(job.path), job.name, error.message)
    write_replay(options.out / f"{job.name}.json", replay)
    if pages:
        write_page(options.out / f"{job.name}.html", replay, galleries[0] if galleries else None, many)
    return line_of(replay, job.name)


def _again(on_retry: Callable[[Path, WorkerLoss], None], job: Job, how: WorkerLoss) -> None:
    on_retry(job.path, how)


def _lost(job: Job, how: WorkerLoss) -> Line:
    what = f"took more than {LIMIT_S:g} s" if how == "hung" else "ended the process that replayed it"
    return Line(str(job.path), job.name, f"it {what}")


def _index(lines: Sequence[Line], options: ReplayOptions) -> str:
    replayed = [line for line in lines if not line.reason]
    return render(
        "replays.html",
        maps={},
        into=options.into,
        headings=summary_table.HEADINGS,
        medians=summary_table.medians(replayed),
        replayed=[(line, summary_table.cells(line)) for line in replayed],
        lost=[line for line in lines if line.reason],
    )
