"""A map from depth: where something stands, where the robot may drive, and what nobody has looked at.

Space between the floor and the robot's top is cut into cells and layers. Each frame says of a voxel that a measured
point lies in it, or that the camera looked through it at something behind. A surface is where more frames meet one than
look through; whoever walked by, or one wrong pixel, is outvoted. A cell is free if nothing stands in it and its floor
was seen, or what is just above it looked through, or the robot itself has stood there. Of the rest nothing is known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from robot_runtime.errors import ConfigError
from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap
from sim_bridge.reconstruction.logged_frames import Sight
from sim_bridge.scenes.occupancy import MIN_ROOM_M2
from sim_bridge.scenes.raster import Grid

MAX_VOXELS = 150_000_000
"""Two bytes each, twice: 600 MB. 20 x 20 m with 4 m around at 2.5 cm are 22 million."""

FREE_BELOW_M = 0.3
"""Looked through lower than this, a cell has nothing standing on it that the rest would not show."""

DROP_M = (-0.25, -0.1)
"""Looked through below the floor: stairs, not errors of pose and tilt."""

STOOD_M = 0.15
"""Round the robot's middle is no obstacle; a camera never sees what is under it."""

SPECK_M = 0.1
"""Unknown islands in free floor that are smaller than this were missed between pixels."""

_NOISE = 0.01
"""Of depth, as a share of its square in metres: 9 cm at 3 m, more than any sensor of the robots errs."""


@dataclass(frozen=True)
class Band:
    """What of the room the map is made of.

    Attributes:
        min_z_m: lower things count as floor. max_z_m: the robot's top. layer_m: height of a voxel.
        observations: frames that must say so before a cell counts as free or occupied.
    """

    resolution_m: float = 0.025
    min_z_m: float = 0.05
    max_z_m: float = 0.9
    layer_m: float = 0.05
    observations: int = 2

    def __post_init__(self) -> None:
        if not (0.005 <= self.resolution_m <= 0.5):
            raise ConfigError(f"a map with cells of {self.resolution_m} m", "give 0.005 to 0.5, such as 0.025")
        if self.observations < 1:
            raise ConfigError(f"{self.observations} observations say nothing", "give 1 or more")

    @property
    def layers(self) -> int:
        return math.ceil((self.max_z_m - self.min_z_m) / self.layer_m - 1e-9)


