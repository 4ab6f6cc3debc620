"""Errors of a camera's mount relative to its description."""

import math
from dataclasses import dataclass, replace

import numpy as np

from robot_runtime.common import config
from robot_runtime.common.quantities import Misalignment
from robot_runtime.common.transforms import Offset, rotation_rpy, rpy_of, transform
from robot_runtime.robots.camera_mount import CameraMount


@dataclass(frozen=True)
class MountError(config.Strict):
    """The true camera relative to the described one; the defaults mean none.

    Attributes:
        tilt_deg: rotation about the tilt axis, up positive; the camera turns about that axis, not its own center.
        pan_deg: rotation about the upright axis of what the tilt axis carries, left positive.
        roll_deg: rotation about its forward axis, clockwise in the image positive.
        height_m: upward offset of the complete pan-tilt.
        forward_m: forward offset of the complete pan-tilt.
    """

    tilt_deg: float = 0.0
    pan_deg: float = 0.0
    roll_deg: float = 0.0
    height_m: Misalignment = 0.0
    forward_m: Misalignment = 0.0


def apply_mount_error(mount: CameraMount, error: MountError) -> CameraMount:
    """The true mount of a camera that is described by ``mount``; ``mount`` itself without any error."""
    if error == MountError():
        return mount
    turn = rotation_rpy(*np.radians((error.roll_deg, -error.tilt_deg, error.pan_deg)).tolist())
    camera = transform((0.0, 0.0, 0.0), turn) @ mount.camera.matrix
    x_m, y_m, z_m = mount.pan_joint_m
    offset_x_m, offset_y_m, offset_z_m = camera[:3, 3].tolist()
    roll_rad, pitch_rad, yaw_rad = rpy_of(camera[:3, :3])
    return replace(
        mount,
        pan_joint_m=(x_m + error.forward_m, y_m, z_m + error.height_m),
        camera=Offset(
            (offset_x_m, offset_y_m, offset_z_m),
            (math.degrees(roll_rad), math.degrees(pitch_rad), math.degrees(yaw_rad)),
        ),
        calibration=None,
    )
