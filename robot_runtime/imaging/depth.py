"""Depth images as a simulator would have delivered them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from robot_runtime.tasks.task import TrainingCamera


def training_depth(depth_m: NDArray[np.float32], camera: TrainingCamera) -> NDArray[np.float32]:
    """The depth observation of the training camera.

    The order is habitat-lab's (``habitat_simulator.py:186-196``), with the holes of a real sensor filled first: fill by
    ``camera.depth_holes``, clip to ``[depth_min_m, depth_max_m]``, normalise if ``camera.depth_normalized``.

    Args:
        depth_m: (H, W) metres along the optical axis; 0, or anything not finite, is a hole. Not modified.

    Returns:
        float32 (H, W, 1): metres, or a fraction of the clip range in [0, 1].
    """
    # Not (d > 0) rather than d <= 0: it is true for NaN too.
    holes = ~(depth_m > 0) | np.isinf(depth_m)
    fill_m = camera.depth_max_m if camera.depth_holes == "max" else 0.0
    depth = np.where(holes, np.float32(fill_m), depth_m).astype(np.float32, copy=False)
    np.clip(depth, camera.depth_min_m, camera.depth_max_m, out=depth)
    if camera.depth_normalized:
        depth -= np.float32(camera.depth_min_m)
        depth /= np.float32(camera.depth_max_m - camera.depth_min_m)
    return depth[:, :, np.newaxis]
