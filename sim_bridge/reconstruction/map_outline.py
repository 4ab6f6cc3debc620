"""The border between free and occupied space in a robot's map, as points with normals."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from robot_runtime.errors import SceneError
from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap

Array = NDArray[np.float64]

LEAST_M = 3.0
"""Least length of a border; a shorter one fits nearly everywhere."""

_SMOOTH_CELLS = 2.0


@dataclass(frozen=True, eq=False)
class Outline:
    """The border of a map's free space.

    Attributes:
        points: float64 (N, 2), midpoints of the cell edges between free and occupied, in ``map``.
        normals: float64 (N, 2), unit, into free space.
        spacing_m: length of border that a point stands for.
        free_m: float32 (rows, columns) of the map: distance of a free cell from the rest; 0 elsewhere.
        occupancy: the map.
    """

    points: Array
    normals: Array
    spacing_m: float
    free_m: NDArray[np.float32]
    occupancy: OccupancyMap

    def thinned(self, stride: int) -> Outline:
        """Every ``stride``-th point of it."""
        return replace(self, points=self.points[::stride], normals=self.normals[::stride])


def outline_of(occupancy: OccupancyMap, where: str) -> Outline:
    """The border of a map's free space. Raises ``SceneError`` if the border is too short to recognize a place by."""
    free, occupied = occupancy.cells == Cell.FREE, occupancy.cells == Cell.OCCUPIED
    res = occupancy.resolution_m
    points = []
    for axis in (0, 1):
        for one, other in ((free, occupied), (occupied, free)):
            count = free.shape[axis]
            rows, columns = np.nonzero(np.take(one, range(count - 1), axis) & np.take(other, range(1, count), axis))
            middle = np.array([0.5, 1.0]) if axis == 0 else np.array([1.0, 0.5])  # of the edge, x then y, in cells
            points.append(np.column_stack([columns, rows]) + middle)
    cells = np.concatenate(points)
    if len(cells) * res < LEAST_M:
        raise SceneError(
            f"{where}: only {len(cells) * res:.1f} m of border between free and occupied, too little to find a place",
            "drive farther while mapping",
        )
    smooth = ndimage.gaussian_filter(free.astype(float) - occupied.astype(float), _SMOOTH_CELLS)
    slope = np.stack([ndimage.sobel(smooth, axis=1), ndimage.sobel(smooth, axis=0)], axis=-1)
    at = [cells[:, 1] - 0.5, cells[:, 0] - 0.5]
    normals = np.stack([ndimage.map_coordinates(slope[..., i], at, order=1, mode="nearest") for i in (0, 1)], axis=1)
    length = np.linalg.norm(normals, axis=1)
    keep = length > 1e-9
    points_m = cells[keep] * res + (occupancy.origin_x_m, occupancy.origin_y_m)
    depth_m = (ndimage.distance_transform_edt(free) * res).astype(np.float32)
    return Outline(points_m, normals[keep] / length[keep, None], res, depth_m, occupancy)
