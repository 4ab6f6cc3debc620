"""``robot-runtime gap``: comparison of simulated with real episodes. ``sim_bridge`` adds ``gap tune``."""

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
    json: options.Json = None,
    picture: Annotated[Path | None, typer.Option(help="Draw the correlation and the differences to this PNG.")] = None,
    beside: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="LOGS",
            help="Logs of the same policies and episodes in another simulator, shown beside; repeatable.",
        ),
    ] = None,
    by_episode: Annotated[
        bool, typer.Option("--by-episode", help="Add a row per episode: how it ended, and where it first parts.")
    ] = False,
    html: Annotated[Path | None, typer.Option(help="Write a page with all of it to this file.")] = None,
    parallel: options.JournalOptions,
) -> None:
    """Compare simulated with real episodes: differences, the correlation over policies (SRCC), why episodes failed.

    Examples:
        robot-runtime gap logs/sim logs/real
        robot-runtime gap logs/sim logs/real --beside replays/habitat/closed_loop
        robot-runtime gap logs/sim logs/real --picture gap.png --html gap.html --json gap.json
    """
    from robot_runtime.common.console import console
    from robot_runtime.scoring.cli.score import score_with_progress
    from robot_runtime.scoring.report.terminal_table import noted, shown_path
    from robot_runtime.scoring.sim_to_real import side_by_side
    from robot_runtime.scoring.sim_to_real.gap import find_gap, write_gap
    from robot_runtime.scoring.sim_to_real.table import table

    folders = [simulated, *(beside or []), real]
    scores = score_with_progress([[folder] for folder in folders], parallel)
    found = find_gap(scores[0], scores[-1])
    console.print(table(found))
    worlds = None
    if beside or by_episode:
        worlds = side_by_side.compare_worlds(list(map(shown_path, folders)), scores)
        console.print(side_by_side.table(worlds))
    for line in noted([score for group in scores for score in group]):
        console.print(line)
    if json is not None:
        write_gap(json, found, worlds)
    if picture is not None:
        from robot_runtime.scoring.sim_to_real.plot import write_plot

        write_plot(picture, found)
    if html is not None:
        from robot_runtime.scoring.sim_to_real.plot import write_page

        write_page(html, found, worlds)
