"""Maps and plots as SVG. Colours are CSS variables of the page, so that one drawing serves light and dark."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from robot_runtime.geometry import SE2
from robot_runtime.maps import Cell, OccupancyMap
from robot_runtime.scene import Scene, SceneObject
from robot_runtime.scoring.view import EpisodeView

MIN_FOOTPRINT_M2 = 0.03
FURNITURE_Z_M = (0.05, 0.9)

Box = tuple[float, float, float, float]
"""x, y, width, height in metres of the drawing, whose y grows downwards: y = -y of the map."""


def map_box(occupancy: OccupancyMap, margin_m: float = 0.1) -> Box:
    """What there is to see of a map: everything known, with a margin."""
    rows, columns = np.nonzero(occupancy.cells != Cell.UNKNOWN)
    if not len(rows):
        return -1.0, -1.0, 2.0, 2.0
    res = occupancy.resolution_m
    x0 = occupancy.origin_x_m + float(columns.min()) * res - margin_m
    x1 = occupancy.origin_x_m + float(columns.max() + 1) * res + margin_m
    y0 = occupancy.origin_y_m + float(rows.min()) * res - margin_m
    y1 = occupancy.origin_y_m + float(rows.max() + 1) * res + margin_m
    return x0, -y1, x1 - x0, y1 - y0


def map_paths(occupancy: OccupancyMap) -> Markup:
    """Free and occupied cells as two paths."""
    return Markup('<path class="floor" d="{}"/><path class="wall" d="{}"/>').format(
        _cells_path(occupancy, Cell.FREE), _cells_path(occupancy, Cell.OCCUPIED)
    )


def furniture(scene: Scene) -> tuple[SceneObject, ...]:
    """What stands on a map: no rugs, no lamps overhead, nothing too small to be seen; the largest first."""
    shown = [
        item
        for item in scene.objects
        if item.size[0] * item.size[1] >= MIN_FOOTPRINT_M2
        and item.center[2] + item.size[2] / 2 > FURNITURE_Z_M[0]
        and item.center[2] - item.size[2] / 2 < FURNITURE_Z_M[1]
    ]
    return tuple(sorted(shown, key=lambda item: -item.size[0] * item.size[1]))


def object_shapes(scene: Scene) -> Markup:
    """The furniture's footprints, so that it can be told from walls."""
    return Markup("").join(_footprint("thing", item, item.size[0], item.size[1]) for item in furniture(scene))


def room_labels(scene: Scene, box: Box) -> Markup:
    """The rooms' categories, each in the middle of its polygon."""
    size = _unit(box) * 2.6
    labels = []
    for room in scene.rooms:
        x = sum(p[0] for p in room.polygon) / len(room.polygon)
        y = -sum(p[1] for p in room.polygon) / len(room.polygon)
        labels.append(
            Markup('<text class="room" x="{}" y="{}" font-size="{}">{}</text>').format(
                _n(x), _n(y), _n(size), room.category.replace("_", " ")
            )
        )
    return Markup("").join(labels)


def episode_overlay(view: EpisodeView, box: Box) -> Markup:
    """Shortest path, goals, trajectory, contacts, start and end, in the map's coordinates."""
    unit = _unit(box)
    parts = [_goals(view, unit)]
    if len(view.shortest):
        parts.append(_polyline("shortest", view.shortest.tolist()))
    track = [(pose.x_m, pose.y_m) for pose in view.poses]
    parts += [_polyline("halo", track), _polyline("track", track)]
    parts += [_start(view.poses[0], unit * 1.3), _end(view, unit * 1.1)]
    parts += [_cross(view, i, unit) for i in view.contacts]
    return Markup("").join(parts)


def distance_plot(view: EpisodeView, width: int = 440, height: int = 250) -> Markup:
    """Distance to the goal over steps; empty if there is none. Steps off the map are gaps; ticks mark contacts."""
    finite = [d for d in view.distances_m if math.isfinite(d)]
    if not finite:
        return Markup("")
    left, right, top, bottom = 34, 14, 26, 34
    steps, high = max(1, len(view.distances_m) - 1), max(*finite, view.header.task.success.distance_m) * 1.05

    def x(step: float) -> float:
        return left + (width - left - right) * step / steps

    def y(distance_m: float) -> float:
        return top + (height - top - bottom) * (1 - distance_m / high)

    parts = [
        Markup('<line class="grid" x1="{}" x2="{}" y1="{y}" y2="{y}"/>').format(left, width - right, y=_n(y(tick)))
        + Markup('<text x="{}" y="{}" text-anchor="end">{:g}</text>').format(left - 6, _n(y(tick) + 4), tick)
        for tick in _ticks(high)
    ]
    parts += [
        Markup('<text x="{}" y="{}" text-anchor="middle">{:g}</text>').format(_n(x(tick)), height - 16, tick)
        for tick in _ticks(steps, whole=True)
    ]
    parts.append(Markup('<text x="{}" y="{}" text-anchor="end">step</text>').format(width - right, height - 2))
    parts.append(Markup('<text x="0" y="12">distance to goal, m</text>'))
    if view.header.task.success.rule == "distance":
        limit = _n(y(view.header.task.success.distance_m))
        parts.append(
            Markup('<line class="limit" x1="{}" x2="{}" y1="{y}" y2="{y}"/>').format(left, width - right, y=limit)
        )
    floor = height - bottom
    parts += [
        Markup('<line class="contact" x1="{x}" x2="{x}" y1="{}" y2="{}"/>').format(floor, floor - 8, x=_n(x(step)))
        for step in view.contacts
    ]
    for run in _finite_runs(view.distances_m):
        points = " ".join(f"{_n(x(step))},{_n(y(d))}" for step, d in run)
        parts.append(Markup('<polyline class="curve" points="{}"/>').format(points))
    return Markup(
        '<svg class="plot" viewBox="0 0 {} {}" role="img" aria-label="distance to goal over steps">{}</svg>'
    ).format(width, height, Markup("").join(parts))


