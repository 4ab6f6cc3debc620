"""Oriented boxes and the exact volume of their intersection, in any orientation."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_FLAT = 1e-10
"""Tolerance, as a fraction of a box's size: a corner this near to a plane lies on it, so that touching faces cut no
slivers."""

_CORNERS = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], np.float64)
_FACES = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))  # seen from outside: ccw


@dataclass(frozen=True, eq=False)
class Box:
    """A box with volume.

    Attributes:
        center: (3,).
        size: (3,), full edge lengths along the box's own axes, all > 0.
        rotation: (3, 3), whose columns are those axes.

    Raises:
        ValueError: a value is not finite, a size is not positive, or ``rotation`` is not a rotation.
    """

    center: Array
    size: Array
    rotation: Array

    def __post_init__(self) -> None:
        for name, shape in (("center", (3,)), ("size", (3,)), ("rotation", (3, 3))):
            value = np.asarray(getattr(self, name), np.float64)
            if value.shape != shape or not np.isfinite(value).all():
                raise ValueError(f"{name} of a box must be finite numbers of shape {shape}, got {value.tolist()}")
            object.__setattr__(self, name, value)
        if not (self.size > 0).all():
            raise ValueError(f"a box needs positive sizes, got {self.size.tolist()}")
        if not np.allclose(self.rotation @ self.rotation.T, np.eye(3), atol=1e-6) or np.linalg.det(self.rotation) < 0:
            raise ValueError(f"not a rotation: {self.rotation.tolist()}")

    @classmethod
    def upright(cls, center: Sequence[float], size: Sequence[float], yaw_rad: float = 0.0) -> "Box":
        """A box that is turned about z only, as a scene's objects are."""
        c, s = math.cos(yaw_rad), math.sin(yaw_rad)
        return cls(np.array(center), np.array(size), np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]))

    @classmethod
    def between(cls, low: Sequence[float], high: Sequence[float]) -> "Box":
        """An axis-aligned box, from one corner to the opposite one."""
        low_corner, high_corner = np.array(low, np.float64), np.array(high, np.float64)
        return cls((low_corner + high_corner) / 2, high_corner - low_corner, np.eye(3))

    @property
    def volume(self) -> float:
        """Product of the sizes."""
        return float(np.prod(self.size))

    def corners(self) -> Array:
        """The corners, (8, 3)."""
        return np.asarray(self.center + (_CORNERS * self.size / 2) @ self.rotation.T)


def iou(a: Box, b: Box) -> float:
    """Volume of the intersection over volume of the union, in [0, 1] (Batra et al. 2020, "Rearrangement", 4.1).

    Exact up to rounding: 1 for a box and itself with any order of axes; 0 for boxes that only touch.
    """
    shared = intersection_volume(a, b)
    return min(1.0, shared / (a.volume + b.volume - shared))


def intersection_volume(a: Box, b: Box) -> float:
    """Volume of the intersection: that of ``a`` after it is cut along the six planes of ``b``."""
    if np.linalg.norm(a.center - b.center) >= (np.linalg.norm(a.size) + np.linalg.norm(b.size)) / 2:
        return 0.0
    # In b's own frame, where its planes are x = -h, x = h, ... and numbers are small for any positions.
    corners = (a.corners() - b.center) @ b.rotation
    flat = _FLAT * float(max(a.size.max(), b.size.max()))
    polygons = [corners[list(face)] for face in _FACES]
    for axis in range(3):
        for side in (-1.0, 1.0):
            polygons = _cut(polygons, axis, side, float(b.size[axis]) / 2, flat)
            if not polygons:
                return 0.0
    return min(_volume(polygons), a.volume, b.volume)


def _cut(polygons: list[Array], axis: int, side: float, offset: float, flat: float) -> list[Array]:
    """The part of a convex solid, given by its faces, on or below the plane ``side * x[axis] == offset``."""
    heights = [side * polygon[:, axis] - offset for polygon in polygons]
    if max(height.max() for height in heights) <= flat:
        return polygons
    if min(height.min() for height in heights) >= -flat:
        return []
    faces, rim = [], []
    for polygon, height in zip(polygons, heights, strict=True):
        outline = []
        for i in range(len(polygon)):
            here, there = height[i - 1], height[i]
            if (here < -flat and there > flat) or (here > flat and there < -flat):
                outline.append(polygon[i - 1] + here / (here - there) * (polygon[i] - polygon[i - 1]))
                rim.append(outline[-1])
            if there <= flat:
                outline.append(polygon[i])
                if there >= -flat:
                    rim.append(polygon[i])
        if len(outline) >= 3:
            faces.append(np.array(outline))
    return [*faces, _lid(np.array(rim), axis)]


def _lid(points: Array, axis: int) -> Array:
    """The face that closes a cut: its corners, some of them repeated, sorted around their mean."""
    u, v = (points - points.mean(axis=0))[:, [i for i in range(3) if i != axis]].T
    return points[np.argsort(np.arctan2(v, u))]


def _volume(polygons: list[Array]) -> float:
    """Volume of a convex solid: the sum of the pyramids over its faces, from a point inside."""
    inside = np.concatenate(polygons).mean(axis=0)
    total = 0.0
    for polygon in polygons:
        spokes = polygon - inside
        # Fans of triangles: the order around a face may be either way, and the solid is convex, hence the absolute.
        normals = np.cross(spokes[1:-1] - spokes[0], spokes[2:] - spokes[0])
        total += abs(float((normals @ spokes[0]).sum()))
    return total / 6
