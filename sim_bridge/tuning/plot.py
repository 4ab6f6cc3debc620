"""A picture of a sweep: likelihoods and correlations of the settings, and the policies' scores under the best.

After Kadian et al. 2020, whose figures show the correlation per setting of sliding and noise.
"""

import math
from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from robot_runtime.common.creating import creating
from robot_runtime.scoring.report.png import INK, MUTED
from robot_runtime.scoring.sim_to_real.plot import draw_correlation
from robot_runtime.scoring.statistics.intervals import CONFIDENCE
from sim_bridge.tuning.likelihood import PARTS
from sim_bridge.tuning.sweep import Candidate, Tuning

_COLORS = {"motions": "#2563eb", "contacts": "#c2410c", "camera": "#15803d", "delays": "#9333ea"}
_SUM, _PART_ROW = "#cbd5e1", 0.16
_METRICS = {"success": ("#c2410c", "success", -0.14), "spl": ("#2563eb", "SPL", 0.14)}
_MOST = 24
"""Number of settings in the picture."""

_ROW_IN, _SCATTER_IN, _WIDTH_IN, _DPI = 0.36, 4.2, 13.5, 100
SHOWN = 3
"""Number of settings with a scatter plot of the policies."""


def write_plot(path: Path, tuning: Tuning) -> None:
    """Write the PNG. Raises ``RecordingError`` if it cannot be written."""
    shown = tuning.ranked()[:_MOST]
    scatters = _scatters(tuning)
    rows_in = 1.3 + _ROW_IN * len(shown)
    height_in = rows_in + (_SCATTER_IN if scatters else 0.0)
    figure = Figure(figsize=(_WIDTH_IN, height_in), dpi=_DPI, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(2 if scatters else 1, 1, height_ratios=(rows_in, _SCATTER_IN)[: 2 if scatters else 1])
    has_gap = any(candidate.gap is not None for candidate in shown)
    upper = grid[0].subgridspec(1, 2 if has_gap else 1, wspace=0.04)
    left = figure.add_subplot(upper[0])
    _draw_likelihoods(left, shown)
    if has_gap:
        _draw_correlations(figure.add_subplot(upper[1], sharey=left), shown)
    if scatters:
        lower = grid[1].subgridspec(1, SHOWN)
        for column, (title, candidate) in enumerate(scatters):
            assert candidate.gap is not None
            axes = figure.add_subplot(lower[column])
            draw_correlation(axes, candidate.gap, "spl")
            axes.set_title(f"{title}\n{candidate.name}", fontsize=9, color=INK, loc="left")
    with creating(path) as draft:
        figure.savefig(draft)


def _draw_likelihoods(axes: Axes, shown: Sequence[Candidate]) -> None:
    """Draw a bar for the sum and a mark for each part; a logarithmic axis cannot stack them."""
    best = shown[0].parts
    axes.set_title("log likelihood of the robot's logs, below the best setting's", fontsize=9, loc="left")
    totals = [best.total - candidate.parts.total for candidate in shown]
    axes.barh(range(len(shown)), totals, color=_SUM, height=0.62, label="sum")
    for row, candidate in enumerate(shown):
        if candidate.behind is not None and math.isfinite(candidate.behind.low + candidate.behind.high):
            axes.plot((-candidate.behind.high, -candidate.behind.low), (row, row), color=INK, linewidth=1.4)
            axes.plot(-candidate.behind.mean, row, "|", color=INK, markersize=9)
    for number, name in enumerate(PARTS):
        offs = [getattr(best, name) - getattr(candidate.parts, name) for candidate in shown]
        marks = [(off, row + _PART_ROW * (number - 1.5)) for row, off in enumerate(offs) if off]
        if marks:
            axes.plot(*zip(*marks, strict=True), "o", color=_COLORS[name], markersize=5, label=name)
    axes.set_xscale("symlog", linthresh=10.0)
    axes.set_yticks(range(len(shown)), [_wrapped(candidate.name) for candidate in shown], fontsize=8)
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.legend(fontsize=8, loc="upper right", frameon=True, ncols=5)
    _style_axes(axes)


def _draw_correlations(axes: Axes, shown: Sequence[Candidate]) -> None:
    axes.set_title(
        f"correlation of simulation and robot over policies (SRCC), {CONFIDENCE:.0%}", fontsize=9, loc="left"
    )
    for metric, (color, name, offset) in _METRICS.items():
        labelled = False
        for row, candidate in enumerate(shown):
            correlation = candidate.correlation(metric)
            if correlation is None or correlation.interval is None:
                continue
            interval = correlation.interval
            axes.plot((interval.low, interval.high), (row + offset,) * 2, color=color, linewidth=2, alpha=0.5)
            axes.plot(interval.mean, row + offset, "o", color=color, markersize=5, label=None if labelled else name)
            labelled = True
    axes.axvline(0, color=MUTED, linewidth=0.8)
    axes.set_xlim(-1.05, 1.05)
    axes.tick_params(labelleft=False)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=8, loc="lower left", frameon=True)
    _style_axes(axes)


def _scatters(tuning: Tuning) -> list[tuple[str, Candidate]]:
    """The most and the least likely setting, and the best predictor; each setting once."""
    ranked = tuning.ranked()
    shown_candidates = [("most likely", ranked[0])]
    if (best := tuning.best_predictor("spl")) is not None:
        shown_candidates.append(("predicts SPL best", best))
    shown_candidates.append(("least likely", ranked[-1]))
    titles: dict[int, list[str]] = {}
    for title, candidate in shown_candidates:
        if candidate.gap is not None:
            titles.setdefault(tuning.settings.index(candidate), []).append(title)
    return [(", ".join(names), tuning.settings[number]) for number, names in titles.items()]


def _wrapped(name: str, most: int = 44) -> str:
    if len(name) <= most:
        return name
    cut = name.rfind(",", 0, most) + 1 or most
    return f"{name[:cut]}\n{name[cut:].strip()}"


def _style_axes(axes: Axes) -> None:
    axes.grid(axis="x", color="#dfe3ea", linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="x", labelsize=8)
    axes.tick_params(axis="y", length=0)
