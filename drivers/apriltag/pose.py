"""Where the robot is, from the corners of tags: all tags of an image at once, on a floor that is level.

The unknown is base_link in ``map`` with all its six degrees of freedom; that it stands on the floor, upright, is a
measurement like the others, good to :class:`FloorPrior`. So a mount that is off by half a degree costs nothing, and a
planar tag's mirror solution, which would stand askew, is seldom believed.

A square looks almost the same from two sides (Schweighofer and Pinz, "Robust pose estimation from a planar target",
IEEE PAMI 2006): from a tag both solutions start a refinement over all tags, and the best wins. What remains ambiguous
after that is said to be.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import cv2
import numpy as np
from numpy.typing import NDArray

from robot_runtime.common import config
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.common.transforms import Matrix, rotation_rpy, transform
from robot_runtime.scenes.tag_map import Tag, unit_corners

Vector = NDArray[np.float64]

GATE = 26.1
"""Weighted squares of one tag's eight coordinates beyond which it does not fit: chi-square, 8 degrees of freedom, one
in a thousand."""

FLOOR_GATE = 16.3
"""The same for the floor: three degrees of freedom."""

AMBIGUOUS = 9.0
"""A solution that is worse by less than this (three standard deviations) could be the true one as well."""

APART_M, APART_RAD = 0.05, math.radians(2.0)
"""Solutions nearer to each other than this are one."""

_STEPS = 12
_CONVERGED = 1e-7


@dataclass(frozen=True)
class FloorPrior:
    """How well the robot stands on the floor as its description says: standard deviations.

    Attributes:
        tilt_sd_deg: of roll and pitch, the camera's mount and its servos included. height_sd_m: of base_link.
    """

    tilt_sd_deg: float = 0.5
    height_sd_m: float = 0.01

    __pydantic_config__ = config.STRICT

    def __post_init__(self) -> None:
        if not (self.tilt_sd_deg > 0 and self.height_sd_m > 0):
            raise ValueError("tilt_sd_deg and height_sd_m must be positive")


@dataclass(frozen=True, slots=True, eq=False)
class Sighting:
    """A known tag in an image.

    Attributes:
        tag: as the map, or the robot's description, has it.
        rays: float64 (4, 2), x / z and y / z of its corners in the camera's optical frame, without distortion.
        sd: of each coordinate.
    """

    tag: Tag
    rays: Vector
    sd: float


class Geometry(Protocol):
    """How the robot's pose decides where a tag appears."""

    def in_camera(self, base: Matrix, points: Vector) -> tuple[Vector, Vector]:
        """Points (N, 3) of the tag's parent frame in the optical frame, and (N, 3, 6) how they move with a small
        displacement of base_link: three meters and three radians along and about its own axes."""
        ...

    def base(self, tag: Matrix, camera_from_tag: Matrix) -> Matrix:
        """base_link in ``map``, if the tag's frame is at ``camera_from_tag`` in the optical frame."""
        ...


@dataclass(frozen=True, eq=False)
class CameraOnRobot:
    """Tags hang in ``map``; ``base_from_camera`` (4, 4) is the optical frame in base_link at the exposure."""

    base_from_camera: Matrix

    def in_camera(self, base: Matrix, points: Vector) -> tuple[Vector, Vector]:
        in_base = (points - base[:3, 3]) @ base[:3, :3]
        turned = self.base_from_camera[:3, :3]
        moves = np.concatenate([np.broadcast_to(-np.eye(3), (len(points), 3, 3)), _cross(in_base)], axis=2)
        return (in_base - self.base_from_camera[:3, 3]) @ turned, turned.T @ moves

    def base(self, tag: Matrix, camera_from_tag: Matrix) -> Matrix:
        return np.asarray(tag @ np.linalg.inv(self.base_from_camera @ camera_from_tag))


@dataclass(frozen=True, eq=False)
class CameraInRoom:
    """A tag is on the robot, in base_link; ``map_from_camera`` (4, 4) is the optical frame of a fixed camera."""

    map_from_camera: Matrix

    def in_camera(self, base: Matrix, points: Vector) -> tuple[Vector, Vector]:
        in_map = points @ base[:3, :3].T + base[:3, 3]
        turned = self.map_from_camera[:3, :3]
        moves = np.concatenate([np.broadcast_to(np.eye(3), (len(points), 3, 3)), -_cross(points)], axis=2)
        return (in_map - self.map_from_camera[:3, 3]) @ turned, turned.T @ base[:3, :3] @ moves

    def base(self, tag: Matrix, camera_from_tag: Matrix) -> Matrix:
        return np.asarray(self.map_from_camera @ camera_from_tag @ np.linalg.inv(tag))


