"""Calibration of an RGB-D camera: both lenses, their relative pose, and the unit of depth."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common import config
from robot_runtime.common.quantities import DepthError, DepthUnit
from robot_runtime.common.transforms import check_rigid
from robot_runtime.errors import ConfigError
from robot_runtime.hal.lens import Lens
from robot_runtime.robots.calibration_file import check_stamp, open_calibration

Matrix = NDArray[np.float64]
Row = tuple[float, float, float, float]

RIG_KINDS = ("intrinsics", "depth")
"""Kinds of the calibrations that write this."""

ORTHONORMAL = 1e-3
"""Largest deviation of a rotation from orthonormality; factory calibrations are in single precision."""


@dataclass(frozen=True, eq=False)
class RgbdCalibration:
    """Parameters that turn a pair of raw images into metric ones.

    Attributes:
        color: lens in the mode of the pair.
        depth: lens in the mode of the pair. Depth is measured along the optical axis.
        color_from_depth: float64 (4, 4), transform from the depth sensor's optical frame to the color sensor's, m.
        depth_unit_m: meters are ``counts * depth_unit_m + depth_bias_m``.
        depth_bias_m: see ``depth_unit_m``.
        serial: serial number of the device; empty where it has none.
        source: origin: ``factory``, ``nominal``, ``simulation``, or the file of a calibration.
    """

    color: Lens
    depth: Lens
    color_from_depth: Matrix
    depth_unit_m: DepthUnit
    serial: str
    source: str
    depth_bias_m: DepthError = 0.0

    def __post_init__(self) -> None:
        matrix = np.array(self.color_from_depth, np.float64)
        try:
            check_rigid(matrix, ORTHONORMAL)
        except ValueError as error:
            raise ValueError(f"color_from_depth must be a rotation and a translation: {error}") from error
        if not 0 < self.depth_unit_m < 1:
            raise ValueError(f"depth_unit_m must lie between 0 and 1, got {self.depth_unit_m}")
        if not abs(self.depth_bias_m) < 1:
            raise ValueError(f"depth_bias_m must be less than 1, got {self.depth_bias_m}")
        matrix.flags.writeable = False
        object.__setattr__(self, "color_from_depth", matrix)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RgbdCalibration) and self.to_document() == other.to_document()

    def __hash__(self) -> int:
        return hash(self.hash)

    @property
    def hash(self) -> str:
        """SHA-256 of all numbers, 64 hexadecimal digits: the same for the same geometry of the same device."""
        document = {key: value for key, value in self.to_document().items() if key != "source"}
        return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()

    def to_document(self) -> dict[str, Any]:
        """Mappings, lists and numbers for YAML; :meth:`from_document` is the inverse."""
        rows = tuple(tuple(float(value) for value in row) for row in self.color_from_depth)
        numbers = (self.depth_unit_m, self.serial, self.source, self.depth_bias_m)
        fields = _Document(self.color, self.depth, rows, *numbers)  # type: ignore[arg-type]
        document: dict[str, Any] = config.unparse(fields)
        return document

    @classmethod
    def from_document(cls, document: Mapping[str, Any], where: str) -> "RgbdCalibration":
        """The inverse of :meth:`to_document`. Raises ``ConfigError`` naming ``where`` and the field."""
        fields = config.parse(document, _Document, where)
        try:
            return cls(
                fields.color,
                fields.depth,
                np.array(fields.color_from_depth),
                fields.depth_unit_m,
                fields.serial,
                fields.source,
                fields.depth_bias_m,
            )
        except ValueError as error:
            raise ConfigError(f"{where}: {error}", "calibrate again, or correct the file") from error


def load_calibration(path: Path, robot: str, serial: str) -> RgbdCalibration:
    """Read the calibration of the device with this serial number.

    Raises:
        ConfigError: naming file and field.
        CalibrationError: it was changed, belongs to another robot or device, or is too old.
    """
    file = open_calibration(path)
    kind = file.stamp.kind if file.stamp.kind in RIG_KINDS else RIG_KINDS[0]
    check_stamp(file, kind, robot, serial)
    return RgbdCalibration.from_document(file.content, str(path))


@dataclass(frozen=True)
class _Document(config.Strict):
    """The calibration in a file, with the matrix as rows."""

    color: Lens
    depth: Lens
    color_from_depth: tuple[Row, Row, Row, Row]
    depth_unit_m: DepthUnit
    serial: str
    source: str
    depth_bias_m: DepthError = 0.0
