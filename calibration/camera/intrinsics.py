"""``robot-runtime calibrate intrinsics``: a color camera's lens from views of a ChArUco board.

The lens is OpenCV's plumb bob (Zhang 2000; ``cv2.calibrateCamera``), or its rational model if the factory uses it, with
the factory's denominator (k4, k5, k6): a free one fits as well with a pole inside the image. Views must cover the image
and be tilted to all sides, without which focal length and distance are indistinguishable. The factory's intrinsics are
evaluated on the same held-out views.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from calibration import start_poses
from calibration.camera import figures
from calibration.camera.charuco import MIN_CORNERS, Board, Corners
from calibration.camera.raw_images import View, factory_of, take_view
from calibration.operator_guide import COVERAGE, LIVE, Guide
from calibration.procedure import Fit, Procedure
from robot_runtime.common.clock import seconds_to_ns
from robot_runtime.common.transforms import rotation_rpy
from robot_runtime.errors import CalibrationFailed
from robot_runtime.hal import Lens, Robot
from robot_runtime.hal.printed_targets import Sheet
from robot_runtime.hal.simulation import Simulation
from robot_runtime.imaging.rig import RgbdCalibration

# --- views of the board ---------------------------------------------------------------------------------------------


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
    """Return a pose of the board in the optical frame, float64 (4, 4): in one of 5 x 3 cells, with one of six tilts."""
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


Array = NDArray[np.float64]
Model = Literal["brown_conrady", "rational"]

KIND = "intrinsics"

MIN_VIEWS = 8

MIN_COVERED = 0.5
"""Least share of the image's cells with corners."""

MIN_SPAN_RAD = math.radians(30)
"""Least range of the board's tilts, about either axis of the image."""

MAX_FOCAL_SIGMA_PCT = 0.1
"""Greatest standard deviation of the focal length by the fit, a third of the allowed error."""

OUTLIER = 5.0
"""Corners with errors beyond so many medians are left out, as next to a reflection or at the image's border."""


@dataclass(frozen=True, eq=False)
class SolvedLens:
    """The solved lens and the factory's."""

    lens: Lens
    factory: Lens


