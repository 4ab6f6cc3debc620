"""Exact shortest paths in a polygon, by a visibility graph: slow, and independent of the product's geodesics."""

from __future__ import annotations

import numpy as np
import shapely
from numpy.typing import NDArray
from scipy.sparse.csgraph import dijkstra
from shapely.geometry.base import BaseGeometry

from robot_runtime.scenes.geodesic import GeodesicMap

_TOUCH_M = 1e-6  # a path may run along a wall; rounding must not make that a crossing


def room_of_cells(space: GeodesicMap) -> BaseGeometry:
    """The union of the navigable cells, closed where two blocked cells touch at a corner."""
    rows, columns = np.nonzero(space.navigable)
    low_x, low_y = space.map.origin_x_m, space.map.origin_y_m
    edge = space.map.resolution_m
    cells = shapely.box(
        low_x + columns * edge, low_y + rows * edge, low_x + (columns + 1) * edge, low_y + (rows + 1) * edge
    )
    free = space.navigable
    row, column = np.nonzero(
        (free[:-1, :-1] == free[1:, 1:]) & (free[:-1, 1:] == free[1:, :-1]) & (free[:-1, :-1] != free[:-1, 1:])
    )
    x, y = low_x + (column + 1) * edge, low_y + (row + 1) * edge
    gap = 10 * _TOUCH_M
    pinches = shapely.union_all(shapely.box(x - gap, y - gap, x + gap, y + gap))
    return shapely.union_all(cells, grid_size=1e-9).difference(pinches)


class VisibilityGraph:
    """Shortest paths in a polygon."""

    def __init__(self, free: BaseGeometry) -> None:
        self.free = free
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
        return np.asarray(np.minimum(direct, (to_nodes[1:] + from_target[None]).min(axis=1)))

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
