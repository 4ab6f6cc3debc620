"""The ChArUco board: a chessboard with markers in its white squares, detectable in part."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from robot_runtime.errors import CalibrationFailed, ConfigError

Array = NDArray[np.float64]

DICTIONARY = cv2.aruco.DICT_5X5_100
IDS = 100

MIN_CORNERS = 8
"""Least number of corners in a usable view."""


@dataclass(frozen=True)
class Board:
    """A board as printed."""

    columns: int = 9
    rows: int = 6
    square_m: float = 0.04
    marker_m: float = 0.03

    def __post_init__(self) -> None:
        if min(self.columns, self.rows) < 3 or self.columns * self.rows // 2 > IDS:
            raise ConfigError(
                f"a board of {self.columns}x{self.rows} squares is impossible", f"use 3x3 to {2 * IDS} squares in all"
            )
        if not 0 < self.marker_m < self.square_m < 1:
            raise ConfigError(
                f"a board cannot have squares of {self.square_m:g} m and markers of {self.marker_m:g} m",
                "measure both on the print, in millimeters",
            )

    @classmethod
    def named(cls, size: str, square_mm: float, marker_mm: float) -> Board:
        """Return the board of command-line options, its size like ``9x6``. Raises ``ConfigError``."""
        columns, x, rows = size.partition("x")
        if not (x and columns.isdigit() and rows.isdigit()):
            raise ConfigError(f"--board {size!r} is not COLUMNSxROWS", "count the squares, and write it like 9x6")
        return cls(int(columns), int(rows), square_mm / 1000, marker_mm / 1000)

    @property
    def width_m(self) -> float:
        return self.columns * self.square_m

    @property
    def height_m(self) -> float:
        return self.rows * self.square_m

    @property
    def corners_m(self) -> Array:
        """Inner corners by id, float64 (N, 3): x right, y down from the middle of the board, z = 0."""
        middle = (self.width_m / 2, self.height_m / 2, 0.0)
        return np.asarray(self._board.getChessboardCorners(), np.float64).reshape(-1, 3) - middle

    def picture(self, square_px: int = 60) -> NDArray[np.uint8]:
        """Return the board's image, uint8 (rows * square_px, columns * square_px)."""
        image = self._board.generateImage((self.columns * square_px, self.rows * square_px))
        return np.asarray(image, np.uint8)

    def detect(self, rgb: NDArray[np.uint8]) -> Corners | None:
        """Return the board's corners in an image, uint8 (H, W, 3); None if there are too few.

        Raises:
            CalibrationFailed: the image shows a board with more markers.
        """
        pixels, ids, _, marker_ids = self._detector.detectBoard(cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY))
        markers = self.columns * self.rows // 2
        strange = [] if marker_ids is None else [i for i in np.ravel(marker_ids).tolist() if i >= markers]
        if len(strange) >= 3:
            raise CalibrationFailed(
                f"the board in view has marker {max(strange)}; a board of {self.columns}x{self.rows} squares has "
                f"{markers}, numbered from 0",
                "count the squares of the print and give them as --board COLUMNSxROWS",
            )
        if ids is None or len(ids) < MIN_CORNERS:
            return None
        return Corners(np.ravel(ids).astype(np.intp), np.asarray(pixels, np.float64).reshape(-1, 2))

    @functools.cached_property
    def _board(self) -> cv2.aruco.CharucoBoard:
        dictionary = cv2.aruco.getPredefinedDictionary(DICTIONARY)
        return cv2.aruco.CharucoBoard((self.columns, self.rows), self.square_m, self.marker_m, dictionary)

    @functools.cached_property
    def _detector(self) -> cv2.aruco.CharucoDetector:
        return cv2.aruco.CharucoDetector(self._board)


@dataclass(frozen=True, eq=False)
class Corners:
    """Detected corners of a board.

    Attributes:
        ids: intp (N,).
        pixels: float64 (N, 2).
    """

    ids: NDArray[np.intp]
    pixels: Array

    def moved_px(self, other: Corners) -> float:
        """Return the mean distance between common corners; infinity without any."""
        _, mine, theirs = np.intersect1d(self.ids, other.ids, return_indices=True)
        if not mine.size:
            return float("inf")
        return float(np.linalg.norm(self.pixels[mine] - other.pixels[theirs], axis=1).mean())
