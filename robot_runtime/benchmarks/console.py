"""``robot-runtime bench console``: time from STOP to resting wheels, cost of pages and of logs."""

from __future__ import annotations

from importlib import metadata
from typing import Annotated

import typer

from robot_runtime.benchmarks.report import JsonFile, report

ROW_ENTRY_POINTS = "robot_runtime.console_bench"
"""Entry points of further rows: functions of seconds that return a list of rows."""


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the command."""
    groups["bench"].command("console")(console)


def console(
    presses: Annotated[int, typer.Option(min=2, help="Of STOP.")] = 400,
    seed: Annotated[int, typer.Option(min=0, help="Of the times of the presses.")] = 0,
    log_s: Annotated[float, typer.Option("--log-s", min=1, help="Duration of each recording.")] = 20.0,
    json: JsonFile = None,
) -> None:
    """Measure STOP from the press to resting wheels under load, a lost page, the cost of pages, and of logs.

    Examples:
        robot-runtime bench console
        robot-runtime bench console --presses 50 --json bench_console.json
    """
    from robot_runtime.benchmarks.console_logs import log_row
    from robot_runtime.benchmarks.console_rows import cost_rows, stop_rows
    from robot_runtime.common.console import console as terminal

    rows = [*stop_rows(presses, seed), *cost_rows(), log_row(log_s)]
    for entry_point in metadata.entry_points(group=ROW_ENTRY_POINTS):
        rows += entry_point.load()(log_s)
    report("console", rows, json, terminal)
