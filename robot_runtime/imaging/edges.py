"""Depth discontinuities."""

import cv2
import numpy as np
from numpy.typing import NDArray

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
