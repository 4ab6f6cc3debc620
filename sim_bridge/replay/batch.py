"""Replay of many logs in several processes: their pages, JSON files and an index."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from robot_runtime.common import config
from robot_runtime.errors import RuntimeFault
from robot_runtime.parallel.map import Workers, map_in_order
from robot_runtime.parallel.result_journal import ResultJournal, file_key
from robot_runtime.parallel.workers import WorkerLoss
from robot_runtime.recording import json_output
from robot_runtime.records import StepRecord
from robot_runtime.robots.loader import read_robot_file
from robot_runtime.scoring.report.rendering import render
from robot_runtime.scoring.sim_to_real.side_by_side import row_name
from sim_bridge.replay import tables
from sim_bridge.replay.backends.mujoco import RECORDED
from sim_bridge.replay.log_replay import ReplayCache, replay_log
from sim_bridge.replay.options import ADAPTERS, ReplayOptions, world_name
from sim_bridge.replay.page.page import make_folder, write_page, write_text
from sim_bridge.replay.page.thumbnails import Gallery
from sim_bridge.replay.results import SCHEMA, write_replay
from sim_bridge.replay.summary import ReplaySummary, summarize_replay

CHUNK = 4
"""Logs that a worker gets at once; few, because a replay takes seconds."""

JOURNAL = "replays.jsonl"

LIMIT_S = 600.0
"""Time limit of a log in a worker process."""


@dataclass(frozen=True)
class Job:
    """One log, and its name in the folder of results."""

    path: Path
    name: str


def named(paths: Sequence[Path]) -> list[Job]:
    """Logs with unique names: the file's, with as many of its folders as needed."""
    jobs = []
    resolved = [path.resolve() for path in paths]
    for path, whole in zip(paths, resolved, strict=True):
        depth, most = 1, len(whole.parts) - 1
        while depth < most and sum(_tail(other, depth) == _tail(whole, depth) for other in resolved) > 1:
            depth += 1
        jobs.append(Job(path, "-".join(_tail(whole, depth))))
    return jobs


def _tail(path: Path, depth: int) -> tuple[str, ...]:
    return (*path.parts[1:-1], path.stem)[-depth:]


def replay_logs(
    jobs: Sequence[Job],
    options: ReplayOptions,
    workers: Workers,
    pages: bool = True,
    overwrite: bool = False,
    on_done: Callable[[ReplaySummary], None] = lambda _: None,
    on_retry: Callable[[Path, WorkerLoss], None] = lambda *_: None,
) -> list[ReplaySummary]:
    """Replay logs into ``options.out``: NAME.json, NAME.html, and for several logs an index.html.

    For several logs, a journal in that folder lists finished ones, so that the same command resumes.

    Args:
        jobs: the logs.
        options: options of all replays.
        workers: processes that replay.
        pages: whether to write HTML.
        overwrite: whether to replay again, even if some logs are finished.
        on_done: function that is called after each log, in order.
        on_retry: function that is called for a log whose worker was lost, before it is given to another.

    Raises:
        ConfigError: workers cannot be started, the simulator is unknown, or the folder has other settings.
        RecordingError: a file cannot be written.
    """
    many = len(jobs) > 1
    work = partial(_replay_each, options=options, pages=pages, many=many)
    summaries = []
    with ExitStack() as stack:
        journal = stack.enter_context(_journal(options, pages, overwrite)) if many else None
        results = map_in_order(
            work,
            jobs,
            workers,
            _lost,
            CHUNK,
            LIMIT_S,
            on_retry=lambda job, how: on_retry(job.path, how),
            required_paths=lambda job: [job.path, options.out],
            journal=journal,
        )
        for summary in results:
            summaries.append(summary)
            on_done(summary)
    if many and pages:
        write_text(options.out / "index.html", _index(summaries, options))
    return summaries


def _journal(options: ReplayOptions, pages: bool, overwrite: bool) -> ResultJournal[Job, ReplaySummary]:
    make_folder(options.out)
    settings = {**json_output.plain(options), "pages": pages, "schema": SCHEMA}
    del settings["out"]
    if options.into not in (RECORDED, *ADAPTERS):
        # The content of the file, because a fit rewrites the file of its robot.
        robot = json.dumps(json_output.plain(read_robot_file(options.into)[1]), sort_keys=True)
        settings["robot"] = hashlib.sha256(robot.encode()).hexdigest()[:12]
    return ResultJournal(
        options.out / JOURNAL,
        settings,
        lambda job: f"{job.name} {file_key(job.path)}",
        lambda summary: None if summary.reason else json_output.plain(summary),
        lambda document: config.parse(document, ReplaySummary, JOURNAL, recorded=True),
        overwrite,
    )


def write_summaries(path: Path, worlds: Mapping[str, Sequence[ReplaySummary]]) -> None:
    """Write a JSON file with an object per log and simulator (``into``). Raises ``RecordingError``."""
    document = {
        "schema": SCHEMA,
        "replays": [{"into": into, **json_output.plain(one)} for into, each in worlds.items() for one in each],
    }
    json_output.write_json(path, document)


def write_comparison(path: Path, worlds: Mapping[str, Sequence[ReplaySummary]]) -> None:
    """Write a page of several simulators side by side, each with a link to its own. Raises ``RecordingError``."""
    pages = {}
    for into, summaries in worlds.items():
        name = "index" if len(summaries) > 1 else summaries[0].name
        if any(not summary.reason for summary in summaries):
            pages[into] = f"{world_name(into)}/{name}.html"
    compared, noted = tables.side_by_side(worlds), tables.world_notes(worlds)
    write_text(path, render("beside.html", "sim_bridge.replay", worlds=compared, pages=pages, notes=noted))


def _replay_each(jobs: Iterator[Job], options: ReplayOptions, pages: bool, many: bool) -> Iterator[ReplaySummary]:
    """Replay a worker's batch with one cache."""
    with ReplayCache(options) as cache:
        for job in jobs:
            yield _replay(job, options, cache, pages, many)


def _replay(job: Job, options: ReplayOptions, cache: ReplayCache, pages: bool, many: bool) -> ReplaySummary:
    gallery: Gallery | None = None

    def on_frames(records: Sequence[StepRecord]) -> Gallery:
        nonlocal gallery
        gallery = Gallery([record.index for record in records])
        return gallery

    try:
        replay = replay_log(job.path, options, cache, job.name, on_frames if pages else None)
    except RuntimeFault as error:
        return ReplaySummary(str(job.path), job.name, error.message)
    write_replay(options.out / f"{job.name}.json", replay)
    if pages:
        write_page(options.out / f"{job.name}.html", replay, gallery, many)
    return summarize_replay(replay, job.name)


def _lost(job: Job, how: WorkerLoss) -> ReplaySummary:
    what = f"took more than {LIMIT_S:g} s" if how == "hung" else "ended the process that replayed it"
    return ReplaySummary(str(job.path), job.name, f"it {what}")


def _index(summaries: Sequence[ReplaySummary], options: ReplayOptions) -> str:
    replayed = [summary for summary in summaries if not summary.reason]
    return render(
        "replays.html",
        "sim_bridge.replay",
        into=options.into,
        headings=tables.HEADINGS,
        medians=tables.medians(replayed),
        replayed=[(summary, row_name(Path(summary.log)), tables.cells(summary)) for summary in replayed],
        failed=[summary for summary in summaries if summary.reason],
    )
