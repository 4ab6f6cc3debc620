"""Transformation of a marker's poses in its source's frame to the robot's poses in the scene's map."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np

from robot_runtime.errors import ConfigError
from robot_runtime.hal import PoseEstimate
from robot_runtime.localization.alignment import Alignment, load_alignment


def aligned(estimate: PoseEstimate, alignment: Alignment) -> PoseEstimate:
    """Return base_link in map, from a marker's pose in its source's frame; the alignment must have a yaw offset."""
    seen, frame = estimate.pose, alignment.map_from_source
    yaw_rad = alignment.heading(seen.yaw_rad)
    assert yaw_rad is not None
    pose = alignment.robot_at(seen.x_m, seen.y_m, yaw_rad)
    c, s = math.cos(frame.yaw_rad), math.sin(frame.yaw_rad)
    turn = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    return replace(estimate, pose=pose, covariance=turn @ estimate.covariance @ turn.T)


def read_alignment(file: str, robot: str | None) -> Alignment:
    """Read an alignment with a yaw offset. Raises ``ConfigError`` and ``CalibrationError``."""
    found = load_alignment(Path(file), robot)
    if found.yaw_offset_rad is None:
        raise ConfigError(f"{file}: has no offset of the heading", "calibrate it again: this source measures headings")
    return found
