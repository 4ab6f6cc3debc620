"""``robot-runtime gap``: what simulation foretells of the robot. ``gap tune`` comes with the simulator."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from robot_runtime.cli import options

DEFAULT = "compare"


class GapGroup(TyperGroup):
    """A group in which :data:`DEFAULT` need not be said: ``gap SIM REAL`` is ``gap compare SIM REAL``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] != "--help" and args[0] not in self.commands:
            args = [DEFAULT, *args]
        return super().parse_args(ctx, args)


def group() -> typer.Typer:
    """The group, empty."""
    return typer.Typer(
        cls=GapGroup,
        help="Compare simulation with the robot: `gap SIM REAL`; or find the simulator's settings: `gap tune REAL`.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the command."""
    groups["gap"].command(DEFAULT)(compare)


def compare(
    simulated: Annotated[Path, typer.Argument(help="Logs of simulated episodes, of any number of policies.")],
    real: Annotated[Path, typer.Argument(help="Logs of the same policies and episodes on the robot.")],
    json: Annotated[Path | None, typer.Option(help="Write everything to this file.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the correlation and the differences to this PNG.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page with all of it to this file.")] = None,
    workers: options.Workers = None,
    ray: options.Ray = None,
    ledger: options.Ledger = None,
    overwrite: options.NewLedger = False,
) -> None:
    """Compare simulated with real episodes: differences, the correlation over policies (SRCC), why episodes failed.

    Examples:

        robot-runtime gap logs/sim logs/real

        robot-runtime gap logs/sim logs/real --plot gap.png --html gap.html --json gap.json
    """
    from robot_runtime.cli.score import score_with_progress
    from robot_runtime.common.console import console
    from robot_runtime.scoring.sim_to_real.gap import find_gap, write_gap
    from robot_runtime.scoring.sim_to_real.table import table

    chosen = options.workers_from(workers, ray, None)
    found = find_gap(*score_with_progress([[simulated], [real]], chosen, ledger=ledger, overwrite=overwrite))
    console.print(table(found))
    if json is not None:
        write_gap(json, found)
    if plot is not None:
        from robot_runtime.scoring.sim_to_real.plot import write_plot

        write_plot(plot, found)
    if html is not None:
        from robot_runtime.scoring.sim_to_real.page import write_page

        write_page(html, found)
