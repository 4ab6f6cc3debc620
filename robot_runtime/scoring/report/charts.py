"""SVG charts of all pages: elements, axes with round ticks, curves, bars and tooltips.

Colors are CSS variables of the page, so that one drawing serves light and dark mode, and values are shown on hover.
Matplotlib's SVG has neither; a bar chart takes it 68 ms and 11 kB, here 0.2 ms and 1.4 kB.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from markupsafe import Markup, escape

WIDTH = 440
"""Width of a chart in its own units."""

Point = Sequence[float]


def n(value: float) -> str:
    """A coordinate, with three decimals at most."""
    return f"{value:.3f}".rstrip("0").rstrip(".")


def element(name: str, css: str = "", content: str | Markup = "", tip: str = "", **attributes: float | str) -> Markup:
    """An SVG element; numbers are rounded, text is escaped, underscores in names of attributes become hyphens."""
    head = f' class="{escape(css)}"' if css else ""
    for key, value in attributes.items():
        head += f' {key.replace("_", "-")}="{n(value) if isinstance(value, int | float) else escape(value)}"'
    inside = (f"<title>{escape(tip)}</title>" if tip else "") + str(escape(content))
    return Markup(f"<{name}{head}>{inside}</{name}>" if inside else f"<{name}{head}/>")


def points(pairs: Iterable[Point]) -> str:
    """The ``points`` attribute of a line through (x, y), given in coordinates of the drawing."""
    return " ".join(f"{n(pair[0])},{n(pair[1])}" for pair in pairs)


def round_step(span: float, parts: int) -> float:
    """The smallest round number of which ``parts`` reach ``span``."""
    power = 10.0 ** math.floor(math.log10(span / parts))
    return next(factor * power for factor in (1, 2, 5, 10, 20) if factor * power >= span / parts * (1 - 1e-9))


def ticks(low: float, high: float, whole: bool = False) -> list[float]:
    """About five round numbers from ``low`` to ``high``."""
    step = round_step(high - low, 5)
    step = max(1.0, step) if whole else step
    return [i * step for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


class Chart:
    """A chart with linear axes. Methods take data coordinates unless they say otherwise.

    Args:
        title: heading, and label for screen readers.
        x_range: values at the left and right edge of the frame.
        y_range: values at the bottom and top edge of the frame.
        height: height of the drawing.
        margins: margins of the frame: left, right, top, bottom.

    Attributes:
        parts: the elements, in the order of drawing.
        left: x of the frame's left edge in the drawing.
        right: x of its right edge.
        top: y of its top edge.
        bottom: y of its bottom edge.
    """

    def __init__(
        self,
        title: str,
        x_range: tuple[float, float],
        y_range: tuple[float, float],
        height: float = 250,
        margins: tuple[int, int, int, int] = (46, 14, 36, 40),
    ) -> None:
        self.title, self.x_range, self.y_range, self.height = title, x_range, y_range, height
        self.left, self.right = margins[0], WIDTH - margins[1]
        self.top, self.bottom = margins[2], height - margins[3]
        self.parts = [element("text", "title", title, x=0, y=13)]

    def x(self, value: float) -> float:
        """A value's x in the drawing."""
        low, high = self.x_range
        return self.left + (self.right - self.left) * (value - low) / (high - low)

    def y(self, value: float) -> float:
        """A value's y in the drawing."""
        low, high = self.y_range
        return self.top + (self.bottom - self.top) * (high - value) / (high - low)

    def y_ticks(self, unit: str = "", factor: float = 1.0, whole: bool = False) -> None:
        """Horizontal grid lines with labels."""
        for tick in ticks(*self.y_range, whole):
            self.level("grid" if tick else "grid zero", tick)
            self.text(self.left - 6, self.y(tick) + 4, f"{tick * factor:g}{unit}", "end")

    def x_ticks(self, whole: bool = False, grid: bool = False, title: str = "") -> None:
        """Labels of the x axis, its title, and vertical grid lines if ``grid``."""
        for tick in ticks(*self.x_range, whole):
            if grid:
                self.line("grid" if tick else "grid zero", tick, self.y_range[0], tick, self.y_range[1])
            self.text(self.x(tick), self.bottom + 17, f"{tick:g}")
        if title:
            self.text(self.right, self.height - 4, title, "end")

    def text(self, x: float, y: float, text: str, anchor: str = "middle", css: str = "") -> None:
        """Text at a place of the drawing."""
        self.parts.append(element("text", css, text, x=x, y=y, text_anchor=anchor))

    def line(self, css: str, x0: float, y0: float, x1: float, y1: float) -> None:
        """A straight line."""
        self.parts.append(element("line", css, x1=self.x(x0), y1=self.y(y0), x2=self.x(x1), y2=self.y(y1)))

    def level(self, css: str, y: float) -> None:
        """A horizontal line across the frame."""
        self.line(css, self.x_range[0], y, self.x_range[1], y)

    def mark(self, css: str, x: float, tip: str = "", length: float = 9) -> None:
        """A short tick at the bottom of the frame; ``length`` in units of the drawing."""
        at = self.x(x)
        self.parts.append(element("line", css, tip=tip, x1=at, x2=at, y1=self.bottom, y2=self.bottom - length))

    def bar(self, css: str, x0: float, x1: float, y: float, tip: str) -> None:
        """A bar from the bottom of the frame."""
        left, width = self.x(x0) + 1, max(0.5, self.x(x1) - self.x(x0) - 2)
        height = self.bottom - self.y(y)
        self.parts.append(element("rect", css, tip=tip, x=left, y=self.y(y), width=width, height=height))

    def curve(self, css: str, xs: Iterable[float], values: Iterable[float | None]) -> None:
        """Lines between the gaps, which are None or not finite; a single value between gaps is a dot."""
        runs: list[list[Point]] = [[]]
        for x, value in zip(xs, values, strict=True):
            if value is None or not math.isfinite(value):
                runs.append([])
            else:
                runs[-1].append((self.x(x), self.y(value)))
        for run in filter(None, runs):
            self.parts.append(element("polyline", css, points=points(run * 2 if len(run) == 1 else run)))

    def legend(self, names: Sequence[tuple[str, str]]) -> None:
        """(label, class) of the curves, next to the title from the right."""
        x = float(self.right)
        for label, css in reversed(names):
            self.text(x, 13, label, "end", css)
            x -= 6.4 * len(label) + 14

    def svg(self, css: str = "plot", **attributes: Any) -> Markup:
        """The drawing."""
        box = f"0 0 {WIDTH} {n(self.height)}"
        return element(
            "svg", css, Markup("").join(self.parts), viewBox=box, role="img", aria_label=self.title, **attributes
        )
