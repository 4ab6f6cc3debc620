"""The ways that the sources of poses tell of, as one SVG: lines, measurements as dots, 95 % ellipses, a scale."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

from robot_runtime.scoring.pose_tracks import Ellipse, PoseTrack
from robot_runtime.scoring.report.episode_data import EpisodeData
from robot_runtime.scoring.report.svg_map import n

_WIDTH, _MAX_HEIGHT = 440, 460
_TOP, _MARGIN, _LEGEND = 26, 14, 17
_SMALLEST_M = 1.0
"""A robot that hardly moved is not shown as if it had crossed the house."""
_ORDER = ("measured", "odometry", "referee", "policy", "smoothed")
"""Of drawing: what matters most lies on top."""


def pose_plot(data: EpisodeData) -> Markup:
    """All tracks of an episode in one frame; empty if there is nothing to compare."""
    tracks = sorted(data.pose_tracks, key=lambda track: _ORDER.index(track.kind))
    lines = [track for track in tracks if track.kind != "measured" and len(track.points)]
    if len(lines) < 2:
        return Markup("")
    frame = _Frame(lines)
    parts = [Markup('<text x="0" y="13" class="title">where the robot was, by source</text>')]
    parts += [_drawn(track, frame) for track in tracks if len(track.points)]
    parts += [frame.scale()]
    parts += [
        _legend(track, frame.height + 14 + _LEGEND * row)
        for row, track in enumerate(sorted(tracks, key=lambda track: -_ORDER.index(track.kind)))
    ]
    height = frame.height + _LEGEND * len(tracks) + 6
    return Markup('<svg class="plot" viewBox="0 0 {} {}" role="img" aria-label="poses by source">{}</svg>').format(
        _WIDTH, n(height), Markup("").join(parts)
    )


class _Frame:
    """From metres of the map to the drawing."""

    def __init__(self, tracks: Sequence[PoseTrack]) -> None:
        points = np.concatenate([track.points for track in tracks])
        low, high = points.min(0), points.max(0)
        centre, size = (low + high) / 2, np.maximum(high - low, _SMALLEST_M)
        self._factor = min((_WIDTH - 2 * _MARGIN) / size[0], (_MAX_HEIGHT - _TOP - 2 * _MARGIN) / size[1])
        self._x0, self._y0 = centre[0] - size[0] / 2, centre[1] + size[1] / 2
        self.height = _TOP + 2 * _MARGIN + float(size[1] * self._factor)

    def x(self, x_m: float) -> float:
        return _MARGIN + float((x_m - self._x0) * self._factor)

    def y(self, y_m: float) -> float:
        return _TOP + _MARGIN + float((self._y0 - y_m) * self._factor)

    def length(self, length_m: float) -> float:
        return float(length_m * self._factor)

    def scale(self) -> Markup:
        """A bar of a round length."""
        length_m = next(value for value in (2.0, 1.0, 0.5, 0.2) if self.length(value) < _WIDTH / 3)
        x, y = _WIDTH - _MARGIN, self.height - 4
        return Markup(
            '<line class="whisker" x1="{}" x2="{}" y1="{}" y2="{}"/><text x="{}" y="{}" text-anchor="end">{} m</text>'
        ).format(n(x - self.length(length_m)), n(x), n(y), n(y), n(x), n(y - 5), f"{length_m:g}")


def _drawn(track: PoseTrack, frame: _Frame) -> Markup:
    xs, ys = [frame.x(x) for x in track.points[:, 0]], [frame.y(y) for y in track.points[:, 1]]
    if track.kind == "measured":
        dot = Markup('<circle class="pose-measured" cx="{}" cy="{}" r="1.6"/>')
        inside = [(x, y) for x, y in zip(xs, ys, strict=True) if 0 <= x <= _WIDTH and _TOP <= y <= frame.height]
        return Markup("").join(dot.format(n(x), n(y)) for x, y in inside)
    points = " ".join(f"{n(x)},{n(y)}" for x, y in zip(xs, ys, strict=True))
    line = Markup('<polyline class="pose-{}" points="{}"><title>{}</title></polyline>').format(
        track.kind, points, track.name
    )
    return line + Markup("").join(_ellipse(track, one, frame) for one in track.ellipses)


def _ellipse(track: PoseTrack, one: Ellipse, frame: _Frame) -> Markup:
    tip = f"{track.name}: 95 % within {100 * one.long_m:.1f} x {100 * one.short_m:.1f} cm"
    return Markup(
        '<ellipse class="pose-{}" cx="{x}" cy="{y}" rx="{}" ry="{}" transform="rotate({} {x} {y})"><title>{}</title>'
        "</ellipse>"
    ).format(
        track.kind,
        n(frame.length(one.long_m)),
        n(frame.length(one.short_m)),
        n(-math.degrees(one.angle_rad)),
        tip,
        x=n(frame.x(one.x_m)),
        y=n(frame.y(one.y_m)),
    )


def _legend(track: PoseTrack, y: float) -> Markup:
    more = {"odometry": ", from where the referee first saw the robot", "measured": ", as measured"}
    said = track.name + more.get(track.kind, "")
    if track.kind == "measured":
        mark = Markup('<circle class="pose-measured" cx="18" cy="{}" r="2.4"/>').format(n(y - 4))
    else:
        mark = Markup('<line class="pose-{}" x1="4" x2="32" y1="{y}" y2="{y}"/>').format(track.kind, y=n(y - 4))
    return mark + Markup('<text x="40" y="{}">{}</text>').format(n(y), said)
