"""Distances between a robot and obstacles on the map, interpolated between cells."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from robot_runtime.common.geometry import SE2
from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap

Array = NDArray[np.float64]

STEP_M = 0.01
"""Interval of samples on a path."""

SMOOTH_CELLS = 1.0
"""Smoothing of the map for a wall's direction, because cells have only two."""


class Walls:
    """Distances on one map."""

    def __init__(self, occupancy: OccupancyMap, radius_m: float) -> None:
        self.radius_m, self.cell_m = radius_m, occupancy.resolution_m
        self._map = occupancy
        occupied = np.pad(occupancy.cells == Cell.OCCUPIED, 1, constant_values=False)
        # An empty map has large distances.
        outside = ndimage.distance_transform_edt(~occupied) if occupied.any() else np.full(occupied.shape, 1e6)
        inside = ndimage.distance_transform_edt(occupied)
        # Distances are from center to center; an obstacle begins half a cell earlier.
        signed = (outside - np.where(outside > 0, 0.5, 0) - inside + np.where(inside > 0, 0.5, 0))[1:-1, 1:-1]
        self._signed_m = signed * occupancy.resolution_m
        smooth = ndimage.gaussian_filter(self._signed_m, SMOOTH_CELLS)
        self._away = np.stack(np.gradient(smooth, occupancy.resolution_m)[::-1])

    def distance_m(self, x_m: Array, y_m: Array) -> Array:
        """Return the distances from points to the nearest occupied cell, negative inside one, float64 like ``x_m``."""
        return self._at(self._signed_m, x_m, y_m)

    def away(self, x_m: float, y_m: float) -> tuple[float, float]:
        """Return the unit vector (map) from the nearest occupied cell to a point; (0, 0) without one."""
        dx, dy = (float(self._at(part, np.array([x_m]), np.array([y_m]))[0]) for part in self._away)
        length = math.hypot(dx, dy)
        return (dx / length, dy / length) if length > 1e-6 else (0.0, 0.0)

    def along(self, start: SE2, path_length_m: float) -> tuple[Array, Array]:
        """Return path lengths on a straight line ahead, and the distances to the nearest wall, float64 (N,) both."""
        path_lengths_m = np.linspace(0.0, path_length_m, max(2, math.ceil(path_length_m / STEP_M) + 1))
        x_m, y_m = (
            start.x_m + path_lengths_m * math.cos(start.yaw_rad),
            start.y_m + path_lengths_m * math.sin(start.yaw_rad),
        )
        return path_lengths_m, self.distance_m(x_m, y_m)

    def nearest_on_path_m(self, start: SE2, path_length_m: float) -> float:
        """Return the least distance to a wall on a straight line ahead."""
        return float(self.along(start, path_length_m)[1].min())

    def _at(self, grid: Array, x_m: Array, y_m: Array) -> Array:
        size_m = self._map.resolution_m
        rows = (np.asarray(y_m) - self._map.origin_y_m) / size_m - 0.5
        columns = (np.asarray(x_m) - self._map.origin_x_m) / size_m - 0.5
        return np.asarray(ndimage.map_coordinates(grid, [rows, columns], order=1, mode="nearest"))
