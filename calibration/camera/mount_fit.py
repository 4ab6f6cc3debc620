"""Least-squares fit of a camera's mount from tags seen while the head tilts and the base turns.

Unknown are the height and forward position of the tilt axis, the sensor's pose on the tilt link (its optical center may
lie off the axis), the tags' poses, and the base's poses. Known are the tags' size, which of them lie on the floor, the
head's angles, and odometry within its errors. So

- height, pitch and roll follow from tags on the floor, level by definition;
- lateral and forward offset follow from turning in place about the base's center;
- yaw follows from driving straight; the offset from the tilt axis from tilting.

The method is bundle adjustment (Triggs et al. 2000) with a robust loss, because a tag in half shade may be off by a
pixel.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares
from scipy.spatial.transform import Rotation

from calibration.camera.tag_corners import corners_of, tag_poses
from robot_runtime.common.geometry import SE2
from robot_runtime.common.transforms import OPTICAL_RPY_RAD, Offset, rotation_rpy, rpy_of, transform
from robot_runtime.hal.lens import Lens
from robot_runtime.robots.camera_mount import CameraMount

Array = NDArray[np.float64]

CORNER_PX = 0.2
"""Standard deviation of a tag's corner."""

ODOMETRY_M, ODOMETRY_RAD, ODOMETRY_SHARE = 0.001, math.radians(0.2), 0.01
"""Standard deviations of odometry between two stations, and their growth with distance and angle."""

NOMINAL_M, NOMINAL_RAD = 0.05, math.radians(10)
"""Standard deviations of the mount from its description; they determine what the tags do not."""

MIN_TRAVEL_M = 0.1
"""Least distance between stations that is used for the scale."""

SOFT = 3.0
"""Standard deviations of a corner beyond which the cost grows linearly."""

MAX_EVALUATIONS = 60

STEP = 1e-6
"""Step of the difference quotients, meters or radians."""

_OPTICAL = transform((0.0, 0.0, 0.0), rotation_rpy(*OPTICAL_RPY_RAD))
_MOUNT = 8


@dataclass(frozen=True, eq=False)
class TagView:
    """Tags seen in one image.

    Attributes:
        station: number of the base's pose.
        corners: float64 (4, 2) pixels by id.
    """

    station: int
    odom: SE2
    pan_rad: float
    tilt_rad: float
    corners: Mapping[int, Array]


@dataclass(frozen=True, eq=False)
class MountFit:
    """The fitted mount and all other unknowns.

    Attributes:
        stations: poses of the base by number; the first is the origin.
        tags: each tag's pose relative to that origin, float64 (4, 4).
        reprojection_px: root mean square of the corner errors.
        sigma: standard deviations of the mount by name with unit, by the fit's model.
        travel_ratio: distance of the base by tags over odometry's; None if it did not move.
    """

    mount: CameraMount
    stations: Mapping[int, SE2]
    tags: Mapping[int, Array]
    reprojection_px: float
    sigma: Mapping[str, float]
    travel_ratio: float | None

    def optical(self, view: TagView) -> Array:
        """Return the optical frame of a view relative to the origin, float64 (4, 4)."""
        return optical_frame(self.mount, self.stations[view.station], view)


def optical_frame(mount: CameraMount, base: SE2, view: TagView) -> Array:
    """Return the optical frame, float64 (4, 4), by base, mount and the head's angles."""
    return np.asarray(mount.sensor(base, view.pan_rad, view.tilt_rad) @ _OPTICAL)


def fit_mount(
    views: Sequence[TagView], lens: Lens, size_m: float, floor_ids: frozenset[int], nominal: CameraMount
) -> MountFit:
    """Fit the likeliest mount."""
    problem = _Problem(views, lens, size_m, floor_ids, nominal)
    solved = least_squares(
        problem.residuals,
        problem.start(),
        jac=problem.jacobian,
        # MINPACK: the other methods' decompositions wait for all cores, one of which is always busy on a robot.
        method="lm",
        x_scale="jac",
        ftol=1e-6,
        max_nfev=MAX_EVALUATIONS,
    )
    return problem.unpack(solved.x, np.linalg.pinv(solved.jac.T @ solved.jac)[:_MOUNT, :_MOUNT])


