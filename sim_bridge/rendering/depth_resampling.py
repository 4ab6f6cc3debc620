"""The inner loop of resampling depth, compiled by numba: import this module only where it is called."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.jit import compiled

Floats = NDArray[np.float32]


@compiled
def _slope(before: float, here: float, after: float) -> float:
    """Of the differences to the neighbors the smaller one; none where they disagree about the direction."""
    back, forth = here - before, after - here
    if back * forth <= 0:
        return 0.0
    return back if abs(back) < abs(forth) else forth


@compiled
def resample_depth(
    buffer: Floats,
    scale: np.float32,
    offset: np.float32,
    sky_m: np.float32,
    map_x: Floats,
    map_y: Floats,
    depth_scale: Floats,
    depth_m: Floats,
) -> None:
    """Fill ``depth_m`` where the maps lie inside the buffer.

    Args:
        buffer: (h, w); ``value * scale + offset`` is 1 / depth.
        scale: see ``buffer``.
        offset: see ``buffer``.
        sky_m: depths beyond this are not a surface.
        map_x: (H, W), columns of the buffer.
        map_y: (H, W), rows of the buffer.
        depth_scale: (H, W), factor on the result.
        depth_m: (H, W), 0 where there is no surface.
    """
    height, width = buffer.shape
    for row in range(depth_m.shape[0]):
        for column in range(depth_m.shape[1]):
            x, y = map_x[row, column], map_y[row, column]
            if not (x >= 1 and y >= 1 and x <= width - 2 and y <= height - 2):
                continue
            u, v = int(x + np.float32(0.5)), int(y + np.float32(0.5))
            here = buffer[v, u]
            along = _slope(buffer[v, u - 1], here, buffer[v, u + 1]) * (x - u)
            across = _slope(buffer[v - 1, u], here, buffer[v + 1, u]) * (y - v)
            depth = np.float32(1) / ((here + along + across) * scale + offset)
            depth_m[row, column] = depth * depth_scale[row, column] if depth < sky_m else np.float32(0)
