"""Shortest collision-free distances and paths of a round robot on an occupancy map.

The map is inflated by the robot's radius; the eikonal equation |grad d| = 1 is solved on the rest by fast marching
(Sethian 1996; second order). Unlike Dijkstra on a grid, its error vanishes with the cell size. Two measures
keep the error at 2.5 cm cells well below 1 % (``tests/robot_runtime/scenes/test_geodesic_oracle.py``):

* the front starts as a circle about each target's exact position, as large as the surroundings allow, because marching
  is least accurate where the front is most curved;
* a place in straight view of the nearest target gets the exact distance, the straight one.

All coordinates are meters in the map's frame.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap

Point = tuple[float, float]

SNAP_M = 0.1
"""A point this close to navigable space counts as navigable. This covers the difference between a robot that touches a
wall and the inflated grid: up to two cells of rounding (5 cm), contact penetration and the localizer's noise.
"""

_CACHED_FIELDS = 16
_MAX_DISC_CELLS = 24
_MIN_DISC_CELLS = 2
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
        if not (self.is_navigable(x0_m, y0_m) and self.is_navigable(x1_m, y1_m)):
            return False
        start, end = self._grid(x0_m, y0_m), self._grid(x1_m, y1_m)
        # Grid lines cut the segment into pieces; the middle of each piece identifies its cell.
        cuts = [np.array([0.0, 1.0])]
        for a, b in zip(start, end, strict=True):
            lines = np.arange(np.ceil(min(a, b)), max(a, b))
            if lines.size:
                cuts.append((lines - a) / (b - a))
        fractions = np.sort(np.concatenate(cuts))
        middles = (fractions[:-1] + fractions[1:]) / 2
        columns = np.floor(start[0] + middles * (end[0] - start[0])).astype(np.intp)
        rows = np.floor(start[1] + middles * (end[1] - start[1])).astype(np.intp)
        return bool(self.navigable[rows, columns].all())

    def field(self, targets: Sequence[Point]) -> DistanceField:
        """Distances from everywhere to the nearest of ``targets``; cached by targets.

        Targets off navigable space are snapped to it (``SNAP_M``), or left out where that is impossible.
        """
        key = tuple((float(x), float(y)) for x, y in targets)
        if key in self._fields:
            self._fields.move_to_end(key)
        else:
            snapped = (self.snap(x, y) for x, y in key)
            self._fields[key] = _march(self, [point for point in snapped if point is not None])
            if len(self._fields) > _CACHED_FIELDS:
                self._fields.popitem(last=False)
        return self._fields[key]

    def distance(self, x_m: float, y_m: float, targets: Sequence[Point]) -> float:
        """Distance from a point to the nearest target; see :meth:`DistanceField.at`."""
        return self.field(targets).at(x_m, y_m)

    def _grid(self, x_m: float, y_m: float) -> Point:
        """A point in units of cells from the grid's outer corner (column, row)."""
        return (
            (x_m - self.map.origin_x_m) / self.map.resolution_m,
            (y_m - self.map.origin_y_m) / self.map.resolution_m,
        )


@dataclass(frozen=True, eq=False)
class DistanceField:
    """Distance to the nearest of some targets.

    Attributes:
        space: the navigable space.
        targets: float64 (N, 2), x and y of the targets after snapping; N may be 0.
        values: float64 (rows, columns), meters from each cell's center; inf where no target can be reached.
    """

    space: GeodesicMap
    targets: NDArray[np.float64]
    values: NDArray[np.float64]

    def at(self, x_m: float, y_m: float) -> float:
        """Distance from a point in meters.

        A point within ``SNAP_M`` of navigable space counts from there, plus the distance to it.

        Returns:
            inf where no target can be reached, and for points farther off or not on the map.
        """
        start = self.space.snap(x_m, y_m)
        if start is None or not len(self.targets):
            return float("inf")
        detour = float(np.hypot(start[0] - x_m, start[1] - y_m))
        target, straight = self._nearest_target(*start)
        if self.space.is_clear(*start, *target):
            return detour + straight
        # Interpolation may err below the lower bound, the straight line.
        return detour + max(straight, self._interpolate(*start))

    def path(self, x_m: float, y_m: float) -> NDArray[np.float64]:
        """A shortest path, straightened, from a point to the nearest target.

        Returns:
            float64 (N, 2), from the point itself to the target; every segment after a snapped start lies in navigable
            cells. (0, 2) where :meth:`at` is inf.
        """
        start = self.space.snap(x_m, y_m)
        if start is None or not np.isfinite(self.at(x_m, y_m)):
            return np.empty((0, 2))
        corners = self._straighten(self._descend(start))
        if start != (x_m, y_m):
            corners.insert(0, (x_m, y_m))
        return np.array(corners)

    def _nearest_target(self, x_m: float, y_m: float) -> tuple[Point, float]:
        distances_m = np.hypot(self.targets[:, 0] - x_m, self.targets[:, 1] - y_m)
        best = int(np.argmin(distances_m))
        return (float(self.targets[best, 0]), float(self.targets[best, 1])), float(distances_m[best])

    def _interpolate(self, x_m: float, y_m: float) -> float:
        """Bilinear interpolation between the reachable ones of the four cell centers around a navigable point."""
        column, row = (value - 0.5 for value in self.space._grid(x_m, y_m))
        row0, column0 = int(np.floor(row)), int(np.floor(column))
        total = weight_sum = 0.0
        rows, columns = self.values.shape
        for r, row_weight in ((row0, row0 + 1 - row), (row0 + 1, row - row0)):
            for c, column_weight in ((column0, column0 + 1 - column), (column0 + 1, column - column0)):
                weight = row_weight * column_weight
                if 0 <= r < rows and 0 <= c < columns and weight > 0 and np.isfinite(self.values[r, c]):
                    total += weight * float(self.values[r, c])
                    weight_sum += weight
        return total / weight_sum if weight_sum > 0 else float("inf")

    def _descend(self, start: Point) -> list[Point]:
        """Cells of steepest descent, then straight to the target.

        Fast marching computes a cell from a lower neighbor, and the initial discs lie in view of their targets: the
        descent ends in view of a target.
        """
        points = [start]
        row, column = self.space.map.to_cell(*start)
        while (step := self._steepest(row, column)) is not None:
            row, column = row + step[0], column + step[1]
            points.append(self.space.map.to_point(row, column))
        distances_m = np.hypot(self.targets[:, 0] - points[-1][0], self.targets[:, 1] - points[-1][1])
        nearest = ((float(x), float(y)) for x, y in self.targets[np.argsort(distances_m)])
        return [*points, next(target for target in nearest if self.space.is_clear(*points[-1], *target))]

    def _steepest(self, row: int, column: int) -> tuple[int, int] | None:
        """The step of steepest descent to a neighbor; diagonal only where both cells next to it are navigable."""
        best, best_slope = None, 0.0
        for dr, dc in _NEIGHBORS:
            r, c = row + dr, column + dc
            if not (0 <= r < self.values.shape[0] and 0 <= c < self.values.shape[1]):
                continue
            if not (self.space.navigable[r, column] and self.space.navigable[row, c]):
                continue
            slope = (self.values[row, column] - self.values[r, c]) / np.hypot(dr, dc)
            if slope > best_slope:
                best, best_slope = (dr, dc), slope
        return best

    def _straighten(self, points: list[Point]) -> list[Point]:
        """Remove every point that its neighbors can do without (string pulling)."""
        corners, index = [points[0]], 0
        while index < len(points) - 1:
            step = 1
            while index + 2 * step < len(points) and self.space.is_clear(*points[index], *points[index + 2 * step]):
                step *= 2
            low, high = index + step, min(index + 2 * step, len(points) - 1)
            while low < high:
                middle = (low + high + 1) // 2
                if self.space.is_clear(*points[index], *points[middle]):
                    low = middle
                else:
                    high = middle - 1
            index = low
            corners.append(points[index])
        return corners


