"""Floor detection in a depth image: the pose of the camera relative to the visible floor."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.geometry import optical_axes
from robot_runtime.hal import Intrinsics
from robot_runtime.hal.lens import Lens

Floats = NDArray[np.float64]

POINTS = 6000
"""Number of points that are sampled evenly over the image."""

MAX_DEPTH_M = 4.0
HYPOTHESES = 800
INLIER_M = 0.03
"""Largest distance of a point of a plane."""

INLIER_FACTOR, MIN_INLIER_M, REFINEMENTS = 2.5, 0.002, 8
"""Each refinement keeps points within ``INLIER_FACTOR`` times the median distance, but at least ``MIN_INLIER_M``."""

MIN_SHARE = 0.08
"""Smallest fraction of the image's points on the floor; a smaller plane is a table or a threshold."""

MAX_TILT_ERROR_RAD = math.radians(35)
MAX_HEIGHT_ERROR_M = 0.5
"""Largest error of the described pose for which the floor is still found."""


@dataclass(frozen=True, slots=True)
class CameraAboveFloor:
    """Pose of a camera relative to the visible floor.

    Attributes:
        height_m: height of the optical center.
        tilt_rad: tilt, up positive.
        roll_rad: roll, to the right positive.
        share: fraction of the image's points on the floor.
    """

    height_m: float
    tilt_rad: float
    roll_rad: float
    share: float


def find_floor(
    depth_m: NDArray[np.float32], pinhole: Intrinsics, height_m: float, tilt_rad: float
) -> CameraAboveFloor | None:
    """Find the largest nearly horizontal plane below the camera by RANSAC (Fischler and Bolles 1981); None without one.

    Args:
        depth_m: float32 (H, W), 0 where there is no measurement.
        pinhole: pinhole model of the camera.
        height_m: described height of the camera.
        tilt_rad: described tilt of the camera.
    """
    points = image_points(depth_m, Lens.of(pinhole))
    up = optical_axes(0.0, tilt_rad)[2]
    best: tuple[Floats, float] | None = None
    best_score = max(3.0, MIN_SHARE * len(points))
    # Sample only from possible floor points: in most images, walls fill a larger part.
    ranges_m = np.linalg.norm(points, axis=1)
    candidates = points[np.abs(points @ up + height_m) < MAX_HEIGHT_ERROR_M + ranges_m * math.sin(MAX_TILT_ERROR_RAD)]
    candidates = candidates[candidates @ up < 0]
    if len(candidates) < 3:
        return None
    normals, heights = random_planes(candidates, up, HYPOTHESES)
    likely = (normals @ up >= math.cos(MAX_TILT_ERROR_RAD)) & (np.abs(heights - height_m) <= MAX_HEIGHT_ERROR_M)
    for normal, height in zip(normals[likely], heights[likely].tolist(), strict=True):
        score = float((np.abs(points @ normal + height) < INLIER_M).sum())
        if score >= best_score:
            best, best_score = (normal, height), score
    if best is None:
        return None
    normal, height = best
    for _ in range(REFINEMENTS):
        # The band narrows down to the sensor's noise, because the foot of a wall does not belong to the floor.
        off = np.abs(points @ normal + height)
        on_floor = points[off < np.clip(INLIER_FACTOR * float(np.median(off[off < INLIER_M])), MIN_INLIER_M, INLIER_M)]
        normal, height = fit_plane(on_floor)
    share = float((np.abs(points @ normal + height) < INLIER_M).mean())
    # Up, in the optical frame, is (-sin(roll) cos(tilt), -cos(roll) cos(tilt), sin(tilt)).
    return CameraAboveFloor(height, math.asin(normal[2]), math.atan2(-normal[0], -normal[1]), share)


def random_planes(points: Floats, up: Floats, count: int) -> tuple[Floats, Floats]:
    """Planes through three random points each, the same ones at every call.

    Args:
        points: float64 (N, 3), in the camera's frame.
        up: float64 (3,), the side to which the normals point.
        count: number of planes; fewer are returned where three points lie on a line.

    Returns:
        Unit normals, float64 (M, 3), and the heights of the origin above the planes, float64 (M,).
    """
    corners = points[np.random.default_rng(0).integers(0, len(points), (count, 3))]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    lengths = np.linalg.norm(normals, axis=1)
    corners, normals, lengths = (part[lengths >= 1e-6] for part in (corners, normals, lengths))
    normals *= np.copysign(1 / lengths, normals @ up)[:, None]
    return normals, -np.einsum("ni,ni->n", normals, corners[:, 0])


def fit_plane(points: Floats) -> tuple[Floats, float]:
    """Unit normal of a plane, towards the origin, and the origin's height above it, by least squares."""
    plane, *_ = np.linalg.lstsq(points, -np.ones(len(points)), rcond=None)  # n.p = -h, divided by h
    length = float(np.linalg.norm(plane))
    return np.asarray(plane / length, np.float64), 1 / length


def image_points(depth_m: NDArray[np.float32], lens: Lens) -> Floats:
    """Points of a depth image in its optical frame, float64 (N, 3), sampled evenly over the image."""
    stride = max(1, round(math.sqrt(depth_m.size / POINTS)))
    rows, columns = np.mgrid[stride // 2 : lens.height : stride, stride // 2 : lens.width : stride]
    depths = depth_m[rows, columns].astype(np.float64).ravel()
    rays = lens.rays(np.stack([columns.ravel(), rows.ravel()], axis=1))
    seen = (depths > 0) & (depths < MAX_DEPTH_M) & np.isfinite(rays).all(axis=1)
    return np.asarray(rays[seen] * depths[seen, None])