class Evidence:
    """Counts of frames over a grid around ``viewpoints`` (N, 3), as far as ``reach_m`` from them.

    Raises:
        ConfigError: the place is too large for the resolution.
    """

    def __init__(self, viewpoints: NDArray[np.float64], reach_m: float, band: Band) -> None:
        self.band = band
        low, high = viewpoints[:, :2].min(axis=0), viewpoints[:, :2].max(axis=0)
        self._grid = grid = Grid.around(low, high, band.resolution_m, reach_m)
        shape = grid.rows, grid.columns
        if grid.rows * grid.columns * band.layers > MAX_VOXELS:
            raise ConfigError(
                f"{grid.columns * band.resolution_m:.0f} x {grid.rows * band.resolution_m:.0f} m in cells of "
                f"{band.resolution_m} m do not fit in memory",
                f"give --resolution-m {2 * band.resolution_m:g}, a smaller --max-depth-m, or logs of fewer rooms",
            )
        self._met = np.zeros((*shape, band.layers), np.uint16)
        self._through = np.zeros((*shape, band.layers), np.uint16)
        self._floor = np.zeros(shape, np.uint16)
        self._drop = np.zeros(shape, np.uint16)
        self._stood = np.zeros(shape, bool)

    def add(self, sight: Sight, points: NDArray[np.float32]) -> None:
        """Count a frame and its measured points (N, 3) in ``map``."""
        self._count_points(points)
        self._count_views(sight)
        self._stand(sight.base.x_m, sight.base.y_m)

    def occupancy(self) -> OccupancyMap:
        """The map, cut to what is known of it with a margin of 0.25 m."""
        enough, res = self.band.observations, self.band.resolution_m
        standing = self.standing.any(axis=2)
        low = max(1, math.ceil((FREE_BELOW_M - self.band.min_z_m) / self.band.layer_m))
        looked_through = self._through[..., :low].max(axis=2) >= enough
        no_floor = (self._drop >= enough) & (self._drop > self._floor)
        free = ((self._floor >= enough) | looked_through | self._stood) & ~standing & ~no_floor
        cells = np.full(free.shape, Cell.UNKNOWN, np.uint8)
        cells[free] = Cell.FREE
        cells[standing | no_floor] = Cell.OCCUPIED
        cells[_specks(cells, round((SPECK_M / res) ** 2))] = Cell.FREE
        cells[_hollows(cells == Cell.FREE, self._stood, round(MIN_ROOM_M2 / res**2))] = Cell.UNKNOWN
        margin = round(0.25 / res)
        rows, columns = (np.flatnonzero((cells != Cell.UNKNOWN).any(axis=axis)) for axis in (1, 0))
        if not len(rows):
            return OccupancyMap(cells[:1, :1], res, self._grid.origin_x_m, self._grid.origin_y_m)
        r0, c0 = max(rows[0] - margin, 0), max(columns[0] - margin, 0)
        cut = cells[r0 : rows[-1] + margin + 1, c0 : columns[-1] + margin + 1]
        x_m, y_m = (round(float(o + i * res), 9) for o, i in ((self._grid.origin_x_m, c0), (self._grid.origin_y_m, r0)))
        return OccupancyMap(np.ascontiguousarray(cut), res, x_m, y_m)

    def drops(self, occupancy: OccupancyMap) -> NDArray[np.bool_]:
        """Cells of :meth:`occupancy` that are occupied because there is no floor: nothing stands there."""
        row, column = self._offset(occupancy)
        rows, columns = occupancy.cells.shape
        window = np.s_[row : row + rows, column : column + columns]
        return np.asarray((occupancy.cells == Cell.OCCUPIED) & ~np.asarray(self.standing.any(axis=2))[window])

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows, columns and layers of the voxels."""
        return self._grid.rows, self._grid.columns, self.band.layers

    @property
    def standing(self) -> NDArray[np.bool_]:
        """Voxels in which there is a surface, (rows, columns, layers)."""
        return np.asarray((self._met >= self.band.observations) & (self._met > self._through))

    @property
    def open(self) -> NDArray[np.bool_]:
        """Voxels that were looked through, (rows, columns, layers)."""
        return np.asarray((self._through >= self.band.observations) & (self._through > self._met))

    def voxels(self, points: NDArray[Any]) -> NDArray[np.int64]:
        """Flat index of each point's voxel (N,), of points (N, 3) in ``map``; -1 outside."""
        band = self.band
        cell = self._cells(points)
        layer = np.floor((points[:, 2] - band.min_z_m) / band.layer_m).astype(np.int64)
        inside = (cell >= 0) & (layer >= 0) & (points[:, 2] < band.max_z_m)
        return np.where(inside, cell * band.layers + np.minimum(layer, band.layers - 1), -1)

    def _cells(self, points: NDArray[Any]) -> NDArray[np.int64]:
        """Flat index of each point's cell (N,); -1 outside."""
        grid, res = self._grid, self.band.resolution_m
        column = np.floor((points[:, 0] - grid.origin_x_m) / res).astype(np.int64)
        row = np.floor((points[:, 1] - grid.origin_y_m) / res).astype(np.int64)
        inside = (column >= 0) & (column < grid.columns) & (row >= 0) & (row < grid.rows)
        return np.where(inside, row * grid.columns + column, -1)

    def centers(self, voxels: NDArray[np.int64]) -> NDArray[np.float64]:
        """The middles of voxels by flat index, (N, 3) in ``map``."""
        cell, layer = np.divmod(voxels, self.band.layers)
        row, column = np.divmod(cell, self._grid.columns)
        x_m = self._grid.origin_x_m + (column + 0.5) * self.band.resolution_m
        y_m = self._grid.origin_y_m + (row + 0.5) * self.band.resolution_m
        return np.stack([x_m, y_m, self.band.min_z_m + (layer + 0.5) * self.band.layer_m], axis=1)

    def _offset(self, occupancy: OccupancyMap) -> tuple[int, int]:
        res = self.band.resolution_m
        return (
            round((occupancy.origin_y_m - self._grid.origin_y_m) / res),
            round((occupancy.origin_x_m - self._grid.origin_x_m) / res),
        )

    def _count_points(self, points: NDArray[np.float32]) -> None:
        # Each cell or voxel once per frame, however many pixels fall into it.
        low = np.unique(self._cells(points[np.abs(points[:, 2]) < self.band.min_z_m]))
        self._floor.reshape(-1)[low[low >= 0]] += 1
        met = np.unique(self.voxels(points))
        self._met.reshape(-1)[met[met >= 0]] += 1

    def _count_views(self, sight: Sight) -> None:
        """Voxels whose centre lies in front of what the pixel there measured."""
        band, k = self.band, sight.intrinsics
        to_camera = np.linalg.inv(sight.map_from_camera).astype(np.float32)
        farthest_m = float(sight.depth_m.max(initial=0.0))
        rows, columns = self._cells_ahead(sight, farthest_m * _widest(sight))
        if not len(rows):
            return
        x = (self._grid.origin_x_m + (columns + 0.5) * band.resolution_m).astype(np.float32)
        y = (self._grid.origin_y_m + (rows + 0.5) * band.resolution_m).astype(np.float32)
        margin_m = 0.5 * math.hypot(band.resolution_m * math.sqrt(2), band.layer_m)
        base = [to_camera[i, 0] * x + to_camera[i, 1] * y + to_camera[i, 3] for i in range(3)]

        def seen_through(z_m: float, more_m: float = 0.0) -> NDArray[np.bool_]:
            cx, cy, cz = (base[i] + np.float32(to_camera[i, 2] * z_m) for i in range(3))
            ahead = cz > 0.05
            inverse = np.divide(1, cz, out=np.zeros_like(cz), where=ahead)
            u = np.rint(cx * inverse * np.float32(k.fx) + np.float32(k.cx)).astype(np.int32)
            v = np.rint(cy * inverse * np.float32(k.fy) + np.float32(k.cy)).astype(np.int32)
            held = ahead & (u >= 0) & (u < k.width) & (v >= 0) & (v < k.height)
            measured = np.zeros_like(cz)
            measured[held] = sight.depth_m[v[held], u[held]]
            return np.asarray(measured > cz + margin_m + more_m + _NOISE * cz * cz)

        for layer in range(band.layers):
            found = seen_through(band.min_z_m + (layer + 0.5) * band.layer_m)
            self._through[rows[found], columns[found], layer] += 1
        found = seen_through(sum(DROP_M) / 2, (DROP_M[1] - DROP_M[0]) / 2)
        self._drop[rows[found], columns[found]] += 1

    def _cells_ahead(self, sight: Sight, reach_m: float) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Rows and columns of the cells in the sector of the floor plan that the image can show."""
        grid, res = self._grid, self.band.resolution_m
        x_m, y_m, _ = sight.map_from_camera[:3, 3]
        column0 = max(0, math.floor((x_m - reach_m - grid.origin_x_m) / res))
        column1 = min(grid.columns, math.ceil((x_m + reach_m - grid.origin_x_m) / res))
        row0 = max(0, math.floor((y_m - reach_m - grid.origin_y_m) / res))
        row1 = min(grid.rows, math.ceil((y_m + reach_m - grid.origin_y_m) / res))
        dx = (grid.origin_x_m + (np.arange(column0, column1) + 0.5) * res - x_m)[None, :]
        dy = (grid.origin_y_m + (np.arange(row0, row1) + 0.5) * res - y_m)[:, None]
        inside = dx * dx + dy * dy <= reach_m * reach_m
        sector = _sector(sight)
        if sector is not None:
            (lx, ly), (rx, ry) = sector
            inside &= (lx * dy - ly * dx <= 0) & (rx * dy - ry * dx >= 0)
        rows, columns = np.nonzero(inside)
        return rows + row0, columns + column0

    def _stand(self, x_m: float, y_m: float) -> None:
        grid, res = self._grid, self.band.resolution_m
        row, column = math.floor((y_m - grid.origin_y_m) / res), math.floor((x_m - grid.origin_x_m) / res)
        reach = math.ceil(STOOD_M / res)
        r0, c0 = max(row - reach, 0), max(column - reach, 0)
        rows, columns = np.ogrid[r0 : row + reach + 1, c0 : column + reach + 1]
        disc = (rows - row) ** 2 + (columns - column) ** 2 <= (STOOD_M / res) ** 2
        self._stood[r0 : row + reach + 1, c0 : column + reach + 1] |= disc[
            : grid.rows - r0 if row + reach + 1 > grid.rows else None,
            : grid.columns - c0 if column + reach + 1 > grid.columns else None,
        ]


def _corner_rays(sight: Sight) -> NDArray[np.float64]:
    """Directions in ``map`` of the image's corners, z forward 1 in the camera, (4, 3): left ones first."""
    k = sight.intrinsics
    pixels = np.array([(u, v) for u in (-0.5, k.width - 0.5) for v in (-0.5, k.height - 0.5)])
    rays = np.column_stack([(pixels[:, 0] - k.cx) / k.fx, (pixels[:, 1] - k.cy) / k.fy, np.ones(4)])
    return np.asarray(rays @ sight.map_from_camera[:3, :3].T)