_NEIGHBORS = tuple((dr, dc) for dr in (-1, 0, 1) for dc in (-1, 0, 1) if (dr, dc) != (0, 0))


def _march(space: GeodesicMap, targets: list[Point]) -> DistanceField:
    """Solve the eikonal equation on the navigable cells, from discs about the targets."""
    from robot_runtime.scenes.fast_marching import march

    points = np.array(targets, np.float64).reshape(-1, 2)
    values = np.full(space.navigable.shape, np.inf)
    if not targets:
        return DistanceField(space, points, values)
    resolution_m = space.map.resolution_m
    # The visibility test costs reach**3 per target; with many targets a small disc is accurate enough.
    reach = max(_MIN_DISC_CELLS, round(_MAX_DISC_CELLS / len(targets) ** (1 / 3)))
    views = [_view_from(space, x, y, reach) for x, y in targets]
    disc_m = max(min(view.clear_radius_m for view in views), _MIN_DISC_CELLS * resolution_m)
    straight = np.full(values.shape, np.inf)
    visible = np.zeros(values.shape, bool)
    for view in views:
        straight[view.window] = np.minimum(straight[view.window], view.distance_m)
        visible[view.window] |= view.visible & (view.distance_m < disc_m)
    values[visible] = straight[visible]
    outside = space.navigable & ~visible
    if (outside & ndimage.binary_dilation(visible)).any():
        level = np.where(visible, straight - disc_m, np.clip(straight - disc_m, _CELL_MARGIN * resolution_m, 1.0))
        marched_m = march(level, space.navigable, resolution_m)
        reached = outside & np.isfinite(marched_m)
        values[reached] = marched_m[reached] + disc_m
    return DistanceField(space, points, values)


@dataclass(frozen=True)
class _View:
    """The surroundings of a target: a window of the grid, distances to its cells, and a mask of the visible ones.

    ``clear_radius_m`` is the radius within which all navigable cells are visible.
    """

    window: tuple[slice, slice]
    distance_m: NDArray[np.float64]
    visible: NDArray[np.bool_]
    clear_radius_m: float


def _view_from(space: GeodesicMap, x_m: float, y_m: float, reach: int) -> _View:
    row, column = space.map.to_cell(x_m, y_m)
    window = (slice(max(row - reach, 0), row + reach + 1), slice(max(column - reach, 0), column + reach + 1))
    navigable = space.navigable[window]
    rows, columns = (index.astype(np.float64) for index in np.indices(navigable.shape))
    here_column, here_row = space._grid(x_m, y_m)
    d_row = rows + window[0].start + 0.5 - here_row
    d_column = columns + window[1].start + 0.5 - here_column
    fractions = np.linspace(0.0, 1.0, 2 * reach + 2)[:, None, None]
    on_way = space.navigable[
        np.floor(here_row + fractions * d_row).astype(np.intp),
        np.floor(here_column + fractions * d_column).astype(np.intp),
    ]
    visible = np.asarray(on_way.all(axis=0))
    distance_m = np.hypot(d_row, d_column) * space.map.resolution_m
    occluded = navigable & ~visible
    clear_radius_m = min(
        float(distance_m[occluded].min()) if occluded.any() else np.inf, (reach - 1) * space.map.resolution_m
    )
    return _View(window, distance_m, visible, clear_radius_m)
