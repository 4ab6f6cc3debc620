"""A camera that sits elsewhere than its description says: bent, knocked, or screwed on by hand."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from robot_runtime.common import config
from robot_runtime.common.transforms import Offset, rotation_rpy, rpy_of, transform
from robot_runtime.robots.camera_mount import CameraMount


@dataclass(frozen=True)
class MountError:
    """The true camera relative to the described one; the defaults mean none.

    Attributes:
        tilt_deg, pan_deg, roll_deg: about the tilt axis (up positive), and the upright and forward axes of what it
            carries (left positive, and clockwise as the camera sees it). The camera turns about the tilt axis, not
            about its own center.
        height_m, forward_m: of the whole pan-tilt: up, and ahead.
    """

    tilt_deg: float = 0.0
    pan_deg: float = 0.0
    roll_deg: float = 0.0
    height_m: float = 0.0
    forward_m: float = 0.0

    __pydantic_config__ = config.STRICT


def misplaced(mount: CameraMount, error: MountError) -> CameraMount:
    """Where a camera truly sits whose description says ``mount``; ``mount`` itself without any error."""
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
