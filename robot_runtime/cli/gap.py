"""``robot-runtime gap``: what simulation foretells of the robot."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from robot_runtime.cli import options


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the command."""
    groups["root"].command("gap")(gap)


def gap(
    simulated: Annotated[Path, typer.Argument(help="Logs of simulated episodes, of any number of policies.")],
    real: Annotated[Path, typer.Argument(help="Logs of the same policies and episodes on the robot.")],
    json: Annotated[Path | None, typer.Option(help="Write everything to this file.")] = None,
    workers: options.Workers = None,
    ray: options.Ray = None,
) -> None:
    """Compare simulated with real episodes: differences, the correlation over policies (SRCC), why episodes failed.

    Examples:

        robot-runtime gap logs/sim logs/real

        robot-runtime gap logs/sim logs/real --json gap.json
    """
    from robot_runtime.cli.console import console
    from robot_runtime.cli.score import score_with_progress
    from robot_runtime.scoring.gap import find_gap, write_gap
    from robot_runtime.scoring.gap_table import table

    found = find_gap(*score_with_progress([[simulated], [real]], options.workers_from(workers, ray, None)))
    console.print(table(found))
    if json is not None:
        write_gap(json, found)
