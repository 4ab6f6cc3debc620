"""Oriented boxes, rotated about the vertical: footprints, their overlap and distance."""

import math
from dataclasses import dataclass
from functools import cached_property

from robot_runtime.scenes.scene import SceneObject

Point = tuple[float, float]

_MIN_EDGE_M = 0.01
"""Pictures and rugs may have no thickness, but footprints need an area."""


@dataclass(frozen=True)
class Box:
    """A box in ``map``.

    Attributes:
        corners: corners of the footprint, (x, y) counter-clockwise.
        bottom_m: lower height.
        top_m: upper height.
        volume_m3: volume of the box.
    """

    corners: tuple[Point, Point, Point, Point]
    bottom_m: float
    top_m: float
    volume_m3: float

    @classmethod
    def of(cls, item: SceneObject) -> "Box":
        """The box of a scene object."""
        x_m, y_m, z_m = item.center
        half_x, half_y = (max(size, _MIN_EDGE_M) / 2 for size in item.size[:2])
        c, s = math.cos(math.radians(item.yaw_deg)), math.sin(math.radians(item.yaw_deg))
        south_west, south_east, north_east, north_west = (
            (x_m + c * u * half_x - s * v * half_y, y_m + s * u * half_x + c * v * half_y)
            for u, v in ((-1, -1), (1, -1), (1, 1), (-1, 1))
        )
        half_z = item.size[2] / 2
        volume_m3 = item.size[0] * item.size[1] * item.size[2]
        return cls((south_west, south_east, north_east, north_west), z_m - half_z, z_m + half_z, volume_m3)

    @cached_property
    def area_m2(self) -> float:
        """Area of the footprint."""
        return polygon_area(self.corners)

    @property
    def height_m(self) -> float:
        """Height of the box."""
        return self.top_m - self.bottom_m


def overlap(a: Box, b: Box) -> float:
    """Fraction of the smaller footprint that lies in the other, 0 .. 1."""
    shared: list[Point] = list(a.corners)
    for start, end in zip(b.corners, (*b.corners[1:], b.corners[0]), strict=True):
        shared = _clip(shared, start, end)
    return min(polygon_area(shared) / min(a.area_m2, b.area_m2), 1.0)


def gap_m(a: Box, b: Box) -> float:
    """Distance between the footprints; 0 where they touch or overlap."""
    if not _separated(a, b) and not _separated(b, a):
        return 0.0
    return min(_nearest_corner_m(a, b), _nearest_corner_m(b, a))


def polygon_area(corners: tuple[Point, ...] | list[Point]) -> float:
    """Area of a polygon, counter-clockwise positive (shoelace formula); 0 for fewer than three corners."""
    following = [*corners[1:], *corners[:1]]
    return sum((x0 * y1 - x1 * y0 for (x0, y0), (x1, y1) in zip(corners, following, strict=True)), 0.0) / 2


def _clip(polygon: list[Point], start: Point, end: Point) -> list[Point]:
    """The part of a convex polygon to the left of a line (Sutherland and Hodgman 1974)."""

    def left_of(point: Point) -> float:
        return (end[0] - start[0]) * (point[1] - start[1]) - (end[1] - start[1]) * (point[0] - start[0])

    kept: list[Point] = []
    for current, following in zip(polygon, [*polygon[1:], *polygon[:1]], strict=True):
        here, there = left_of(current), left_of(following)
        if here >= 0:
            kept.append(current)
        if (here > 0 > there) or (here < 0 < there):
            share = here / (here - there)
            kept.append(
                (current[0] + share * (following[0] - current[0]), current[1] + share * (following[1] - current[1]))
            )
    return kept


def _separated(a: Box, b: Box) -> bool:
    """Whether a line along an edge of ``a`` separates the two footprints."""
    for (x0, y0), (x1, y1) in zip(a.corners[:2], a.corners[1:3], strict=True):
        dx, dy = x1 - x0, y1 - y0
        of_a = [dx * x + dy * y for x, y in a.corners]
        of_b = [dx * x + dy * y for x, y in b.corners]
        if max(of_a) < min(of_b) or max(of_b) < min(of_a):
            return True
    return False


def _nearest_corner_m(a: Box, b: Box) -> float:
    """Distance from the corners of ``a`` to the edges of ``b``."""
    edges = tuple(zip(b.corners, (*b.corners[1:], b.corners[0]), strict=True))
    return min(_to_segment_m(corner, start, end) for corner in a.corners for start, end in edges)


def _to_segment_m(point: Point, start: Point, end: Point) -> float:
    dx, dy = end[0] - start[0], end[1] - start[1]
    along = ((point[0] - start[0]) * dx + (point[1] - start[1]) * dy) / (dx * dx + dy * dy)
    along = min(1.0, max(0.0, along))
    return math.hypot(start[0] + along * dx - point[0], start[1] + along * dy - point[1])
