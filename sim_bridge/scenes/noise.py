"""What textures are made of: smooth noise that wraps round, gray levels, pixel coordinates."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

Image = NDArray[np.uint8]
Field = NDArray[np.float64]
SIZE_PX = 256


def noise(rng: np.random.Generator, rows: int, columns: int, size: tuple[int, int] = (SIZE_PX, SIZE_PX)) -> Field:
    """Smooth value noise in [0, 1] with that many cells, wrapping round at all edges."""
    grid = np.pad(rng.random((rows, columns)), 2, mode="wrap")
    scale_y, scale_x = size[0] // rows, size[1] // columns
    large = cv2.resize(grid, None, fx=scale_x, fy=scale_y, interpolation=cv2.INTER_CUBIC)
    inner = large[2 * scale_y : 2 * scale_y + size[0], 2 * scale_x : 2 * scale_x + size[1]]
    return np.clip(inner, 0.0, 1.0)


def gray(values: Field, levels: int = 48) -> Image:
    """[0, 1] to uint8 in few levels: the files stay small."""
    return np.asarray(np.round(np.clip(values, 0, 1) * levels) * (255 / levels), np.uint8)


def rows_columns() -> tuple[Field, Field]:
    """The row and the column of every pixel."""
    rows, columns = np.mgrid[0:SIZE_PX, 0:SIZE_PX].astype(float)
    return rows, columns
