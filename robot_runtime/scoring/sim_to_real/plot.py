"""Picture of a sim-to-real gap, and HTML page of it: correlation per metric, differences per policy, failures."""

import base64
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from itertools import cycle
from pathlib import Path
from textwrap import fill

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from robot_runtime.common.creating import creating
from robot_runtime.metrics.measures import definition
from robot_runtime.scoring.report.png import INK, MUTED
from robot_runtime.scoring.report.rendering import render
from robot_runtime.scoring.sim_to_real.gap import METRICS, Correlation, Gap, Level, Reason
from robot_runtime.scoring.sim_to_real.side_by_side import Worlds
from robot_runtime.scoring.sim_to_real.table import rows, sentence
from robot_runtime.scoring.statistics.intervals import CONFIDENCE, Interval

COLORS = ("#2563eb", "#c2410c", "#15803d", "#9333ea", "#0e7490", "#be185d", "#b45309", "#4d7c0f", "#475569")
MARKERS = "os^Dv<>p*hX"
REVERSED = "#dc2626"
_GRID = "#dfe3ea"
_WIDTH_IN, _PANEL_IN, _SCATTER_IN, _DPI = 12.8, 5.2, 5.6, 115
_ROW_IN = 0.42
_TITLE = 60  # letters in a line
_MOST_REASONS, _FEWEST_ROWS = 12, 4


def write_plot(path: Path, gap: Gap) -> None:
    """Write the picture (PNG). Raises ``RecordingError``: it cannot be written."""
    with creating(path) as draft:
        draft.write_bytes(draw(gap))


def write_page(path: Path, gap: Gap, worlds: Worlds | None = None) -> None:
    """Write a self-contained page (HTML): the pictures, and the numbers behind them. Raises ``RecordingError``.

    Args:
        path: path of the page.
        gap: gap to show.
        worlds: episodes in several worlds, to show side by side; None for none.
    """
    page = render(
        "gap.html",
        gap=gap,
        pictures=[(alt, base64.b64encode(png).decode()) for alt, png in draw_panels(gap)],
        sentences=[sentence(one) for one in gap.correlations],
        rows=[row for policy in gap.policies for row in rows(policy)],
        worlds=worlds,
        confidence=f"{CONFIDENCE:.0%}",
    )
    with creating(path) as draft:
        draft.write_text(page, encoding="utf-8")


@dataclass(frozen=True)
class Panel:
    """One part of the picture: what it shows, how to draw it, and its height."""

    alt: str
    draw: Callable[[Axes], None]
    height_in: float


def panels(gap: Gap) -> list[list[Panel]]:
    """The picture's rows; without correlations if fewer than two policies have one."""
    reasons = gap.reasons[:_MOST_REASONS]
    height_in = 0.9 + _ROW_IN * max(len(gap.agents) * len(METRICS) * 0.75, len(reasons), 3)
    levels = Counter(level.metric for level in gap.levels)
    scatters = [
        Panel(f"{_label(metric)} on the robot by that in simulation", partial(_titled, gap, metric), _SCATTER_IN)
        for metric in METRICS
        if levels[metric] > 1
    ]
    differences = Panel("differences by policy", partial(_draw_differences, gap=gap), height_in)
    failures = Panel("how episodes failed", partial(_draw_reasons, reasons=reasons), height_in)
    return [*([scatters] if scatters else []), [differences, *([failures] if reasons else [])]]


def draw(gap: Gap) -> bytes:
    """The picture, a PNG."""
    drawn = panels(gap)
    heights_in = [row[0].height_in for row in drawn]
    figure = _figure(sum(heights_in), _WIDTH_IN)
    grid = figure.add_gridspec(len(drawn), 1, height_ratios=heights_in)
    for number, row in enumerate(drawn):
        cells = grid[number].subgridspec(1, len(row))
        for column, panel in enumerate(row):
            panel.draw(figure.add_subplot(cells[column]))
    return _png(figure)


def draw_panels(gap: Gap) -> list[tuple[str, bytes]]:
    """The parts of the picture, each with its alternative text and as a PNG, for pages."""
    drawn = []
    for panel in (panel for row in panels(gap) for panel in row):
        figure = _figure(panel.height_in, _PANEL_IN)
        panel.draw(figure.add_subplot())
        drawn.append((panel.alt, _png(figure)))
    return drawn


