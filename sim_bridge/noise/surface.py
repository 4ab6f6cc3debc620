"""Rays, ranges and normals of the surfaces in a depth image."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from robot_runtime.hal.lens import Lens
from sim_bridge.rendering import lens_renderer

Floats = NDArray[np.float32]


@lru_cache(maxsize=8)
def pixel_rays(lens: Lens) -> Floats:
    """Ray of each pixel, float32 (H, W, 3), with z = 1; 0 beyond the lens's edge."""
    return np.nan_to_num(lens_renderer.pixel_rays(lens)).astype(np.float32)


@lru_cache(maxsize=8)
def range_factor(lens: Lens) -> Floats:
    """Distance from the lens over depth along its axis, float32 (H, W)."""
    return np.asarray(np.linalg.norm(pixel_rays(lens), axis=-1), np.float32)


def normals(points: Floats) -> Floats:
    """Unit normals towards the camera, float32 (H, W, 3), by differences to the neighbors; 0 where there are none.

    Of the two neighbors along an axis the nearer one counts; at an edge it lies on the same surface.
    """
    along, across = (_differences(points, axis) for axis in (1, 0))
    normal = np.cross(across, along)
    length = np.linalg.norm(normal, axis=-1, keepdims=True)
    np.divide(normal, length, out=normal, where=length > 0)
    facing = np.einsum("hwc,hwc->hw", normal, points)
    normal *= np.where(facing > 0, -1, 1)[..., None]
    return np.asarray(normal, np.float32)


def _differences(points: Floats, axis: int) -> Floats:
    """Difference to the nearer of the two neighbors along an axis."""
    steps = np.diff(points, axis=axis)
    last = steps.shape[axis] - 1
    forth = np.concatenate([steps, np.take(steps, [last], axis)], axis)
    back = np.concatenate([np.take(steps, [0], axis), steps], axis)
    nearer = np.einsum("hwc,hwc->hw", back, back) < np.einsum("hwc,hwc->hw", forth, forth)
    return np.where(nearer[..., None], back, forth)
