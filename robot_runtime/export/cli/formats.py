"""The group ``robot-runtime export``: logs in the formats of other software. Other packages add further formats."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from robot_runtime.cli_options.options import Logs
from robot_runtime.common.console import progress_bar, say
from robot_runtime.errors import ConfigError, RecordingError

if TYPE_CHECKING:
    from robot_runtime.recording.reader import LogReader


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the commands."""
    groups["export"].command("steps")(steps)
    groups["export"].command("video")(video)
    groups["export"].command("lerobot")(lerobot)


def steps(logs: Logs, out: Annotated[Path, typer.Option(help="The table to write, NAME.csv or NAME.parquet.")]) -> None:
    """Write a table with a row per step: action, result, poses, battery, times.

    Examples:
        robot-runtime export steps logs/run --out steps.csv
        robot-runtime export steps logs/run --out steps.parquet
    """
    from robot_runtime.export.steps import rows, write_csv, write_parquet
    from robot_runtime.recording.log_files import find_logs
    from robot_runtime.recording.reader import LogReader

    writers = {".csv": write_csv, ".parquet": write_parquet}
    if out.suffix not in writers:
        raise ConfigError(f"--out {out} is not a table", f"name a file that ends in {' or '.join(writers)}")

    def table(path: Path) -> list[dict[str, object]]:
        with LogReader(path) as log:
            return list(rows(log))

    paths = find_logs(logs)
    count = writers[out.suffix](out, map(table, paths))
    say(f"{out}: {count} steps of {len(paths)} logs")


def video(
    logs: Logs,
    out: Annotated[Path, typer.Option(help="The video to write, NAME.mp4; else a folder, with one for each log.")],
    fps: Annotated[float, typer.Option(min=0.1, max=60, help="Steps per second.")] = 4.0,
) -> None:
    """Write MP4 videos: color, depth and map of each step, with its action and result.

    Examples:
        robot-runtime export video logs/run/0000_apartment_0.mcap --out episode.mp4
        robot-runtime export video logs/run --out videos --fps 8
    """
    from robot_runtime.export.video import write_video

    write_each(logs, out, ".mp4", lambda log, target, on_step: write_video(log, target, fps, on_step))


def lerobot(
    logs: Logs,
    out: Annotated[Path, typer.Option(help="Folder of the data set; must not exist.")],
    depth: Annotated[bool, typer.Option(help="Include depth, in meters.")] = True,
) -> None:
    """Write a LeRobot data set (v3.0): an episode per log, a frame per decision.

    Example:
        robot-runtime export lerobot logs/run --out dataset
    """
    from robot_runtime.export.lerobot import write_dataset
    from robot_runtime.recording.log_files import find_logs

    paths = find_logs(logs)
    with progress_bar() as progress:
        bar = progress.add_task(out.name, total=len(paths), note="logs")
        frames = write_dataset(paths, out, depth, lambda: progress.advance(bar))
    say(f"{out}: {frames} frames of {len(paths)} logs")


def write_each(
    logs: list[Path], out: Path, suffix: str, write: Callable[[LogReader, Path, Callable[[], None]], int]
) -> None:
    """Write a file for each log, and say so; a log that cannot be written is named, and the others are written.

    Args:
        logs: log files, or folders of them.
        out: the file, for one log; else the folder.
        suffix: suffix of the files; empty for folders, of which each log has its own.
        write: writes one log to one file; called with both, and with a function to call after every step.

    Raises:
        ConfigError: one file for several logs.
        RecordingError: the only log cannot be written.
        Exit: none of several could be written.
    """
    from robot_runtime.common.creating import creating
    from robot_runtime.recording.log_files import find_logs
    from robot_runtime.recording.reader import LogReader

    paths, one = find_logs(logs), bool(suffix) and out.suffix == suffix
    if one and len(paths) > 1:
        raise ConfigError(f"--out {out} is one {suffix} file for {len(paths)} logs", "name a folder")
    written = 0
    with nullcontext(out) if one else creating(out) as draft:
        if not one:
            draft.mkdir(exist_ok=True)
        for path in paths:
            target = draft if one else draft / f"{path.stem}{suffix}"
            try:
                with LogReader(path) as log, progress_bar() as progress:
                    total = None if log.end is None else log.end.steps + 1
                    bar = progress.add_task(path.stem, total=total, note="steps")
                    count = write(log, target, partial(progress.advance, bar))
                line = f"{out if one else out / target.name}: {count} steps"
                written += 1
            except RecordingError as error:
                if len(paths) == 1:
                    raise
                line = f"not exported: {error.message}"
            say(line)
        if not written:
            raise typer.Exit(1)