@dataclass(frozen=True, eq=False)
class Solution:
    """A pose that explains an image.

    Attributes:
        matrix: base_link in ``map``, float64 (4, 4).
        covariance: float64 (3, 3) of x, y, yaw, from the corners' and the stance's deviations.
        cost: weighted squares of everything that was measured, the floor included.
        fits: per sighting, the weighted squares of its corners alone.
        used: numbers of the sightings that it was computed from.
    """

    matrix: Matrix
    covariance: Vector
    cost: float
    fits: tuple[float, ...]
    used: tuple[int, ...]

    @property
    def pose(self) -> SE2:
        x_m, y_m, _ = self.matrix[:3, 3].tolist()
        return SE2(x_m, y_m, math.atan2(self.matrix[1, 0], self.matrix[0, 0]))

    @property
    def holds(self) -> bool:
        """Whether each tag that it was computed from fits it, and the floor does."""
        explained = [self.fits[number] for number in self.used]
        return max(explained) <= GATE and self.cost - sum(explained) <= FLOOR_GATE

    def over(self, sightings: Sequence[Sighting], geometry: Geometry) -> Solution:
        """The same pose, with the fits of these sightings, which begin with those that it was computed from."""
        return replace(self, fits=_fits(sightings, geometry, self.matrix))

    def near(self, other: SE2) -> bool:
        """Whether it is about that pose."""
        turn_rad = abs(wrap_angle(self.pose.yaw_rad - other.yaw_rad))
        return self.pose.distance_to(other) <= APART_M and turn_rad <= APART_RAD


def solve(sightings: Sequence[Sighting], geometry: Geometry, stance: FloorPrior) -> list[Solution]:
    """Poses that explain the most tags of an image, the likeliest first; several where each could be the true one.

    A tag that does not fit the pose that the others give is left out of ``used``: it was moved, or is not as large as
    the map says. Where no majority says which, there is a solution for each side. None where not even a single tag
    fits a robot that stands on the floor.
    """
    found: list[Solution] = []
    order = sorted(range(len(sightings)), key=lambda number: -_extent(sightings[number]))
    for first in order:
        for start in initial_poses(sightings[first], geometry):
            solution = _agreed(sightings, first, order, geometry, stance, start)
            if solution is not None and not any(s.used == solution.used and s.near(solution.pose) for s in found):
                found.append(solution)
        if any(len(solution.used) == len(sightings) for solution in found):
            break
    most = max((len(solution.used) for solution in found), default=0)
    best = sorted((s for s in found if len(s.used) == most), key=lambda solution: solution.cost)
    return [s for s in best if s.used != best[0].used or s.cost - best[0].cost < AMBIGUOUS]


def refine(
    sightings: Sequence[Sighting], used: tuple[int, ...], geometry: Geometry, stance: FloorPrior, start: Matrix
) -> Solution:
    """The likeliest pose near ``start`` (4, 4), given some of the sightings: Levenberg and Marquardt's method."""
    chosen = [sightings[number] for number in used]
    matrix, damping = start, 1e-6
    residual, slope = _linearized(chosen, geometry, stance, matrix)
    for _ in range(_STEPS):
        normal = slope.T @ slope
        step = np.linalg.solve(normal + damping * np.diag(np.diag(normal)), -slope.T @ residual)
        tried = _moved(matrix, step)
        residual_then, slope_then = _linearized(chosen, geometry, stance, tried)
        if residual_then @ residual_then > residual @ residual:
            damping = max(damping, 1e-6) * 100
            continue
        matrix, residual, slope, damping = tried, residual_then, slope_then, damping / 10
        if np.abs(step).max() < _CONVERGED:
            break
    planar = np.zeros((3, 6))
    planar[:2, :3], planar[2, 3:] = matrix[:2, :3], matrix[2, :3]
    covariance = planar @ np.linalg.inv(slope.T @ slope) @ planar.T
    cost, fits = float(residual @ residual), _fits(sightings, geometry, matrix)
    return Solution(matrix, (covariance + covariance.T) / 2, cost, fits, used)


