"""``robot-runtime bench console``: how soon STOP holds the wheels, and what the console costs."""

from __future__ import annotations

from typing import Annotated

import typer

from robot_runtime.benchmarks.report import JsonFile, report


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the command."""
    groups["bench"].command("console")(console)


def console(
    presses: Annotated[int, typer.Option(min=2, help="Of STOP.")] = 400,
    seed: Annotated[int, typer.Option(min=0, help="Of the times of the presses.")] = 0,
    json: JsonFile = None,
) -> None:
    """Measure STOP from the press to resting wheels under load, a lost page, and the cost of pages.

    Examples:
        robot-runtime bench console
        robot-runtime bench console --presses 50 --json bench_console.json
    """
    from robot_runtime.benchmarks.console_rows import cost_rows, stop_rows
    from robot_runtime.common.console import console as terminal

    report("console", [*stop_rows(presses, seed), *cost_rows()], json, terminal)
