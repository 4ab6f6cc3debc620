"""The map and the plots of a replay's page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby

import numpy as np
from markupsafe import Markup

from robot_runtime.records import StepRecord
from robot_runtime.scoring.report.svg_map import n
from robot_runtime.scoring.report.svg_plots import ticks
from sim_bridge.replay.image_error import BANDS
from sim_bridge.replay.page.time_plot import Curve, Values, time_plot
from sim_bridge.replay.page.trajectories import Tracks
from sim_bridge.replay.results import ActionReplay, Divergence, PoseReplay, Replay

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 440, 230, 64, 12, 30, 34
"""Of the plot of bands."""


# --- map ------------------------------------------------------------------------------------------------------------


def overlay(tracks: Tracks, divergence: Divergence | None, unit: float) -> Markup:
    """The ways on the map, and where the replay has left the recorded one."""
    parts = []
    for name, track in tracks.by_name.items():
        for known, run in groupby(track, key=lambda point: point is not None):
            if known:
                points = " ".join(f"{n(point[0])},{n(-point[1])}" for point in run if point is not None)
                shape = Markup('<polyline class="path {}" data-track="{}" points="{}"/>')
                parts.append(shape.format(name, name, points))
    at = tracks.at("recorded", divergence.index) if divergence is not None else None
    if divergence is not None and at is not None:
        shape = Markup(
            '<circle class="diverged" cx="{}" cy="{}" r="{}"><title>first divergence: step {}</title></circle>'
        )
        parts.append(shape.format(n(at[0]), n(-at[1]), n(unit * 2.4), divergence.index))
    return Markup("").join(parts)


# --- over steps -----------------------------------------------------------------------------------------------------


def plots(replay: Replay, records: Sequence[StepRecord]) -> list[Markup]:
    """Everything that goes by step, of which there is something."""
    steps = [record.index for record in records]
    if not steps:
        return []
    found = []
    if replay.action is not None:
        found += _action_plots(replay.action, steps)
    if replay.pose is not None:
        found += _pose_plots(replay.pose, steps)
    found += _open_loop_plots(replay, steps)
    return [plot for plot in found if plot]


def _action_plots(action: ActionReplay, steps: Sequence[int]) -> list[Markup]:
    by_index = {step.index: step for step in action.steps}
    marks = [step.index for step in action.steps if step.contact_recorded != step.contact_replayed]
    apart = [step.distance_m if (step := by_index.get(i)) is not None else None for i in steps]
    turned = [
        math.degrees(step.turned_rad) if (step := by_index.get(i)) is not None and step.turned_rad is not None else None
        for i in steps
    ]
    limit, marked = action.thresholds, " (marked: contact in one only)" if marks else ""
    position = Curve("position", "value", [None if value is None else 100 * value for value in apart])
    heading = Curve("heading", "value", turned)
    return [
        time_plot(
            f"replayed − recorded position, cm{marked}", steps, [position], 100 * limit.position_m, marks, least=1.0
        ),
        time_plot("replayed − recorded heading, °", steps, [heading], limit.heading_deg, marks, least=0.5),
    ]


def _pose_plots(pose: PoseReplay, steps: Sequence[int]) -> list[Markup]:
    frames = {frame.index: frame for frame in pose.frames}

    def of(*names: str) -> Values:
        values: list[float | None] = []
        for index in steps:
            value = frames.get(index)
            for name in names:
                value = getattr(value, name) if value is not None else None
            values.append(value)  # type: ignore[arg-type]
        return values

    depth = [Curve("median amount", "value", of("depth", "median_mm")), Curve("bias", "second", of("depth", "bias_mm"))]
    color = [Curve("mean difference", "value", of("color", "mean_abs"))]
    return [
        time_plot("depth error, mm", steps, depth, least=1.0),
        time_plot("colour, mean difference of 255", steps, color, least=1.0),
    ]


def _open_loop_plots(replay: Replay, steps: Sequence[int]) -> list[Markup]:
    found = replay.open_loop
    if found is None:
        return []
    by_index = {step.index: step for step in found.steps}
    marks = [step.index for step in found.differences]
    distances: list[float | None] = [
        step.logits.max_abs if (step := by_index.get(i)) is not None and step.logits is not None else None
        for i in steps
    ]
    if all(value is None for value in distances):
        same = [None if (step := by_index.get(i)) is None else float(not step.same) for i in steps]
        return [time_plot("decides otherwise", steps, [Curve("decision", "value", same)], marks=marks, least=1.0)]
    curve = Curve("largest logit difference", "value", distances)
    return [time_plot("logits, largest difference (marked: decides otherwise)", steps, [curve], marks=marks)]


# --- over the image's rows ------------------------------------------------------------------------------------------


def bands_plot(replay: Replay) -> Markup:
    """Depth bias from the top of the image to its bottom: the episode's median, and the present step's."""
    pose = replay.pose
    median = _median_bands(pose) if pose is not None else []
    if pose is None or all(value is None for value in median):
        return Markup("")
    most = _most_mm(pose)
    parts = [Markup('<text x="0" y="13" class="title">depth bias by height in the image, mm</text>')]
    step = ticks(2 * most)[1]
    grid = Markup(
        '<line class="{}" x1="{x}" x2="{x}" y1="{}" y2="{}"/><text x="{x}" y="{}" text-anchor="middle">{}</text>'
    )
    for number in range(math.ceil(-most / step), math.floor(most / step) + 1):
        css = "grid zero" if number == 0 else "grid"
        x = n(_band_x(number * step, most))
        parts.append(grid.format(css, _TOP, _HEIGHT - _BOTTOM, _HEIGHT - 16, f"{number * step:g}", x=x))
    for text, y in (("top", _TOP + 8), ("bottom", _HEIGHT - _BOTTOM)):
        parts.append(Markup('<text x="{}" y="{}" text-anchor="end">{}</text>').format(_LEFT - 8, y, text))
    parts.append(Markup('<polyline class="value" points="{}"/>').format(_points(median, most)))
    parts.append(Markup('<polyline class="now" points=""/>'))
    parts.append(Markup('<text class="value" x="{}" y="13" text-anchor="end">episode</text>').format(_WIDTH - 80))
    parts.append(
        Markup('<text class="second" x="{}" y="13" text-anchor="end">this step</text>').format(_WIDTH - _RIGHT)
    )
    return Markup('<svg class="plot" viewBox="0 0 {} {}" role="img" aria-label="depth bias by row">{}</svg>').format(
        _WIDTH, _HEIGHT, Markup("").join(parts)
    )


def band_points(replay: Replay, steps: Sequence[int]) -> list[str]:
    """Each step's own line in :func:`bands_plot`."""
    if replay.pose is None:
        return []
    frames = {frame.index: frame for frame in replay.pose.frames}
    most = _most_mm(replay.pose)
    return [_points(frames[index].depth.bands_mm, most) if index in frames else "" for index in steps]


def _median_bands(pose: PoseReplay) -> list[float | None]:
    bands = [frame.depth.bands_mm for frame in pose.frames if frame.depth.bands_mm]
    columns = ([value for one in bands if (value := one[band]) is not None] for band in range(BANDS))
    return [float(np.median(column)) if column else None for column in columns]


def _most_mm(pose: PoseReplay) -> float:
    """The plot's range: what nine of ten bands lie within."""
    amounts = [abs(value) for frame in pose.frames for value in frame.depth.bands_mm if value is not None]
    return max(5.0, 1.1 * float(np.percentile(amounts, 90))) if amounts else 5.0


def _points(bands_mm: Sequence[float | None], most: float) -> str:
    height = (_HEIGHT - _BOTTOM - _TOP) / BANDS
    return " ".join(
        f"{n(_band_x(value, most))},{n(_TOP + (band + 0.5) * height)}"
        for band, value in enumerate(bands_mm)
        if value is not None
    )


def _band_x(value_mm: float, most: float) -> float:
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (0.5 + 0.5 * max(-1.0, min(1.0, value_mm / most)))