class _Problem:
    """Parameter vector of mount (8), stations (3 each but the first) and tags (3 on the floor, else 6)."""

    def __init__(
        self, views: Sequence[TagView], lens: Lens, size_m: float, floor_ids: frozenset[int], nominal: CameraMount
    ) -> None:
        self._views, self._lens, self._size_m, self._nominal = views, lens, size_m, nominal
        self._origin = min(views, key=lambda view: view.station).odom
        self._odom = {view.station: view.odom.relative_to(self._origin) for view in views}
        self._stations = sorted(self._odom)
        self._ids = sorted({tag_id for view in views for tag_id in view.corners})
        self._on_floor = [tag_id in floor_ids for tag_id in self._ids]
        seen = [(number, tag_id) for number, view in enumerate(views) for tag_id in view.corners]
        self._view_of = np.array([number for number, _ in seen])
        self._tag_of = np.array([self._ids.index(tag_id) for _, tag_id in seen])
        self._pixels = np.array([views[number].corners[tag_id] for number, tag_id in seen])
        self._nominal_values = mount_values(nominal)
        self._groups = self._column_groups()
        # The joint's axis is +y, about which positive angles look down, as in ``CameraMount.sensor``.
        self._panned = np.array([transform(nominal.pan_joint_m, rotation_rpy(0, 0, view.pan_rad)) for view in views])
        self._tilted = np.array([transform((0, 0, 0), rotation_rpy(0, -view.tilt_rad, 0)) for view in views])

    def start(self) -> Array:
        values = [self._nominal_values]
        values += [_planar(self._odom[station]) for station in self._stations[1:]]
        for tag_id, flat in zip(self._ids, self._on_floor, strict=True):
            pose = self._first_guess(tag_id)
            # A tag on the floor faces up; its top points along its yaw.
            yaw_rad = math.atan2(pose[1, 2], pose[0, 2])
            values.append(
                np.array([*pose[:2, 3], yaw_rad])
                if flat
                else np.array([*pose[:3, 3], *Rotation.from_matrix(pose[:3, :3]).as_rotvec()])
            )
        return np.concatenate(values)

    def residuals(self, values: Array) -> Array:
        return np.concatenate([_softened(self._pixel_errors(values))[0], self._prior_errors(values)])

    def jacobian(self, values: Array) -> Array:
        """Return the Jacobian of :meth:`residuals` by differences.

        A corner depends on the mount, one station and one tag, so all stations, and all tags, are displaced at once.
        """
        errors, priors = self._pixel_errors(values), self._prior_errors(values)
        softness = _softened(errors)[1]
        matrix = np.zeros((errors.size + priors.size, values.size))
        rows = np.arange(errors.size)
        for column_of in self._groups:
            moved = values.copy()
            touched = column_of >= 0
            moved[np.unique(column_of[touched])] += STEP
            slope = softness * (self._pixel_errors(moved) - errors) / STEP
            matrix[rows[touched], column_of[touched]] = slope[touched]
        for column in range(_MOUNT + 3 * (len(self._stations) - 1)):
            moved = values.copy()
            moved[column] += STEP
            matrix[errors.size :, column] = (self._prior_errors(moved) - priors) / STEP
        return matrix

    def _column_groups(self) -> list[Array]:
        """Return, per group of parameters displaced at once, the one that each pixel residual depends on, or -1."""
        station = np.array([self._stations.index(self._views[number].station) for number in self._view_of])
        sizes = np.where(self._on_floor, 3, 6)
        starts = _MOUNT + 3 * (len(self._stations) - 1) + np.cumsum(sizes) - sizes
        columns = [np.full(station.size, number) for number in range(_MOUNT)]
        columns += [np.where(station > 0, _MOUNT + 3 * (station - 1) + axis, -1) for axis in range(3)]
        columns += [np.where(sizes[self._tag_of] > axis, starts[self._tag_of] + axis, -1) for axis in range(6)]
        return [np.repeat(column, 8) for column in columns]

    def _pixel_errors(self, values: Array) -> Array:
        mount, stations, tags = self._parts(values)
        frames = self._frames(mount, stations)
        points = np.array([corners_of(pose, self._size_m) for pose in tags])[self._tag_of]
        here = frames[self._view_of]
        local = np.einsum("nij,nkj->nki", here[:, :3, :3].transpose(0, 2, 1), points - here[:, None, :3, 3])
        # Points behind the camera get a large error that drives them back.
        errors = np.nan_to_num(self._lens.project(local) - self._pixels, nan=self._lens.width)
        return np.asarray(errors.ravel() / CORNER_PX)

    def _prior_errors(self, values: Array) -> Array:
        """Return the deviations of stations from odometry and of the mount from its description, in sigmas."""
        stations, parts = self._stations_of(values), []
        for before, after in zip(self._stations, self._stations[1:], strict=False):
            said = self._odom[after].relative_to(self._odom[before])
            moved = stations[after].relative_to(stations[before])
            along_m = ODOMETRY_M + ODOMETRY_SHARE * math.hypot(said.x_m, said.y_m)
            turned_rad = ODOMETRY_RAD + ODOMETRY_SHARE * abs(said.yaw_rad)
            parts.append(_planar(moved.relative_to(said)) / (along_m, along_m, turned_rad))
        nominal_sigma = np.array([NOMINAL_M] * 5 + [NOMINAL_RAD] * 3)
        parts.append((values[:_MOUNT] - self._nominal_values) / nominal_sigma)
        return np.concatenate(parts)

    def _frames(self, mount: CameraMount, stations: Mapping[int, SE2]) -> Array:
        """Return the :func:`optical_frame` of all views, float64 (N, 4, 4)."""
        bases = {
            number: transform((base.x_m, base.y_m, 0.0), rotation_rpy(0.0, 0.0, base.yaw_rad))
            for number, base in stations.items()
        }
        tilt_joint = transform(mount.tilt_joint_m, np.eye(3))
        sensor = mount.camera.matrix @ mount.color.matrix @ _OPTICAL
        base = np.array([bases[view.station] for view in self._views])
        return np.asarray(base @ self._panned @ tilt_joint @ self._tilted @ sensor)

    def unpack(self, values: Array, covariance: Array) -> MountFit:
        mount, stations, tags = self._parts(values)
        errors = self._pixel_errors(values).reshape(-1, 2) * CORNER_PX
        rms_px = float(np.sqrt((errors**2).sum(axis=1).mean()))
        # At tilt 0 the height is that of the axis plus that of the sensor above it.
        height = np.array([0, 1, 0, 0, 1, 0, 0, 0], np.float64)
        sigma = {
            "height_sigma_mm": 1000 * math.sqrt(height @ covariance @ height),
            "lateral_sigma_mm": 1000 * math.sqrt(covariance[3, 3]),
            "rotation_sigma_deg": math.degrees(math.sqrt(covariance.diagonal()[5:].max())),
        }
        tags_by_id = dict(zip(self._ids, tags, strict=True))
        return MountFit(mount, stations, tags_by_id, rms_px, sigma, self._travel_ratio(stations))

    def _travel_ratio(self, stations: Mapping[int, SE2]) -> float | None:
        steps = list(zip(self._stations, self._stations[1:], strict=False))
        path_lengths_m = np.array(
            [[places[a].distance_to(places[b]) for a, b in steps] for places in (stations, self._odom)]
        )
        found_m, said_m = path_lengths_m[:, path_lengths_m[1] > MIN_TRAVEL_M].sum(axis=1) if steps else (0.0, 0.0)
        return float(found_m / said_m) if said_m else None

    def _parts(self, values: Array) -> tuple[CameraMount, dict[int, SE2], list[Array]]:
        mount = mount_of(values[:_MOUNT], self._nominal)
        stations = self._stations_of(values)
        at = _MOUNT + 3 * (len(stations) - 1)
        tags = []
        for flat in self._on_floor:
            if flat:
                x_m, y_m, yaw_rad = values[at : at + 3].tolist()
                tags.append(transform((x_m, y_m, 0.0), rotation_rpy(0.0, -math.pi / 2, yaw_rad + math.pi)))
                at += 3
            else:
                x_m, y_m, z_m = values[at : at + 3].tolist()
                tags.append(transform((x_m, y_m, z_m), Rotation.from_rotvec(values[at + 3 : at + 6]).as_matrix()))
                at += 6
        return mount, stations, tags

    def _stations_of(self, values: Array) -> dict[int, SE2]:
        at = values[_MOUNT : _MOUNT + 3 * (len(self._stations) - 1)].reshape(-1, 3)
        poses = [SE2(), *(SE2(*pose) for pose in at.tolist())]
        return dict(zip(self._stations, poses, strict=True))

    def _first_guess(self, tag_id: int) -> Array:
        """Return the pose, of the two that each view allows, that explains all views of a tag by the nominal mount."""
        frames = [
            (optical_frame(self._nominal, self._odom[view.station], view), view.corners[tag_id])
            for view in self._views
            if tag_id in view.corners
        ]
        poses = [frame @ pose for frame, pixels in frames for pose in tag_poses(self._lens, pixels, self._size_m)]

        def error(pose: Array) -> float:
            corners = corners_of(pose, self._size_m)
            off = [self._lens.project((corners - at[:3, 3]) @ at[:3, :3]) - pixels for at, pixels in frames]
            return float(np.median(np.linalg.norm(np.nan_to_num(np.array(off), nan=1e4), axis=-1)))

        return min(poses, key=error)


