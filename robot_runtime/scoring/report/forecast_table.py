"""Terminal table of forecasts: power, pairs and robot-hours per difference."""

from collections.abc import Sequence
from statistics import fmean

from rich.console import Group
from rich.table import Table
from rich.text import Text

from robot_runtime.scoring.statistics.planner import CAMPAIGNS, Forecast, WorkTimes


def table(forecasts: Sequence[Forecast], times: WorkTimes, pairs: int, metric: str, max_pairs: int) -> Group:
    """A row per difference, and below it what the forecasts rest on: ``pairs`` pairs of a pilot."""
    rows = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for heading in (f"{metric} B - A", "found", "episodes", "80 % range", "robot-hours", "80 % range"):
        rows.add_column(heading, justify="right", no_wrap=True)
    for one in forecasts:
        low, high = (2 * value for value in one.pairs_range)
        rows.add_row(
            f"{one.difference:+g}",
            f"{100 * one.power:.0f} %",
            f"{2 * one.pairs:.0f}",
            f"{low:.0f} to {high:.0f}",
            f"{one.hours:.1f}",
            f"{one.hours_range[0]:.1f} to {one.hours_range[1]:.1f}",
        )
    battery = f", {100 * times.battery_per_h:.0f} % of the battery per hour" if times.battery_per_h else ""
    repeated = f", {100 * times.repeated:.0f} % repeated" if times.repeated else ""
    basis = (
        f"from the scatter of {pairs} pilot pairs and {CAMPAIGNS:,} simulated campaigns of at most {max_pairs} pairs; "
        f"an episode takes {fmean(times.episode_s):.0f} s, placing {times.placing_s:.0f} s, "
        f"judging {times.judging_s:.0f} s{battery}{repeated}"
    )
    few = "fewer than 200 pilot pairs: these numbers may be off by a quarter" if pairs < 200 else ""
    return Group(rows, Text(basis, style="dim"), *([Text(few, style="yellow")] if few else []))
