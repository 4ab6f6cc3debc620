"""Context of a report's index page: per group of episodes its metrics, charts, and a row per episode."""

import math
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from robot_runtime.metrics.measures import all_metrics, definition
from robot_runtime.scoring.facets import check_facets
from robot_runtime.scoring.groups import GroupSummary, grouped, known_values, summarize_groups
from robot_runtime.scoring.report import group_charts
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
from robot_runtime.scoring.summary import Cluster, EpisodeScore, without_copies

LEAST_PLOTTED = 2
"""Episodes of a group from which on it has charts."""


def index_context(
    scores: Sequence[EpisodeScore], categories: Sequence[str], cluster: Cluster, by: Sequence[str] = ()
) -> dict[str, Any]:
    """The variables of the template ``index.html``.

    Args:
        scores: one score per log.
        categories: categories of the episodes' goals; empty without a category.
        cluster: unit of the intervals.
        by: facets by which groups are divided.

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
    drawn = [group_charts.success_by_distance([pair for pair in lengths if math.isfinite(pair[0])])]
    for metric in all_metrics().values():
        if metric.histogram and metric.name in group.intervals:
            values = known_values(metrics.get(metric.name) for metrics in scored)
            high = None if metric.unit else 1.0
            drawn.append(
                group_charts.distribution(f"episodes by {metric.title}", values, group.intervals[metric.name], high)
            )
    counts = [int(metrics["collisions"] or 0) for metrics in scored]
    drawn.append(group_charts.count_plot("episodes by collisions", counts))
    return [plot for plot in drawn if plot]
