"""Depth observations as a simulator delivers them."""

import math

import numpy as np
from numpy.typing import NDArray

from robot_runtime.tasks.task import TrainingCamera


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
