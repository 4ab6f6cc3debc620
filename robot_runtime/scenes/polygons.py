"""Polygons on the floor: edges that cross, and points inside."""

from collections.abc import Iterator, Sequence
from itertools import combinations

Point2 = tuple[float, float]


def crossings(polygon: Sequence[Point2]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of a polygon's edges that cross between their ends, as texts."""
    edges = list(zip(polygon, (*polygon[1:], polygon[0]), strict=True))
    for (a, b), (c, d) in combinations(edges, 2):
        if _side(a, b, c) * _side(a, b, d) < 0 and _side(c, d, a) * _side(c, d, b) < 0:
            yield f"{list(a)} to {list(b)}", f"{list(c)} to {list(d)}"


def _side(a: Point2, b: Point2, point: Point2) -> float:
    """Positive left of the line from a to b, negative right of it."""
    return (b[0] - a[0]) * (point[1] - a[1]) - (b[1] - a[1]) * (point[0] - a[0])
