"""A camera's mount from the floor in its depth images: height, pitch and roll over the tilt range.

No targets are needed. The lateral offset and the forward position of the tilt axis cannot be observed and stay as
described; a yaw on the tilt link can, because it becomes a roll when the camera points down. The floor is the plane
with most points near its described pose (RANSAC, Fischler and Bolles 1981), refined by least squares. A depth error of
1 % is a height error of 1 %: see ``calibrate depth``.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from calibration import start_poses
from calibration.camera.mount_fit import NOMINAL_M, NOMINAL_RAD, mount_of, mount_values
from calibration.camera.raw_images import View, point_head, require_depth, rig_of, take_view
from calibration.operator_guide import LIVE, Guide
from calibration.procedure import Fit, Procedure
from robot_runtime.common import config
from robot_runtime.common.geometry import SE2
from robot_runtime.common.transforms import OPTICAL_RPY_RAD, rotation_rpy
from robot_runtime.errors import CalibrationFailed
from robot_runtime.hal import Robot
from robot_runtime.imaging.floor import MIN_SHARE, POINTS, fit_plane, image_points, random_planes
from robot_runtime.robots.camera_mount import EXTRINSICS, CameraMount

Array = NDArray[np.float64]

TILTS_DEG = (-60.0, -52.0, -45.0, -38.0, -31.0, -25.0, -20.0, -15.0)

HYPOTHESES = 300
NEAR_M = 0.03
"""Greatest distance of a floor point from the plane, for any sensor."""

NOISES, CLOSEST_M, REFINEMENTS = 3.0, 0.002, 8
"""Points beyond so many typical distances, but at least this distance, are left out of the next of so many fits."""

SIGMA_M, SIGMA_RAD = 0.002, math.radians(0.1)
"""Standard deviations of an image's floor: its height, its direction."""

MIN_VIEWS = 5
MIN_SPAN_RAD = math.radians(20)

_OPTICAL = rotation_rpy(*OPTICAL_RPY_RAD)
_FREE = (1, 2, 4, 5, 6, 7)
"""Solved parameters of the mount: height of the tilt axis, forward and upward offset from it, roll, pitch, yaw."""


@dataclass(frozen=True, eq=False)
class DepthView:
    """Points of a depth image.

    Attributes:
        points: float64 (N, 3) in the color sensor's optical frame, meters.
    """

    pan_rad: float
    tilt_rad: float
    points: Array
    serial: str


@dataclass(frozen=True, eq=False)
class Floor:
    """A plane in the optical frame.

    Attributes:
        up: float64 (3,), unit normal towards the camera.
        height_m: height of the optical center above it.
        typical_m: median distance of its points.
        share: share of all points.
    """

    up: Array
    height_m: float
    typical_m: float
    share: float


class FloorPlaneProcedure(Procedure[DepthView, CameraMount]):
    """Calibration of the mount by the floor; see the module.

    Args:
        nominal: mount by the description; None for the robot's driver's.
    """

    kind = EXTRINSICS
    limits: Mapping[str, float] = {"height_mm": 5.0, "rotation_deg": 0.3}

    def __init__(self, nominal: CameraMount | None) -> None:
        self._nominal = nominal

    def record(self, robot: Robot, guide: Guide) -> list[DepthView]:
        require_depth(robot.camera)
        self._nominal = self._nominal or described_mount(robot)
        guide.ask("Put the robot on level floor with 2 m of free floor ahead")
        if robot.simulation is not None:
            start_poses.open_start_pose(robot, robot.simulation)
        rig, views = rig_of(robot.camera), []
        for done, tilt_deg in enumerate(TILTS_DEG, start=1):
            point_head(robot, 0.0, math.radians(tilt_deg))
            view = take_view(robot, rig)
            guide.picture(LIVE, view.rgb)
            guide.progress(done, len(TILTS_DEG), f"tilt {tilt_deg:+.0f}°")
            points = points_of(view)
            if len(points) >= POINTS * MIN_SHARE:
                views.append(DepthView(view.head.pan_rad, view.head.tilt_rad, points, rig.serial))
        if views:
            guide.tell(
                f"floor is visible at tilts {_span(views)}; outside them the mount is extrapolated; for errors "
                "below the noise of the depth sensor use tags (--from tags)"
            )
        return views

    def solve(self, captures: Sequence[DepthView]) -> Fit[CameraMount]:
        assert self._nominal is not None, "record() comes first, or the mount is given"
        tilts_rad = [view.tilt_rad for view in captures]
        if len(captures) < MIN_VIEWS or max(tilts_rad) - min(tilts_rad) < MIN_SPAN_RAD:
            raise CalibrationFailed(
                f"{len(captures)} depth images are too few or too alike: at least {MIN_VIEWS}, over at least "
                f"{math.degrees(MIN_SPAN_RAD):.0f}° of tilt, are needed",
                "check that the depth sensor works, and that the head can tilt down by 60°",
            )
        floors = [find_floor(view, self._nominal) for view in captures]
        mount = _fit(captures, floors, self._nominal)
        heights_m, angles_rad = np.array(
            [_off(view, floor, mount) for view, floor in zip(captures, floors, strict=True)]
        ).T
        residuals = {
            "height_mm": 1000 * float(np.sqrt(np.mean(heights_m**2))),
            "rotation_deg": math.degrees(float(np.sqrt(np.mean(angles_rad**2)))),
            "plane_mm": 1000 * float(np.median([floor.typical_m for floor in floors])),
        }
        method = f"floor plane in depth, {len(captures)} tilts {_span(captures)}; lateral offset as described"
        return Fit(mount, config.unparse(mount), captures[0].serial, method, residuals)

    def verify(self, solution: CameraMount, held_out: Sequence[DepthView]) -> dict[str, float]:
        off = np.array([_off(view, find_floor(view, solution), solution) for view in held_out])
        return {
            "height_mm": 1000 * float(np.abs(off[:, 0]).max()),
            "rotation_deg": math.degrees(float(off[:, 1].max())),
            "views": float(len(held_out)),
        }


