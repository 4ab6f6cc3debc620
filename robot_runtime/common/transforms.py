"""Rigid transforms in three dimensions, as URDF has them: fixed-axis rotations, quaternions, 4 x 4 matrices."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common import config
from robot_runtime.common.quantities import PartOffset

Point3 = tuple[float, float, float]


Matrix = NDArray[np.float64]


OPTICAL_RPY_RAD = (-math.pi / 2, 0.0, -math.pi / 2)
"""Rotation from a sensor's body frame (x forward) to its optical frame (z forward, x right), REP 103."""


@dataclass(frozen=True)
class Offset(config.Strict):
    """A fixed transform as in URDF: translation, and rotations about the fixed axes x, y, z in that order."""

    xyz_m: tuple[PartOffset, PartOffset, PartOffset] = (0.0, 0.0, 0.0)
    rpy_deg: Point3 = (0.0, 0.0, 0.0)

    @property
    def matrix(self) -> Matrix:
        """float64 (4, 4): takes points of the child frame to the parent frame."""
        return transform(self.xyz_m, rotation_rpy(*(math.radians(angle) for angle in self.rpy_deg)))


def check_rigid(matrix: Matrix, tolerance: float = 1e-3) -> None:
    """Check that a matrix (4, 4) is a rotation and a translation. Raises ``ValueError`` that names the likely slip."""
    if matrix.shape != (4, 4) or not np.isfinite(matrix).all():
        raise ValueError("needs 4x4 finite numbers")
    rotation = matrix[:3, :3]
    skew = float(np.abs(rotation.T @ rotation - np.eye(3)).max())
    if skew > tolerance or np.linalg.det(rotation) < 0:
        raise ValueError("its 3 x 3 part is not a rotation: it is scaled, mirrored or skewed")
    if not np.allclose(matrix[3], (0, 0, 0, 1), atol=1e-9):
        transposed = ": it is transposed (column-major)" if np.allclose(matrix[:, 3], (0, 0, 0, 1), atol=1e-9) else ""
        raise ValueError(f"its last row is not 0 0 0 1{transposed}")


def opengl_rotation(sensor: Matrix) -> Matrix:
    """Columns right, up, backward of a sensor's body frame, as the renderer wants them."""
    forward, left, up = sensor[:3, 0], sensor[:3, 1], sensor[:3, 2]
    return np.column_stack([-left, up, -forward])


def rotation_rpy(roll_rad: float, pitch_rad: float, yaw_rad: float) -> Matrix:
    """Rotation about the fixed axes x, then y, then z."""
    cr, sr = math.cos(roll_rad), math.sin(roll_rad)
    cp, sp = math.cos(pitch_rad), math.sin(pitch_rad)
    cy, sy = math.cos(yaw_rad), math.sin(yaw_rad)
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def rpy_of(rotation: Matrix) -> Point3:
    """The inverse of :func:`rotation_rpy`, radians; the pitch lies within a right angle."""
    return (
        math.atan2(rotation[2, 1], rotation[2, 2]),
        math.asin(max(-1.0, min(1.0, -float(rotation[2, 0])))),
        math.atan2(rotation[1, 0], rotation[0, 0]),
    )


def quaternion_rpy(roll_rad: float, pitch_rad: float, yaw_rad: float) -> tuple[float, float, float, float]:
    """The same rotation as (x, y, z, w)."""
    cr, sr = math.cos(roll_rad / 2), math.sin(roll_rad / 2)
    cp, sp = math.cos(pitch_rad / 2), math.sin(pitch_rad / 2)
    cy, sy = math.cos(yaw_rad / 2), math.sin(yaw_rad / 2)
    return (
        sr * cp * cy - cr * sp * sy,
        cr * sp * cy + sr * cp * sy,
        cr * cp * sy - sr * sp * cy,
        cr * cp * cy + sr * sp * sy,
    )


def transform(xyz_m: Point3, rotation: Matrix) -> Matrix:
    """A translation and a rotation as float64 (4, 4)."""
    matrix = np.eye(4)
    matrix[:3, 3] = xyz_m
    matrix[:3, :3] = rotation
    return matrix
