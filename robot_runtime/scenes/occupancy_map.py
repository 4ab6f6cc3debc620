"""Occupancy maps in ROS ``map_server`` format.

A cell is free, occupied or unknown. Cells are indexed ``[row, column]`` with row 0 at the **bottom** (smallest y): the
PGM's row order is reversed on reading and writing only.
"""

import hashlib
from dataclasses import dataclass, fields
from enum import IntEnum
from functools import cached_property
from os.path import isfile  # which also answers for names that no file can have
from pathlib import Path
from typing import Any, Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from robot_runtime.common import config, image_files
from robot_runtime.common.bounded import TooLarge
from robot_runtime.common.quantities import Resolution
from robot_runtime.common.yaml_text import dump_yaml
from robot_runtime.errors import SceneError
from robot_runtime.scenes.grid_interpolation import GridFrame


class Cell(IntEnum):
    """State of a cell."""

    FREE = 0
    OCCUPIED = 1
    UNKNOWN = 2


RESOLUTIONS_M = (0.001, 10.0)
"""Plausible edges of a cell: others are typing errors, and overflow what is computed from them."""

MAX_ORIGIN_M = 1e7

_PGM_VALUE = {Cell.FREE: 254, Cell.OCCUPIED: 0, Cell.UNKNOWN: 205}
_RGB = np.array([(243, 245, 248), (86, 96, 110), (255, 255, 255)], np.uint8)
"""Colors of pictures, by ``Cell``."""


_SAVED_UNKNOWN = 205
"""Gray of unknown space in what the map savers of ROS 1, nav2 and slam_toolbox write, whatever the file's thresholds:
with nav2's ``free_thresh: 0.25`` it would be free."""


@dataclass(frozen=True)
class MapFile(config.Strict):
    """The content of ``map.yaml`` (http://wiki.ros.org/map_server, nav2's ``map_io``).

    Attributes:
        image: name of the PGM or PNG next to the file.
        resolution: edge of a pixel, meters.
        origin: pose in ``map`` (x, y in meters, yaw in radians) of the lower left pixel's outer corner.
        negate: whether black is free.
        occupied_thresh: probability of occupancy above which a cell is occupied.
        free_thresh: probability of occupancy below which a cell is free.
        mode: meaning of the gray values: in ``trinary`` and ``scale``, darker is more probably occupied; in ``raw``, 0
            to 100 are percentages of occupancy. Cells between the thresholds are unknown, as are the transparent ones
            of ``scale`` and those above 100 of ``raw``.
    """

    image: str
    resolution: Resolution
    origin: tuple[float, float, float]
    negate: Literal[0, 1] = 0
    occupied_thresh: float = 0.65
    free_thresh: float = 0.196
    mode: Literal["trinary", "scale", "raw"] = "trinary"

    def __post_init__(self) -> None:
        if not 0 <= self.free_thresh < self.occupied_thresh <= 1:
            raise ValueError(
                "free_thresh and occupied_thresh are probabilities, the first below the second, got "
                f"{self.free_thresh:g} and {self.occupied_thresh:g}"
            )

    def cells(self, pixels: NDArray[np.uint8], alpha: NDArray[Any] | None) -> NDArray[np.uint8]:
        """The states of an image's pixels.

        Args:
            pixels: uint8 (rows, columns) gray values.
            alpha: uint8 or uint16 (rows, columns) opacity; None if the image has none.

        Returns:
            uint8 (rows, columns) of :class:`Cell`, in the image's order of rows.
        """
        values = np.arange(256)
        shades = 255 - values if self.negate else values
        occupancy = shades / 100.0 if self.mode == "raw" else (255 - shades) / 255.0
        states = np.full(256, Cell.UNKNOWN, np.uint8)
        states[occupancy > self.occupied_thresh] = Cell.OCCUPIED
        states[occupancy < self.free_thresh] = Cell.FREE
        if self.mode == "raw":
            states[occupancy > 1] = Cell.UNKNOWN
        elif not self.negate:
            states[_SAVED_UNKNOWN] = Cell.UNKNOWN
        cells = states[pixels]
        if self.mode == "scale" and alpha is not None:
            cells[alpha < np.iinfo(alpha.dtype).max] = Cell.UNKNOWN
        return np.asarray(cells)


