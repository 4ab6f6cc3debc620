"""What the robot has learnt about the floor: a grid that grows, in the episode's start frame."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Window = tuple[slice, slice]

HIT = 3
MISS = 1
CAP = 12
OCCUPIED_AT = 3


class Grid:
    """Evidence for obstacles, and what has been looked at. Row 0 is the smallest y.

    A cell gains :data:`HIT` whenever an obstacle is measured in it and loses :data:`MISS` whenever a measurement passes
    through it, between 0 and :data:`CAP`: what was seen well stays, an outlier fades.

    Args:
        half_m: the grid spans this far to every side of the start, and grows from there.

    Attributes:
        resolution_m: edge of a cell.
        origin_x_m, origin_y_m: outer corner of cell [0, 0].
        evidence: int8 (rows, columns).
        touched: bool, where the robot has bumped into something that it did not see; nothing clears it.
        known: bool, looked at.
        suspect: bool, not known: out of view below something that was in view and may reach nearer than was seen.
        wanted: uint8, how often the goal object was seen there, up to 255.
    """

    def __init__(self, resolution_m: float, half_m: float) -> None:
        cells = 2 * round(half_m / resolution_m)
        self.resolution_m = resolution_m
        self.origin_x_m = self.origin_y_m = -cells / 2 * resolution_m
        self.evidence: NDArray[np.int8] = np.zeros((cells, cells), np.int8)
        self.touched: NDArray[np.bool_] = np.zeros((cells, cells), np.bool_)
        self.known: NDArray[np.bool_] = np.zeros((cells, cells), np.bool_)
        self.suspect: NDArray[np.bool_] = np.zeros((cells, cells), np.bool_)
        self.wanted: NDArray[np.uint8] = np.zeros((cells, cells), np.uint8)

    def occupied(self, window: Window = (slice(None), slice(None))) -> NDArray[np.bool_]:
        """Cells that hold an obstacle, of a window or of all."""
        return (self.evidence[window] >= OCCUPIED_AT) | self.touched[window]

    @property
    def shape(self) -> tuple[int, int]:
        return self.evidence.shape[0], self.evidence.shape[1]

    def cells(self, x_m: Floats | float, y_m: Floats | float) -> tuple[Floats, Floats]:
        """Points as (column, row) in cells from the outer corner, not rounded."""
        return (
            np.asarray((x_m - self.origin_x_m) / self.resolution_m),
            np.asarray((y_m - self.origin_y_m) / self.resolution_m),
        )

    def points(self, rows: Indices, columns: Indices) -> tuple[Floats, Floats]:
        """The centres (x, y) of cells."""
        return (
            np.asarray(self.origin_x_m + (columns + 0.5) * self.resolution_m, np.float64),
            np.asarray(self.origin_y_m + (rows + 0.5) * self.resolution_m, np.float64),
        )

    def flat(self, x_m: Floats, y_m: Floats) -> Indices:
        """Flat indices of the cells that hold the points; points off the grid are left out."""
        columns, rows = (np.floor(value).astype(np.intp) for value in self.cells(x_m, y_m))
        inside = (rows >= 0) & (rows < self.shape[0]) & (columns >= 0) & (columns < self.shape[1])
        return np.asarray((rows * self.shape[1] + columns)[inside])

    def window(self, x0_m: float, y0_m: float, x1_m: float, y1_m: float) -> Window:
        """The rows and columns of the cells that a box meets, as far as they are on the grid."""
        (column0, row0), (column1, row1) = self.cells(x0_m, y0_m), self.cells(x1_m, y1_m)
        return (
            slice(max(int(row0), 0), min(int(row1) + 1, self.shape[0])),
            slice(max(int(column0), 0), min(int(column1) + 1, self.shape[1])),
        )

    def known_window(self, margin_m: float, including: tuple[float, float] | None = None) -> Window:
        """The smallest window around everything known (and a point), with a margin. Something must be known."""
        margin = round(margin_m / self.resolution_m)
        points = (None, None) if including is None else self.cells(*including)[::-1]
        spans = []
        for axis, point in enumerate(points):
            lines = np.flatnonzero(self.known.any(axis=1 - axis))
            first, last = int(lines[0]), int(lines[-1])
            if point is not None:
                first, last = min(first, int(point)), max(last, int(point))
            spans.append(slice(max(first - margin, 0), min(last + margin + 1, self.shape[axis])))
        return spans[0], spans[1]

    def include(self, x_m: float, y_m: float, margin_m: float) -> None:
        """Grow, if need be, so that everything within ``margin_m`` of a point lies on the grid.

        Growth is in blocks as large as the grid, so that it is rare.
        """
        column, row = self.cells(x_m, y_m)
        margin = margin_m / self.resolution_m
        rows, columns = self.shape
        pad = [[0, 0], [0, 0]]
        for axis, (at, size) in enumerate(((row, rows), (column, columns))):
            pad[axis][0] = max(0, int(np.ceil(margin - at)))
            pad[axis][1] = max(0, int(np.ceil(at + margin - size)))
        if not any(amount for side in pad for amount in side):
            return
        pad = [[amount and max(amount, 40) for amount in side] for side in pad]
        self.evidence, self.wanted = np.pad(self.evidence, pad), np.pad(self.wanted, pad)
        self.touched, self.known = np.pad(self.touched, pad), np.pad(self.known, pad)
        self.suspect = np.pad(self.suspect, pad)
        self.origin_x_m -= pad[1][0] * self.resolution_m
        self.origin_y_m -= pad[0][0] * self.resolution_m

    def stand(self, x_m: float, y_m: float, radius_m: float) -> None:
        """The robot stands here, so nothing else does."""
        columns, rows = self.cells(x_m, y_m)
        reach = radius_m / self.resolution_m
        r0, r1 = int(rows - reach), int(rows + reach) + 1
        c0, c1 = int(columns - reach), int(columns + reach) + 1
        r, c = np.mgrid[r0:r1, c0:c1]
        disc = np.hypot(r + 0.5 - rows, c + 0.5 - columns) <= reach
        self.known[r0:r1, c0:c1][disc] = True
        self.suspect[r0:r1, c0:c1][disc] = False
        # Cells that the rim cuts may hold part of a wall; those one cell inside cannot.
        core = np.hypot(r + 0.5 - rows, c + 0.5 - columns) <= reach - 1
        self.evidence[r0:r1, c0:c1][core] = 0

    def touch(self, x_m: float, y_m: float) -> None:
        """Something unseen stands here."""
        self.touched.ravel()[self.flat(np.array([x_m]), np.array([y_m]))] = True

    def forget_touches(self) -> None:
        """Where a contact was is a guess; when the guesses leave no way, they were wrong."""
        self.touched[:] = False
