"""Where the camera sits on the robot: one YAML file, read by the simulator, by the robot description and by static tf.

::

    pan_joint_m: [0.0, 0.0, 0.88]    # base_footprint (on the floor) -> pan axis
    tilt_joint_m: [0.0, 0.0, 0.0]    # pan link -> tilt axis
    camera:                          # tilt link -> camera_link (x forward, y left, z up); what a calibration finds
      xyz_m: [0.0, 0.0, 0.0]
      rpy_deg: [0.0, 0.0, 0.0]       # fixed axes x, y, z, as in URDF
    color:                           # camera_link -> colour sensor; what the camera's own driver publishes
      xyz_m: [0.0, 0.0, 0.0]
      rpy_deg: [0.0, 0.0, 0.0]

A calibrated mount has the stamp of :mod:`robot_runtime.calibration_file` besides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from robot_runtime import config
from robot_runtime.calibration_file import Stamp, check_if_stamped
from robot_runtime.geometry import SE2

Point3 = tuple[float, float, float]
Matrix = NDArray[np.float64]

EXTRINSICS = "extrinsics"
"""The kind of calibration that finds a mount."""

OPTICAL_RPY_RAD = (-math.pi / 2, 0.0, -math.pi / 2)
"""From a sensor's body frame (x forward) to its optical frame (z forward, x right), REP 103."""


@dataclass(frozen=True)
class Offset:
    """A fixed transform as in URDF: translation, and rotations about the fixed axes x, y, z in that order."""

    xyz_m: Point3 = (0.0, 0.0, 0.0)
    rpy_deg: Point3 = (0.0, 0.0, 0.0)

    __pydantic_config__ = config.STRICT

    @property
    def matrix(self) -> Matrix:
        """float64 (4, 4): takes points of the child frame to the parent frame."""
        return transform(self.xyz_m, rotation_rpy(*(math.radians(angle) for angle in self.rpy_deg)))


@dataclass(frozen=True)
class CameraMount:
    """The chain from the floor below the robot to the colour camera; the module's docstring has the file.

    Attributes:
        calibration: who measured it, when and how well, where ``robot-runtime calibrate extrinsics`` wrote it.
    """

    pan_joint_m: Point3
    tilt_joint_m: Point3 = (0.0, 0.0, 0.0)
    camera: Offset = field(default_factory=Offset)
    color: Offset = field(default_factory=Offset)
    calibration: Stamp | None = None

    __pydantic_config__ = config.STRICT

    def sensor(self, base: SE2, pan_rad: float, tilt_rad: float) -> Matrix:
        """The colour sensor's body frame (x forward, y left, z up) in ``map``, float64 (4, 4).

        Args:
            base: base_footprint in ``map``. pan_rad: left positive. tilt_rad: up positive.
        """
        chain = transform((base.x_m, base.y_m, 0.0), rotation_rpy(0.0, 0.0, base.yaw_rad))
        chain = chain @ transform(self.pan_joint_m, rotation_rpy(0.0, 0.0, pan_rad))
        # The joint's axis is +y, about which positive angles look down.
        chain = chain @ transform(self.tilt_joint_m, rotation_rpy(0.0, -tilt_rad, 0.0))
        return np.asarray(chain @ self.camera.matrix @ self.color.matrix)

    @property
    def height_m(self) -> float:
        """Of the optical centre above the floor, looking straight ahead."""
        return float(self.sensor(SE2(), 0.0, 0.0)[2, 3])


def load_mount(path: Path, robot: str | None = None) -> CameraMount:
    """The mount in a YAML file.

    Args:
        robot: whose mount a calibrated one must be; None if it is not known.

    Raises:
        ConfigError: naming file and field.
        CalibrationError: a calibrated mount that was changed, is another robot's, or is too old.
    """
    document = config.read_yaml(path)
    check_if_stamped(path, document, EXTRINSICS, robot)
    return config.parse(document, CameraMount, str(path))


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
