"""A scan as a robot's map would show it: which way is up, where its floor is, what stands at the robot's height."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from robot_runtime.errors import SceneError
from sim_bridge.scenes.importer import floor_height
from sim_bridge.scenes.pieces import UPRIGHT, WORLD_FORMATS, Up, all_triangles, own_up, read_pieces

Array = NDArray[np.float64]

BAND_M = (0.1, 0.85)
"""Of the scan, above its floor: what a robot's map shows of it."""

MOST_TILTED_DEG = 10.0
SAMPLE_M = 0.02
PLAUSIBLE_M = (1.0, 200.0)
"""Longest edge of a place's plan."""

_LOW_SHARE = 0.25
_STEEP = 0.9
_BETTER = 2.0
_MOST_SAMPLES = 2_000_000
_WIDE = 1 << 24


@dataclass(frozen=True, eq=False)
class Scan:
    """A scan, upright.

    Attributes:
        up: the file's axis that points up.
        upright: float64 (4, 4), from the file's axes in metres, with ``up`` turned onto z, to level with the floor at
            z = 0. tilt_deg: how far the floor was out of level.
        plan: float64 (N, 2), points on what stands in :data:`BAND_M`, no two in one square of :data:`SAMPLE_M`.
    """

    source: Path
    up: Up
    upright: Array
    tilt_deg: float
    plan: Array


def read_scan(source: Path, up: Up | None = None, scale: float = 1.0) -> Scan:
    """Read a mesh or a Gazebo world.

    Args:
        up: the file's upward axis; None to find it: the format's own, unless another one has far more floor.

    Raises:
        SceneError: the file cannot be read, its size is no place's, or nothing stands in the band.
    """
    world = source.suffix.lower() in WORLD_FORMATS
    triangles = all_triangles(read_pieces(source, skip_missing=True, up="z", scale=scale))
    if not len(triangles):
        raise SceneError(f"{source}: has nothing to draw", "give a scan with faces")
    size_m = float(np.ptp(triangles.reshape(-1, 3), axis=0).max())
    if not PLAUSIBLE_M[0] <= size_m <= PLAUSIBLE_M[1]:
        raise SceneError(
            f"{source}: is {size_m:.3g} m long, which no place is",
            "say how long a unit is with --scale: 0.001 for millimetres, 0.01 for centimetres",
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
            f"{source}: nothing stands between {BAND_M[0]} and {BAND_M[1]} m above its floor (axis {up} up)",
            "say which axis points up with --up, and how long a unit is with --scale; faces must look into the rooms",
        )
    return Scan(source, up, lift @ leveling, tilt_deg, plan)


def _moved(triangles: Array, matrix: Array) -> Array:
    return np.asarray(triangles @ matrix[:3, :3].T + matrix[:3, 3])


def _found_up(source: Path, triangles: Array) -> Up:
    """The format's own axis, unless another direction has more than twice its floor.

    Floor is what faces up in the lowest quarter. Upside down a room has its ceiling there, so a tie says nothing.
    """
    areas = {axis: _floor_area(_moved(triangles, matrix)) for axis, matrix in UPRIGHT.items()}
    own = own_up(source)
    best = max(UPRIGHT, key=lambda axis: areas[axis])
    return best if areas[best] > _BETTER * areas[own] else own


def _floor_area(triangles: Array) -> float:
    normals = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0]) / 2
    area = np.linalg.norm(normals, axis=1)
    z = triangles[..., 2].mean(axis=1)
    low, high = float(triangles[..., 2].min()), float(triangles[..., 2].max())
    floor = (normals[:, 2] > _STEEP * area) & (z < low + _LOW_SHARE * (high - low))
    return float(area[floor].sum())


def _leveling(triangles: Array) -> tuple[Array, float]:
    """The smallest rotation, float64 (4, 4), that makes the floor level; and its angle in degrees."""
    normals = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    length = np.linalg.norm(normals, axis=1)
    z = triangles[..., 2].mean(axis=1)
    low, high = float(triangles[..., 2].min()), float(triangles[..., 2].max())
    most = np.cos(np.radians(MOST_TILTED_DEG))
    floor = (normals[:, 2] > most * length) & (length > 1e-12) & (z < low + _LOW_SHARE * (high - low))
    if not floor.any():
        return np.eye(4), 0.0
    unit = normals[floor] / length[floor, None]
    # The median direction: a scan's floor is bumpy and has rugs on it, but most of it is flat.
    order = np.argsort(unit[:, :2], axis=0)
    weight = length[floor]
    mean = np.array([_weighted_median(unit[:, i], weight, order[:, i]) for i in (0, 1)])
    normal = np.array([*mean, np.sqrt(max(0.0, 1 - float(mean @ mean)))])
    axis = np.cross(normal, (0.0, 0.0, 1.0))
    sine = float(np.linalg.norm(axis))
    if sine < 1e-4:
        return np.eye(4), 0.0
    angle = float(np.arcsin(min(1.0, sine)))
    matrix = np.eye(4)
    matrix[:3, :3] = Rotation.from_rotvec(axis / sine * angle).as_matrix()
    return matrix, float(np.degrees(angle))


def _weighted_median(values: Array, weights: Array, order: NDArray[np.intp]) -> float:
    cumulated = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(cumulated, cumulated[-1] / 2)])


def _plan(triangles: Array) -> Array:
    """Points (N, 2) on what lies in the band: triangles cut at many heights, which meets walls and table tops alike."""
    low, high = BAND_M
    z = triangles[..., 2]
    band = triangles[(z.min(axis=1) <= high) & (z.max(axis=1) >= low)]
    if not len(band):
        return np.zeros((0, 2))
    area = np.linalg.norm(np.cross(band[:, 1] - band[:, 0], band[:, 2] - band[:, 0]), axis=1) / 2
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
