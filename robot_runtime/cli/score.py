"""``robot-runtime score``: metrics from logs alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

if TYPE_CHECKING:
    from robot_runtime.scoring.summary import EpisodeScore


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the command."""
    groups["root"].command("score")(score)


def score(
    logs: Annotated[list[Path], typer.Argument(help="Log files, or folders of them.")],
    json: Annotated[Path | None, typer.Option(help="Write scores, choices and versions to this file.")] = None,
) -> None:
    """Score logs: success, SPL, SoftSPL, distance to goal, collisions and steps, with bootstrap intervals.

    Examples:

        robot-runtime score logs/

        robot-runtime score logs/0000_apartment_3.mcap --json scores.json
    """
    from robot_runtime.cli.console import console
    from robot_runtime.scoring.summary import write_json

    scores = print_scores(logs, console)
    if json is not None:
        write_json(json, scores)
    if scores and not any(episode.scorable for episode in scores):
        raise typer.Exit(1)


def print_scores(logs: Sequence[Path], console: Console) -> list[EpisodeScore]:
    """Score, print the table, and return the scores."""
    from robot_runtime.cli.console import progress_bar
    from robot_runtime.scoring.summary import find_logs, score_logs
    from robot_runtime.scoring.table import table

    paths = find_logs(logs)
    with progress_bar() as progress:
        bar = progress.add_task("scoring", total=len(paths), note="")
        scores = score_logs(paths, on_scored=lambda _: progress.advance(bar))
    console.print(table(scores))
    return scores
