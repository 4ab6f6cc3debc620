"""Pilot runs as input of a forecast: paired differences, times and charge of episodes; and the forecasts' table."""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean

from rich.console import Group
from rich.table import Table
from rich.text import Text

from robot_runtime.common.clock import NS_PER_S
from robot_runtime.errors import RecordingError, RuntimeFault
from robot_runtime.recording.reader import LogReader
from robot_runtime.scoring.groups import episode_means
from robot_runtime.scoring.statistics.planner import CAMPAIGNS, Forecast, WorkTimes
from robot_runtime.scoring.summary import EpisodeScore


def paired_differences(a: Iterable[EpisodeScore], b: Iterable[EpisodeScore], metric: str) -> list[float]:
    """Differences B - A of a metric on the episodes that both have, several runs of an episode averaged.

    Raises:
        RecordingError: there is no pair.
    """
    means_a, means_b = episode_means(metric, a), episode_means(metric, b)
    found = [means_b[key] - means_a[key] for key in means_a if key in means_b]
    if not found:
        raise RecordingError(
            f"the pilot has no pair with {metric}: {len(means_a)} episodes of A and {len(means_b)} of B have it",
            "run both policies on the same episode file, or choose another metric",
        )
    return found


def work_times(logs: Sequence[Path], placing_s: float, judging_s: float, usable: float, charging_s: float) -> WorkTimes:
    """Durations of a pilot's episodes, the battery that they took, and the share that has to be repeated.

    Args:
        logs: logs of the pilot, on the robot or a robot whose simulation keeps its speed.
        placing_s: seconds between two episodes, as in :class:`WorkTimes`.
        judging_s: seconds of judging an episode.
        usable: share of the battery between two charges.
        charging_s: seconds of a charge by that share.

    Raises:
        ConfigError: no log has an end.
    """
    durations: list[float] = []
    used = known_s = 0.0
    aborted = 0
    for path in logs:
        try:
            with LogReader(path) as log:
                if log.end is None or (log.end.reason.aborted and not log.end.of_policy):
                    aborted += 1
                    continue
                duration_s = (log.end.stamp_ns - log.header.start_ns) / NS_PER_S
                charges = [record.base.battery_fraction for record in log.steps(images=False)]
        except RuntimeFault:  # an unreadable log has to be run again
            aborted += 1
            continue
        durations.append(duration_s)
        if charges and math.isfinite(charges[0]) and math.isfinite(charges[-1]):
            used += charges[0] - charges[-1]
            known_s += duration_s
    per_h = max(0.0, used) / known_s * 3600 if known_s > 0 else 0.0
    share = aborted / len(logs) if durations else 0.0
    return WorkTimes(tuple(durations), placing_s, judging_s, per_h, usable, charging_s, share)


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