def described_mount(robot: Robot) -> CameraMount:
    """Return the mount by the robot's driver: a tilt axis through the optical center."""
    place = robot.camera.info.mount
    return CameraMount((place.x_m, place.y_m, place.z_m))


def _span(views: Sequence[DepthView]) -> str:
    tilts_deg = [math.degrees(view.tilt_rad) for view in views]
    return f"from {min(tilts_deg):+.0f}° to {max(tilts_deg):+.0f}°"


def points_of(view: View) -> Array:
    """Return points of a depth image in the color sensor's optical frame, float64 (N, 3), evenly over the image."""
    matrix = view.rig.color_from_depth
    return np.asarray(image_points(view.depth_m, view.rig.depth) @ matrix[:3, :3].T + matrix[:3, 3])


def find_floor(view: DepthView, expected: CameraMount) -> Floor:
    """Return the floor in a depth image, within the tolerances of a described mount.

    Raises:
        CalibrationFailed: there is no floor.
    """
    points, (up, height_m) = view.points, _expected(view, expected)
    # Points near the expected floor: walls and tables would only cost hypotheses.
    candidates = points[np.abs(points @ up + height_m) < 2 * NOMINAL_M + np.linalg.norm(points, axis=1) * NOMINAL_RAD]
    best, best_score = None, 0.0
    if len(candidates) >= 3:
        normals, heights = random_planes(candidates, up, HYPOTHESES)
        likely = (normals @ up > math.cos(2 * NOMINAL_RAD)) & (np.abs(heights - height_m) < 4 * NOMINAL_M)
        for normal, height in zip(normals[likely], heights[likely], strict=True):
            score = float(np.maximum(1 - ((candidates @ normal + height) / NEAR_M) ** 2, 0).sum())
            if score > best_score:
                best, best_score = (normal, float(height)), score
    if best is None or best_score < MIN_SHARE * len(points):
        raise CalibrationFailed(
            f"no floor in the depth image at tilt {math.degrees(view.tilt_rad):+.0f}°, expected {height_m:.2f} m below "
            "the camera",
            "put the robot on free, level, matt floor, and give the camera's approximate mount by --mount",
        )
    normal, height = best
    off = candidates @ normal + height
    for _ in range(REFINEMENTS):
        # Narrower from pass to pass, down to the sensor's noise, so that a rug of 1 cm is excluded.
        typical_m = float(np.median(np.abs(off[np.abs(off) < NEAR_M])))
        on_floor = candidates[np.abs(off) < np.clip(NOISES * typical_m, CLOSEST_M, NEAR_M)]
        normal, height = fit_plane(on_floor)
        off = candidates @ normal + height
    off = off[np.abs(off) < NEAR_M]
    return Floor(normal, height, float(np.median(np.abs(off))), len(off) / len(points))


def _expected(view: DepthView, mount: CameraMount) -> tuple[Array, float]:
    """Return the up direction in the optical frame, and the height above the floor."""
    sensor = mount.sensor(SE2(), view.pan_rad, view.tilt_rad)
    return np.asarray((sensor[:3, :3] @ _OPTICAL)[2]), float(sensor[2, 3])


def _off(view: DepthView, floor: Floor, mount: CameraMount) -> tuple[float, float]:
    """Return the difference between a floor and the one expected by a mount: meters, and radians."""
    up, height_m = _expected(view, mount)
    return floor.height_m - height_m, math.asin(min(1.0, float(np.linalg.norm(np.cross(floor.up, up)))))


def _fit(views: Sequence[DepthView], floors: Sequence[Floor], nominal: CameraMount) -> CameraMount:
    start = mount_values(nominal)
    free = list(_FREE)
    sigma = np.array([*[NOMINAL_M] * 3, *[NOMINAL_RAD] * 3])

    def mount(values: Array) -> CameraMount:
        whole = start.copy()
        whole[free] = values
        return mount_of(whole, nominal)

    def residuals(values: Array) -> Array:
        tried, parts = mount(values), [(values - start[free]) / sigma]
        for view, floor in zip(views, floors, strict=True):
            up, height_m = _expected(view, tried)
            parts.append(np.array([*(floor.up - up) / SIGMA_RAD, (floor.height_m - height_m) / SIGMA_M]))
        return np.concatenate(parts)

    return mount(least_squares(residuals, start[free], loss="soft_l1", x_scale="jac").x)
