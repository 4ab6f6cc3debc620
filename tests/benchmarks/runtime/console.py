"""``bench console``: time from STOP to resting wheels, cost of pages and of logs."""

from __future__ import annotations

from typing import Annotated

import typer

from tests.benchmarks.report import JsonFile, report

KOBUKI_PRESSES = 30


def console(
    presses: Annotated[int, typer.Option(min=2, help="Number of presses of STOP.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the times of the presses.")] = 0,
    log_s: Annotated[float, typer.Option("--log-s", min=1, help="Duration of each recording.")] = 20.0,
    memory_min: Annotated[
        float, typer.Option("--memory-min", min=0.5, help="Minutes of the session whose memory is measured.")
    ] = 4.0,
    json: JsonFile = None,
) -> None:
    """Measure STOP from the press to resting wheels under load, a lost page, the cost of pages, and of logs."""
    from robot_runtime.common.console import console as terminal
    from tests.benchmarks.ros_locobot import rosbag_rows
    from tests.benchmarks.runtime.console_floods import flood_rows, kobuki_rows, memory_row
    from tests.benchmarks.runtime.console_logs import log_row
    from tests.benchmarks.runtime.console_rows import cost_rows, stop_rows

    rows = [
        *stop_rows(presses, seed),
        *kobuki_rows(min(presses, KOBUKI_PRESSES)),
        *flood_rows(),
        *cost_rows(),
        memory_row(memory_min),
        log_row(log_s),
        *rosbag_rows.rows(log_s),
    ]
    report("console", rows, json, terminal)
