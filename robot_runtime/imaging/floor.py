"""The floor in a depth image: where the camera really is, whatever its description says."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.geometry import optical_axes
from robot_runtime.hal import Intrinsics
from robot_runtime.hal.lens import Lens

Floats = NDArray[np.float64]

POINTS = 6000
"""Of an image, evenly over it."""

FARTHEST_M = 4.0
HYPOTHESES = 800
NEAR_M = 0.03
"""What is farther from a plane does not lie on it."""

NOISES, CLOSEST_M, REFINEMENTS = 2.5, 0.002, 8
"""What is farther away than so many times the typical distance, but more than this, is left out of the next fit."""

LEAST_SHARE = 0.08
"""Of the image's points; a plane that holds fewer is a table or a threshold."""

MOST_TURNED_RAD = math.radians(35)
MOST_OFF_M = 0.5
"""How wrong a description may be for its floor still to be found."""


@dataclass(frozen=True, slots=True)
class CameraAboveFloor:
    """Where a camera is above the floor that it sees.

    Attributes:
        height_m: of the optical center. tilt_rad: up positive. roll_rad: to the right positive.
        share: of the image's points that lie on it.
    """

    height_m: float
    tilt_rad: float
    roll_rad: float
    share: float


def find_floor(
    depth_m: NDArray[np.float32], pinhole: Intrinsics, height_m: float, tilt_rad: float
) -> CameraAboveFloor | None:
    """The largest level-ish plane below the camera (RANSAC, Fischler and Bolles 1981), or None if there is none.

    Args:
        depth_m: float32 (H, W), 0 where there is no measurement.
        height_m, tilt_rad: where the camera is thought to be.
    """
    points = image_points(depth_m, Lens.of(pinhole))
    up = optical_axes(0.0, tilt_rad)[2]
    random = np.random.default_rng(0)
    best: tuple[Floats, float] | None = None
    most = max(3.0, LEAST_SHARE * len(points))
    # Of what may be floor at all: hypotheses of walls would be wasted, where walls fill most of the image.
    ranges_m = np.linalg.norm(points, axis=1)
    low = points[np.abs(points @ up + height_m) < MOST_OFF_M + ranges_m * math.sin(MOST_TURNED_RAD)]
    low = low[low @ up < 0]
    if len(low) < 3:
        return None
    corners = low[random.integers(0, len(low), (HYPOTHESES, 3))]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    lengths = np.linalg.norm(normals, axis=1)
    corners, normals, lengths = (part[lengths >= 1e-6] for part in (corners, normals, lengths))
    normals *= np.copysign(1 / lengths, normals @ up)[:, None]
    heights = -np.einsum("ni,ni->n", normals, corners[:, 0])
    likely = (normals @ up >= math.cos(MOST_TURNED_RAD)) & (np.abs(heights - height_m) <= MOST_OFF_M)
    for normal, height in zip(normals[likely], heights[likely].tolist(), strict=True):
        score = float((np.abs(points @ normal + height) < NEAR_M).sum())
        if score >= most:
            best, most = (normal, height), score
    if best is None:
        return None
    normal, height = best
    for _ in range(REFINEMENTS):
        # Narrower from pass to pass, down to the sensor's noise: the foot of a wall is no part of the floor.
        off = np.abs(points @ normal + height)
        on_floor = points[off < np.clip(NOISES * float(np.median(off[off < NEAR_M])), CLOSEST_M, NEAR_M)]
        plane, *_ = np.linalg.lstsq(on_floor, -np.ones(len(on_floor)), rcond=None)  # n.p = -h, divided by h
        length = float(np.linalg.norm(plane))
        normal, height = plane / length, 1 / length
    share = float((np.abs(points @ normal + height) < NEAR_M).mean())
    # Up, in the optical frame, is (-sin(roll) cos(tilt), -cos(roll) cos(tilt), sin(tilt)).
    return CameraAboveFloor(height, math.asin(normal[2]), math.atan2(-normal[0], -normal[1]), share)


def image_points(depth_m: NDArray[np.float32], lens: Lens) -> Floats:
    """Points of a depth image in its optical frame, float64 (N, 3), evenly over the image."""
    stride = max(1, round(math.sqrt(depth_m.size / POINTS)))
    rows, columns = np.mgrid[stride // 2 : lens.height : stride, stride // 2 : lens.width : stride]
    depths = depth_m[rows, columns].astype(np.float64).ravel()
    rays = lens.rays(np.stack([columns.ravel(), rows.ravel()], axis=1))
    seen = (depths > 0) & (depths < FARTHEST_M) & np.isfinite(rays).all(axis=1)
    return np.asarray(rays[seen] * depths[seen, None])
