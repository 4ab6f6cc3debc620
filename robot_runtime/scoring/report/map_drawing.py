"""Maps with trajectories as SVG, in meters of the map with its y axis flipped."""

from collections.abc import Iterable

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from robot_runtime.common.geometry import SE2
from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap
from robot_runtime.scenes.scene import Scene, SceneObject
from robot_runtime.scoring.report.charts import Point, element, n, points
from robot_runtime.scoring.report.episode_data import EpisodeData

MIN_FOOTPRINT_M2 = 0.03
FURNITURE_Z_M = (0.05, 0.9)

Box = tuple[float, float, float, float]
"""x, y, width, height of the drawing in meters; y = -y of the map."""


def map_box(occupancy: OccupancyMap, margin_m: float = 0.1) -> Box:
    """The extent of a map's known cells, with a margin."""
    rows, columns = np.nonzero(occupancy.cells != Cell.UNKNOWN)
    if not len(rows):
        return -1.0, -1.0, 2.0, 2.0
    res = occupancy.resolution_m
    x0 = occupancy.origin_x_m + float(columns.min()) * res - margin_m
    x1 = occupancy.origin_x_m + float(columns.max() + 1) * res + margin_m
    y0 = occupancy.origin_y_m + float(rows.min()) * res - margin_m
    y1 = occupancy.origin_y_m + float(rows.max() + 1) * res + margin_m
    return x0, -y1, x1 - x0, y1 - y0


def scene_shapes(scene: Scene) -> Markup:
    """Free and occupied cells as two paths, the furniture, and the categories of the rooms."""
    cells = [element("path", css, d=_cells_path(scene.map, cell)) for css, cell in _CELLS]
    things = [footprint("thing", item, item.size[0], item.size[1]) for item in furniture(scene)]
    size = unit_of(map_box(scene.map)) * 2.6
    labels = []
    for room in scene.rooms:
        x, y = (sum(point[axis] for point in room.polygon) / len(room.polygon) for axis in (0, 1))
        labels.append(element("text", "room", room.category.replace("_", " "), x=x, y=-y, font_size=size))
    return Markup("").join([*cells, *things, *labels, _scale_bar(map_box(scene.map))])


def scale_m(box: Box) -> float:
    """A round length of about a sixth of the drawing's longer side, for its scale bar."""
    longest = max(box[2], box[3]) / 6
    return max((length for length in (0.2, 0.5, 1.0, 2.0, 5.0, 10.0) if length <= longest), default=0.2)


def _scale_bar(box: Box) -> Markup:
    unit, length = unit_of(box), scale_m(box)
    left, foot = box[0] + 1.5 * unit, box[1] + box[3] - 1.2 * unit
    d = f"M{n(left)} {n(foot - unit)}v{n(unit)}h{n(length)}v{n(-unit)}"
    bars = (element("path", css, d=d) for css in ("scale-halo", "scale"))
    text = element(
        "text", "number scale-text", f"{length:g} m", x=left + length / 2, y=foot - 2 * unit, font_size=2.4 * unit
    )
    return Markup("").join([*bars, text])


_CELLS = (("floor", Cell.FREE), ("wall", Cell.OCCUPIED))


def furniture(scene: Scene) -> tuple[SceneObject, ...]:
    """The objects on the floor, the largest first: no rugs, no lamps overhead, no small things."""
    shown = [
        item
        for item in scene.objects
        if item.size[0] * item.size[1] >= MIN_FOOTPRINT_M2
        and item.center[2] + item.size[2] / 2 > FURNITURE_Z_M[0]
        and item.center[2] - item.size[2] / 2 < FURNITURE_Z_M[1]
    ]
    return tuple(sorted(shown, key=lambda item: -item.size[0] * item.size[1]))


