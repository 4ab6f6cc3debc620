"""Occupancy mapping from depth images by voting: occupied, free and unknown cells.

Space between the floor and the robot's top is divided into cells and layers. Each frame votes on a voxel: a measured
point lies in it, or the camera saw through it. A voxel is occupied where more frames measured a point than saw
through, so neither a person who walked by nor a wrong pixel counts. A cell is free if none of its voxels is occupied
and its floor, or the space just above, was seen, or the robot stood there. The other cells are unknown.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from robot_runtime.errors import ConfigError
from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap
from sim_bridge.reconstruction.logged_frames import PosedFrame
from sim_bridge.scenes.occupancy import MIN_ROOM_M2
from sim_bridge.scenes.raster import Grid

MAX_VOXELS = 150_000_000
"""Limit on memory: two counts of two bytes per voxel make 600 MB. A place of 20 x 20 m has 22 million voxels."""

FREE_BELOW_M = 0.3
"""A cell that was seen through below this height is free unless one of its voxels is occupied."""

DROP_M = (-0.25, -0.1)
"""Heights below the floor at which a view through means stairs, not an error of pose or tilt."""

VISITED_M = 0.15
"""Radius around the robot's center that is free; its camera does not see the floor there."""

SPECK_M = 0.1
"""Unknown islands in free floor with a smaller edge are gaps between pixels."""

_NOISE = 0.01
"""Depth error per square of the depth in meters: 9 cm at 3 m, more than that of the robots' sensors."""


