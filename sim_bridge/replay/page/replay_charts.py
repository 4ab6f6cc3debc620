"""Charts of a replay's page: values over steps, with a cursor that the script moves, and depth bias by image row."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from robot_runtime.records import StepRecord
from robot_runtime.scoring.report.charts import WIDTH, Chart, element, points
from sim_bridge.replay.image_error import BANDS
from sim_bridge.replay.results import ActionReplay, PoseReplay, Replay

LEFT, RIGHT = 46, WIDTH - 12
"""Frame of the charts over steps; the script needs it to place cursors."""

Values = Sequence[float | None]
"""One value per step; None makes a gap."""


@dataclass(frozen=True)
class Curve:
    """One line of a chart; ``css`` is its class and sets its color."""

    label: str
    css: str
    values: Values


def time_chart(
    title: str,
    steps: Sequence[int],
    curves: Sequence[Curve],
    limit: float | None = None,
    marks: Sequence[int] = (),
    least: float = 1e-3,
) -> Markup:
    """A chart of values by step; empty without any value.

    Args:
        title: title of the chart.
        steps: indices of the steps, ascending, one per value.
        curves: the lines.
        limit: a value to be drawn as a dashed line.
        marks: steps to be marked at the bottom.
        least: lower bound of the top of the range, so that rounding errors are not magnified.
    """
    known = [value for curve in curves for value in curve.values if value is not None and math.isfinite(value)]
    if not known:
        return Markup("")
    low, high = min(0.0, *known), max(least, *known, limit or 0.0)
    margin = 0.05 * (high - low)
    first, last = steps[0], max(steps[-1], steps[0] + 1)
    y_range = (low - margin if low < 0 else 0.0, high + margin)
    chart = Chart(title, (first, last), y_range, 182, (LEFT, WIDTH - RIGHT, 30, 36))
    chart.y_ticks()
    chart.x_ticks(whole=True, title="step")
    if limit is not None:
        chart.level("limit", limit)
    for step in marks:
        chart.mark("mark", step)
    for curve in curves:
        chart.curve(curve.css, steps, curve.values)
    if len(curves) > 1:
        chart.legend([(curve.label, curve.css) for curve in curves])
    chart.parts.append(element("line", "cursor", x1=LEFT, x2=LEFT, y1=chart.top, y2=chart.bottom))
    return chart.svg("plot timed", data_first=first, data_last=last)


def step_charts(replay: Replay, records: Sequence[StepRecord]) -> list[Markup]:
    """The charts over steps of everything that was replayed."""
    steps = [record.index for record in records]
    if not steps:
        return []
    charts = []
    if replay.action is not None:
        charts += _action_charts(replay.action, steps)
    if replay.pose is not None:
        charts += _pose_charts(replay.pose, steps)
    charts += _open_loop_charts(replay, steps)
    return [chart for chart in charts if chart]


def _action_charts(action: ActionReplay, steps: Sequence[int]) -> list[Markup]:
    by_index = {step.index: step for step in action.steps}
    marks = [step.index for step in action.steps if step.contact_recorded != step.contact_replayed]
    distance_cm: list[float | None] = []
    turned_deg: list[float | None] = []
    for index in steps:
        step = by_index.get(index)
        distance_cm.append(None if step is None or step.distance_m is None else 100 * step.distance_m)
        turned_deg.append(None if step is None or step.turned_rad is None else math.degrees(step.turned_rad))
    limit, marked = action.thresholds, " (marked: contact in one only)" if marks else ""
    title = f"replayed − recorded position, cm{marked}"
    position, heading = Curve("position", "value", distance_cm), Curve("heading", "value", turned_deg)
    return [
        time_chart(title, steps, [position], 100 * limit.position_m, marks, least=1.0),
        time_chart("replayed − recorded heading, °", steps, [heading], limit.heading_deg, marks, least=0.5),
    ]


def _pose_charts(pose: PoseReplay, steps: Sequence[int]) -> list[Markup]:
    frames = {frame.index: frame for frame in pose.frames}

    def values(part: str, name: str) -> Values:
        return [getattr(getattr(frames[index], part), name) if index in frames else None for index in steps]

    depth = [
        Curve("median amount", "value", values("depth", "median_mm")),
        Curve("bias", "second", values("depth", "bias_mm")),
    ]
    color = [Curve("mean difference", "value", values("color", "mean_abs"))]
    return [
        time_chart("depth error, mm", steps, depth, least=1.0),
        time_chart("color, mean difference of 255", steps, color, least=1.0),
    ]


def _open_loop_charts(replay: Replay, steps: Sequence[int]) -> list[Markup]:
    decided = replay.open_loop
    if decided is None:
        return []
    by_index = {step.index: step for step in decided.steps}
    marks = [step.index for step in decided.differences]
    distances: list[float | None] = [
        step.logits.max_abs if (step := by_index.get(i)) is not None and step.logits is not None else None
        for i in steps
    ]
    if all(value is None for value in distances):
        other = [None if (step := by_index.get(i)) is None else float(not step.same) for i in steps]
        return [time_chart("decides otherwise", steps, [Curve("decision", "value", other)], marks=marks, least=1.0)]
    curve = Curve("largest logit difference", "value", distances)
    return [time_chart("logits, largest difference (marked: decides otherwise)", steps, [curve], marks=marks)]


# --- depth bias over the image's rows -------------------------------------------------------------------------------


def bands_chart(replay: Replay) -> Markup:
    """Depth bias from the top of the image to its bottom: the episode's median, and the current step's."""
    pose = replay.pose
    median = _median_bands(pose) if pose is not None else []
    if pose is None or all(value is None for value in median):
        return Markup("")
    chart, line = _bands_frame(pose)
    chart.x_ticks(grid=True)
    chart.text(chart.left - 8, chart.top + 8, "top", "end")
    chart.text(chart.left - 8, chart.bottom, "bottom", "end")
    chart.parts += [element("polyline", "value", points=line(median)), element("polyline", "now", points="")]
    chart.legend([("episode", "value"), ("this step", "second")])
    return chart.svg()


def band_points(replay: Replay, steps: Sequence[int]) -> list[str]:
    """The line of each step in :func:`bands_chart`."""
    if replay.pose is None:
        return []
    frames = {frame.index: frame for frame in replay.pose.frames}
    _, line = _bands_frame(replay.pose)
    return [line(frames[index].depth.bands_mm) if index in frames else "" for index in steps]


def _bands_frame(pose: PoseReplay) -> tuple[Chart, Callable[[Values], str]]:
    """The chart without curves, whose range has nine of ten bands, and the coordinates of a curve in it."""
    errors = [abs(value) for frame in pose.frames for value in frame.depth.bands_mm if value is not None]
    most = max(5.0, 1.1 * float(np.percentile(errors, 90))) if errors else 5.0
    chart = Chart("depth bias by height in the image, mm", (-most, most), (BANDS, 0), 230, (64, 12, 30, 34))

    def line(bands_mm: Values) -> str:
        return points(
            (chart.x(max(-most, min(most, value))), chart.y(band + 0.5))
            for band, value in enumerate(bands_mm)
            if value is not None
        )

    return chart, line


def _median_bands(pose: PoseReplay) -> Values:
    bands = [frame.depth.bands_mm for frame in pose.frames if frame.depth.bands_mm]
    columns = ([value for values in bands if (value := values[band]) is not None] for band in range(BANDS))
    return [float(np.median(column)) if column else None for column in columns]
