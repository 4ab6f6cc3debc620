"""Depth observations as a simulator delivers them."""

import math

import cv2
import numpy as np
from numpy.typing import NDArray

from robot_runtime.tasks.task import TrainingCamera

Floats = NDArray[np.float32]


def jumps(depth_m: Floats, share: float) -> tuple[Floats, Floats]:
    """The smallest and largest depth in each 3x3 neighborhood, where they differ by more than a ``share`` of its depth.

    Returns:
        float32 (H, W) each, both 0 where the surface is continuous.
    """
    kernel = np.ones((3, 3), np.uint8)
    near, far = cv2.erode(depth_m, kernel), cv2.dilate(depth_m, kernel)
    apart = (far - near > share * depth_m) & (near > 0)
    # On a slanted surface the middle depth lies half way.
    even = np.abs(near + far - 2 * depth_m) < 0.2 * (far - near)
    apart &= ~even
    return np.where(apart, near, 0).astype(np.float32), np.where(apart, far, 0).astype(np.float32)


def training_depth(depth_m: NDArray[np.float32], camera: TrainingCamera) -> NDArray[np.float32]:
    """The depth observation of the training camera.

    The order is habitat-lab's (``habitat_simulator.py:186-196``), with the holes of a real sensor filled first: fill by
    ``camera.depth_holes``, clip to ``[depth_min_m, depth_max_m]``, normalize if ``camera.depth_normalized``.

    Args:
        depth_m: (H, W) meters along the optical axis; 0, or anything not finite, is a hole. Not modified.
        camera: the training camera.

    Returns:
        float32 (H, W, 1): meters, or a fraction of the clip range in [0, 1].
    """
    low_m, high_m = np.float32(camera.depth_min_m), np.float32(camera.depth_max_m)
    hole_m = high_m if camera.depth_holes == "max" else np.float32(0)
    # Clipping alone turns holes that are 0 into the minimum. Extrema cost less than a mask of what is not finite.
    lowest_m, highest_m = (depth_m.min(), depth_m.max()) if depth_m.size else (low_m, high_m)
    if hole_m or not (math.isfinite(lowest_m) and math.isfinite(highest_m)):
        depth_m = np.where((depth_m > 0) & np.isfinite(depth_m), depth_m, hole_m)
    depth: NDArray[np.float32] = np.clip(depth_m, low_m, high_m, dtype=np.float32)
    if camera.depth_normalized:
        depth -= low_m
        depth /= np.float32(camera.depth_max_m - camera.depth_min_m)
    return depth[:, :, np.newaxis]


def observed_m(depth: NDArray[np.float32], camera: TrainingCamera) -> NDArray[np.float32]:
    """A depth observation in meters, float32 of its shape: the inverse of the last step of :func:`training_depth`."""
    if not camera.depth_normalized:
        return depth
    span_m = np.float32(camera.depth_max_m - camera.depth_min_m)
    return np.asarray(depth * span_m + np.float32(camera.depth_min_m), np.float32)
