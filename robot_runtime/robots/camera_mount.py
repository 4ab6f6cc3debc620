"""Pose of the camera on the robot: one YAML file, read by the simulator, the robot description and static tf.

::

    pan_joint_m: [0.0, 0.0, 0.88]    # base_footprint (on the floor) -> pan axis
    tilt_joint_m: [0.0, 0.0, 0.0]    # pan link -> tilt axis
    camera:                          # tilt link -> camera_link (x forward, y left, z up); result of a calibration
      xyz_m: [0.0, 0.0, 0.0]
      rpy_deg: [0.0, 0.0, 0.0]       # fixed axes x, y, z, as in URDF
    color:                           # camera_link -> color sensor; published by the camera's own driver
      xyz_m: [0.0, 0.0, 0.0]
      rpy_deg: [0.0, 0.0, 0.0]

A calibrated mount also has the stamp of :mod:`robot_runtime.robots.calibration_file`.
"""

import math
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from robot_runtime.common import config
from robot_runtime.common.geometry import SE2
from robot_runtime.common.quantities import PartOffset
from robot_runtime.common.transforms import Matrix, Offset, rotation_rpy, transform
from robot_runtime.robots.calibration_file import Stamp, check_if_stamped

EXTRINSICS = "extrinsics"
"""Kind of the calibration of mounts."""


@dataclass(frozen=True)
class CameraMount(config.Strict):
    """The chain from the floor below the robot to the color camera; see the module's docstring for the file.

    Attributes:
        calibration: stamp, if ``robot-runtime calibrate extrinsics`` wrote the file.
    """

    pan_joint_m: tuple[PartOffset, PartOffset, PartOffset]
    tilt_joint_m: tuple[PartOffset, PartOffset, PartOffset] = (0.0, 0.0, 0.0)
    camera: Offset = field(default_factory=Offset)
    color: Offset = field(default_factory=Offset)
    calibration: Stamp | None = None

    def sensor(self, base: SE2, pan_rad: float, tilt_rad: float) -> Matrix:
        """The color sensor's body frame (x forward, y left, z up) in ``map``, float64 (4, 4).

        Args:
            base: base_footprint in ``map``.
            pan_rad: left positive.
            tilt_rad: tilt of the head, up positive.
        """
        chain = transform((base.x_m, base.y_m, 0.0), rotation_rpy(0.0, 0.0, base.yaw_rad))
        chain = chain @ transform(self.pan_joint_m, rotation_rpy(0.0, 0.0, pan_rad))
        # The joint's axis is +y: positive angles tilt down.
        chain = chain @ transform(self.tilt_joint_m, rotation_rpy(0.0, -tilt_rad, 0.0))
        return np.asarray(chain @ self.camera.matrix @ self.color.matrix)

    def pointing(self, pan_rad: float, tilt_rad: float) -> tuple[float, float, float]:
        """Height m, tilt rad (up positive) and roll rad (right positive) of the color sensor over level floor.

        Args:
            pan_rad: pan angle of the head, left positive.
            tilt_rad: tilt angle of the head, up positive.
        """
        sensor = self.sensor(SE2(), pan_rad, tilt_rad)
        tilted_rad = math.asin(max(-1.0, min(1.0, float(sensor[2, 0]))))
        return float(sensor[2, 3]), tilted_rad, math.atan2(float(sensor[2, 1]), float(sensor[2, 2]))

    @property
    def height_m(self) -> float:
        """Height of the optical center above the floor, looking straight ahead."""
        return float(self.sensor(SE2(), 0.0, 0.0)[2, 3])


def load_mount(path: Path, robot: str | None = None) -> CameraMount:
    """Read a mount.

    Args:
        path: path of the YAML file.
        robot: name that a calibrated mount must carry; None to accept any.

    Raises:
        ConfigError: naming file and field.
        CalibrationError: a calibrated mount that was changed, belongs to another robot, or is too old.
    """
    document = config.read_yaml(path)
    check_if_stamped(path, document, EXTRINSICS, robot)
    return config.parse(document, CameraMount, str(path))