def _widest(sight: Sight) -> float:
    """The longest distance in the plan per metre of depth."""
    return float(np.hypot(*_corner_rays(sight)[:, :2].T).max())


def _sector(sight: Sight) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """The plan's directions (2,) that bound the image on its left and right; None if the camera looks down or up."""
    rays = _corner_rays(sight)[:, :2]
    axis = sight.map_from_camera[:2, 2]
    if (rays @ axis <= 0.05).any():
        return None
    bearing = np.arctan2(axis[0] * rays[:, 1] - axis[1] * rays[:, 0], rays @ axis)
    return rays[int(bearing.argmax())], rays[int(bearing.argmin())]


def _hollows(free: NDArray[np.bool_], stood: NDArray[np.bool_], most: int) -> NDArray[np.bool_]:
    """Free areas of fewer cells that the robot has never stood in: the insides of tubs and of armchairs."""
    labels, count = ndimage.label(free)
    sizes = np.bincount(labels.ravel(), minlength=count + 1)
    hollow = sizes < most
    hollow[0] = False
    hollow[np.unique(labels[stood])] = False
    return np.asarray(hollow[labels])


def _specks(cells: NDArray[np.uint8], most: int) -> NDArray[np.bool_]:
    """Unknown islands of at most so many cells whose neighbours are all free."""
    labels, count = ndimage.label(cells == Cell.UNKNOWN)
    if not count:
        return np.zeros(cells.shape, bool)
    sizes = np.bincount(labels.ravel(), minlength=count + 1)
    small = np.flatnonzero(sizes <= most)
    small = small[small > 0]
    # An island touches what is not free where its label, spread by one cell, meets such a cell.
    spread = ndimage.grey_dilation(labels, size=(3, 3))
    touching = np.unique(spread[cells == Cell.OCCUPIED])
    return np.isin(labels, np.setdiff1d(small, touching))
