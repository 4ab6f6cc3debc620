"""Picture of a sim-to-real gap: correlation per metric, differences per policy, failures."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from itertools import cycle
from pathlib import Path
from textwrap import fill

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from robot_runtime.errors import writing
from robot_runtime.scoring.report.png import INK, MUTED
from robot_runtime.scoring.report.terminal_table import COLUMNS
from robot_runtime.scoring.sim_to_real.gap import METRICS, Correlation, Gap, Level, Reason
from robot_runtime.scoring.statistics.intervals import CONFIDENCE, Interval

COLORS = ("#2563eb", "#c2410c", "#15803d", "#9333ea", "#0e7490", "#be185d", "#b45309", "#4d7c0f", "#475569")
MARKERS = "os^Dv<>p*hX"
REVERSED = "#dc2626"
_GRID = "#dfe3ea"
_WIDTH_IN, _SCATTER_IN, _DPI = 12.8, 5.6, 115
_ROW_IN = 0.42
_TITLE = 60  # letters in a line
_MOST_REASONS, _FEWEST_ROWS = 12, 4


def write_plot(path: Path, gap: Gap) -> None:
    """Write the picture (PNG). Raises ``RecordingError``: it cannot be written."""
    with writing(path):
        path.write_bytes(draw(gap))


def draw(gap: Gap) -> bytes:
    """The picture, a PNG."""
    agents = list(dict.fromkeys(policy.agent for policy in gap.policies))
    reasons = gap.reasons[:_MOST_REASONS]
    rows = max(len(agents) * len(METRICS) * 0.75, len(reasons), 3)
    lower_in = 0.9 + _ROW_IN * rows
    size_in = (_WIDTH_IN, _SCATTER_IN + lower_in)
    figure = Figure(figsize=size_in, dpi=_DPI, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(2, 2, height_ratios=(_SCATTER_IN, lower_in))
    for column, metric in enumerate(METRICS):
        axes = figure.add_subplot(grid[0, column])
        draw_correlation(axes, gap, metric)
        axes.set_title(title(gap, metric), fontsize=11, color=INK, loc="left")
    _draw_differences(figure.add_subplot(grid[1, 0]), gap, agents)
    _draw_reasons(figure.add_subplot(grid[1, 1]), reasons)
    written = BytesIO()
    figure.savefig(written, format="png")
    return written.getvalue()


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
    axes.legend(fontsize=7.5, loc="upper left", bbox_to_anchor=(1.02, 1.0), frameon=False)
    _style_axes(axes)


def _draw_reversals(axes: Axes, gap: Gap, metric: str, levels: Sequence[Level]) -> None:
    at = {level.agent: (level.simulated.mean, level.real.mean) for level in levels}
    for number, (a, b) in enumerate(_correlation(gap, metric).reversals):
        (x0, y0), (x1, y1) = at[a], at[b]
        label = "change places" if not number else None
        axes.plot((x0, x1), (y0, y1), color=REVERSED, linewidth=1.2, alpha=0.55, zorder=1, label=label)


def _draw_fit(axes: Axes, levels: Sequence[Level]) -> None:
    """Draw the least-squares line."""
    count = len(levels)
    x_mean = sum(level.simulated.mean for level in levels) / count
    y_mean = sum(level.real.mean for level in levels) / count
    spread = sum((level.simulated.mean - x_mean) ** 2 for level in levels)
    slope = sum((level.simulated.mean - x_mean) * (level.real.mean - y_mean) for level in levels) / spread
    ends = (min(level.simulated.mean for level in levels), max(level.simulated.mean for level in levels))
    axes.plot(ends, [y_mean + slope * (x - x_mean) for x in ends], color=INK, linewidth=1, label="least squares")


def _draw_differences(axes: Axes, gap: Gap, agents: Sequence[str]) -> None:
    axes.set_title(f"robot less simulation, same episodes, {CONFIDENCE:.0%}", fontsize=11, color=INK, loc="left")
    step = 1.0 / (len(METRICS) + 1)
    for number, metric in enumerate(METRICS):
        color, labelled = COLORS[number], False
        for row, agent in enumerate(agents):
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
    axes.set_yticks(range(len(agents)), agents, fontsize=9)
    axes.set_ylim(len(agents) - 0.4, -0.6)
    axes.legend(fontsize=8, loc="best")
    _style_axes(axes)


def _draw_reasons(axes: Axes, reasons: Sequence[Reason]) -> None:
    axes.set_title("how episodes failed", fontsize=11, color=INK, loc="left")
    if not reasons:
        axes.text(0.5, 0.5, "none failed", transform=axes.transAxes, ha="center", color=MUTED)
        axes.set_axis_off()
        return
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
    axes.legend(fontsize=8, loc="lower right")
    _style_axes(axes)


def _correlation(gap: Gap, metric: str) -> Correlation:
    return next(one for one in gap.correlations if one.metric == metric)


def _bars(interval: Interval) -> tuple[list[float], list[float]]:
    return [interval.mean - interval.low], [interval.high - interval.mean]


def _label(metric: str) -> str:
    return COLUMNS[metric][0]


def _style_axes(axes: Axes) -> None:
    axes.grid(color=_GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.tick_params(labelsize=8, colors=MUTED)
