"""``robot-runtime gap``: comparison of simulated with real episodes. ``sim_bridge`` adds ``gap tune``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from robot_runtime.cli_options import options
from robot_runtime.cli_options.option_groups import grouped_options


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the command."""
    groups["gap"].command("compare")(compare)


@grouped_options
def compare(
    *,
    simulated: Annotated[Path, typer.Argument(help="Logs of simulated episodes, of any number of policies.")],
    real: Annotated[Path, typer.Argument(help="Logs of the same policies and episodes on the robot.")],
    json: Annotated[Path | None, typer.Option(help="Write everything to this file.")] = None,
    picture: Annotated[Path | None, typer.Option(help="Draw the correlation and the differences to this PNG.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page with all of it to this file.")] = None,
    parallel: options.JournalOptions,
) -> None:
    """Compare simulated with real episodes: differences, the correlation over policies (SRCC), why episodes failed.

    Examples:
        robot-runtime gap logs/sim logs/real
        robot-runtime gap logs/sim logs/real --picture gap.png --html gap.html --json gap.json
    """
    from robot_runtime.common.console import console
    from robot_runtime.scoring.cli.score import score_with_progress
    from robot_runtime.scoring.report.terminal_table import noted
    from robot_runtime.scoring.sim_to_real.gap import find_gap, write_gap
    from robot_runtime.scoring.sim_to_real.table import table

    scores = score_with_progress([[simulated], [real]], parallel)
    found = find_gap(*scores)
    console.print(table(found))
    for line in noted([*scores[0], *scores[1]]):
        console.print(line)
    if json is not None:
        write_gap(json, found)
    if picture is not None:
        from robot_runtime.scoring.sim_to_real.plot import write_plot

        write_plot(picture, found)
    if html is not None:
        from robot_runtime.scoring.sim_to_real.page import write_page

        write_page(html, found)
