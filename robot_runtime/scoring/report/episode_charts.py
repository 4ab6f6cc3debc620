"""Charts of an episode: distance to the goal, trajectories by source of poses."""

import math

import numpy as np
from markupsafe import Markup

from robot_runtime.scoring.pose_tracks import PoseTrack
from robot_runtime.scoring.report.charts import WIDTH, Chart, element, points
from robot_runtime.scoring.report.episode_data import EpisodeData

_ORDER = ("measured", "odometry", "referee", "policy", "smoothed")
"""Kinds of tracks in the order of drawing; the last is on top."""

_LEAST_SPAN_M = 1.0
"""Smallest extent of the trajectories, so that small motion is not magnified."""


def distance_plot(data: EpisodeData) -> Markup:
    """Distance to the goal over steps, with the contacts; empty if there is none. Steps off the map are gaps."""
    finite = [(step, d) for step, d in enumerate(data.distances_m) if math.isfinite(d)]
    if not finite:
        return Markup("")
    success = data.header.task.success
    high = max(*(d for _, d in finite), success.distance_m, 0.1) * 1.05
    chart = Chart("distance to goal, m", (0, max(1, len(data.distances_m) - 1)), (0, high))
    chart.y_ticks()
    chart.x_ticks(whole=True, title="step")
    if success.rule == "distance":
        chart.level("limit", success.distance_m)
        chart.text(chart.x(0) + 4, chart.y(success.distance_m) - 4, f"success radius {success.distance_m:g} m", "start")
    for step in data.contacts:
        chart.mark("contact", step, f"contact in step {step}", 8)
    chart.curve("curve", range(len(data.distances_m)), data.distances_m)
    for step, d in finite:
        tip = f"step {step}: {d:.2f} m"
        chart.parts.append(element("circle", "spot", tip=tip, cx=chart.x(step), cy=chart.y(d), r=5))
    return chart.svg()


def pose_plot(data: EpisodeData) -> Markup:
    """The trajectories of all sources of poses, with 95 % ellipses and a scale; empty with fewer than two."""
    tracks = sorted(data.pose_tracks, key=lambda track: _ORDER.index(track.kind))
    lines = [track.points for track in tracks if track.kind != "measured" and len(track.points)]
    if len(lines) < 2:
        return Markup("")
    everything = np.concatenate(lines)
    low, high = everything.min(0), everything.max(0)
    span = np.maximum(high - low, _LEAST_SPAN_M)
    (x0, y0), margin, top = (low + high - span) / 2, 14, 40
    scale = float(min((WIDTH - 2 * margin) / span[0], (460 - top - margin) / span[1]))
    chart = Chart(
        "where the robot was, by source",
        (float(x0), float(x0) + (WIDTH - 2 * margin) / scale),
        (float(y0), float(y0 + span[1])),
        top + margin + float(span[1]) * scale,
        (margin, margin, top, margin),
    )
    for track in tracks:
        _draw_track(chart, track, scale)
    length_m = next(value for value in (2.0, 1.0, 0.5, 0.2) if value * scale < WIDTH / 3)
    foot = chart.height - 4
    chart.parts.append(element("line", "whisker", x1=chart.right - length_m * scale, x2=chart.right, y1=foot, y2=foot))
    chart.text(chart.right, foot - 5, f"{length_m:g} m", "end")
    for track in reversed(tracks):
        chart.height += 17
        _draw_legend(chart, track, chart.height - 3)
    chart.height += 6
    return chart.svg()


def _draw_track(chart: Chart, track: PoseTrack, scale: float) -> None:
    pairs = [(chart.x(float(x)), chart.y(float(y))) for x, y in track.points]
    css = f"pose-{track.kind}"
    if track.kind == "measured":
        visible = [(x, y) for x, y in pairs if 0 <= x <= WIDTH and chart.top - 14 <= y <= chart.height]
        chart.parts += [element("circle", css, cx=x, cy=y, r=1.6) for x, y in visible]
        return
    if pairs:
        chart.parts.append(element("polyline", css, tip=track.name, points=points(pairs)))
    for one in track.ellipses:
        x, y = chart.x(one.x_m), chart.y(one.y_m)
        tip = f"{track.name}: 95 % within {100 * one.long_m:.1f} x {100 * one.short_m:.1f} cm"
        rx, ry = one.long_m * scale, one.short_m * scale
        turn = f"rotate({-math.degrees(one.angle_rad):.3f} {x:.3f} {y:.3f})"
        chart.parts.append(element("ellipse", css, tip=tip, cx=x, cy=y, rx=rx, ry=ry, transform=turn))


def _draw_legend(chart: Chart, track: PoseTrack, y: float) -> None:
    more = {"odometry": ", from where the referee first saw the robot", "measured": ", as measured"}
    css = f"pose-{track.kind}"
    if track.kind == "measured":
        chart.parts.append(element("circle", css, data_source=track.kind, cx=18, cy=y - 4, r=2.4))
    else:
        chart.parts.append(element("line", css, data_source=track.kind, x1=4, x2=32, y1=y - 4, y2=y - 4))
    chart.text(40, y, track.name + more.get(track.kind, ""), "start")
