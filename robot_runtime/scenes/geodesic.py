"""Shortest collision-free distances and paths of a round robot on an occupancy map.

The map is inflated by the robot's radius; distances and paths are exact on the navigable cells
(:mod:`robot_runtime.scenes.taut_paths`). Planners that need a distance at every cell take :attr:`DistanceField.values`,
which fast marching (Sethian 1996; second order) computes at once, up to 2 % too long round corners.

All coordinates are meters in the map's frame.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap

if TYPE_CHECKING:
    from robot_runtime.scenes.taut_paths import CornerGraph, TautSearch

Point = tuple[float, float]

SNAP_M = 0.1
"""A point this close to navigable space counts as navigable. This covers the difference between a robot that touches a
wall and the inflated grid: up to two cells of rounding (5 cm), contact penetration and the localizer's noise.
"""

_CACHED_FIELDS = 16
_CELL_MARGIN = 1e-6  # of a cell: keeps a clamped point inside its cell under rounding


class GeodesicMap:
    """Navigable space of a robot, and distances in it. Not thread-safe: distance fields are cached.

    Args:
        occupancy: the map; unknown cells and everything off the grid are not navigable.
        radius_m: the robot's.

    Attributes:
        navigable: bool (rows, columns), cells with room for the robot's center, to within half a cell: testing the
            cell's center exactly would move every wall inward by half a cell on average, and lengthen every path round
            a corner. To place a robot, use ``OccupancyMap.navigable``.
    """

    def __init__(self, occupancy: OccupancyMap, radius_m: float) -> None:
        self.map = occupancy
        self.radius_m = radius_m
        fits = occupancy.clearance_m() >= radius_m - occupancy.resolution_m / 2
        self.navigable: NDArray[np.bool_] = fits & (occupancy.cells == Cell.FREE)
        self._fields: OrderedDict[tuple[Point, ...], DistanceField] = OrderedDict()

    def is_navigable(self, x_m: float, y_m: float) -> bool:
        """Whether the point lies in a navigable cell."""
        row, column = self.map.to_cell(x_m, y_m)
        rows, columns = self.navigable.shape
        return 0 <= row < rows and 0 <= column < columns and bool(self.navigable[row, column])

    def snap(self, x_m: float, y_m: float, max_m: float = SNAP_M) -> Point | None:
        """The nearest navigable point; None if there is none within ``max_m``."""
        if self.is_navigable(x_m, y_m):
            return x_m, y_m
        row, column = self.map.to_cell(x_m, y_m)
        reach = int(np.ceil(max_m / self.map.resolution_m)) + 1
        row0, column0 = max(row - reach, 0), max(column - reach, 0)
        window = self.navigable[row0 : max(row + reach + 1, 0), column0 : max(column + reach + 1, 0)]
        cells = np.argwhere(window) + np.array((row0, column0))
        if not len(cells):
            return None
        low = cells[:, ::-1] * self.map.resolution_m + (self.map.origin_x_m, self.map.origin_y_m)
        margin = _CELL_MARGIN * self.map.resolution_m
        nearest = np.clip((x_m, y_m), low + margin, low + self.map.resolution_m - margin)
        distances_m = np.hypot(nearest[:, 0] - x_m, nearest[:, 1] - y_m)
        best = int(np.argmin(distances_m))
        return (float(nearest[best, 0]), float(nearest[best, 1])) if distances_m[best] <= max_m else None

    def is_clear(self, x0_m: float, y0_m: float, x1_m: float, y1_m: float) -> bool:
        """Whether every cell that the straight segment crosses is navigable (both ends included)."""
        from robot_runtime.scenes.taut_paths import is_clear

        if not (self.is_navigable(x0_m, y0_m) and self.is_navigable(x1_m, y1_m)):
            return False
        return is_clear(self.navigable, *self.map.in_cells(x0_m, y0_m), *self.map.in_cells(x1_m, y1_m))

    def field(self, targets: Sequence[Point]) -> DistanceField:
        """Distances from everywhere to the nearest of ``targets``; cached by targets.

        Targets off navigable space are snapped to it (``SNAP_M``), or left out where that is impossible.
        """
        key = tuple((float(x), float(y)) for x, y in targets)
        if key in self._fields:
            self._fields.move_to_end(key)
        else:
            snapped = (self.snap(x, y) for x, y in key)
            points = [point for point in snapped if point is not None]
            self._fields[key] = DistanceField(self, np.array(points, np.float64).reshape(-1, 2))
            if len(self._fields) > _CACHED_FIELDS:
                self._fields.popitem(last=False)
        return self._fields[key]

    def distance(self, x_m: float, y_m: float, targets: Sequence[Point]) -> float:
        """Distance from a point to the nearest target; see :meth:`DistanceField.at`."""
        return self.field(targets).at(x_m, y_m)

    @cached_property
    def corners(self) -> CornerGraph:
        """Corners of the navigable space, for exact paths."""
        from robot_runtime.scenes.taut_paths import CornerGraph

        return CornerGraph(self.navigable)

    @cached_property
    def regions(self) -> NDArray[np.int32]:
        """Number of the connected region of each navigable cell, int32 (rows, columns); 0 elsewhere."""
        return np.asarray(ndimage.label(self.navigable)[0], np.int32)


class DistanceField:
    """Distance to the nearest of some targets.

    Args:
        space: the navigable space.
        targets: float64 (N, 2), x and y of the targets after snapping; N may be 0.
    """

    def __init__(self, space: GeodesicMap, targets: NDArray[np.float64]) -> None:
        self.space, self.targets = space, targets
        self._cells = [space.map.to_cell(x_m, y_m) for x_m, y_m in targets.tolist()]
        """Row and column of each target's cell."""
        self._targets_in_cells = [space.map.in_cells(x_m, y_m) for x_m, y_m in targets.tolist()]

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """Approximate meters from each cell's center, by fast marching; inf where no target can be reached.

        float64 (rows, columns). Up to 2 % too long round corners; :meth:`at` is exact.
        """
        from robot_runtime.scenes.marched_distances import marched_distances

        return marched_distances(self.space.navigable, self._targets_in_cells, self.space.map.resolution_m)

    def at(self, x_m: float, y_m: float) -> float:
        """Distance from a point in meters.

        A point within ``SNAP_M`` of navigable space counts from there, plus the distance to it.

        Returns:
            inf where no target can be reached, and for points farther off or not on the map.
        """
        start = self._start(x_m, y_m)
        if start is None:
            return float("inf")
        length_m = self._search.length(*self.space.map.in_cells(*start)) * self.space.map.resolution_m
        return float(np.hypot(start[0] - x_m, start[1] - y_m)) + length_m

    def path(self, x_m: float, y_m: float) -> NDArray[np.float64]:
        """The shortest path from a point to the nearest target.

        Returns:
            float64 (N, 2), from the point itself to the target; every segment after a snapped start lies in navigable
            cells. (0, 2) where :meth:`at` is inf.
        """
        start = self._start(x_m, y_m)
        if start is None:
            return np.empty((0, 2))
        grid = self.space.map
        nodes = np.array(self._search.path(*self.space.map.in_cells(*start)))
        path = nodes * grid.resolution_m + (grid.origin_x_m, grid.origin_y_m)
        path[0] = start
        path[-1] = self.targets[int(np.argmin(((self.targets - path[-1]) ** 2).sum(axis=1)))]
        return path if start == (x_m, y_m) else np.vstack(((x_m, y_m), path))

    @cached_property
    def _search(self) -> TautSearch:
        from robot_runtime.scenes.taut_paths import TautSearch

        return TautSearch(self.space.corners, np.array(self._targets_in_cells))

    def _start(self, x_m: float, y_m: float) -> Point | None:
        """The navigable point from which a point counts; None if it leads to no target."""
        start = self.space.snap(x_m, y_m)
        if start is None:
            return None
        regions = self.space.regions
        region = regions[self.space.map.to_cell(*start)]
        return start if any(regions[cell] == region for cell in self._cells) else None