def mount_values(mount: CameraMount) -> Array:
    """Return a mount as parameters, the inverse of :func:`mount_of`.

    Returns:
        float64 (8,): x and z of the tilt axis; position of the sensor on the tilt link; its roll, pitch and yaw.
    """
    sensor = mount.camera.matrix @ mount.color.matrix
    return np.array([mount.tilt_joint_m[0], mount.tilt_joint_m[2], *sensor[:3, 3], *rpy_of(sensor[:3, :3])])


def mount_of(values: Array, nominal: CameraMount) -> CameraMount:
    """Return the mount of such parameters, with the nominal one's other values."""
    x_m, z_m, *place = values[:5].tolist()
    sensor = transform((place[0], place[1], place[2]), rotation_rpy(*values[5:8].tolist()))
    camera = sensor @ np.linalg.inv(nominal.color.matrix)
    roll, pitch, yaw = np.degrees(rpy_of(camera[:3, :3])).tolist()
    xyz_m = (float(camera[0, 3]), float(camera[1, 3]), float(camera[2, 3]))
    tilt_joint_m = (x_m, nominal.tilt_joint_m[1], z_m)
    return replace(nominal, tilt_joint_m=tilt_joint_m, camera=Offset(xyz_m, (roll, pitch, yaw)), calibration=None)


def _softened(errors: Array) -> tuple[Array, Array]:
    """Return errors whose squares grow linearly beyond ``SOFT`` (the "soft l1" loss), and their derivative."""
    root = np.sqrt(1 + (errors / SOFT) ** 2)
    soft = np.sign(errors) * SOFT * np.sqrt(2 * (root - 1))
    slope = np.divide(errors / root, soft, out=np.ones_like(errors), where=np.abs(soft) > 1e-6)
    return soft, slope


def _planar(pose: SE2) -> Array:
    return np.array([pose.x_m, pose.y_m, pose.yaw_rad])
