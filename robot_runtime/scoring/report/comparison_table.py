"""Terminal table of a comparison of two policies, 80 columns wide."""

import math
from collections.abc import Callable, Sequence

from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from robot_runtime.metrics.measures import definition
from robot_runtime.scoring.groups import part_texts
from robot_runtime.scoring.report.terminal_table import cell, listed, shown_path
from robot_runtime.scoring.statistics.comparison import POWER, Comparison, GroupComparison, MetricComparison
from robot_runtime.scoring.statistics.intervals import CONFIDENCE
from robot_runtime.scoring.summary import RobotSetting

_SMALLEST_P = 0.0001
_MOST = 100_000


def table(comparison: Comparison) -> Group:
    """A block per task and split with a sentence per decisive metric, and below the unpaired logs."""
    blocks = [part for group in comparison.groups for part in (_block(group), Text())]
    units = "" if comparison.cluster == "none" else f", both by {comparison.cluster}"
    notes = Text(
        f"difference: B - A with its {CONFIDENCE:.0%} bootstrap interval; p: paired permutation test, each metric by "
        f"itself{units}; more: the fewest further episodes that tell with {POWER:.0%} power, if the difference is "
        "what it seems",
        style="dim",
    )
    return Group(*blocks, notes, *_unpaired(comparison))


def _block(group: GroupComparison) -> Group:
    heading = Text(" · ").join(
        Text(part, style=style)
        for part, style in (
            (group.task, "bold"),
            (group.split, ""),
            *((text, "") for text in part_texts(group.part)),
            (f"{group.episodes} episode{'' if group.episodes == 1 else 's'} run by both", ""),
        )
        if part
    )
    sides = Text(f"A {group.agent_a or 'no agent'}{_runs(group.runs_a, group)}, ").append(
        f"B {group.agent_b or 'no agent'}{_runs(group.runs_b, group)}"
    )
    rows = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    rows.add_column("metric", no_wrap=True)
    for name in ("A", "B", "difference", "interval", "p", "more"):
        rows.add_column(name, justify="right", no_wrap=True)
    shown = [metric for metric in group.metrics if definition(metric.metric).heading]
    for metric in shown:
        sign = _signed(metric.metric)
        low, high = sign(metric.difference.low), sign(metric.difference.high)
        rows.add_row(
            definition(metric.metric).title,
            cell(metric.metric, metric.mean_a),
            cell(metric.metric, metric.mean_b),
            Text(sign(metric.difference.mean), style="bold" if metric.differs else ""),
            Text(f"[{low}, {high}]" if metric.difference.known else "–"),
            p_text(metric.p_value),
            more_text(metric.further),
        )
    return Group(
        heading,
        sides,
        *_robots(group),
        *(Text(f"mixes logs with other settings: {one}", style="yellow") for one in group.mixed),
        Padding(rows, (0, 0, 0, 2), expand=False),
        *(Text(significance(metric)) for metric in shown if metric.metric in ("success", "spl")),
        *(Text(_left_out(metric, group), style="yellow") for metric in shown if metric.pairs < group.episodes),
    )


def _robots(group: GroupComparison) -> list[Text]:
    """The robots of both sides; in yellow where a side mixes several, or the sides differ."""
    a, b = group.settings_a, group.settings_b
    if len(a) == 1 and a == b:
        return [Text(str(a[0]), style="dim")] if str(a[0]) else []
    consequence = "the robots' difference counts as scatter"
    if set(a) != set(b):
        consequence = "the difference is not the policies' alone: robots or sources of poses differ"
    return [robots_text("A", a), robots_text("B", b), Text(consequence, style="yellow")]


def robots_text(side: str, settings: Sequence[RobotSetting]) -> Text:
    """The robots of one side of a comparison; in yellow if it mixes several."""
    named = "; ".join(str(setting) or "robot unknown" for setting in settings)
    if len(settings) > 1:
        return Text(f"{side} mixes {len(settings)} robots: {named}", style="yellow")
    return Text(f"{side} {named}", style="dim")


def significance(metric: MetricComparison) -> str:
    """A sentence about which side is higher, or how many more episodes are needed."""
    label = definition(metric.metric).heading
    if metric.differs:
        higher = "B" if metric.difference.mean > 0 else "A"
        return f"{label}: {higher} is higher (p = {p_text(metric.p_value)})."
    told = f"{label}: no significant difference between A and B (p = {p_text(metric.p_value)})"
    if metric.further is None:
        return f"{told}; no difference was seen."
    return f"{told}; at least {more_text(metric.further)} more episodes would be needed."


def p_text(p_value: float) -> str:
    """A p value as tables print it: never as zero."""
    return f"{p_value:.4f}" if p_value >= _SMALLEST_P else f"<{_SMALLEST_P}"


def more_text(further: int | None) -> str:
    """A number of further episodes as tables print it."""
    if further is None:
        return "–"
    return str(further) if further <= _MOST else f">{_MOST}"


def _signed(name: str) -> Callable[[float], str]:
    def text(value: float) -> str:
        return ("+" if value > 0 else "") + cell(name, value) if math.isfinite(value) else "∞"

    return text


def _runs(runs: int, group: GroupComparison) -> str:
    return f" ({runs} runs, averaged per episode)" if runs != group.episodes else ""


def _left_out(metric: MetricComparison, group: GroupComparison) -> str:
    label = definition(metric.metric).heading
    return f"{label}: of {group.episodes} episodes {metric.pairs} have a finite value on both sides"


def _unpaired(comparison: Comparison) -> list[Text | Padding]:
    lines = [f"{u.side} {shown_path(u.path)}: episode {u.episode!r}: {u.reason}" for u in comparison.unpaired]
    return listed(f"not paired: {len(lines)} log{'' if len(lines) == 1 else 's'}", lines)