def run_shapes(data: EpisodeData, unit: float) -> Markup:
    """Trajectory, start, end and contacts; ``unit`` is that of :func:`unit_of`."""
    tracks = [[(pose.x_m, pose.y_m) for pose in part] for part in data.tracks]
    parts = [polyline(css, track) for css in ("halo", "track") for track in tracks]
    start, end = data.poses[0], data.poses[-1]
    tip = start.apply(2.86 * unit, 0.0)
    parts += [segments("start", ((start.x_m, start.y_m), tip)), circle("start", start.x_m, start.y_m, 1.3 * unit)]
    css = {True: "end won", False: "end lost", None: "end"}[data.succeeded]
    parts.append(circle(css, end.x_m, end.y_m, 1.1 * unit))
    parts += [_cross(data.poses[i], data.header.task.robot_radius_m, unit) for i in data.contacts]
    return Markup("").join(parts)


def unit_of(box: Box) -> float:
    """A hundredth of the drawing's longer side, so that markers have one size on the page."""
    return max(box[2], box[3]) / 100


def circle(css: str, x_m: float, y_m: float, radius_m: float, tip: str = "") -> Markup:
    """A circle at a point of the map."""
    return element("circle", css, tip=tip, cx=x_m, cy=-y_m, r=radius_m)


def polyline(css: str, path: Iterable[Point]) -> Markup:
    """A line through points (x, y) of the map."""
    return element("polyline", css, points=_flipped(path))


def polygon(css: str, corners: Iterable[Point]) -> Markup:
    """An area with corners (x, y) of the map."""
    return element("polygon", css, points=_flipped(corners))


def footprint(css: str, item: SceneObject, width: float, depth: float, tip: str = "") -> Markup:
    """A box from above."""
    x, y, turn = (n(value) for value in (item.center[0], -item.center[1], -item.yaw_deg))
    place = f"translate({x} {y}) rotate({turn})"
    return element("rect", css, tip=tip, x=-width / 2, y=-depth / 2, width=width, height=depth, transform=place)


def _flipped(path: Iterable[Point]) -> str:
    return points((point[0], -point[1]) for point in path)


def segments(css: str, *lines: tuple[Point, Point], tip: str = "") -> Markup:
    """Straight lines between points of the map, as one path."""
    path = "".join(f"M{n(a[0])} {n(-a[1])}L{n(b[0])} {n(-b[1])}" for a, b in lines)
    return element("path", css, tip=tip, d=path)


def _cells_path(occupancy: OccupancyMap, cell: Cell) -> str:
    res, x0, y0 = occupancy.resolution_m, occupancy.origin_x_m, occupancy.origin_y_m
    pieces = []
    for r0, r1, c0, c1 in rectangles(occupancy.cells == cell):
        width, height = (c1 - c0) * res, (r1 - r0) * res
        pieces.append(f"M{n(x0 + c0 * res)} {n(-(y0 + r1 * res))}h{n(width)}v{n(height)}h{n(-width)}z")
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


def goal_shapes(data: EpisodeData, unit: float) -> Markup:
    """Goals and goal objects of an episode; ``unit`` is that of :func:`unit_of`."""
    items = {item.id: item for item in data.header.scene.objects}
    parts, (left, _, across, _) = [], map_box(data.header.scene.map)
    for item in (items[goal.object_id] for goal in data.header.episode.goals if goal.object_id in items):
        width, depth = max(item.size[0], unit), max(item.size[1], unit)
        half, y = 0.75 * unit * len(item.category), -item.center[1] - depth / 2 - unit
        x = min(max(item.center[0], left + half), left + across - half)  # the label is whole
        parts.append(footprint("object", item, width, depth))
        parts.append(element("text", "goal-label", item.category, x=x, y=y, font_size=unit * 2.4))
    css, radius = ("goal", 1.3) if data.header.task.success.target == "goal" else ("viewpoint", 0.35)
    return Markup("").join([*parts, *(circle(css, x, y, unit * radius) for x, y in data.targets)])


def _cross(pose: SE2, robot_radius_m: float, size: float) -> Markup:
    """A cross at the robot's front; its center stays free for the path."""
    x, y = pose.apply(robot_radius_m, 0.0)[:2]
    return segments(
        "contact", ((x - size, y + size), (x + size, y - size)), ((x - size, y - size), (x + size, y + size))
    )