class IntrinsicsProcedure(Procedure[BoardView, SolvedLens]):
    """Calibration of a color camera's lens; see the module."""

    kind = KIND
    limits: Mapping[str, float] = {"reprojection_px": 1.0}

    def __init__(self, board: Board, views: int, time_limit_s: float) -> None:
        self._board, self._views, self._time_limit_s = board, views, time_limit_s

    def record(self, robot: Robot, guide: Guide) -> list[BoardView]:
        return collect(robot, guide, self._board, self._views, self._time_limit_s)

    def solve(self, captures: Sequence[BoardView]) -> Fit[SolvedLens]:
        rig = captures[0].view.rig
        model: Model = "rational" if rig.color.model == "rational" else "brown_conrady"
        seen = [capture.corners for capture in captures]
        _require_spread(rig.color, seen)
        fitted = self._fit(rig.color, seen, model)
        limit_px = OUTLIER * float(np.median(np.concatenate(fitted.errors_px)))
        good = [
            Corners(view.ids[errors <= limit_px], view.pixels[errors <= limit_px])
            for view, errors in zip(seen, fitted.errors_px, strict=True)
        ]
        good = [view for view in good if len(view.ids) >= MIN_CORNERS]
        _require_spread(rig.color, good)
        fitted = self._fit(rig.color, good, model)
        lens, sigma_pct = fitted.lens, fitted.focal_sigma_pct
        _require_tilts(fitted.normals)
        if not sigma_pct <= MAX_FOCAL_SIGMA_PCT:
            raise CalibrationFailed(
                f"the views leave the focal length uncertain by {sigma_pct:.2g} % (one sigma; at most "
                f"{MAX_FOCAL_SIGMA_PCT:g} %)",
                "take more views, nearer and tilted more, of a flat board",
            )
        errors_px = np.concatenate(fitted.errors_px)
        kept = errors_px.size / sum(len(view.ids) for view in seen)
        residuals = {
            "reprojection_px": float(np.sqrt(np.mean(errors_px**2))),
            "focal_sigma_pct": sigma_pct,
            "left_out_pct": 100 * (1 - kept),
        }
        document = replace(rig, color=lens, source=KIND).to_document()
        method = f"ChArUco {self._board.columns}x{self._board.rows}, {model}, {len(good)} views"
        return Fit(SolvedLens(lens, rig.color), document, rig.serial, method, residuals)

    def verify(self, solution: SolvedLens, held_out: Sequence[BoardView]) -> dict[str, float]:
        lens, factory = solution.lens, solution.factory
        return {
            "reprojection_px": self._rms_px(lens, held_out),
            "factory_reprojection_px": self._rms_px(factory, held_out),
            "focal_difference_pct": 100 * max(abs(lens.fx / factory.fx - 1), abs(lens.fy / factory.fy - 1)),
            "center_difference_px": math.hypot(lens.cx - factory.cx, lens.cy - factory.cy),
            "views": float(len(held_out)),
        }

    def show(self, fit: Fit[SolvedLens], held_out: Sequence[BoardView], guide: Guide) -> None:
        lens = fit.solution.lens
        seen = np.concatenate([capture.corners.pixels for capture in held_out])
        predicted = np.concatenate([self._predicted(lens, capture.corners) for capture in held_out])
        guide.picture("residuals.png", figures.residuals(lens, seen, predicted))

    def _fit(self, start: Lens, views: Sequence[Corners], model: Model) -> _Fitted:
        points = [self._board.corners_m[view.ids].astype(np.float32) for view in views]
        pixels = [view.pixels.astype(np.float32) for view in views]
        flags, guess = cv2.CALIB_USE_INTRINSIC_GUESS, np.zeros(5)
        if model == "rational":
            flags |= cv2.CALIB_RATIONAL_MODEL | cv2.CALIB_FIX_K4 | cv2.CALIB_FIX_K5 | cv2.CALIB_FIX_K6
            guess = np.array(start.coefficients)
        try:
            _, matrix, distortion, turns, shifts, sigmas, _, _ = cv2.calibrateCameraExtended(
                points, pixels, (start.width, start.height), start.matrix, guess, flags=flags
            )
        except cv2.error as error:
            raise CalibrationFailed(
                f"the views cannot be solved: {str(error).strip().splitlines()[-1]}",
                "capture again, with the board tilted to all sides",
            ) from error
        fx, fy, cx, cy = (float(value) for value in (matrix[0, 0], matrix[1, 1], matrix[0, 2], matrix[1, 2]))
        coefficients = tuple(np.ravel(distortion)[: guess.size].tolist())
        lens = Lens(start.width, start.height, fx, fy, cx, cy, model, coefficients, start.max_radius)
        if not np.isfinite(lens.rays(np.concatenate(pixels))).all():
            raise CalibrationFailed(
                f"the best fit of the {model} model is not invertible where the board was seen",
                "take more views, in the image's corners",
            )
        errors = []
        for point, pixel, turn, shift in zip(points, pixels, turns, shifts, strict=True):
            predicted, _ = cv2.projectPoints(point, turn, shift, matrix, distortion)
            errors.append(np.linalg.norm(predicted.reshape(-1, 2) - pixel, axis=1))
        normals = np.array([cv2.Rodrigues(turn)[0][:, 2] for turn in turns])
        return _Fitted(lens, errors, normals, 100 * float(np.ravel(sigmas)[0]) / fx)

    def _rms_px(self, lens: Lens, views: Sequence[BoardView]) -> float:
        errors = [self._predicted(lens, view.corners) - view.corners.pixels for view in views]
        return float(np.sqrt((np.concatenate(errors) ** 2).sum(axis=1).mean()))

    def _predicted(self, lens: Lens, corners: Corners) -> Array:
        """Return the board's corners projected by a lens at the board's likeliest pose, float64 (N, 2)."""
        points = self._board.corners_m[corners.ids]
        rays = lens.rays(corners.pixels)
        usable = np.isfinite(rays).all(axis=1)
        _, turn, shift = cv2.solvePnP(points[usable], rays[usable, :2], np.eye(3), None)
        seen = points @ cv2.Rodrigues(turn)[0].T + shift.ravel()
        return lens.project(seen)


@dataclass(frozen=True, eq=False)
class _Fitted:
    """Result of a fit.

    Attributes:
        lens: fitted.
        errors_px: corner errors per view.
        normals: float64 (N, 3), the board's normals in the optical frame.
        focal_sigma_pct: standard deviation of the focal length.
    """

    lens: Lens
    errors_px: list[Array]
    normals: Array
    focal_sigma_pct: float


def _require_spread(lens: Lens, views: Sequence[Corners]) -> None:
    if len(views) < MIN_VIEWS:
        raise CalibrationFailed(
            f"{len(views)} views to solve from are too few, at least {MIN_VIEWS} are needed",
            "capture longer, or ask for more with --views",
        )
    share = float(figures.covered(lens, [view.pixels for view in views]).mean())
    if share < MIN_COVERED:
        raise CalibrationFailed(
            f"the board was seen in {100 * share:.0f} % of the image, at least {100 * MIN_COVERED:.0f} % are needed",
            "bring the board into every corner of the image; `--view DIR` shows where it is missing",
        )


def _require_tilts(normals: Array) -> None:
    """Raise ``CalibrationFailed`` unless the board's normals point to all sides and so determine the focal length."""
    for axis, side in ((0, "left and right"), (1, "up and down")):
        angles = np.arctan2(normals[:, axis], normals[:, 2])
        span_rad = float(angles.max() - angles.min())
        if span_rad < MIN_SPAN_RAD:
            raise CalibrationFailed(
                f"the board's tilts {side} differ by {math.degrees(span_rad):.0f}°, at least "
                f"{math.degrees(MIN_SPAN_RAD):.0f}° are needed",
                f"capture again, and tilt the board {side} by 30° and more",
            )
