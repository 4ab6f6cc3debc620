"""Context of a report's index page: per group of episodes its metrics, charts, and a row per episode."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from robot_runtime.metrics.measures import all_metrics, definition
from robot_runtime.scoring.groups import GroupSummary, grouped, known_values, summarize_groups
from robot_runtime.scoring.report.charts import Chart, element, round_step
from robot_runtime.scoring.report.panels import outcome
from robot_runtime.scoring.report.rendering import without_folders
from robot_runtime.scoring.report.terminal_table import (
    cell,
    columns,
    episode_cell,
    interval_text,
    intervals_text,
    note_lines,
    reference_lines,
    time_cells,
    unscored_line,
    verdict_lines,
)
from robot_runtime.scoring.statistics.intervals import CONFIDENCE, Interval, wilson
from robot_runtime.scoring.summary import Cluster, EpisodeScore, check_facets, without_copies

DISTANCE_BINS = 6
VALUE_BINS = 10


def success_by_distance(episodes: Sequence[tuple[float, bool]]) -> Markup:
    """Success rate per bin of the shortest path, with Wilson's interval and the number of episodes.

    Args:
        episodes: (shortest path in meters, success); without any there is no chart.
    """
    if not episodes:
        return Markup("")
    step = round_step(max(0.5, *(length_m for length_m, _ in episodes)), DISTANCE_BINS)
    bins: dict[int, list[bool]] = {}
    for length_m, success in episodes:
        bins.setdefault(int(length_m / step), []).append(success)
    chart = Chart("success by shortest path (episodes above)", (0, step * (max(bins) + 1)), (0, 1))
    chart.y_ticks(" %", 100)
    chart.x_ticks(title="m")
    for number, outcomes in sorted(bins.items()):
        rate = wilson(sum(outcomes), len(outcomes), CONFIDENCE)
        low, middle, high = number * step, (number + 0.5) * step, (number + 1) * step
        tip = f"{low:g} to {high:g} m: {sum(outcomes)} of {len(outcomes)}, {100 * rate.mean:.0f} %"
        several = len(outcomes) > 1
        if several:
            tip += f", {CONFIDENCE:.0%} interval {100 * rate.low:.0f} to {100 * rate.high:.0f} %"
        chart.bar("bar", low, high, rate.mean, tip)
        if several:
            chart.line("whisker", middle, rate.low, middle, rate.high)
        chart.text(chart.x(middle), chart.top - 5, str(len(outcomes)))
    return chart.svg()


def distribution(title: str, values: Sequence[float], interval: Interval, high: float | None = None) -> Markup:
    """A histogram of values from 0 to ``high`` with the mean and its interval; empty without finite values."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return Markup("")
    width = high / VALUE_BINS if high else round_step(max(*finite, 0.1), VALUE_BINS)
    counts = Counter(min(int(v / width + 1e-9), VALUE_BINS - 1) if high else int(v / width) for v in finite)
    end = width * (VALUE_BINS if high else max(counts) + 1)
    chart = Chart(title, (0, end), (0, max(counts.values()) * 1.1))
    chart.y_ticks(whole=True)
    chart.x_ticks()
    for number, count in sorted(counts.items()):
        low, top = number * width, (number + 1) * width
        chart.bar("bar", low, top, count, f"{low:.3g} to {top:.3g}: {_episodes(count)}")
    mean = interval.mean
    if math.isfinite(mean) and mean <= end:
        if interval.known and math.isfinite(interval.low):
            low, top = interval.low, min(interval.high, end)
            tip = f"mean {mean:.3g}, {CONFIDENCE:.0%} interval {low:.3g} to {top:.3g}"
            left, wide, tall = chart.x(low), max(1.0, chart.x(top) - chart.x(low)), chart.bottom - chart.top
            chart.parts.append(element("rect", "interval", tip=tip, x=left, y=chart.top, width=wide, height=tall))
        chart.line("mean", mean, 0, mean, chart.y_range[1])
    return chart.svg()


