"""Exact shortest paths of a disc among polygons: a visibility graph over the inflated polygons.

The robot's centre may be wherever the room, shrunk by the radius, is not covered by obstacles grown by it. Growing a
corner makes an arc; it becomes a polygon of ``ARC_SEGMENTS`` chords per quarter circle, which shortens the way round a
corner of radius 0.18 m by less than 0.5 mm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import shapely
from numpy.typing import NDArray
from scipy.sparse.csgraph import dijkstra
from shapely.geometry import Polygon, box
from shapely.geometry.base import BaseGeometry

from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap

ARC_SEGMENTS = 8
_TOUCH_M = 1e-6  # a path may run along a wall; rounding must not make that a crossing


@dataclass(frozen=True)
class PolygonRoom:
    """A room (its inside) and the obstacles in it."""

    inside: Polygon
    obstacles: BaseGeometry

    def occupancy(self, resolution_m: float, cell_rule: str) -> OccupancyMap:
        """The room as a map. ``cell_rule``: a cell is occupied if an obstacle has its ``centre`` or ``any`` of it."""
        x0, y0, x1, y1 = self.inside.bounds
        columns = round((x1 - x0) / resolution_m) + 2
        rows = round((y1 - y0) / resolution_m) + 2
        origin = np.array([x0 - resolution_m, y0 - resolution_m])
        column, row = np.meshgrid(np.arange(columns), np.arange(rows))
        low_x, low_y = origin[0] + column * resolution_m, origin[1] + row * resolution_m
        solid = shapely.difference(box(x0 - 1, y0 - 1, x1 + 1, y1 + 1), self.inside).union(self.obstacles)
        shapely.prepare(solid)
        if cell_rule == "center":
            occupied = shapely.contains_xy(solid, low_x + resolution_m / 2, low_y + resolution_m / 2)
        else:
            margin = 1e-6
            cells = shapely.box(
                low_x + margin, low_y + margin, low_x + resolution_m - margin, low_y + resolution_m - margin
            )
            occupied = shapely.intersects(solid, cells)
        return OccupancyMap(np.where(occupied, Cell.OCCUPIED, Cell.FREE).astype(np.uint8), resolution_m, *origin)


class VisibilityGraph:
    """Shortest paths of a disc's centre in a room."""

    def __init__(self, room: PolygonRoom, radius_m: float) -> None:
        grown = room.obstacles.buffer(radius_m, quad_segs=ARC_SEGMENTS)
        shrunk = room.inside.buffer(-radius_m, quad_segs=ARC_SEGMENTS)
        self.free = shrunk.difference(grown)
        self._covering = self.free.buffer(_TOUCH_M, join_style="mitre")
        shapely.prepare(self._covering)
        self._nodes = _reflex_vertices(self.free)
        self._edges = self._lengths(self._nodes, self._nodes)

    def contains(self, point: NDArray[np.float64], margin_m: float) -> bool:
        """Whether the point is free, and at least ``margin_m`` from the border of free space."""
        return bool(self.free.buffer(-margin_m).contains(shapely.Point(point)))

    def distances(self, target: NDArray[np.float64], starts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Exact distance from each of ``starts`` (N, 2) to ``target``; inf if there is no way."""
        points = np.vstack([target[None], starts])
        to_nodes = self._lengths(points, self._nodes)
        direct = self._lengths(starts, target[None])[:, 0]
        if not len(self._nodes):
            return direct
        graph = np.zeros((len(self._nodes) + 1,) * 2)
        graph[1:, 1:] = np.where(np.isfinite(self._edges), self._edges, 0)
        graph[0, 1:] = graph[1:, 0] = np.where(np.isfinite(to_nodes[0]), to_nodes[0], 0)
        from_target = dijkstra(graph, indices=0)[1:]
        return np.minimum(direct, (to_nodes[1:] + from_target[None]).min(axis=1))

    def _lengths(self, a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
        """(len(a), len(b)) lengths of the segments that stay in free space, inf for the others."""
        ends = np.stack(np.broadcast_arrays(a[:, None], b[None]), axis=2).reshape(-1, 2, 2)
        lengths = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1)
        visible = shapely.covers(self._covering, shapely.linestrings(ends))
        return np.where(visible, lengths, np.inf).reshape(len(a), len(b))


def _reflex_vertices(free: BaseGeometry) -> NDArray[np.float64]:
    """Vertices at which free space turns by more than 180 degrees: the only places where shortest paths bend."""
    found = [np.empty((0, 2))]
    for part in shapely.get_parts(free):
        part = shapely.geometry.polygon.orient(part)  # the exterior counter-clockwise, holes clockwise
        for ring in (part.exterior, *part.interiors):
            points = shapely.get_coordinates(ring)[:-1]
            before, after = points - np.roll(points, 1, axis=0), np.roll(points, -1, axis=0) - points
            found.append(points[before[:, 0] * after[:, 1] < before[:, 1] * after[:, 0]])  # free space is on the left
    return np.vstack(found)