@dataclass(frozen=True, eq=False)
class OccupancyMap(GridFrame):
    """A grid in ``map``.

    Attributes:
        cells: uint8 (rows, columns) of ``Cell``; row 0 is the smallest y.
        resolution_m: edge of a cell.
        origin_x_m: x of the outer corner of cell [0, 0].
        origin_y_m: y of the outer corner of cell [0, 0].
    """

    cells: NDArray[np.uint8]
    resolution_m: float
    origin_x_m: float
    origin_y_m: float

    @classmethod
    def load(cls, path: Path) -> "OccupancyMap":
        """Read ``map.yaml`` and its image.

        Raises:
            ConfigError: malformed YAML.
            SceneError: image missing or unreadable, or a rotated origin.
        """
        file = config.load(path, MapFile)
        image_path = path.parent / file.image
        return cls.decode(file, image_path.read_bytes() if isfile(image_path) else b"", str(path))

    @classmethod
    def decode(cls, file: MapFile, image: bytes, where: str) -> "OccupancyMap":
        """The map of ``file`` and the bytes of its image (PGM or PNG).

        Raises:
            SceneError: image undecodable or too large, a rotated or far origin, or an implausible resolution; names
                ``where``.
        """
        low, high = RESOLUTIONS_M
        if not low <= file.resolution <= high:
            raise SceneError(
                f"{where}: field 'resolution' must be meters per pixel from {low} to {high}, got {file.resolution}",
                "correct it",
            )
        if max(map(abs, file.origin)) > MAX_ORIGIN_M:
            raise SceneError(f"{where}: field 'origin' is farther than {MAX_ORIGIN_M:g} m", "correct it")
        if file.origin[2] != 0:
            raise SceneError(
                f"{where}: field 'origin' has yaw {file.origin[2]}", "turn the image instead: only yaw 0 is supported"
            )
        try:
            pixels = image_files.decode_image(image, cv2.IMREAD_GRAYSCALE)
            colors = image_files.decode_image(image, cv2.IMREAD_UNCHANGED) if file.mode == "scale" else None
        except TooLarge as error:
            raise SceneError(f"{where}: field 'image': {file.image}: {error}", "cut the map to the site") from error
        if pixels is None:
            raise SceneError(f"{where}: field 'image': cannot read {file.image}", "put the map's PGM or PNG there")
        alpha = colors[..., -1] if colors is not None and colors.ndim == 3 and colors.shape[2] in (2, 4) else None
        cells = file.cells(pixels, alpha)
        return cls(np.ascontiguousarray(cells[::-1]), file.resolution, file.origin[0], file.origin[1])

    def save(self, path: Path) -> None:
        """Write ``path`` (``….yaml``) and the image next to it (``….pgm``)."""
        image_path = path.with_suffix(".pgm")
        image_path.write_bytes(self.to_pgm())
        path.write_text(dump_yaml(self.to_document(image_path.name)), encoding="utf-8")

    def to_document(self, image: str) -> dict[str, Any]:
        """The content of ``map.yaml`` for an image of that name."""
        return {
            "image": image,
            "resolution": self.resolution_m,
            "origin": [self.origin_x_m, self.origin_y_m, 0.0],
            "negate": 0,
            "occupied_thresh": 0.65,
            "free_thresh": 0.196,
        }

    def to_pgm(self) -> bytes:
        """The map as a binary PGM (P5)."""
        lookup = np.array([_PGM_VALUE[Cell(i)] for i in range(3)], np.uint8)
        header = f"P5\n{self.cells.shape[1]} {self.cells.shape[0]}\n255\n".encode()
        return header + lookup[self.cells[::-1]].tobytes()

    def to_rgb(self) -> NDArray[np.uint8]:
        """uint8 (rows, columns, 3): colors of the cells for pictures; row 0 is the smallest y, as in ``cells``."""
        return np.asarray(_RGB[self.cells])

    @property
    def size_m(self) -> tuple[float, float]:
        """Extent along x and y."""
        return self.cells.shape[1] * self.resolution_m, self.cells.shape[0] * self.resolution_m

    def area_m2(self, state: Cell) -> float:
        """Area of the cells in a state."""
        return int((self.cells == state).sum()) * self.resolution_m**2

    def to_cell(self, x_m: float, y_m: float) -> tuple[int, int]:
        """The (row, column) that contains a point; may lie outside the grid."""
        column, row = self.in_cells(x_m, y_m)
        return int(np.floor(row)), int(np.floor(column))

    def to_point(self, row: float, column: float) -> tuple[float, float]:
        """The center (x, y) of a cell."""
        return (self.origin_x_m + (column + 0.5) * self.resolution_m, self.origin_y_m + (row + 0.5) * self.resolution_m)

    def contains(self, x_m: float, y_m: float) -> bool:
        """Whether the point lies on the grid."""
        row, column = self.to_cell(x_m, y_m)
        rows, columns = self.cells.shape
        return bool(0 <= row < rows and 0 <= column < columns)

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of the cells and their layout."""
        return hashlib.sha256(repr(self.cells.shape).encode() + self.cells.tobytes()).digest()

    def clearance_m(self) -> NDArray[np.float64]:
        """Meters from each cell's center to the nearest cell that is not free, or the edge.

        Returns:
            float64 (rows, columns), read-only.
        """
        return self._clearance_m

    @cached_property
    def _clearance_m(self) -> NDArray[np.float64]:
        from scipy import ndimage  # slow import (0.2 s) that only those who plan need

        free = np.pad(self.cells == Cell.FREE, 1, constant_values=False)
        # The distance transform measures between centers; the obstacle begins half a cell earlier.
        distance = ndimage.distance_transform_edt(free)[1:-1, 1:-1]
        clearance_m = np.asarray(np.maximum(distance - 0.5, 0.0) * self.resolution_m)
        clearance_m.setflags(write=False)
        return clearance_m

    def __getstate__(self) -> dict[str, Any]:
        """State for other processes, without the clearance: it is eight times as large as the map."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def proximity_m(self, x_m: float, y_m: float, radius_m: float, most_m: float) -> float:
        """Way from the rim of a disc to the nearest cell that is not free, at most ``most_m``; 0 off the grid."""
        clear_m = self.clearance_m()[self.to_cell(x_m, y_m)] if self.contains(x_m, y_m) else 0.0
        return min(max(float(clear_m) - radius_m, 0.0), most_m)

    def most_open_point(self) -> tuple[float, float]:
        """The center of the cell with the largest clearance."""
        clearance_m = self.clearance_m()
        row, column = np.unravel_index(int(np.argmax(clearance_m)), clearance_m.shape)
        return self.to_point(float(row), float(column))

    def navigable(self, radius_m: float) -> NDArray[np.bool_]:
        """Cells on whose center a disc of ``radius_m`` fits, (rows, columns)."""
        return np.asarray(self.clearance_m() >= radius_m)
