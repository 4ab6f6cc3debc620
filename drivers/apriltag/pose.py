"""Pose of the robot from the corners of all tags in an image, given a level floor.

The unknown is base_link in ``map`` with six degrees of freedom. Standing upright on the floor enters as a measurement
with the standard deviations of :class:`FloorPrior`, which tolerates a mount that is off by half a degree and rejects
most mirror solutions of planar tags.

A square looks almost the same from two sides (Schweighofer and Pinz, "Robust pose estimation from a planar target",
IEEE PAMI 2006). Both solutions of a tag start a refinement over all tags; all that remain plausible are returned.
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
from robot_runtime.common.quantities import AngleSpread, Spread
from robot_runtime.common.transforms import Matrix, rotation_rpy, transform
from robot_runtime.scenes.tag_map import Tag, poses_of_square

Vector = NDArray[np.float64]

GATE = 26.1
"""Largest sum of weighted squares of a tag's eight coordinates: chi-square, 8 degrees of freedom, p = 0.001."""

FLOOR_GATE = 16.3
"""Largest sum of weighted squares of the floor's three residuals: chi-square, 3 degrees of freedom, p = 0.001."""

AMBIGUOUS = 9.0
"""Difference of cost (three standard deviations) below which two solutions are both plausible."""

APART_M, APART_RAD = 0.05, math.radians(2.0)
"""Differences of pose below which two solutions are the same."""

_STEPS = 12
_CONVERGED = 1e-7


@dataclass(frozen=True)
class FloorPrior(config.Strict):
    """Standard deviations of the robot's attitude and height on the floor.

    Attributes:
        tilt_sd_deg: standard deviation of roll and pitch, including those of the camera's mount and its servos.
        height_sd_m: standard deviation of the height of base_link.
    """

    tilt_sd_deg: AngleSpread = 0.5
    height_sd_m: Spread = 0.01

    def __post_init__(self) -> None:
        config.check_positive(self)


@dataclass(frozen=True, slots=True, eq=False)
class Sighting:
    """A known tag in an image.

    Attributes:
        tag: tag with its pose in the map or on the robot.
        rays: float64 (4, 2), x / z and y / z of its corners in the camera's optical frame, undistorted.
        sd: standard deviation of each coordinate.
    """

    tag: Tag
    rays: Vector
    sd: float


class Geometry(Protocol):
    """Projection of tags given the robot's pose."""

    def in_camera(self, base: Matrix, points: Vector) -> tuple[Vector, Vector]:
        """Transform points to the optical frame.

        Args:
            base: float64 (4, 4), base_link in ``map``.
            points: float64 (N, 3), in the frame that holds the tags.

        Returns:
            The points, float64 (N, 3), and their Jacobian, (N, 3, 6), by a displacement of base_link along (m) and
            about (rad) its own axes.
        """
        ...

    def base(self, tag: Matrix, camera_from_tag: Matrix) -> Matrix:
        """Return base_link in ``map``, float64 (4, 4), from a tag's pose and the same seen by the camera."""
        ...


@dataclass(frozen=True, eq=False)
class CameraOnRobot:
    """Projection of tags in ``map`` to a camera on the robot.

    Attributes:
        base_from_camera: float64 (4, 4), the optical frame in base_link at the exposure.
    """

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
    """Projection of tags in base_link to a fixed camera.

    Attributes:
        map_from_camera: float64 (4, 4), the optical frame in ``map``.
    """

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
        covariance: float64 (3, 3) of x, y, yaw, from the deviations of corners and floor.
        cost: sum of all weighted squares, the floor's included.
        fits: sum of weighted squares of each sighting's corners.
        used: indices of the sightings that the pose was computed from.
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
        """Whether all used tags and the floor pass their gates."""
        explained = [self.fits[number] for number in self.used]
        return max(explained) <= GATE and self.cost - sum(explained) <= FLOOR_GATE

    def over(self, sightings: Sequence[Sighting], geometry: Geometry) -> Solution:
        """Return the same pose with the fits of ``sightings``; these begin with the used ones."""
        return replace(self, fits=_fits(sightings, geometry, self.matrix))

    def near(self, other: SE2) -> bool:
        """Return whether the pose equals ``other`` within ``APART_M`` and ``APART_RAD``."""
        turn_rad = abs(wrap_angle(self.pose.yaw_rad - other.yaw_rad))
        return self.pose.distance_to(other) <= APART_M and turn_rad <= APART_RAD


def solve(sightings: Sequence[Sighting], geometry: Geometry, stance: FloorPrior) -> list[Solution]:
    """Return the plausible poses that explain the most tags of an image, the likeliest first.

    A tag that contradicts the others is left out of ``used``. Without a majority there is a solution for each side, and
    no solution if no tag is compatible with a robot on the floor.
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
    """Return the likeliest pose near a start, by the method of Levenberg and Marquardt.

    Args:
        sightings: all tags of the image.
        used: indices of those to compute with.
        geometry: projection of the tags.
        stance: standard deviations of the floor.
        start: float64 (4, 4), first guess of base_link in ``map``.
    """
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


def _agreed(
    sightings: Sequence[Sighting],
    first: int,
    order: Sequence[int],
    geometry: Geometry,
    stance: FloorPrior,
    start: Matrix,
) -> Solution | None:
    """Return the pose by all tags, else by ``first`` and those consistent with it; None if there is none."""
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
    """Return the possible poses by one tag alone, set upright on the floor."""
    level = []
    for seen in poses_of_square(sighting.rays, sighting.tag.size_m):
        base = geometry.base(sighting.tag.matrix, seen)
        yaw_rad = math.atan2(base[1, 0], base[0, 0])
        level.append(transform((base[0, 3], base[1, 3], 0.0), rotation_rpy(0.0, 0.0, yaw_rad)))
    return level


def _linearized(
    sightings: Sequence[Sighting], geometry: Geometry, stance: FloorPrior, base: Matrix
) -> tuple[Vector, Vector]:
    """Return residuals in standard deviations, and their Jacobian by a displacement of base_link."""
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
    # Points behind the camera get a large, but finite residual.
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
    """Return the cross-product matrices, (N, 3, 3), of vectors (N, 3)."""
    x, y, z = vectors.T
    zero = np.zeros_like(x)
    return np.stack([zero, -z, y, z, zero, -x, -y, x, zero], axis=-1).reshape(-1, 3, 3)


def _extent(sighting: Sighting) -> float:
    return float(np.ptp(sighting.rays, axis=0).max())
