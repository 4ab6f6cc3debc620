"""Contact for scans: boxes that stand where the scan has any surface at the robot's height.

A scanned building is one open, noisy sheet of a million triangles, which no decomposition of solids fits. The robot is
a cylinder, so what it can touch is decided by the plan of the surface between its bottom and its top.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from robot_runtime.scenes.scene import Collision
from sim_bridge.scenes.raster import Grid, mark_triangles

Array = NDArray[np.float64]


def columns(triangles: Array, low_z_m: float, high_z_m: float, resolution_m: float) -> list[Collision]:
    """Boxes from ``low_z_m`` to ``high_z_m`` over the plan of triangles (M, 3, 3) in that band, to a cell's width."""
    z = triangles[..., 2]
    band = triangles[(z.min(axis=1) <= high_z_m) & (z.max(axis=1) >= low_z_m)]
    if not len(band):
        return []
    points = band.reshape(-1, 3)[:, :2]
    grid = Grid.around(points.min(axis=0), points.max(axis=0), resolution_m, resolution_m)
    cells = np.zeros((grid.rows, grid.columns), bool)
    mark_triangles(cells, grid, band, low_z_m, high_z_m)
    return boxes(cells, (grid.origin_x_m, grid.origin_y_m), resolution_m, low_z_m, high_z_m)


def boxes(
    cells: NDArray[np.bool_], origin_m: tuple[float, float], resolution_m: float, low_z_m: float, high_z_m: float
) -> list[Collision]:
    """Boxes from ``low_z_m`` to ``high_z_m`` over the set cells; ``origin_m`` is the corner of the first cell."""
    middle, height = (low_z_m + high_z_m) / 2, high_z_m - low_z_m
    return [
        Collision(
            "box",
            (origin_m[0] + (column + width / 2) * resolution_m, origin_m[1] + (row + depth / 2) * resolution_m, middle),
            (width * resolution_m, depth * resolution_m, height),
        )
        for row, column, depth, width in rectangles(cells)
    ]


def rectangles(cells: NDArray[np.bool_]) -> Iterator[tuple[int, int, int, int]]:
    """Disjoint (row, column, rows, columns) that tile the set cells: runs of a row, joined with equal ones above."""
    growing: dict[tuple[int, int], int] = {}
    for row in range(cells.shape[0] + 1):
        runs = _runs(cells[row]) if row < cells.shape[0] else set()
        for run in [run for run in growing if run not in runs]:
            first = growing.pop(run)
            yield first, run[0], row - first, run[1] - run[0]
        for run in sorted(runs):
            growing.setdefault(run, row)


def _runs(line: NDArray[np.bool_]) -> set[tuple[int, int]]:
    """[start, stop) of every stretch of set cells."""
    change = np.flatnonzero(np.diff(np.concatenate([[0], line.astype(np.int8), [0]])))
    return {(int(start), int(stop)) for start, stop in change.reshape(-1, 2)}
