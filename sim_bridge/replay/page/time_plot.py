"""Values over an episode's steps as SVG, with a cursor that the page's script moves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from robot_runtime.scoring.report.svg_map import n
from robot_runtime.scoring.report.svg_plots import ticks

WIDTH, HEIGHT = 440, 168
LEFT, RIGHT, TOP, BOTTOM = 46, 12, 30, 22

Values = Sequence[float | None]
"""One per step; None where there is none, which is a gap."""


@dataclass(frozen=True)
class Curve:
    """One line of a plot; ``css`` is its class, which the style sheet gives a colour."""

    label: str
    css: str
    values: Values


def time_plot(
    title: str,
    steps: Sequence[int],
    curves: Sequence[Curve],
    limit: float | None = None,
    marks: Sequence[int] = (),
    least: float = 1e-3,
) -> Markup:
    """A plot of values by step; empty if there is no value at all.

    Args:
        steps: the log's numbers of the steps, ascending, one per value.
        limit: a value to be drawn as a dashed line. marks: steps to be marked at the foot.
        least: the range shows at least so much, so that nothing but rounding does not look like a lot.
    """
    known = [value for curve in curves for value in curve.values if value is not None and math.isfinite(value)]
    if not known:
        return Markup("")
    low, high = min(0.0, *known), max(least, *known, limit or 0.0)
    low, high = (low - 0.05 * (high - low) if low < 0 else 0.0), high + 0.05 * (high - low)
    frame = _Frame(steps[0], max(steps[-1], steps[0] + 1), low, high)
    parts = [Markup('<text x="0" y="13" class="title">{}</text>').format(title), *frame.grid()]
    if limit is not None:
        parts.append(frame.level("limit", limit))
    parts += [frame.mark(step) for step in marks]
    parts += [frame.line(curve, steps) for curve in curves]
    if len(curves) > 1:
        parts.append(_legend(curves))
    parts.append(
        Markup('<line class="cursor" x1="{x}" x2="{x}" y1="{}" y2="{}"/>').format(TOP, HEIGHT - BOTTOM, x=LEFT)
    )
    return Markup(
        '<svg class="plot timed" viewBox="0 0 {} {}" data-first="{}" data-last="{}" role="img" aria-label="{}">{}</svg>'
    ).format(WIDTH, HEIGHT, frame.first, frame.last, title, Markup("").join(parts))


@dataclass(frozen=True)
class _Frame:
    first: int
    last: int
    low: float
    high: float

    def x(self, step: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (step - self.first) / (self.last - self.first)

    def y(self, value: float) -> float:
        return TOP + (HEIGHT - BOTTOM - TOP) * (self.high - value) / (self.high - self.low)

    def grid(self) -> list[Markup]:
        step = ticks(self.high - self.low)[1]
        text = Markup('<text x="{}" y="{}" text-anchor="{}">{}</text>')
        parts = []
        for number in range(math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9) + 1):
            value = number * step
            parts += [
                self.level("grid zero" if number == 0 else "grid", value),
                text.format(LEFT - 6, n(self.y(value) + 4), "end", f"{value:g}"),
            ]
        for tick in ticks(self.last - self.first, whole=True):
            step_number = self.first + tick
            parts.append(text.format(n(self.x(step_number)), HEIGHT - 6, "middle", f"{step_number:g}"))
        return parts

    def level(self, css: str, value: float) -> Markup:
        y = n(self.y(value))
        return Markup('<line class="{}" x1="{}" x2="{}" y1="{y}" y2="{y}"/>').format(css, LEFT, WIDTH - RIGHT, y=y)

    def mark(self, step: int) -> Markup:
        foot = HEIGHT - BOTTOM
        return Markup('<line class="mark" x1="{x}" x2="{x}" y1="{}" y2="{}"/>').format(
            foot, foot - 9, x=n(self.x(step))
        )

    def line(self, curve: Curve, steps: Sequence[int]) -> Markup:
        """The known values as lines between the gaps; one that stands alone as a dot."""
        runs: list[list[str]] = [[]]
        for step, value in zip(steps, curve.values, strict=True):
            if value is None or not math.isfinite(value):
                runs.append([])
            else:
                runs[-1].append(f"{n(self.x(step))},{n(self.y(value))}")
        shape = Markup('<polyline class="{}" points="{}"/>')
        return Markup("").join(
            shape.format(curve.css, " ".join(run * 2 if len(run) == 1 else run)) for run in runs if run
        )


def _legend(curves: Sequence[Curve]) -> Markup:
    """Names of the lines in their colours, from the right."""
    x, parts = float(WIDTH - RIGHT), []
    for curve in reversed(curves):
        parts.append(
            Markup('<text class="{}" x="{}" y="13" text-anchor="end">{}</text>').format(curve.css, n(x), curve.label)
        )
        x -= 6.4 * len(curve.label) + 14
    return Markup("").join(parts)
