"""Differing views of a board, moved by a person or by the simulation."""

from __future__ import annotations

import math
from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration import start_poses
from calibration.camera import figures
from calibration.camera.charuco import Board, Corners
from calibration.camera.raw_images import View, factory_of, take_view
from calibration.operator_guide import COVERAGE, LIVE, Guide
from robot_runtime.common.clock import seconds_to_ns
from robot_runtime.common.transforms import rotation_rpy
from robot_runtime.errors import CalibrationFailed
from robot_runtime.hal import Robot
from robot_runtime.hal.lens import Lens
from robot_runtime.hal.printed_targets import Sheet
from robot_runtime.hal.simulation import Simulation
from robot_runtime.imaging.rig import RgbdCalibration

STILL_PX = 0.5
"""Greatest motion between two consecutive frames; more blurs the board."""

NEW_SHARE = 0.04
"""Least mean motion of the corners from every earlier view, as a share of the image's width."""

ATTEMPTS = 4
"""Poses of a simulated board per requested view."""

FACING = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, -1.0], [-1.0, 0.0, 0.0]])
"""Rotation of a sheet that faces the camera upright, in the optical frame."""

SHEET = "calibration board"


@dataclass(frozen=True, eq=False)
class BoardView:
    """One view with its corners."""

    corners: Corners
    view: View


def collect(robot: Robot, guide: Guide, board: Board, wanted: int, time_limit_s: float) -> list[BoardView]:
    """Collect differing views of a still board; fewer than wanted at the time limit.

    Args:
        robot: robot that carries the camera.
        guide: guide of the person.
        board: the board to detect.
        wanted: number of views.
        time_limit_s: time limit of a view for a person.

    Raises:
        CalibrationFailed: no board was seen, or a different one.
    """
    rig = factory_of(robot.camera)
    taken: list[BoardView] = []
    views = _views_from_person(robot, guide, rig, time_limit_s)
    if robot.simulation is not None:
        views = _views_from_simulation(robot, robot.simulation, rig, board, wanted)
    before: Corners | None = None
    with closing(views):
        for view in views:
            corners = board.detect(view.rgb)
            seen = [other.corners for other in taken]
            note = _rejection(corners, before, seen, rig.color, robot.simulation is not None)
            before = corners
            guide.picture(LIVE, figures.board(view.rgb, corners, note))
            if corners is None or note:
                continue
            taken.append(BoardView(corners, view))
            guide.picture(COVERAGE, figures.coverage(rig.color, [other.corners.pixels for other in taken]))
            guide.progress(len(taken), wanted, f"{len(corners.ids)} corners")
            if len(taken) == wanted:
                break
    if not taken:
        raise CalibrationFailed(
            f"no board of {board.columns}x{board.rows} squares was seen",
            "print one with `robot-runtime calibrate board`, give its size, and hold it in view in even light",
        )
    return taken


def _rejection(
    corners: Corners | None, before: Corners | None, taken: list[Corners], lens: Lens, simulated: bool
) -> str:
    """Return the reason to reject a frame; empty if there is none."""
    if corners is None:
        return "no board in view"
    if not simulated and (before is None or corners.moved_px(before) > STILL_PX):
        return "hold still"
    if any(corners.moved_px(other) < NEW_SHARE * lens.width for other in taken):
        return "move or turn the board"
    return ""


def _views_from_person(
    robot: Robot, guide: Guide, rig: RgbdCalibration, time_limit_s: float
) -> Generator[View, None, None]:
    guide.ask("Take the board and stand before the camera")
    guide.tell("Hold it still for each view: in the middle, in every corner, near and far, tilted to all four sides.")
    deadline_ns = robot.clock.now_ns() + seconds_to_ns(time_limit_s)
    while robot.clock.now_ns() < deadline_ns:
        yield take_view(robot, rig)


def _views_from_simulation(
    robot: Robot, simulation: Simulation, rig: RgbdCalibration, board: Board, wanted: int
) -> Generator[View, None, None]:
    """Yield views over the complete image, tilted to every side, at several distances."""
    start_poses.open_start_pose(robot, simulation)
    picture, random = board.picture(), simulation.random(SHEET)
    try:
        for number in range(ATTEMPTS * wanted):
            pose = simulation.camera_pose() @ in_view(rig.color, board, number, random)
            simulation.sheets[SHEET] = Sheet(picture, board.width_m, board.height_m, pose)
            yield take_view(robot, rig)
    finally:
        simulation.sheets.pop(SHEET, None)


def in_view(lens: Lens, board: Board, number: int, random: np.random.Generator) -> NDArray[np.float64]:
    """Return a pose of the board in the optical frame, float64 (4, 4): in one of 5 x 3 cells, with one of six tilts.

    Args:
        lens: lens of the image.
        board: the board to pose.
        number: number of the view; it selects cell and side.
        random: generator of the variation.
    """
    column, row = number % 5, number // 5 % 3
    pixel = (
        (column + random.uniform(0.1, 0.9)) / 5 * (lens.width - 1),
        (row + random.uniform(0.1, 0.9)) / 3 * (lens.height - 1),
    )
    # Outside the lens's image, half-way to the corner instead.
    ray = np.nan_to_num(lens.rays(pixel), nan=0.5)
    share = random.uniform(0.4, 0.75)
    distance_m = board.width_m * lens.fx / (share * lens.width)
    side, tilt = math.radians(60 * (number * 5 % 6) + random.uniform(0, 60)), math.radians(random.uniform(25, 45))
    turn = rotation_rpy(tilt * math.cos(side), tilt * math.sin(side), random.uniform(-0.5, 0.5))
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = turn @ FACING, ray / np.linalg.norm(ray) * distance_m
    return pose
