"""A scan as a robot's map would show it: which way is up, where its floor is, what stands at the robot's height."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from robot_runtime.errors import SceneError
from sim_bridge.reconstruction.tsdf import triangle_areas_m2
from sim_bridge.scenes.importer import floor_height
from sim_bridge.scenes.pieces import UPRIGHT, WORLD_FORMATS, Up, all_triangles, own_up, read_pieces

Array = NDArray[np.float64]

BAND_M = (0.1, 0.85)
"""Heights above the floor that a robot's map shows."""

MOST_TILTED_DEG = 10.0
SAMPLE_M = 0.02
PLAUSIBLE_M = (1.0, 200.0)
"""Range of the longest edge of a place."""

_LOW_SHARE = 0.25
_STEEP = 0.9
_BETTER = 2.0
_MOST_SAMPLES = 2_000_000
_WIDE = 1 << 24


@dataclass(frozen=True, eq=False)
class Scan:
    """An upright scan.

    Attributes:
        source: the file.
        up: the file's axis that points up.
        upright: float64 (4, 4), from the file's axes in meters, with ``up`` turned onto z, to a level floor at z = 0.
        tilt_deg: angle by which the floor was out of level.
        plan: float64 (N, 2), points on surfaces in :data:`BAND_M`, no two in one square of :data:`SAMPLE_M`.
    """

    source: Path
    up: Up
    upright: Array
    tilt_deg: float
    plan: Array


def read_scan(source: Path, up: Up | None = None, scale: float = 1.0) -> Scan:
    """Read a mesh or a Gazebo world.

    Args:
        source: the file.
        up: the file's upward axis; None for the format's own, unless another one has far more floor.
        scale: meters per unit of the file.

    Raises:
        SceneError: the file cannot be read, its size is implausible, or it has no surfaces in the band of heights.
    """
    world = source.suffix.lower() in WORLD_FORMATS
    triangles = all_triangles(read_pieces(source, skip_missing=True, up="z", scale=scale))
    if not len(triangles):
        raise SceneError(f"{source}: has no faces", "give a scan with faces")
    size_m = float(np.ptp(triangles.reshape(-1, 3), axis=0).max())
    if not PLAUSIBLE_M[0] <= size_m <= PLAUSIBLE_M[1]:
        raise SceneError(
            f"{source}: is {size_m:.3g} m long, not a plausible size of a place",
            "give the length of a unit with --scale: 0.001 for millimeters, 0.01 for centimeters",
        )
    up = "z" if world else up or _found_up(source, triangles)
    triangles = _moved(triangles, UPRIGHT[up])
    leveling, tilt_deg = _leveling(triangles)
    triangles = _moved(triangles, leveling)
    lift = np.eye(4)
    lift[2, 3] = -floor_height(triangles)
    triangles = _moved(triangles, lift)
    plan = _plan(triangles)
    if len(plan) < 50:
        raise SceneError(
            f"{source}: has no surfaces between {BAND_M[0]} and {BAND_M[1]} m above its floor (axis {up} up)",
            "give the upward axis with --up and the length of a unit with --scale; faces must point into the rooms",
        )
    return Scan(source, up, lift @ leveling, tilt_deg, plan)


def _moved(triangles: Array, matrix: Array) -> Array:
    return np.asarray(triangles @ matrix[:3, :3].T + matrix[:3, 3])


def _found_up(source: Path, triangles: Array) -> Up:
    """The format's own axis, unless another direction has more than twice its floor area.

    Floor is what faces up in the lowest quarter. A ceiling upside down looks the same, so a tie decides nothing.
    """
    areas = {axis: _floor_area(_moved(triangles, matrix)) for axis, matrix in UPRIGHT.items()}
    own = own_up(source)
    best = max(UPRIGHT, key=lambda axis: areas[axis])
    return best if areas[best] > _BETTER * areas[own] else own


def _floor(triangles: Array, least_cosine: float) -> Array:
    """Normals (K, 3), as long as twice the area, of the triangles in the lowest quarter that face up."""
    normals = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    length = np.linalg.norm(normals, axis=1)
    z = triangles[..., 2].mean(axis=1)
    low, high = float(triangles[..., 2].min()), float(triangles[..., 2].max())
    facing_up = (normals[:, 2] > least_cosine * length) & (length > 1e-12)
    return np.asarray(normals[facing_up & (z < low + _LOW_SHARE * (high - low))])


def _floor_area(triangles: Array) -> float:
    return float(np.linalg.norm(_floor(triangles, _STEEP), axis=1).sum())


def _leveling(triangles: Array) -> tuple[Array, float]:
    """The smallest rotation, float64 (4, 4), that makes the floor level; and its angle in degrees."""
    normals = _floor(triangles, float(np.cos(np.radians(MOST_TILTED_DEG))))
    if not len(normals):
        return np.eye(4), 0.0
    weight = np.linalg.norm(normals, axis=1)
    unit = normals / weight[:, None]
    # The median direction, because a scan's floor has bumps and rugs, but most of it is flat.
    median = np.array([_weighted_median(unit[:, i], weight) for i in (0, 1)])
    normal = np.array([*median, np.sqrt(max(0.0, 1 - float(median @ median)))])
    axis = np.cross(normal, (0.0, 0.0, 1.0))
    sine = float(np.linalg.norm(axis))
    if sine < 1e-4:
        return np.eye(4), 0.0
    angle = float(np.arcsin(min(1.0, sine)))
    matrix = np.eye(4)
    matrix[:3, :3] = Rotation.from_rotvec(axis / sine * angle).as_matrix()
    return matrix, float(np.degrees(angle))


def _weighted_median(values: Array, weights: Array) -> float:
    order = np.argsort(values)
    cumulated = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(cumulated, cumulated[-1] / 2)])


def _plan(triangles: Array) -> Array:
    """Points (N, 2) on surfaces in the band of heights, sampled at random."""
    low, high = BAND_M
    z = triangles[..., 2]
    band = triangles[(z.min(axis=1) <= high) & (z.max(axis=1) >= low)]
    if not len(band):
        return np.zeros((0, 2))
    area = triangle_areas_m2(band)
    count = int(min(_MOST_SAMPLES, 2 * area.sum() / SAMPLE_M**2 + len(band)))
    random = np.random.default_rng(0)
    chosen = band[random.choice(len(band), count, p=area / area.sum())]
    one, other = np.sqrt(random.random(count)), random.random(count)
    weights = np.stack([1 - one, one * (1 - other), one * other], axis=1)
    points = np.einsum("nk,nkd->nd", weights, chosen)
    points = points[(points[:, 2] >= low) & (points[:, 2] <= high), :2]
    square = np.floor(points / SAMPLE_M).astype(np.int64)
    _, first = np.unique(square[:, 0] * _WIDE + square[:, 1], return_index=True)
    return np.asarray(points[np.sort(first)])