# --- pieces ---------------------------------------------------------------------------------------------------------


def _unit(box: Box) -> float:
    """A hundredth of the drawing's longer side: markers have one size on the page, whatever the map's."""
    return max(box[2], box[3]) / 100


def _n(value: float) -> str:
    """A number with as many digits as a drawing needs."""
    return f"{value:.3f}".rstrip("0").rstrip(".")


def _cells_path(occupancy: OccupancyMap, cell: Cell) -> str:
    res, x0, y0 = occupancy.resolution_m, occupancy.origin_x_m, occupancy.origin_y_m
    pieces = []
    for r0, r1, c0, c1 in rectangles(occupancy.cells == cell):
        width, height = (c1 - c0) * res, (r1 - r0) * res
        pieces.append(f"M{_n(x0 + c0 * res)} {_n(-(y0 + r1 * res))}h{_n(width)}v{_n(height)}h{_n(-width)}z")
    return "".join(pieces)


def rectangles(mask: NDArray[np.bool_]) -> Iterable[tuple[int, int, int, int]]:
    """Disjoint rectangles (row0, row1, column0, column1; ends excluded) that cover exactly the true cells."""
    open_runs: dict[tuple[int, int], int] = {}
    for row in range(mask.shape[0] + 1):
        line = mask[row] if row < mask.shape[0] else np.zeros(mask.shape[1], bool)
        edges = np.flatnonzero(np.diff(np.concatenate([[False], line, [False]])))
        runs = {(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)}
        for run in [r for r in open_runs if r not in runs]:
            yield open_runs.pop(run), row, *run
        for run in runs:
            open_runs.setdefault(run, row)


def _polyline(name: str, points: Iterable[Sequence[float]]) -> Markup:
    return Markup('<polyline class="{}" points="{}"/>').format(
        name, " ".join(f"{_n(point[0])},{_n(-point[1])}" for point in points)
    )


def _goals(view: EpisodeView, unit: float) -> Markup:
    items = {item.id: item for item in view.header.scene.objects}
    parts = [_object(items[goal.object_id], unit) for goal in view.header.episode.goals if goal.object_id in items]
    name, radius = ("goal", 1.3) if view.header.task.success.target == "goal" else ("viewpoint", 0.35)
    parts += [
        Markup('<circle class="{}" cx="{}" cy="{}" r="{}"/>').format(name, _n(x), _n(-y), _n(unit * radius))
        for x, y in view.targets
    ]
    return Markup("").join(parts)


def _object(item: SceneObject, unit: float) -> Markup:
    width, depth = max(item.size[0], unit), max(item.size[1], unit)
    x, y, size = item.center[0], -item.center[1] - depth / 2 - unit, unit * 2.4
    label = Markup('<text class="goal-label" x="{}" y="{}" font-size="{}">{}</text>')
    return _footprint("object", item, width, depth) + label.format(_n(x), _n(y), _n(size), item.category)


def _footprint(name: str, item: SceneObject, width: float, depth: float) -> Markup:
    return Markup(
        '<rect class="{}" x="{}" y="{}" width="{}" height="{}" transform="translate({} {}) rotate({})"/>'
    ).format(
        name,
        *map(_n, (-width / 2, -depth / 2, width, depth)),
        *map(_n, (item.center[0], -item.center[1], -item.yaw_deg)),
    )


def _cross(view: EpisodeView, index: int, size: float) -> Markup:
    """A cross at the robot's front, where it touched: its centre stays free for the path."""
    front = view.poses[index].apply(view.header.task.robot_radius_m, 0.0)
    x, y = front[0], -front[1]
    corners = (x - size, y - size, x + size, y + size, x - size, y + size, x + size, y - size)
    return Markup('<path class="contact" d="M{} {}L{} {}M{} {}L{} {}"/>').format(*map(_n, corners))


def _start(pose: SE2, size: float) -> Markup:
    """A hollow circle with a line towards the robot's front."""
    tip = pose.apply(2.2 * size, 0.0)
    return Markup('<path class="start" d="M{} {}L{} {}"/><circle class="start" cx="{}" cy="{}" r="{}"/>').format(
        *map(_n, (pose.x_m, -pose.y_m, tip[0], -tip[1], pose.x_m, -pose.y_m, size))
    )


def _end(view: EpisodeView, size: float) -> Markup:
    name = {True: "end won", False: "end lost", None: "end"}[view.succeeded]
    pose = view.poses[-1]
    return Markup('<circle class="{}" cx="{}" cy="{}" r="{}"/>').format(name, *map(_n, (pose.x_m, -pose.y_m, size)))


def _ticks(high: float, whole: bool = False) -> list[float]:
    """Round numbers from 0 up to ``high``, about five of them."""
    power = 10.0 ** math.floor(math.log10(high / 5))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= high / 5)
    step = max(1.0, step) if whole else step
    return [i * step for i in range(int(high / step) + 1)]


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
