"""Maps as SVG. Colours are CSS variables of the page, so that one drawing serves light and dark."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from robot_runtime.common.geometry import SE2
from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap
from robot_runtime.scenes.scene import Scene, SceneObject
from robot_runtime.scoring.report.episode_data import EpisodeData

MIN_FOOTPRINT_M2 = 0.03
FURNITURE_Z_M = (0.05, 0.9)

_SHOWN_NODES = 60
"""Of a denser reference the line says it all."""

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
    return Markup("").join(footprint("thing", item, item.size[0], item.size[1]) for item in furniture(scene))


def room_labels(scene: Scene, box: Box) -> Markup:
    """The rooms' categories, each in the middle of its polygon."""
    size = unit_of(box) * 2.6
    labels = []
    for room in scene.rooms:
        x = sum(p[0] for p in room.polygon) / len(room.polygon)
        y = -sum(p[1] for p in room.polygon) / len(room.polygon)
        labels.append(
            Markup('<text class="room" x="{}" y="{}" font-size="{}">{}</text>').format(
                n(x), n(y), n(size), room.category.replace("_", " ")
            )
        )
    return Markup("").join(labels)


def episode_overlay(data: EpisodeData, box: Box) -> Markup:
    """Goals, shortest or reference path, trajectory, contacts, start and end, in the map's coordinates."""
    unit = unit_of(box)
    parts = [_rooms(data), _goals(data, unit)]
    if data.reference:
        parts.append(_reference(data, unit))
    elif len(data.shortest):
        parts.append(polyline("shortest", data.shortest.tolist()))
    tracks = [[(pose.x_m, pose.y_m) for pose in part] for part in data.tracks]
    parts += [polyline("halo", track) for track in tracks] + [polyline("track", track) for track in tracks]
    parts += [_start(data.poses[0], unit * 1.3), _end(data, unit * 1.1)]
    parts += [_cross(data, i, unit) for i in data.contacts]
    return Markup("").join(parts)


# --- pieces ---------------------------------------------------------------------------------------------------------


def unit_of(box: Box) -> float:
    """A hundredth of the drawing's longer side: markers have one size on the page, whatever the map's."""
    return max(box[2], box[3]) / 100


def n(value: float) -> str:
    """A number with as many digits as a drawing needs."""
    return f"{value:.3f}".rstrip("0").rstrip(".")


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


def polyline(name: str, points: Iterable[Sequence[float]]) -> Markup:
    """Points (x, y) of the map as a line of a class."""
    return Markup('<polyline class="{}" points="{}"/>').format(
        name, " ".join(f"{n(point[0])},{n(-point[1])}" for point in points)
    )


def _rooms(data: EpisodeData) -> Markup:
    """The rooms to be in."""
    shape = Markup('<polygon class="goal-room" points="{}"/>')
    return Markup("").join(
        shape.format(" ".join(f"{n(x)},{n(-y)}" for x, y in room.polygon)) for room in data.goal_rooms
    )


def _reference(data: EpisodeData, unit: float) -> Markup:
    """The reference route, its nodes, and a line between each two points that DTW aligns."""
    pair = Markup('<path class="pair" d="M{} {}L{} {}"><title>aligned, {:.2f} m apart</title></path>')
    node = Markup('<circle class="node" cx="{}" cy="{}" r="{}"/>')
    pairs = [
        pair.format(*map(n, (a[0], -a[1], b[0], -b[1])), math.hypot(a[0] - b[0], a[1] - b[1])) for a, b in data.pairs
    ]
    few = data.reference if len(data.reference) <= _SHOWN_NODES else ()
    nodes = [node.format(*map(n, (x, -y, unit * 0.5))) for x, y in few]
    return Markup("").join([*pairs, polyline("reference", data.reference), *nodes])


def _goals(data: EpisodeData, unit: float) -> Markup:
    if data.header.task.success.rule == "room":
        return Markup("")
    items = {item.id: item for item in data.header.scene.objects}
    parts = [_object(items[goal.object_id], unit) for goal in data.header.episode.goals if goal.object_id in items]
    name, radius = ("goal", 1.3) if data.header.task.success.target == "goal" else ("viewpoint", 0.35)
    parts += [
        Markup('<circle class="{}" cx="{}" cy="{}" r="{}"/>').format(name, n(x), n(-y), n(unit * radius))
        for x, y in data.targets
    ]
    return Markup("").join(parts)


def _object(item: SceneObject, unit: float) -> Markup:
    width, depth = max(item.size[0], unit), max(item.size[1], unit)
    x, y, size = item.center[0], -item.center[1] - depth / 2 - unit, unit * 2.4
    label = Markup('<text class="goal-label" x="{}" y="{}" font-size="{}">{}</text>')
    return footprint("object", item, width, depth) + label.format(n(x), n(y), n(size), item.category)


def footprint(name: str, item: SceneObject, width: float, depth: float, tip: str = "") -> Markup:
    """A box as seen from above, of a class; pointed at, it says ``tip``."""
    return Markup(
        '<rect class="{}" x="{}" y="{}" width="{}" height="{}" transform="translate({} {}) rotate({})">{}</rect>'
    ).format(
        name,
        *map(n, (-width / 2, -depth / 2, width, depth)),
        *map(n, (item.center[0], -item.center[1], -item.yaw_deg)),
        Markup("<title>{}</title>").format(tip) if tip else "",
    )


def _cross(data: EpisodeData, index: int, size: float) -> Markup:
    """A cross at the robot's front, where it touched: its centre stays free for the path."""
    front = data.poses[index].apply(data.header.task.robot_radius_m, 0.0)
    x, y = front[0], -front[1]
    corners = (x - size, y - size, x + size, y + size, x - size, y + size, x + size, y - size)
    return Markup('<path class="contact" d="M{} {}L{} {}M{} {}L{} {}"/>').format(*map(n, corners))


def _start(pose: SE2, size: float) -> Markup:
    """A hollow circle with a line towards the robot's front."""
    tip = pose.apply(2.2 * size, 0.0)
    return Markup('<path class="start" d="M{} {}L{} {}"/><circle class="start" cx="{}" cy="{}" r="{}"/>').format(
        *map(n, (pose.x_m, -pose.y_m, tip[0], -tip[1], pose.x_m, -pose.y_m, size))
    )


def _end(data: EpisodeData, size: float) -> Markup:
    name = {True: "end won", False: "end lost", None: "end"}[data.succeeded]
    pose = data.poses[-1]
    return Markup('<circle class="{}" cx="{}" cy="{}" r="{}"/>').format(name, *map(n, (pose.x_m, -pose.y_m, size)))
