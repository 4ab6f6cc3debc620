"""The synthetic flat as triangles, for doubles of simulators that have other axes than ROS."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
import synthetic
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_FLOOR = synthetic.Box((3.0, 2.0, -0.05), (8.0, 6.0, 0.1), rgb=(120, 96, 72))
_CEILING = synthetic.Box((3.0, 2.0, 2.55), (8.0, 6.0, 0.1), rgb=(235, 235, 230))
_COLORS = {"table_1": (150, 100, 60), "mug_1": (200, 40, 40), "sofa_1": (70, 90, 150)}
_FACES = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))


@cache
def flat() -> tuple[Floats, Floats]:
    """Corners (triangles, 3, 3) along the ROS axes, and colours (triangles, 3)."""
    items = [synthetic.Box(o.center, o.size, math.radians(o.yaw_deg), _COLORS[o.id]) for o in synthetic.scene().objects]
    corners, colors = [], []
    for box in (*synthetic.WALLS, _FLOOR, _CEILING, *items):
        c, s = math.cos(box.yaw_rad), math.sin(box.yaw_rad)
        signs = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
        vertices = signs * np.array(box.size) / 2 @ np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]]) + box.center
        for a, b, d, e in _FACES:
            corners += [vertices[[a, b, d]], vertices[[a, d, e]]]
            colors += [box.rgb, box.rgb]
    return np.array(corners), np.array(colors, np.float64)


def draw(axes: Callable[[Floats], Floats], eye: Floats, rays: Floats) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """What is seen from a point: colour as the synthetic flat is shaded, and depth where rays reach 1 along the axis.

    Args:
        axes: takes ROS points (..., 3) to the simulator's axes, in which eye (3,) and rays (H, W, 3) are.
    """
    corners, colors = flat()
    a, b, c = np.moveaxis(axes(corners), 1, 0)
    u, v = b - a, c - a
    flat_rays = rays.reshape(-1, 3)
    nearest = np.full(len(flat_rays), np.inf)
    seen = np.zeros(len(flat_rays), np.intp)
    for number in range(len(a)):  # Moeller and Trumbore 1997
        across = np.cross(flat_rays, v[number])
        determinant = across @ u[number]
        with np.errstate(divide="ignore", invalid="ignore"):
            first = (across @ (eye - a[number])) / determinant
            around = np.cross(eye - a[number], u[number])
            second = (flat_rays @ around) / determinant
            hit = (v[number] @ around) / determinant
        inside = (first >= -1e-9) & (second >= -1e-9) & (first + second <= 1 + 1e-9) & (hit > 0.01) & (hit < nearest)
        nearest[inside], seen[inside] = hit[inside], number
    depth = nearest.reshape(rays.shape[:2])
    shade = np.clip(1.15 - depth / 8, 0.35, 1.0)[..., None]
    rgb = np.clip(colors[seen].reshape(rays.shape) * shade, 0, 255)
    return rgb.astype(np.uint8), np.where(np.isfinite(depth), depth, 0).astype(np.float32)


def free(x_m: float, y_m: float, radius_m: float = synthetic.RADIUS_M) -> bool:
    """Whether the robot's middle may be there, in the flat's map."""
    occupancy = synthetic.scene().map
    row, column = occupancy.to_cell(x_m, y_m)
    navigable = _navigable(radius_m)
    return 0 <= row < navigable.shape[0] and 0 <= column < navigable.shape[1] and bool(navigable[row, column])


def as_far_as_free(
    x_m: float, y_m: float, ahead_x_m: float, ahead_y_m: float, radius_m: float = synthetic.RADIUS_M
) -> tuple[float, float]:
    """The end of a straight way, or the last place on it that is free."""
    for share in np.linspace(0, 1, 101)[1:]:
        there = x_m + share * (ahead_x_m - x_m), y_m + share * (ahead_y_m - y_m)
        if not free(*there, radius_m):
            back = share - 0.01
            return x_m + back * (ahead_x_m - x_m), y_m + back * (ahead_y_m - y_m)
    return ahead_x_m, ahead_y_m


@cache
def _navigable(radius_m: float) -> NDArray[np.bool_]:
    return synthetic.scene().map.navigable(radius_m)