@dataclass(frozen=True)
class MappingOptions:
    """Resolution and heights of the map.

    Attributes:
        resolution_m: edge of a cell.
        min_z_m: points below this height count as floor.
        max_z_m: the robot's top.
        layer_m: height of a voxel.
        observations: number of frames that must agree on a cell.
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
            raise ConfigError(f"{self.observations} observations per cell", "give 1 or more")

    @property
    def layers(self) -> int:
        """Number of voxels above each other."""
        return math.ceil((self.max_z_m - self.min_z_m) / self.layer_m - 1e-9)


class VoxelGrid:
    """Votes of frames on the voxels of a grid.

    Args:
        viewpoints: float64 (N, 3), around which the grid is laid.
        reach_m: distance of the grid's border from them.
        options: resolution and heights.

    Raises:
        ConfigError: the place is too large for the resolution.
    """

    def __init__(self, viewpoints: NDArray[np.float64], reach_m: float, options: MappingOptions) -> None:
        self.options = options
        low, high = viewpoints[:, :2].min(axis=0), viewpoints[:, :2].max(axis=0)
        self._grid = grid = Grid.around(low, high, options.resolution_m, reach_m)
        shape = grid.rows, grid.columns
        if grid.rows * grid.columns * options.layers > MAX_VOXELS:
            raise ConfigError(
                f"{grid.columns * options.resolution_m:.0f} x {grid.rows * options.resolution_m:.0f} m in cells of "
                f"{options.resolution_m} m do not fit in memory",
                f"give --resolution-m {2 * options.resolution_m:g}, a smaller --max-depth-m, or logs of fewer rooms",
            )
        self._hits = np.zeros((*shape, options.layers), np.uint16)
        self._passes = np.zeros((*shape, options.layers), np.uint16)
        self._floor = np.zeros(shape, np.uint16)
        self._drop = np.zeros(shape, np.uint16)
        self._visited = np.zeros(shape, bool)

    def add(self, frame: PosedFrame, points: NDArray[np.float32]) -> None:
        """Count a frame and its measured points (N, 3) in ``map``."""
        self._count_hits(points)
        self._count_passes(frame)
        self._mark_visited(frame.base.x_m, frame.base.y_m)

    def occupancy(self) -> OccupancyMap:
        """The map, cropped to its known cells with a margin of 0.25 m."""
        enough, res = self.options.observations, self.options.resolution_m
        occupied = self.occupied.any(axis=2)
        low = max(1, math.ceil((FREE_BELOW_M - self.options.min_z_m) / self.options.layer_m))
        seen_through_low = self._passes[..., :low].max(axis=2) >= enough
        no_floor = (self._drop >= enough) & (self._drop > self._floor)
        free = ((self._floor >= enough) | seen_through_low | self._visited) & ~occupied & ~no_floor
        cells = np.full(free.shape, Cell.UNKNOWN, np.uint8)
        cells[free] = Cell.FREE
        cells[occupied | no_floor] = Cell.OCCUPIED
        cells[_specks(cells, round((SPECK_M / res) ** 2))] = Cell.FREE
        cells[_enclosed(cells == Cell.FREE, self._visited, round(MIN_ROOM_M2 / res**2))] = Cell.UNKNOWN
        margin = round(0.25 / res)
        rows, columns = (np.flatnonzero((cells != Cell.UNKNOWN).any(axis=axis)) for axis in (1, 0))
        if not len(rows):
            return OccupancyMap(cells[:1, :1], res, self._grid.origin_x_m, self._grid.origin_y_m)
        r0, c0 = max(rows[0] - margin, 0), max(columns[0] - margin, 0)
        cut = cells[r0 : rows[-1] + margin + 1, c0 : columns[-1] + margin + 1]
        x_m, y_m = (round(float(o + i * res), 9) for o, i in ((self._grid.origin_x_m, c0), (self._grid.origin_y_m, r0)))
        return OccupancyMap(np.ascontiguousarray(cut), res, x_m, y_m)

    def drops(self, occupancy: OccupancyMap) -> NDArray[np.bool_]:
        """Cells (rows, columns) of :meth:`occupancy` that are occupied because they have no floor."""
        res = self.options.resolution_m
        row = round((occupancy.origin_y_m - self._grid.origin_y_m) / res)
        column = round((occupancy.origin_x_m - self._grid.origin_x_m) / res)
        rows, columns = occupancy.cells.shape
        window = np.s_[row : row + rows, column : column + columns]
        return np.asarray((occupancy.cells == Cell.OCCUPIED) & ~np.asarray(self.occupied.any(axis=2))[window])

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows, columns and layers of the voxels."""
        return self._grid.rows, self._grid.columns, self.options.layers

    @property
    def occupied(self) -> NDArray[np.bool_]:
        """Voxels that hold a surface, (rows, columns, layers)."""
        return np.asarray((self._hits >= self.options.observations) & (self._hits > self._passes))

    @property
    def open(self) -> NDArray[np.bool_]:
        """Voxels that were seen through, (rows, columns, layers)."""
        return np.asarray((self._passes >= self.options.observations) & (self._passes > self._hits))

    def indices(self, points: NDArray[Any]) -> NDArray[np.int64]:
        """Flat index of each point's voxel (N,), of points (N, 3) in ``map``; -1 outside."""
        options = self.options
        cell = self._cells(points)
        layer = np.floor((points[:, 2] - options.min_z_m) / options.layer_m).astype(np.int64)
        inside = (cell >= 0) & (layer >= 0) & (points[:, 2] < options.max_z_m)
        return np.where(inside, cell * options.layers + np.minimum(layer, options.layers - 1), -1)

    def _cells(self, points: NDArray[Any]) -> NDArray[np.int64]:
        """Flat index of each point's cell (N,); -1 outside."""
        grid, res = self._grid, self.options.resolution_m
        column = np.floor((points[:, 0] - grid.origin_x_m) / res).astype(np.int64)
        row = np.floor((points[:, 1] - grid.origin_y_m) / res).astype(np.int64)
        inside = (column >= 0) & (column < grid.columns) & (row >= 0) & (row < grid.rows)
        return np.where(inside, row * grid.columns + column, -1)

    def centers(self, voxels: NDArray[np.int64]) -> NDArray[np.float64]:
        """Centers (N, 3) in ``map`` of voxels with flat indices (N,)."""
        cell, layer = np.divmod(voxels, self.options.layers)
        row, column = np.divmod(cell, self._grid.columns)
        x_m = self._grid.origin_x_m + (column + 0.5) * self.options.resolution_m
        y_m = self._grid.origin_y_m + (row + 0.5) * self.options.resolution_m
        return np.stack([x_m, y_m, self.options.min_z_m + (layer + 0.5) * self.options.layer_m], axis=1)

    def _count_hits(self, points: NDArray[np.float32]) -> None:
        # A frame counts a cell or voxel once, however many pixels fall into it.
        low = np.unique(self._cells(points[np.abs(points[:, 2]) < self.options.min_z_m]))
        self._floor.reshape(-1)[low[low >= 0]] += 1
        hits = np.unique(self.indices(points))
        self._hits.reshape(-1)[hits[hits >= 0]] += 1

    def _count_passes(self, frame: PosedFrame) -> None:
        """Count the voxels whose center lies in front of the depth measured there."""
        options, k = self.options, frame.intrinsics
        to_camera = np.linalg.inv(frame.map_from_camera).astype(np.float32)
        farthest_m = float(frame.depth_m.max(initial=0.0))
        widest = float(np.hypot(*_corner_rays(frame)[:, :2].T).max())  # horizontal distance of a ray at a depth of 1
        rows, columns = self._cells_ahead(frame, farthest_m * widest)
        if not len(rows):
            return
        x = (self._grid.origin_x_m + (columns + 0.5) * options.resolution_m).astype(np.float32)
        y = (self._grid.origin_y_m + (rows + 0.5) * options.resolution_m).astype(np.float32)
        half_diagonal_m = 0.5 * math.hypot(options.resolution_m * math.sqrt(2), options.layer_m)
        base = [to_camera[i, 0] * x + to_camera[i, 1] * y + to_camera[i, 3] for i in range(3)]

        def seen_through(z_m: float, margin_m: float) -> NDArray[np.bool_]:
            cx, cy, cz = (base[i] + np.float32(to_camera[i, 2] * z_m) for i in range(3))
            ahead = cz > 0.05
            inverse = np.divide(1, cz, out=np.zeros_like(cz), where=ahead)
            u = np.rint(cx * inverse * np.float32(k.fx) + np.float32(k.cx)).astype(np.int32)
            v = np.rint(cy * inverse * np.float32(k.fy) + np.float32(k.cy)).astype(np.int32)
            inside = ahead & (u >= 0) & (u < k.width) & (v >= 0) & (v < k.height)
            measured = np.zeros_like(cz)
            measured[inside] = frame.depth_m[v[inside], u[inside]]
            return np.asarray(measured > cz + margin_m + _NOISE * cz * cz)

        for layer in range(options.layers):
            found = seen_through(options.min_z_m + (layer + 0.5) * options.layer_m, half_diagonal_m)
            self._passes[rows[found], columns[found], layer] += 1
        found = seen_through(sum(DROP_M) / 2, half_diagonal_m + (DROP_M[1] - DROP_M[0]) / 2)
        self._drop[rows[found], columns[found]] += 1

    def _cells_ahead(self, frame: PosedFrame, reach_m: float) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Rows and columns of the cells in the horizontal sector that the image can show."""
        grid, res = self._grid, self.options.resolution_m
        x_m, y_m, _ = frame.map_from_camera[:3, 3]
        column0 = max(0, math.floor((x_m - reach_m - grid.origin_x_m) / res))
        column1 = min(grid.columns, math.ceil((x_m + reach_m - grid.origin_x_m) / res))
        row0 = max(0, math.floor((y_m - reach_m - grid.origin_y_m) / res))
        row1 = min(grid.rows, math.ceil((y_m + reach_m - grid.origin_y_m) / res))
        dx = (grid.origin_x_m + (np.arange(column0, column1) + 0.5) * res - x_m)[None, :]
        dy = (grid.origin_y_m + (np.arange(row0, row1) + 0.5) * res - y_m)[:, None]
        inside = dx * dx + dy * dy <= reach_m * reach_m
        sector = _sector(frame)
        if sector is not None:
            (lx, ly), (rx, ry) = sector
            inside &= (lx * dy - ly * dx <= 0) & (rx * dy - ry * dx >= 0)
        rows, columns = np.nonzero(inside)
        return rows + row0, columns + column0

    def _mark_visited(self, x_m: float, y_m: float) -> None:
        grid, res = self._grid, self.options.resolution_m
        row, column = math.floor((y_m - grid.origin_y_m) / res), math.floor((x_m - grid.origin_x_m) / res)
        reach = math.ceil(VISITED_M / res)
        r0, c0 = max(row - reach, 0), max(column - reach, 0)
        rows, columns = np.ogrid[r0 : row + reach + 1, c0 : column + reach + 1]
        disc = (rows - row) ** 2 + (columns - column) ** 2 <= (VISITED_M / res) ** 2
        self._visited[r0 : row + reach + 1, c0 : column + reach + 1] |= disc[
            : grid.rows - r0 if row + reach + 1 > grid.rows else None,
            : grid.columns - c0 if column + reach + 1 > grid.columns else None,
        ]


def _corner_rays(frame: PosedFrame) -> NDArray[np.float64]:
    """Rays (4, 3) in ``map`` of the image's corners at a depth of 1, the left ones first."""
    k = frame.intrinsics
    pixels = np.array([(u, v) for u in (-0.5, k.width - 0.5) for v in (-0.5, k.height - 0.5)])
    rays = np.column_stack([(pixels[:, 0] - k.cx) / k.fx, (pixels[:, 1] - k.cy) / k.fy, np.ones(4)])
    return np.asarray(rays @ frame.map_from_camera[:3, :3].T)


