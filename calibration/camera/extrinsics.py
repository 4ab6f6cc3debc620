"""``robot-runtime calibrate extrinsics``: the camera's mount from AprilTags, or from the floor alone.

Both write a mount (``robot_runtime.robots.camera_mount``), which defines the robot description, the driver's
observation and the simulated camera.
"""

import math
from collections.abc import Mapping, Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from calibration.camera import tagged_site
from calibration.camera.floor_plane import described_mount
from calibration.camera.mount_fit import MountFit, TagView, fit_mount
from calibration.camera.tag_corners import corners_of
from calibration.camera.tagged_site import SiteView
from calibration.operator_guide import Guide
from calibration.procedure import Fit, Procedure
from robot_runtime.common import config
from robot_runtime.errors import CalibrationFailed
from robot_runtime.hal import Lens, Robot
from robot_runtime.robots.camera_mount import EXTRINSICS, CameraMount

Array = NDArray[np.float64]

MIN_VIEWS = 6
MIN_FLOOR_TAGS = 2
MIN_TILT_SPAN_RAD = math.radians(20)

MAX_SIGMA = {"height_sigma_mm": 2.5, "lateral_sigma_mm": 2.5, "rotation_sigma_deg": 0.15}
"""Greatest standard deviations of the mount, half of the allowed errors; more means views from too few sides."""

TRAVEL_TOLERANCE = 0.08
"""Greatest relative difference of path lengths: wheels slip by a few per cent, a wrong tag size gives more."""


