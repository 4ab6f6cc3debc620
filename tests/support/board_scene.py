"""Views of a ChArUco board through a known lens, without a robot."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from calibration.camera.charuco import Board
from calibration.camera.intrinsics import FACING, BoardView
from calibration.camera.raw_images import View
from robot_runtime.common.transforms import rotation_rpy
from robot_runtime.hal import HeadState
from robot_runtime.hal.lens import Lens
from robot_runtime.hal.printed_targets import Sheet, draw_sheets
from robot_runtime.imaging.rig import RgbdCalibration

TRUE = Lens(480, 360, 380.0, 381.0, 243.0, 177.0, "brown_conrady", (0.1, -0.25, 0.001, -0.001, 0.1))
FACTORY = Lens(480, 360, 388.0, 388.0, 239.5, 179.5, "brown_conrady", (0.0,) * 5)

HEAD = HeadState(0, 0.0, 0.0, False)


def picture(lens: Lens, board: Board, pose: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.uint8]:
    """Image, with a little blur and noise, of a board at a pose in the camera's optical frame."""
    rgb = np.full((lens.height, lens.width, 3), 120, np.uint8)
    depth_m = np.zeros((lens.height, lens.width), np.float32)
    draw_sheets(
        [Sheet(board.picture(40), board.width_m, board.height_m, pose)], lens.pixel_rays(), np.eye(4), rgb, depth_m
    )
    blurred = cv2.GaussianBlur(rgb, (3, 3), 0.6)
    return np.clip(blurred + random.normal(0, 2, rgb.shape), 0, 255).astype(np.uint8)


def views(board: Board, poses: Sequence[NDArray[np.float64]], seed: int = 0) -> list[BoardView]:
    """One view for each pose at which the board is recognised."""
    random, rig = np.random.default_rng(seed), RgbdCalibration(FACTORY, FACTORY, np.eye(4), 0.001, "SN1", "factory")
    seen = []
    for pose in poses:
        rgb = picture(TRUE, board, pose, random)
        corners = board.detect(rgb)
        if corners is not None:
            seen.append(BoardView(corners, View(0, rgb, np.zeros((360, 480), np.float32), HEAD, rig)))
    return seen


def held(x_m: float, y_m: float, z_m: float, roll: float, pitch: float, yaw: float = 0.0) -> NDArray[np.float64]:
    """A pose in the optical frame, turned about its x, y and z axes from facing the camera."""
    pose = np.eye(4)
    pose[:3, :3] = rotation_rpy(roll, pitch, yaw) @ FACING
    pose[:3, 3] = x_m, y_m, z_m
    return pose
