"""``robot-runtime score``: metrics from logs alone."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from robot_runtime.cli import options
from robot_runtime.errors import ConfigError

if TYPE_CHECKING:
    from robot_runtime.metrics.settings import Rules
    from robot_runtime.parallel.map import Workers
    from robot_runtime.scoring.summary import EpisodeScore


class ClusterBy(str, Enum):
    """What an interval's bootstrap draws, see :data:`robot_runtime.scoring.summary.Cluster`."""

    NONE = "none"
    SCENE = "scene"
    TRAJECTORY = "trajectory"


class Challenge(str, Enum):
    """Whose format a submission has."""

    ROBOTHOR = "robothor"
    HABITAT = "habitat"


class Referee(str, Enum):
    """Whose poses count, see :class:`robot_runtime.metrics.settings.Rules`."""

    LOGGED = "logged"
    SMOOTHED = "smoothed"


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the command."""
    groups["root"].command("score")(score)


def score(
    logs: Annotated[list[Path] | None, typer.Argument(help="Log files, or folders of them.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write scores, choices and versions to this file.")] = None,
    parquet: Annotated[Path | None, typer.Option(help="Write a row per log to this file; needs [parquet].")] = None,
    workers: options.Workers = None,
    ray: options.Ray = None,
    ledger: options.Ledger = None,
    overwrite: options.NewLedger = False,
    submission: Annotated[
        Challenge | None, typer.Option(help="Write what this challenge takes to --out: metrics.json.gz, or means.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="File for --submission.")] = None,
    split: Annotated[str | None, typer.Option(help="For --submission, of logs that name no dataset.")] = None,
    cluster: Annotated[
        ClusterBy,
        typer.Option(help="Intervals over episodes; or over scenes, for a claim about other scenes; or trajectories."),
    ] = ClusterBy.NONE,
    limit_s: Annotated[
        float | None, typer.Option(min=1, help="Seconds for one log, with several processes. Default: 300.")
    ] = None,
    referee: Annotated[
        Referee, typer.Option(help="By the referee's poses as logged, or smoothed after the run; needs [smoother].")
    ] = Referee.LOGGED,
    ignore_evidence: Annotated[
        bool, typer.Option("--ignore-evidence", help="Score as if nobody had added a verdict or object poses.")
    ] = False,
    cases: Annotated[
        Path | None, typer.Option(help="Check the metrics against a file of worked cases, instead of scoring logs.")
    ] = None,
) -> None:
    """Score logs: success, SPL, SoftSPL, distance to goal, collisions and steps, with intervals.

    Examples:

        robot-runtime score logs/

        robot-runtime score logs/ --json scores.json --parquet scores.parquet

        robot-runtime score logs/ --cluster scene

        robot-runtime score /mnt/logs --ledger scores.jsonl --ray 10.0.0.5:6379

        robot-runtime score logs/ --referee smoothed

        robot-runtime score logs/ --submission robothor --out metrics.json.gz

        robot-runtime score --cases metrics_cases.json
    """
    if (cases is None) == (not logs):
        raise ConfigError("score needs either logs or --cases FILE", "name log files or folders, or a file of cases")
    if cases is not None:
        _check_cases(cases)
        return
    if (submission is None) != (out is None):
        raise ConfigError("--submission and --out go together", "give both: which challenge, and the file to write")
    from robot_runtime.common.console import console
    from robot_runtime.metrics.settings import Rules
    from robot_runtime.scoring.report.export import write_json, write_parquet
    from robot_runtime.scoring.report.terminal_table import table

    rules = Rules(referee=referee.value, evidence="ignore" if ignore_evidence else "use")
    (scores,) = score_with_progress(
        [logs or []], options.workers_from(workers, ray, None), rules, limit_s, ledger, overwrite
    )
    console.print(table(scores, cluster.value))
    if json is not None:
        write_json(json, scores, cluster.value)
    if parquet is not None:
        write_parquet(parquet, scores)
    if not any(episode.scorable for episode in scores):
        raise typer.Exit(1)
    if submission is not None and out is not None:
        _submit(submission, out, scores, split)


def _submit(challenge: Challenge, out: Path, scores: Sequence[EpisodeScore], split: str | None) -> None:
    from robot_runtime.common.console import console, progress_bar
    from robot_runtime.scoring.report.submission import habitat_lines, habitat_result, write_habitat, write_robothor

    scored = sum(score.scorable for score in scores)
    if challenge is Challenge.HABITAT:
        write_habitat(out, scores)
        console.print(habitat_lines(habitat_result(scores)), end="", soft_wrap=True, markup=False)
    else:
        with progress_bar() as progress:
            bar = progress.add_task("writing", total=scored, note="")
            write_robothor(out, scores, split, on_written=lambda _: progress.advance(bar))
    left_out = f"; {len(scores) - scored} logs without a score are not in it" if scored < len(scores) else ""
    console.print(f"{challenge.value} submission of {scored} episodes: {out}{left_out}", soft_wrap=True, markup=False)


def print_scores(logs: Sequence[Path], console: Console) -> list[EpisodeScore]:
    """Score, print the table, and return the scores."""
    from robot_runtime.scoring.report.terminal_table import table

    (scores,) = score_with_progress([logs], options.workers_from(None, None, None))
    console.print(table(scores))
    return scores


def score_with_progress(
    groups: Sequence[Sequence[Path]],
    workers: Workers,
    rules: Rules | None = None,
    limit_s: float | None = None,
    ledger: Path | None = None,
    overwrite: bool = False,
) -> list[list[EpisodeScore]]:
    """The scores of several groups of logs, under one progress bar. ledger, overwrite: the options of that name."""
    from robot_runtime.common.console import error_console, print_retry, progress_bar
    from robot_runtime.metrics.settings import Rules
    from robot_runtime.parallel.map import LIMIT_S
    from robot_runtime.scoring.score_ledger import score_ledger
    from robot_runtime.scoring.summary import find_logs, score_logs

    paths = [find_logs(logs) for logs in groups]
    everything = [path for group in paths for path in group]
    with ExitStack() as stack:
        kept = None
        if ledger is not None:
            kept = stack.enter_context(score_ledger(ledger, rules or Rules(), overwrite))
            error_console.print(options.resumed(kept, everything), soft_wrap=True, markup=False)
        progress = stack.enter_context(progress_bar())
        bar = progress.add_task("scoring", total=len(everything), note="")
        scored = score_logs(
            everything, rules, lambda _: progress.advance(bar), workers, limit_s or LIMIT_S, kept, print_retry
        )
    scores = iter(scored)
    return [[next(scores) for _ in group] for group in paths]


def _check_cases(path: Path) -> None:
    from robot_runtime.common.console import console
    from robot_runtime.scoring.cases import run_cases, table

    report = run_cases(path)
    console.print(table(report))
    if not report.passed:
        raise typer.Exit(1)