class ExtrinsicsProcedure(Procedure[SiteView, MountFit]):
    """Calibration of the mount by tags; see ``calibration.camera.mount_fit``.

    Args:
        size_m: edge of the tags' black squares.
        floor_ids: ids of tags that lie flat on the floor.
        nominal: mount by the description; None for the robot's driver's.
        tilts_deg: tilt angles of the head at each station.
    """

    kind = EXTRINSICS
    limits: Mapping[str, float] = {"reprojection_px": 2.0, "position_mm": 10.0, "rotation_deg": 0.5}

    def __init__(
        self,
        size_m: float,
        floor_ids: Sequence[int] = tagged_site.FLOOR_IDS,
        nominal: CameraMount | None = None,
        tilts_deg: Sequence[float] = tagged_site.TILTS_DEG,
    ) -> None:
        self._size_m, self._floor_ids, self._nominal = size_m, frozenset(floor_ids), nominal
        self._tilts_deg = tilts_deg

    def record(self, robot: Robot, guide: Guide) -> list[SiteView]:
        self._nominal = self._nominal or described_mount(robot)
        return list(tagged_site.visit(robot, guide, self._size_m, self._tilts_deg))

    def solve(self, captures: Sequence[SiteView]) -> Fit[MountFit]:
        assert self._nominal is not None, "record() comes first, or the mount is given"
        views = [capture.tags for capture in captures]
        self._require_enough(views)
        rig = captures[0].view.rig
        fit = fit_mount(views, rig.color, self._size_m, self._floor_ids, self._nominal)
        if fit.travel_ratio is not None and abs(fit.travel_ratio - 1) > TRAVEL_TOLERANCE:
            raise CalibrationFailed(
                f"by the tags the robot went {fit.travel_ratio:.2f} times as far as by its wheels: they seem to be "
                f"{1000 * self._size_m / fit.travel_ratio:.0f} mm wide, not {1000 * self._size_m:.0f}",
                "measure the black square of a tag and give it as --tag-m, or calibrate the odometry first",
            )
        for name, limit in MAX_SIGMA.items():
            if not fit.sigma[name] <= limit:
                raise CalibrationFailed(
                    f"the views leave {name} at {fit.sigma[name]:.2g}, more than {limit:g}",
                    "lay out more tags, nearer, and let the robot see them from all its stations",
                )
        residuals = {"reprojection_px": fit.reprojection_px, **fit.sigma}
        stations = len(fit.stations)
        method = (
            f"AprilTags of {1000 * self._size_m:g} mm, {len(views)} views, {stations} stations, {len(fit.tags)} tags"
        )
        return Fit(fit, config.unparse(fit.mount), rig.serial, method, residuals)

    def verify(self, solution: MountFit, held_out: Sequence[SiteView]) -> dict[str, float]:
        """Compare the camera's pose by mount, head and base with its pose by the tags, in each held-out image."""
        positions_m, angles_rad, errors_px = [], [], []
        for capture in held_out:
            view, lens = capture.tags, capture.view.rig.color
            known = {tag_id: pixels for tag_id, pixels in view.corners.items() if tag_id in solution.tags}
            if len(known) < 2 or view.station not in solution.stations:
                continue
            points = np.concatenate([corners_of(solution.tags[tag_id], self._size_m) for tag_id in known])
            pixels = np.concatenate(list(known.values()))
            predicted = solution.optical(view)
            seen = _resected(lens, points, pixels)
            errors_px.append(lens.project((points - predicted[:3, 3]) @ predicted[:3, :3]) - pixels)
            positions_m.append(np.linalg.norm(seen[:3, 3] - predicted[:3, 3]))
            turn, _ = cv2.Rodrigues(seen[:3, :3].T @ predicted[:3, :3])
            angles_rad.append(np.linalg.norm(turn))
        if not positions_m:
            raise CalibrationFailed(
                "no held-out view shows two tags that others show, too", "lay out more tags, nearer to each other"
            )
        return {
            "reprojection_px": float(np.sqrt((np.concatenate(errors_px) ** 2).sum(axis=1).mean())),
            "position_mm": 1000 * float(np.median(positions_m)),
            "rotation_deg": math.degrees(float(np.median(angles_rad))),
            "views": float(len(positions_m)),
        }

    def _require_enough(self, views: Sequence[TagView]) -> None:
        on_floor = {tag_id for view in views for tag_id in view.corners if tag_id in self._floor_ids}
        tilts_rad = [view.tilt_rad for view in views] or [0.0]
        span_rad = max(tilts_rad) - min(tilts_rad)
        stations = {view.station for view in views if view.corners.keys() & self._floor_ids}
        for short, what in (
            (len(views) < MIN_VIEWS, f"{len(views)} views with tags; at least {MIN_VIEWS} are needed"),
            (
                len(on_floor) < MIN_FLOOR_TAGS,
                f"{len(on_floor)} tags on the floor were seen; at least {MIN_FLOOR_TAGS} are needed",
            ),
            (
                span_rad < MIN_TILT_SPAN_RAD,
                f"tags were seen over {math.degrees(span_rad):.0f}° of tilt; at least "
                f"{math.degrees(MIN_TILT_SPAN_RAD):.0f}° are needed",
            ),
            (
                len(stations) < 2,
                "tags on the floor were seen from one side only; the robot must turn and see them again",
            ),
        ):
            if short:
                raise CalibrationFailed(
                    f"extrinsics: {what}",
                    "lay out more tags of family 36h11 where the robot looks, in even light, and check --tag-m and "
                    "--floor-tags",
                )


def _resected(lens: Lens, points: Array, pixels: Array) -> Array:
    """Return the optical frame in the points' frame, float64 (4, 4), from points and their pixels."""
    rays = np.ascontiguousarray(lens.rays(pixels)[:, :2])
    _, turn, shift = cv2.solvePnP(points, rays, np.eye(3), None, flags=cv2.SOLVEPNP_SQPNP)
    turn, shift = cv2.solvePnPRefineLM(points, rays, np.eye(3), None, turn, shift)
    pose = np.eye(4)
    pose[:3, :3] = cv2.Rodrigues(turn)[0].T
    pose[:3, 3] = -pose[:3, :3] @ shift.ravel()
    return pose