def _sector(frame: PosedFrame) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Horizontal directions (2,) of the image's left and right border; None if the camera points down or up."""
    rays = _corner_rays(frame)[:, :2]
    axis = frame.map_from_camera[:2, 2]
    if (rays @ axis <= 0.05).any():
        return None
    bearing = np.arctan2(axis[0] * rays[:, 1] - axis[1] * rays[:, 0], rays @ axis)
    return rays[int(bearing.argmax())], rays[int(bearing.argmin())]


def _enclosed(free: NDArray[np.bool_], visited: NDArray[np.bool_], most: int) -> NDArray[np.bool_]:
    """Mask of free areas with fewer cells that the robot has not visited, such as the insides of tubs and armchairs."""
    labels, count = ndimage.label(free)
    sizes = np.bincount(labels.ravel(), minlength=count + 1)
    enclosed = sizes < most
    enclosed[0] = False
    enclosed[np.unique(labels[visited])] = False
    return np.asarray(enclosed[labels])


def _specks(cells: NDArray[np.uint8], most: int) -> NDArray[np.bool_]:
    """Mask of unknown islands of at most so many cells whose neighbors are all free."""
    labels, count = ndimage.label(cells == Cell.UNKNOWN)
    if not count:
        return np.zeros(cells.shape, bool)
    sizes = np.bincount(labels.ravel(), minlength=count + 1)
    small = np.flatnonzero(sizes <= most)
    small = small[small > 0]
    # An island has an occupied neighbor where its label, dilated by one cell, covers such a cell.
    dilated = ndimage.grey_dilation(labels, size=(3, 3))
    touching = np.unique(dilated[cells == Cell.OCCUPIED])
    return np.isin(labels, np.setdiff1d(small, touching))
