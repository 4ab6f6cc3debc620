"""Color and measured height of the floor that logged frames show."""

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from robot_runtime.scenes.occupancy_map import OccupancyMap
from sim_bridge.reconstruction.logged_frames import PosedFrame
from sim_bridge.reconstruction.planar_geometry import cells_of

FLOOR_M = 0.05
"""Points within this distance of z = 0 count as floor."""

CELL_M = 0.025
GRAY = (128, 124, 118)
"""Color of the floor where none was seen at all."""

NEAR_M = 2.5
"""Range of the height measurement; farther away, a tenth of a degree of tilt moves the floor by millimeters."""

OFF_M = 0.02
"""A median farther from z = 0 means that the camera's tilt or height differs from the log's."""

_BINS = 200
_WIDE = 1 << 20


class FloorHeights:
    """A histogram of the heights of floor points near the camera."""

    def __init__(self) -> None:
        self._counts = np.zeros(_BINS, np.int64)

    def add(self, frame: PosedFrame, points: NDArray[np.float32]) -> None:
        """Count those of a frame's points (N, 3) in ``map`` that lie on the floor, near the camera."""
        low = points[np.abs(points[:, 2]) < FLOOR_M]
        near = np.linalg.norm(low - frame.map_from_camera[:3, 3], axis=1) < NEAR_M
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
        """A warning about the camera if the floor is off by more than :data:`OFF_M`."""
        if self.median_m is None or abs(self.median_m) <= OFF_M:
            return []
        return [
            f"the floor was seen at z = {100 * self.median_m:+.1f} cm: the camera's height or tilt is not what the "
            "logs say; see robot-runtime calibrate extrinsics"
        ]


class FloorTexture:
    """Mean colors of floor points in square cells, allocated as needed."""

    def __init__(self) -> None:
        self.heights = FloorHeights()
        self._sums: dict[int, NDArray[np.float64]] = {}  # by column * _WIDE + row

    def add(self, frame: PosedFrame, points: NDArray[np.float32], colors: NDArray[np.uint8]) -> None:
        """Count those of a frame's points (N, 3) in ``map``, with their colors (N, 3), that lie on the floor."""
        self.heights.add(frame, points)
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
        """Color of every cell of a map, uint8 (rows, columns, 3), row 0 at the smallest y.

        A cell that was not seen has the color of the nearest one that was.
        """
        shape = occupancy.cells.shape
        image, known = np.zeros((*shape, 3)), np.zeros(shape, bool)
        if self._sums:
            keys, values = np.array(list(self._sums)), np.array(list(self._sums.values()))
            across = (keys + _WIDE // 2) // _WIDE
            along = keys - across * _WIDE
            row, column, inside = cells_of(occupancy, (across + 0.5) * CELL_M, (along + 0.5) * CELL_M)
            sums = np.zeros((*shape, 4))
            np.add.at(sums, (row, column), values[inside])
            known = sums[..., 3] > 0
            image[known] = sums[known, :3] / sums[known, 3:]
        if not known.any():
            return np.full((*shape, 3), GRAY, np.uint8)
        nearest = ndimage.distance_transform_edt(~known, return_distances=False, return_indices=True)
        return np.asarray(np.rint(image[tuple(nearest)]), np.uint8)
