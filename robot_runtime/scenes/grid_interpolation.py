"""Grids in the plane: their frame, and interpolation at many points."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Coordinate = TypeVar("Coordinate", float, Floats)


class GridFrame:
    """Base of grids in a plane, with row 0 at the smallest y.

    Attributes:
        origin_x_m, origin_y_m: outer corner of cell [0, 0].
        resolution_m: edge of a cell.
    """

    origin_x_m: float
    origin_y_m: float
    resolution_m: float

    def in_cells(self, x_m: Coordinate, y_m: Coordinate) -> tuple[Coordinate, Coordinate]:
        """Points as (column, row) in cells from the outer corner, not rounded."""
        return (x_m - self.origin_x_m) / self.resolution_m, (y_m - self.origin_y_m) / self.resolution_m

    def centers(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> tuple[Floats, Floats]:
        """The centers (x, y) of cells."""
        return (
            np.asarray(self.origin_x_m + (columns + 0.5) * self.resolution_m, np.float64),
            np.asarray(self.origin_y_m + (rows + 0.5) * self.resolution_m, np.float64),
        )


def nearest(values: NDArray[np.generic], column: Floats, row: Floats, outside: float) -> Floats:
    """The value of the cell that contains each point.

    Args:
        values: (rows, columns).
        column: column in cells from the grid's outer corner, any shape.
        row: row in cells from the grid's outer corner, same shape.
        outside: value for points off the grid.
    """
    rows, columns = values.shape
    r, c = np.floor(row).astype(np.intp), np.floor(column).astype(np.intp)
    inside = (r >= 0) & (r < rows) & (c >= 0) & (c < columns)
    return np.where(inside, values[np.clip(r, 0, rows - 1), np.clip(c, 0, columns - 1)], outside)


def bilinear(values: NDArray[np.floating], column: Floats, row: Floats) -> Floats:
    """Bilinear interpolation between the finite ones of the four cell centers around each point.

    Args:
        values: (rows, columns); not finite where unknown.
        column: column in cells from the grid's outer corner, any shape.
        row: row in cells from the grid's outer corner, same shape.

    Returns:
        inf where the cell that contains the point is not finite, or off the grid.
    """
    rows, columns = values.shape
    known = np.isfinite(nearest(values, column, row, np.inf))
    r, c = row - 0.5, column - 0.5
    r0, c0 = np.floor(r), np.floor(c)
    fraction_r, fraction_c = r - r0, c - c0
    total, weights = np.zeros(np.shape(column)), np.zeros(np.shape(column))
    for dr, weight_r in ((0, 1 - fraction_r), (1, fraction_r)):
        for dc, weight_c in ((0, 1 - fraction_c), (1, fraction_c)):
            # The border's cells are repeated beyond the border.
            index_r = np.clip(r0 + dr, 0, rows - 1).astype(np.intp)
            index_c = np.clip(c0 + dc, 0, columns - 1).astype(np.intp)
            value = values[index_r, index_c]
            weight = np.where(np.isfinite(value), weight_r * weight_c, 0.0)
            total += weight * np.where(weight > 0, value, 0.0)
            weights += weight
    known &= weights > 0
    return np.where(known, total / np.where(weights > 0, weights, 1.0), np.inf)
