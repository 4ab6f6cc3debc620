"""Planar geometry over arrays of points: rigid motions, and the cells of a map that points lie in."""

import math

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.geometry import SE2
from robot_runtime.scenes.occupancy_map import OccupancyMap

Array = NDArray[np.float64]


def rotation_matrix(yaw_rad: float) -> Array:
    """The rotation of the plane, float64 (2, 2)."""
    c, s = math.cos(yaw_rad), math.sin(yaw_rad)
    return np.array([[c, -s], [s, c]])


def moved(points: Array, motion: SE2) -> Array:
    """Points (N, 2 or 3), rotated about z and then translated; a third coordinate is left as it is."""
    result: Array = points.copy()
    result[:, :2] = points[:, :2] @ rotation_matrix(motion.yaw_rad).T + (motion.x_m, motion.y_m)
    return result


def moved_back(points: Array, motion: SE2) -> Array:
    """The inverse of :func:`moved`."""
    result: Array = points.copy()
    result[:, :2] = (points[:, :2] - (motion.x_m, motion.y_m)) @ rotation_matrix(motion.yaw_rad)
    return result


def cells_of(
    occupancy: OccupancyMap, x_m: Array, y_m: Array
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.bool_]]:
    """Row and column of those points that lie on a map, each (K,), and which points these are, (N,)."""
    row = np.floor((y_m - occupancy.origin_y_m) / occupancy.resolution_m).astype(np.intp)
    column = np.floor((x_m - occupancy.origin_x_m) / occupancy.resolution_m).astype(np.intp)
    rows, columns = occupancy.cells.shape
    inside = (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
    return row[inside], column[inside], inside
