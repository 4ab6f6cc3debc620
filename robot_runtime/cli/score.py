"""``robot-runtime score``: metrics from logs alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from robot_runtime.errors import ConfigError

if TYPE_CHECKING:
    from robot_runtime.scoring.summary import EpisodeScore


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the command."""
    groups["root"].command("score")(score)


def score(
    logs: Annotated[list[Path] | None, typer.Argument(help="Log files, or folders of them.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write scores, choices and versions to this file.")] = None,
    parquet: Annotated[Path | None, typer.Option(help="Write a row per log to this file; needs [parquet].")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes. Default: one per core.")] = None,
    cases: Annotated[
        Path | None, typer.Option(help="Check the metrics against a file of worked cases, instead of scoring logs.")
    ] = None,
) -> None:
    """Score logs: success, SPL, SoftSPL, distance to goal, collisions and steps, with intervals.

    Examples:

        robot-runtime score logs/

        robot-runtime score logs/ --json scores.json --parquet scores.parquet

        robot-runtime score --cases metrics_cases.json
    """
    if (cases is None) == (not logs):
        raise ConfigError("score needs either logs or --cases FILE", "name log files or folders, or a file of cases")
    if cases is not None:
        _check_cases(cases)
        return
    from robot_runtime.cli.console import console
    from robot_runtime.scoring.results import write_json, write_parquet

    scores = print_scores(logs or [], console, workers)
    if json is not None:
        write_json(json, scores)
    if parquet is not None:
        write_parquet(parquet, scores)
    if not any(episode.scorable for episode in scores):
        raise typer.Exit(1)


def print_scores(logs: Sequence[Path], console: Console, workers: int | None = None) -> list[EpisodeScore]:
    """Score, print the table, and return the scores."""
    from robot_runtime.scoring.table import table

    scores = score_with_progress(logs, workers)
    console.print(table(scores))
    return scores


def score_with_progress(logs: Sequence[Path], workers: int | None = None) -> list[EpisodeScore]:
    """The scores of logs, under a progress bar; with a process per core unless ``workers`` says how many."""
    from robot_runtime.cli.console import progress_bar
    from robot_runtime.scoring.pool import cores
    from robot_runtime.scoring.summary import find_logs, score_logs

    paths = find_logs(logs)
    with progress_bar() as progress:
        bar = progress.add_task("scoring", total=len(paths), note="")
        return score_logs(paths, on_scored=lambda _: progress.advance(bar), workers=workers or cores())


def _check_cases(path: Path) -> None:
    from robot_runtime.cli.console import console
    from robot_runtime.scoring.cases import run_cases, table

    report = run_cases(path)
    console.print(table(report))
    if not report.passed:
        raise typer.Exit(1)