def count_plot(title: str, counts: Sequence[int]) -> Markup:
    """Episodes by a count, in classes that double: 0, 1, 2 to 3, 4 to 7; of many classes the labels are the lowest."""
    classes = Counter(count.bit_length() for count in counts)
    number_of_classes = max(*classes, 3) + 1
    chart = Chart(title, (0, number_of_classes), (0, max(classes.values()) * 1.1))
    chart.y_ticks(whole=True)
    chart.text(chart.right, chart.height - 4, "per episode", "end")
    for number in range(number_of_classes):
        low, high = (1 << number) >> 1, max(0, (1 << number) - 1)
        label = str(low) if low == high else f"{low}–{high}"
        chart.text(chart.x(number + 0.5), chart.bottom + 17, label if number_of_classes < 6 else str(low))
        if number in classes:
            chart.bar("bar", number, number + 1, classes[number], f"{label}: {_episodes(classes[number])}")
    return chart.svg()


def _episodes(count: int) -> str:
    return f"{count} episode{'' if count == 1 else 's'}"


LEAST_PLOTTED = 2
"""Episodes of a group from which on it has charts."""


def index_context(
    scores: Sequence[EpisodeScore], categories: Sequence[str], cluster: Cluster, by: Sequence[str] = ()
) -> dict[str, Any]:
    """The variables of the template ``index.html``; the category of an episode without one is empty.

    Raises:
        ConfigError: no episode has one of the facets.
    """
    check_facets(scores, by)
    numbers = {score.path: index for index, score in enumerate(scores)}
    counted = without_copies(scores)
    groups: list[dict[str, Any]] = []
    for members, summary in zip(grouped(counted, by).values(), summarize_groups(counted, cluster, by), strict=True):
        shown = [metric.name for metric in columns(summary.intervals)]
        names = [metric.name for metric in columns(summary.intervals, summary=False) if metric.name != "success"]
        rows = [_row(numbers[score.path], score, categories[numbers[score.path]], names) for score in members]
        groups.append(
            {
                "summary": summary,
                "tiles": [_tile(name, summary) for name in shown],
                "plots": _plots(members, summary),
                "times": time_cells(summary.latency),
                "headings": [definition(name).title for name in names],
                "rows": rows,
            }
        )
    return {
        "groups": groups,
        "count": len(scores),
        "intervals": intervals_text([group["summary"] for group in groups]),
        "unscored": [
            (index if score.task else None, without_folders(unscored_line(score), score.path.resolve()))
            for index, score in enumerate(scores)
            if not score.scorable
        ],
        "notes": [*reference_lines(counted), *verdict_lines(counted), *note_lines(counted)],
        "verdicts_of": sorted({verdict.who for score in scores for verdict in score.verdicts}),
    }


def _tile(name: str, group: GroupSummary) -> dict[str, str]:
    interval, count = group.intervals[name], group.counts[name]
    some = f"of {count}" if count < group.episodes else ""
    value = cell(name, interval.mean)
    return {"label": definition(name).title, "value": value, "interval": interval_text(name, interval), "some": some}


def _row(index: int, score: EpisodeScore, category: str, names: Sequence[str]) -> dict[str, Any]:
    cells = [episode_cell(name, score.metrics.get(name)) if score.scorable else "–" for name in names]
    name = score.episode or score.path.name
    return {"index": index, "name": name, "category": category, "outcome": outcome(score), "cells": cells}


def _plots(members: Sequence[EpisodeScore], group: GroupSummary) -> list[Markup]:
    scored = [score.metrics for score in members if score.scorable]
    if len(scored) < LEAST_PLOTTED:
        return []
    lengths = [
        (float(m["shortest_path_m"] or 0), bool(m["success"])) for m in scored if m["shortest_path_m"] is not None
    ]
    drawn = [success_by_distance([pair for pair in lengths if math.isfinite(pair[0])])]
    for metric in all_metrics().values():
        if metric.histogram and metric.name in group.intervals:
            values = known_values(metrics.get(metric.name) for metrics in scored)
            high = None if metric.unit else 1.0
            drawn.append(distribution(f"episodes by {metric.title}", values, group.intervals[metric.name], high))
    counts = [int(metrics["collisions"]) for metrics in scored if metrics["collisions"] is not None]
    drawn += [count_plot("episodes by collisions", counts)] if counts else []
    return [plot for plot in drawn if plot]
