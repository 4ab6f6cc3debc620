"""Occupancy grid of the floor, in the episode's start frame; it grows with the explored area."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.geometry import SE2
from robot_runtime.scenes.grid_interpolation import Floats, GridFrame

Indices = NDArray[np.intp]
Window = tuple[slice, slice]

HIT = 3
MISS = 1
CAP = 12
OCCUPIED_AT = 3


class Grid(GridFrame):
    """Obstacle evidence and observed cells. Row 0 is the smallest y.

    A cell gains :data:`HIT` whenever an obstacle is measured in it and loses :data:`MISS` whenever a measurement passes
    through it, between 0 and :data:`CAP`: a repeated measurement stays, an outlier fades.

    Args:
        resolution_m: edge of a cell.
        half_m: the grid spans this far to every side of the start, and grows from there.

    Attributes:
        evidence: int8 (rows, columns).
        touched: uint8, contacts that an obstacle in the cell may have caused.
        known: bool, observed.
        suspect: bool, not known: below the image, in front of an object in view that may reach nearer.
        goal_counts: uint8, images that showed the goal object in the cell, up to 255.
    """

    def __init__(self, resolution_m: float, half_m: float) -> None:
        cells = 2 * round(half_m / resolution_m)
        self.resolution_m = resolution_m
        self.origin_x_m = self.origin_y_m = -cells / 2 * resolution_m
        self.evidence: NDArray[np.int8] = np.zeros((cells, cells), np.int8)
        self.touched: NDArray[np.uint8] = np.zeros((cells, cells), np.uint8)
        self.known: NDArray[np.bool_] = np.zeros((cells, cells), np.bool_)
        self.suspect: NDArray[np.bool_] = np.zeros((cells, cells), np.bool_)
        self.goal_counts: NDArray[np.uint8] = np.zeros((cells, cells), np.uint8)

    def occupied(self, window: Window = (slice(None), slice(None))) -> NDArray[np.bool_]:
        """Cells that hold an obstacle, of a window or of all."""
        return np.asarray(self.evidence[window] >= OCCUPIED_AT)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.evidence.shape[0], self.evidence.shape[1]

    def flat(self, x_m: Floats, y_m: Floats) -> Indices:
        """Flat indices of the cells that hold the points; points off the grid are left out."""
        columns, rows = (np.floor(value).astype(np.intp) for value in self.in_cells(x_m, y_m))
        inside = (rows >= 0) & (rows < self.shape[0]) & (columns >= 0) & (columns < self.shape[1])
        return np.asarray((rows * self.shape[1] + columns)[inside])

    def window(self, x0_m: float, y0_m: float, x1_m: float, y1_m: float) -> Window:
        """The rows and columns of the cells that a box meets, as far as they are on the grid."""
        (column0, row0), (column1, row1) = self.in_cells(x0_m, y0_m), self.in_cells(x1_m, y1_m)
        return (
            slice(max(int(row0), 0), min(int(row1) + 1, self.shape[0])),
            slice(max(int(column0), 0), min(int(column1) + 1, self.shape[1])),
        )

    def known_window(self, margin_m: float, including: tuple[float, float] | None = None) -> Window:
        """The smallest window around everything known (and a point), with a margin. At least one cell must be known."""
        margin = round(margin_m / self.resolution_m)
        points = (None, None) if including is None else self.in_cells(*including)[::-1]
        spans = []
        for axis, point in enumerate(points):
            lines = np.flatnonzero(self.known.any(axis=1 - axis))
            first, last = int(lines[0]), int(lines[-1])
            if point is not None:
                first, last = min(first, int(point)), max(last, int(point))
            spans.append(slice(max(first - margin, 0), min(last + margin + 1, self.shape[axis])))
        return spans[0], spans[1]

    def include(self, x_m: float, y_m: float, margin_m: float) -> None:
        """Grow until everything within ``margin_m`` of a point lies on the grid.

        Growth is at least 40 cells to a side, so that it is rare.
        """
        column, row = self.in_cells(x_m, y_m)
        margin = margin_m / self.resolution_m
        rows, columns = self.shape
        pad = [[0, 0], [0, 0]]
        for axis, (at, size) in enumerate(((row, rows), (column, columns))):
            pad[axis][0] = max(0, int(np.ceil(margin - at)))
            pad[axis][1] = max(0, int(np.ceil(at + margin - size)))
        if not any(amount for side in pad for amount in side):
            return
        pad = [[amount and max(amount, 40) for amount in side] for side in pad]
        self.evidence, self.goal_counts = np.pad(self.evidence, pad), np.pad(self.goal_counts, pad)
        self.touched, self.known = np.pad(self.touched, pad), np.pad(self.known, pad)
        self.suspect = np.pad(self.suspect, pad)
        self.origin_x_m -= pad[1][0] * self.resolution_m
        self.origin_y_m -= pad[0][0] * self.resolution_m

    def sweep(self, start: SE2, end: SE2, radius_m: float) -> None:
        """Clear the cells that the robot covered on a move from one pose to another."""
        steps = max(1, math.ceil(start.distance_to(end) / self.resolution_m))
        for i in range(steps + 1):
            pose = start.interpolate(end, i / steps)
            self._clear_disc(self.known, pose, radius_m, True)
            self._clear_disc(self.suspect, pose, radius_m, False)
            # Cells that the rim cuts may hold part of a wall; those one cell inside cannot.
            self._clear_disc(self.touched, pose, radius_m - self.resolution_m, 0)
            self._clear_disc(self.evidence, pose, radius_m - self.resolution_m, 0)

    def touch(self, pose: SE2, radius_m: float) -> None:
        """Record a contact, which may be anywhere along the front half of the robot's rim."""
        angles = pose.yaw_rad + np.radians(np.arange(-90.0, 91.0, 10.0))
        reach_m = radius_m + self.resolution_m / 2
        cells = self.flat(pose.x_m + reach_m * np.cos(angles), pose.y_m + reach_m * np.sin(angles))
        touched = self.touched.ravel()
        touched[cells] = np.minimum(touched[cells], 254) + 1

    def _clear_disc(self, layer: NDArray[Any], pose: SE2, radius_m: float, value: int) -> None:
        column, row = self.in_cells(pose.x_m, pose.y_m)
        reach = radius_m / self.resolution_m
        rows, columns = (
            slice(int(row - reach), int(row + reach) + 1),
            slice(int(column - reach), int(column + reach) + 1),
        )
        r, c = np.ogrid[rows, columns]
        layer[rows, columns][np.hypot(r + 0.5 - row, c + 0.5 - column) <= reach] = value