def camera_from_tag(sighting: Sighting) -> list[Matrix]:
    """The tag's frame in the optical frame by its own corners alone, float64 (4, 4): the one that the homography says,
    and the one that a camera without perspective could not tell from it.

    (OpenCV 5's ``SOLVEPNP_IPPE_SQUARE`` returns NaN, or a wrong pose, for some tags that are seen exactly upright.)
    """
    rows = []
    for (_, across, up), (u, v) in zip(unit_corners() * sighting.tag.size_m, sighting.rays, strict=True):
        rows.append((across, up, 1, 0, 0, 0, -u * across, -u * up, -u))
        rows.append((0, 0, 0, across, up, 1, -v * across, -v * up, -v))
    homography = np.linalg.svd(np.array(rows))[2][-1].reshape(3, 3)
    homography /= np.sign(homography[2, 2]) * np.sqrt(
        np.linalg.norm(homography[:, 0]) * np.linalg.norm(homography[:, 1])
    )
    place = homography[:, 2]
    if not (np.isfinite(homography).all() and place[2] > 0):
        return []
    sight = place / np.linalg.norm(place)
    found = []
    for axes in (homography[:, :2], homography[:, :2] - 2 * np.outer(sight, sight @ homography[:, :2])):
        # The nearest pair of axes that are at right angles.
        left, _, right = np.linalg.svd(axes, full_matrices=False)
        across, up = (left @ right).T
        found.append(transform(tuple(place.tolist()), np.column_stack([np.cross(across, up), across, up])))
    return found


def _agreed(
    sightings: Sequence[Sighting],
    first: int,
    order: Sequence[int],
    geometry: Geometry,
    stance: FloorPrior,
    start: Matrix,
) -> Solution | None:
    """The pose of all tags, else of the first one and those that fit it; None if not even that one does."""
    solution = refine(sightings, tuple(range(len(sightings))), geometry, stance, start)
    if solution.holds:
        return solution
    solution = refine(sightings, (first,), geometry, stance, start)
    for other in order:
        if other not in solution.used:
            joined = refine(sightings, tuple(sorted((*solution.used, other))), geometry, stance, solution.matrix)
            solution = joined if joined.holds else solution
    return solution if solution.holds else None


def initial_poses(sighting: Sighting, geometry: Geometry) -> list[Matrix]:
    """Where the robot could stand by one tag alone, set upright on the floor."""
    level = []
    for seen in camera_from_tag(sighting):
        base = geometry.base(sighting.tag.matrix, seen)
        yaw_rad = math.atan2(base[1, 0], base[0, 0])
        level.append(transform((base[0, 3], base[1, 3], 0.0), rotation_rpy(0.0, 0.0, yaw_rad)))
    return level


def _linearized(
    sightings: Sequence[Sighting], geometry: Geometry, stance: FloorPrior, base: Matrix
) -> tuple[Vector, Vector]:
    """Everything measured minus expected, in standard deviations, and how it changes with a displacement of base."""
    misses, jacobian = _misses(sightings, geometry, base)
    up = base[2, :3]
    tilt_sd_rad = math.radians(stance.tilt_sd_deg)
    stands = np.array([up[0] / tilt_sd_rad, up[1] / tilt_sd_rad, base[2, 3] / stance.height_sd_m])
    stands_slope = np.zeros((3, 6))
    stands_slope[:2, 3:] = _cross(up[None])[0, :2] / tilt_sd_rad
    stands_slope[2, :3] = up / stance.height_sd_m
    return np.concatenate([misses, stands]), np.concatenate([jacobian, stands_slope])


def _fits(sightings: Sequence[Sighting], geometry: Geometry, base: Matrix) -> tuple[float, ...]:
    return tuple(float(np.square(_misses([sighting], geometry, base)[0]).sum()) for sighting in sightings)


def _misses(sightings: Sequence[Sighting], geometry: Geometry, base: Matrix) -> tuple[Vector, Vector]:
    points = np.concatenate([sighting.tag.corners for sighting in sightings])
    rays = np.concatenate([sighting.rays for sighting in sightings])
    weight = np.repeat([1 / sighting.sd for sighting in sightings], 8)
    seen, moves = geometry.in_camera(base, points)
    # What would lie behind the camera is far off, and must stay a number.
    depth = np.maximum(seen[:, 2], 1e-3)
    ideal = seen[:, :2] / depth[:, None]
    jacobian: Vector = (moves[:, :2] - ideal[:, :, None] * moves[:, 2:]) / depth[:, None, None]
    misses: Vector = (ideal - rays).ravel() * weight
    return misses, np.asarray(jacobian.reshape(-1, 6) * weight[:, None])


def _moved(base: Matrix, step: Vector) -> Matrix:
    moved = np.array(base)
    moved[:3, 3] += base[:3, :3] @ step[:3]
    moved[:3, :3] = base[:3, :3] @ cv2.Rodrigues(step[3:])[0]
    return moved


def _cross(vectors: Vector) -> Vector:
    """Matrices (N, 3, 3) that take the cross product of each of the vectors (N, 3) with what they are applied to."""
    x, y, z = vectors.T
    zero = np.zeros_like(x)
    return np.stack([zero, -z, y, z, zero, -x, -y, x, zero], axis=-1).reshape(-1, 3, 3)


def _extent(sighting: Sighting) -> float:
    return float(np.ptp(sighting.rays, axis=0).max())
