"""What was seen of the floor: its colours, cell by cell, and how high the robot's description puts it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from robot_runtime.scenes.occupancy_map import OccupancyMap
from sim_bridge.reconstruction.logged_frames import Sight

FLOOR_M = 0.05
"""How far from z = 0 a point may be and count as floor."""

CELL_M = 0.025
GREY = (128, 124, 118)
"""Of floor that nobody saw, where none was seen at all."""

NEAR_M = 2.5
"""Farther away, a tenth of a degree of tilt already moves the floor by millimetres."""

OFF_M = 0.02
"""Farther from z = 0 on average, the floor says that the camera's tilt or height is not what the log says."""

_BINS = 200
_WIDE = 1 << 20


class FloorHeights:
    """How high what was taken for floor lay, near the camera."""

    def __init__(self) -> None:
        self._counts = np.zeros(_BINS, np.int64)

    def add(self, sight: Sight, points: NDArray[np.float32]) -> None:
        """Count those of a frame's points (N, 3) in ``map`` that lie on the floor, near the camera."""
        low = points[np.abs(points[:, 2]) < FLOOR_M]
        near = np.linalg.norm(low - sight.map_from_camera[:3, 3], axis=1) < NEAR_M
        bins = ((low[near, 2] + FLOOR_M) * (_BINS / (2 * FLOOR_M))).astype(np.int64)
        self._counts += np.bincount(np.clip(bins, 0, _BINS - 1), minlength=_BINS)

    @property
    def median_m(self) -> float | None:
        """Median z; None if no floor was seen."""
        total = int(self._counts.sum())
        if not total:
            return None
        middle = int(np.searchsorted(np.cumsum(self._counts), (total + 1) // 2))
        return (middle + 0.5) * (2 * FLOOR_M / _BINS) - FLOOR_M

    def notes(self) -> list[str]:
        """What is wrong with the camera, if the floor says so."""
        if self.median_m is None or abs(self.median_m) <= OFF_M:
            return []
        return [
            f"the floor was seen at z = {100 * self.median_m:+.1f} cm: the camera's height or tilt is not what the "
            "logs say; see robot-runtime calibrate extrinsics"
        ]


class FloorLook:
    """Sums of the colours of floor points, in square cells that are made as they are needed.

    Attributes:
        heights: of the same points.
    """

    def __init__(self) -> None:
        self.heights = FloorHeights()
        self._sums: dict[int, NDArray[np.float64]] = {}  # by column * _WIDE + row

    def add(self, sight: Sight, points: NDArray[np.float32], colors: NDArray[np.uint8]) -> None:
        """Count those of a frame's points (N, 3) in ``map``, with their colours, that lie on the floor."""
        self.heights.add(sight, points)
        low = np.abs(points[:, 2]) < FLOOR_M
        points, colors = points[low], colors[low]
        if not len(points):
            return
        cells = np.floor(points[:, :2] / CELL_M).astype(np.int64)
        unique, index = np.unique(cells[:, 0] * _WIDE + cells[:, 1], return_inverse=True)
        sums = [np.bincount(index, weights=colors[:, i]) for i in range(3)] + [np.bincount(index)]
        for key, values in zip(unique.tolist(), np.stack(sums, axis=1), strict=True):
            known = self._sums.get(key)
            self._sums[key] = values if known is None else known + values

    def texture(self, occupancy: OccupancyMap) -> NDArray[np.uint8]:
        """Colour of every cell of a map, uint8 (rows, columns, 3), row 0 at the bottom; unseen ones get their
        nearest neighbour's."""
        rows, columns = occupancy.cells.shape
        image = np.zeros((rows, columns, 3))
        known = np.zeros((rows, columns), bool)
        if self._sums:
            across, along = _split(np.array(list(self._sums)))
            values = np.array(list(self._sums.values()))
            row = np.floor(((along + 0.5) * CELL_M - occupancy.origin_y_m) / occupancy.resolution_m).astype(int)
            column = np.floor(((across + 0.5) * CELL_M - occupancy.origin_x_m) / occupancy.resolution_m).astype(int)
            inside = (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
            sums = np.zeros((rows, columns, 4))
            np.add.at(sums, (row[inside], column[inside]), values[inside])
            known = sums[..., 3] > 0
            image[known] = sums[known, :3] / sums[known, 3:]
        if not known.any():
            return np.full((rows, columns, 3), GREY, np.uint8)
        nearest = ndimage.distance_transform_edt(~known, return_distances=False, return_indices=True)
        return np.asarray(np.rint(image[tuple(nearest)]), np.uint8)


def _split(keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Columns and rows, negative ones included, of keys."""
    columns = (keys + _WIDE // 2) // _WIDE
    return columns, keys - columns * _WIDE
