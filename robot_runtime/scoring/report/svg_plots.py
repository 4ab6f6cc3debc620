"""Plots as SVG, for people with a mouse and for those with a phone: values are printed, and pointed at they are named.

Colours are CSS variables of the page, so that one drawing serves light and dark.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from markupsafe import Markup

from robot_runtime.scoring.report.episode_data import EpisodeData
from robot_runtime.scoring.report.svg_map import n
from robot_runtime.scoring.statistics.intervals import CONFIDENCE, Interval, wilson

_WIDTH, _HEIGHT = 440, 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 14, 36, 40
_BAND = 22
"""Height of the strip that shows the room over time."""

DISTANCE_BINS = 6
VALUE_BINS = 10


class _Axes:
    """A frame with grid lines: x from 0 to ``x_max``, y from 0 to ``y_max``, in the plot's own units."""

    def __init__(self, title: str, x_title: str, x_max: float, y_max: float, height: int = _HEIGHT) -> None:
        self.x_max, self.y_max, self.height = x_max, y_max, height
        self._title = title
        self.parts = [
            Markup('<text x="0" y="13" class="title">{}</text>').format(title),
            Markup('<text x="{}" y="{}" text-anchor="end">{}</text>').format(_WIDTH - _RIGHT, height - 4, x_title),
        ]

    @property
    def floor(self) -> int:
        return self.height - _BOTTOM

    def x(self, value: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * value / self.x_max

    def y(self, value: float) -> float:
        return _TOP + (self.floor - _TOP) * (1 - value / self.y_max)

    def y_ticks(self, unit: str = "", factor: float = 1.0, whole: bool = False) -> None:
        for tick in ticks(self.y_max, whole):
            self.line("grid", 0, tick, self.x_max, tick)
            self.text(_LEFT - 6, self.y(tick) + 4, f"{tick * factor:g}{unit}", "end")

    def x_ticks(self, whole: bool = False) -> None:
        for tick in ticks(self.x_max, whole):
            self.text(self.x(tick), self.floor + 17, f"{tick:g}", "middle")

    def text(self, x: float, y: float, text: str, anchor: str) -> None:
        """At a place of the drawing, not of the axes."""
        self.parts.append(Markup('<text x="{}" y="{}" text-anchor="{}">{}</text>').format(n(x), n(y), anchor, text))

    def line(self, name: str, x0: float, y0: float, x1: float, y1: float) -> None:
        values = (self.x(x0), self.y(y0), self.x(x1), self.y(y1))
        self.parts.append(Markup('<line class="{}" x1="{}" y1="{}" x2="{}" y2="{}"/>').format(name, *map(n, values)))

    def bar(self, name: str, x0: float, x1: float, y: float, tip: str) -> None:
        left, right, top = self.x(x0) + 1, self.x(x1) - 1, self.y(y)
        self.parts.append(
            Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect>').format(
                name, *map(n, (left, top, max(0.5, right - left), self.floor - top)), tip
            )
        )

    def svg(self) -> Markup:
        return Markup('<svg class="plot" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
            _WIDTH, self.height, self._title, Markup("").join(self.parts)
        )


# --- one episode ----------------------------------------------------------------------------------------------------


def distance_plot(data: EpisodeData) -> Markup:
    """Distance to the goal over steps; empty if there is none. Steps off the map are gaps; ticks mark contacts."""
    finite = [d for d in data.distances_m if math.isfinite(d)]
    if not finite:
        return Markup("")
    high = max(*finite, data.header.task.success.distance_m, 0.1) * 1.05
    axes = _Axes("distance to goal, m", "step", max(1, len(data.distances_m) - 1), high)
    axes.y_ticks()
    axes.x_ticks(whole=True)
    if data.header.task.success.rule == "distance":
        limit_m = data.header.task.success.distance_m
        axes.line("limit", 0, limit_m, axes.x_max, limit_m)
    for step in data.contacts:
        x = n(axes.x(step))
        axes.parts.append(
            Markup('<line class="contact" x1="{x}" x2="{x}" y1="{}" y2="{}"><title>contact in step {}</title></line>')
            .format(axes.floor, axes.floor - 8, step, x=x)
        )  # fmt: skip
    for run in _finite_runs(data.distances_m):
        points = " ".join(f"{n(axes.x(step))},{n(axes.y(d))}" for step, d in run)
        axes.parts.append(Markup('<polyline class="curve" points="{}"/>').format(points))
    for step, distance_m in enumerate(data.distances_m):
        if math.isfinite(distance_m):
            axes.parts.append(_spot(axes.x(step), axes.y(distance_m), f"step {step}: {distance_m:.2f} m"))
    return axes.svg()


def room_plot(data: EpisodeData) -> Markup:
    """The room over time, goal rooms marked; empty where the task is about no room."""
    if not data.goal_rooms:
        return Markup("")
    height = _TOP + _BAND + _BOTTOM
    axes = _Axes("room", "step", max(1, len(data.rooms)), 1.0, height)
    axes.x_ticks(whole=True)
    inside = [any(room.contains(pose.x_m, pose.y_m) for room in data.goal_rooms) for pose in data.poses]
    names = [room.category.replace("_", " ") if room is not None else "no room" for room in data.rooms]
    for first, last in _equal_runs(list(zip(names, inside, strict=True))):
        name, there = names[first], inside[first]
        steps = f"step {first}" if first == last - 1 else f"steps {first} to {last - 1}"
        axes.bar("room-goal" if there else "room-other", first, last, 1.0, f"{name}, {steps}")
        if axes.x(last) - axes.x(first) > 7 * len(name):
            axes.text((axes.x(first) + axes.x(last)) / 2, _TOP + _BAND / 2 + 4, name, "middle")
    return axes.svg()