def _figure(height_in: float, width_in: float) -> Figure:
    figure = Figure(figsize=(width_in, height_in), dpi=_DPI, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _png(figure: Figure) -> bytes:
    written = BytesIO()
    figure.savefig(written, format="png")
    return written.getvalue()


def _titled(gap: Gap, metric: str, axes: Axes) -> None:
    draw_correlation(axes, gap, metric)
    axes.set_title(title(gap, metric), fontsize=11, color=INK, loc="left")


def title(gap: Gap, metric: str) -> str:
    """The title of a correlation's panel."""
    correlation, label = _correlation(gap, metric), _label(metric)
    if correlation.interval is None:
        return fill(f"{label}: no correlation: {correlation.reason}", _TITLE)
    found = correlation.interval
    return f"{label}: SRCC {found.mean:.3f} [{found.low:.2f}, {found.high:.2f}]"


def draw_correlation(axes: Axes, gap: Gap, metric: str) -> None:
    """Draw real over simulated means, a point per policy with both intervals, and red lines for reversed pairs."""
    levels = [level for level in gap.levels if level.metric == metric]
    styles = dict(zip([level.agent for level in levels], zip(cycle(COLORS), cycle(MARKERS)), strict=False))
    axes.plot((0, 1), (0, 1), color=MUTED, linewidth=1, linestyle=(0, (4, 4)), label="the same in both")
    _draw_reversals(axes, gap, metric, levels)
    for level in levels:
        color, marker = styles[level.agent]
        x, y = level.simulated, level.real
        axes.errorbar(
            x.mean,
            y.mean,
            xerr=_bars(x),
            yerr=_bars(y),
            fmt=marker,
            color=color,
            markersize=7,
            elinewidth=1,
            alpha=0.9,
            label=level.agent,
        )
    if _correlation(gap, metric).interval is not None:
        _draw_fit(axes, levels)
    axes.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), aspect="equal")
    axes.set_xlabel(f"{_label(metric)} in simulation", fontsize=9)
    axes.set_ylabel(f"{_label(metric)} on the robot", fontsize=9)
    _legend_below(axes, 3)
    _style_axes(axes)


def _draw_reversals(axes: Axes, gap: Gap, metric: str, levels: Sequence[Level]) -> None:
    at = {level.agent: (level.simulated.mean, level.real.mean) for level in levels}
    for number, (a, b) in enumerate(_correlation(gap, metric).reversals):
        (x0, y0), (x1, y1) = at[a], at[b]
        label = "change places" if not number else None
        axes.plot((x0, x1), (y0, y1), color=REVERSED, linewidth=1.2, alpha=0.55, zorder=1, label=label)


def _draw_fit(axes: Axes, levels: Sequence[Level]) -> None:
    """Draw the least-squares line."""
    means = [level.simulated.mean for level in levels]
    line = np.polyfit(means, [level.real.mean for level in levels], 1)
    ends = (min(means), max(means))
    axes.plot(ends, np.polyval(line, ends), color=INK, linewidth=1, label="least squares")


def _draw_differences(axes: Axes, gap: Gap) -> None:
    axes.set_title(f"robot less simulation, same episodes, {CONFIDENCE:.0%}", fontsize=11, color=INK, loc="left")
    step = 1.0 / (len(METRICS) + 1)
    for number, metric in enumerate(METRICS):
        color, labelled = COLORS[number], False
        for row, agent in enumerate(gap.agents):
            policy = next(one for one in gap.policies if one.agent == agent)
            found = policy.metric(metric)
            if found is None:
                continue
            at = row + (number - (len(METRICS) - 1) / 2) * step
            label = None if labelled else _label(metric)
            axes.barh(at, found.difference.mean, height=step * 0.9, color=color, alpha=0.8, label=label)
            axes.plot((found.difference.low, found.difference.high), (at, at), color=INK, linewidth=1.2)
            labelled = True
    axes.axvline(0, color=MUTED, linewidth=1)
    axes.set_yticks(range(len(gap.agents)), gap.agents, fontsize=9)
    axes.set_ylim(len(gap.agents) - 0.4, -0.6)
    _legend_below(axes, 2)
    _style_axes(axes)


def _draw_reasons(axes: Axes, reasons: Sequence[Reason]) -> None:
    axes.set_title("how episodes failed", fontsize=11, color=INK, loc="left")
    for row, reason in enumerate(reasons):
        axes.barh(row - 0.19, reason.simulated, height=0.36, color=COLORS[0], label=None if row else "simulation")
        axes.barh(row + 0.19, reason.real, height=0.36, color=COLORS[1], label=None if row else "robot")
        if reason.alone:
            most = max(reason.simulated, reason.real)
            axes.text(most, row, f"  {reason.alone}", va="center", fontsize=8, color=REVERSED, weight="bold")
    axes.set_yticks(range(len(reasons)), [reason.text.removeprefix("failed: ") for reason in reasons], fontsize=9)
    axes.set_ylim(max(len(reasons), _FEWEST_ROWS) - 0.4, -0.6)
    axes.set_xlim(0, 1.35 * max(max(reason.simulated, reason.real) for reason in reasons))
    axes.set_xlabel("episodes", fontsize=9)
    _legend_below(axes, 2)
    _style_axes(axes)


def _legend_below(axes: Axes, columns: int) -> None:
    """A legend that covers nothing and is as wide as the axes."""
    # The pad, in letters, clears the ticks and the label of the axis.
    axes.legend(
        loc="upper center", bbox_to_anchor=(0.5, 0.0), borderaxespad=4.5, ncols=columns, fontsize=8, frameon=False
    )


def _correlation(gap: Gap, metric: str) -> Correlation:
    return next(one for one in gap.correlations if one.metric == metric)


def _bars(interval: Interval) -> tuple[list[float], list[float]]:
    return [interval.mean - interval.low], [interval.high - interval.mean]


def _label(metric: str) -> str:
    return definition(metric).heading


def _style_axes(axes: Axes) -> None:
    axes.grid(color=_GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.tick_params(labelsize=8, colors=MUTED)