# --- many episodes --------------------------------------------------------------------------------------------------


def success_by_distance(episodes: Sequence[tuple[float, bool]]) -> Markup:
    """Success per bin of the shortest path, with Wilson's interval and the number of episodes.

    Args:
        episodes: (shortest path in metres, whether it succeeded); of none there is no plot.
    """
    if not episodes:
        return Markup("")
    step = _step(max(0.5, *(length_m for length_m, _ in episodes)), DISTANCE_BINS)
    bins: dict[int, list[bool]] = {}
    for length_m, won in episodes:
        bins.setdefault(int(length_m / step), []).append(won)
    axes = _Axes("success by shortest path (episodes above)", "m", step * (max(bins) + 1), 1.0)
    axes.y_ticks(" %", 100)
    axes.x_ticks()
    for number, outcomes in sorted(bins.items()):
        rate = wilson(sum(outcomes), len(outcomes), CONFIDENCE)
        middle, span = (number + 0.5) * step, f"{number * step:g} to {(number + 1) * step:g} m"
        tip = (
            f"{span}: {sum(outcomes)} of {len(outcomes)}, {100 * rate.mean:.0f} %, "
            f"{CONFIDENCE:.0%} interval {100 * rate.low:.0f} to {100 * rate.high:.0f} %"
        )
        axes.bar("bar", number * step, (number + 1) * step, rate.mean, tip)
        axes.line("whisker", middle, rate.low, middle, rate.high)
        axes.text(axes.x(middle), _TOP - 5, str(len(outcomes)), "middle")
    return axes.svg()


def distribution(title: str, values: Sequence[float], interval: Interval, high: float | None = None) -> Markup:
    """A histogram of values >= 0 with the mean and its interval.

    Args:
        high: the greatest possible value; None takes the greatest there is.
    """
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return Markup("")
    width = high / VALUE_BINS if high else _step(max(*finite, 0.1), VALUE_BINS)
    counts: dict[int, int] = {}
    for value in finite:
        number = min(int(value / width + 1e-9), VALUE_BINS - 1) if high else int(value / width)
        counts[number] = counts.get(number, 0) + 1
    last = VALUE_BINS if high else max(counts) + 1
    axes = _Axes(title, "", width * last, max(counts.values()) * 1.1)
    axes.y_ticks(whole=True)
    axes.x_ticks()
    for number, count in sorted(counts.items()):
        tip = f"{number * width:.3g} to {(number + 1) * width:.3g}: {_episodes(count)}"
        axes.bar("bar", number * width, (number + 1) * width, count, tip)
    if math.isfinite(interval.mean) and interval.mean <= axes.x_max:
        low, top = (
            value if math.isfinite(value) else interval.mean for value in (interval.low, min(interval.high, axes.x_max))
        )
        tip = f"mean {interval.mean:.3g}, {CONFIDENCE:.0%} interval {low:.3g} to {top:.3g}"
        axes.parts.append(
            Markup('<rect class="interval" x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect>').format(
                *map(n, (axes.x(low), _TOP, max(1.0, axes.x(top) - axes.x(low)), axes.floor - _TOP)), tip
            )
        )
        axes.line("mean", interval.mean, 0, interval.mean, axes.y_max)
    return axes.svg()


def count_plot(title: str, counts: Sequence[int]) -> Markup:
    """Episodes by a count: 0, 1, 2 to 3, 4 to 7 and so on; of many classes the labels are where each begins."""
    classes: dict[int, int] = {}
    for count in counts:
        classes[count.bit_length()] = classes.get(count.bit_length(), 0) + 1
    axes = _Axes(title, "per episode", max(*classes, 3) + 1, max(classes.values()) * 1.1)
    axes.y_ticks(whole=True)
    for number in range(int(axes.x_max)):
        low, high = (1 << number) >> 1, max(0, (1 << number) - 1)
        label = str(low) if low == high else f"{low}–{high}"
        axes.text(axes.x(number + 0.5), axes.floor + 17, label if axes.x_max < 6 else str(low), "middle")
        if number in classes:
            axes.bar("bar", number, number + 1, classes[number], f"{label}: {_episodes(classes[number])}")
    return axes.svg()


# --- pieces ---------------------------------------------------------------------------------------------------------


def ticks(high: float, whole: bool = False) -> list[float]:
    """Round numbers from 0 up to ``high``, about five of them."""
    step = _step(high, 5)
    step = max(1.0, step) if whole else step
    return [i * step for i in range(int(high / step + 1e-9) + 1)]


def _step(high: float, parts: int) -> float:
    """The smallest round number of which ``parts`` reach ``high``."""
    power = 10.0 ** math.floor(math.log10(high / parts))
    return next(factor * power for factor in (1, 2, 5, 10, 20) if factor * power >= high / parts * (1 - 1e-9))


def _episodes(count: int) -> str:
    return f"{count} episode{'' if count == 1 else 's'}"


def _spot(x: float, y: float, tip: str) -> Markup:
    """An invisible place that says its value when pointed at."""
    return Markup('<circle class="spot" cx="{}" cy="{}" r="5"><title>{}</title></circle>').format(n(x), n(y), tip)


def _finite_runs(values: Sequence[float]) -> Iterable[list[tuple[int, float]]]:
    run: list[tuple[int, float]] = []
    for index, value in enumerate(values):
        if math.isfinite(value):
            run.append((index, value))
        elif run:
            yield run
            run = []
    if run:
        yield run


def _equal_runs(values: Sequence[object]) -> Iterable[tuple[int, int]]:
    """(first, end) of each run of equal values; the end is excluded."""
    first = 0
    for index in range(1, len(values) + 1):
        if index == len(values) or values[index] != values[first]:
            yield first, index
            first = index
