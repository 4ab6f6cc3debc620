"""Exact rasterization of convex outlines by the separating-axis test.

A cell counts when the outline covers any of its area (touching along an edge alone does not count), so that a
robot which fits between the marked cells also fits between the shapes. On average the outline grows by half a cell.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]
Indices = NDArray[np.int64]

_TOUCH = 1e-7  # meters of overlap below which an outline only touches a cell
_CHUNK = 2_000_000  # outline-cell pairs tested at once: about 100 MB


@dataclass(frozen=True)
class Grid:
    """A regular grid: ``rows`` x ``columns`` square cells, outer corner of cell [0, 0] at the origin."""

    origin_x_m: float
    origin_y_m: float
    rows: int
    columns: int
    resolution_m: float

    @classmethod
    def around(cls, low: Points, high: Points, resolution_m: float, margin_m: float) -> Grid:
        """The grid that covers [low, high] plus a margin; its lines lie on integer multiples of the resolution."""
        first = np.floor((low - margin_m) / resolution_m + 1e-9).astype(int)
        last = np.ceil((high + margin_m) / resolution_m - 1e-9).astype(int)
        columns, rows = (last - first).tolist()
        # Rounded, so that a map file says -9.775 and not -9.775000000000002.
        x_m, y_m = (round(value * resolution_m, 9) for value in first.tolist())
        return cls(x_m, y_m, rows, columns, resolution_m)

    def centers(self) -> tuple[Points, Points]:
        """Arrays (rows, columns) of the x and of the y of every cell's center."""
        x = self.origin_x_m + (np.arange(self.columns) + 0.5) * self.resolution_m
        y = self.origin_y_m + (np.arange(self.rows) + 0.5) * self.resolution_m
        grid_x, grid_y = np.meshgrid(x, y)
        return grid_x, grid_y


def slice_hull(points: Points, low_z_m: float, high_z_m: float) -> Points:
    """Points (K, 2) whose hull is the shadow on the floor of that part of a convex hull that lies in a height band.

    Args:
        points: corners of the convex shape, (N, 3).
        low_z_m: lower end of the band.
        high_z_m: upper end of the band.

    Returns:
        No point if the shape misses the band.
    """
    z = points[:, 2]
    found = [points[(z >= low_z_m) & (z <= high_z_m), :2]]
    for level in (low_z_m, high_z_m):
        below, above = points[z < level], points[z > level]
        if len(below) and len(above):
            # Every pair, not only the hull's edges: the surplus points fall inside the same hull.
            fraction = (level - below[:, None, 2]) / (above[None, :, 2] - below[:, None, 2])
            crossing = below[:, None, :2] + fraction[..., None] * (above[None, :, :2] - below[:, None, :2])
            found.append(crossing.reshape(-1, 2))
    return np.concatenate(found)


def mark_outline(cells: NDArray[np.bool_], grid: Grid, outline: Points) -> None:
    """Set the cells that the convex polygon with corners ``outline`` (K, 2), in order, covers."""
    edges = np.roll(outline, -1, axis=0) - outline
    _mark(cells, grid, outline[None], edges[None])


def mark_triangles(cells: NDArray[np.bool_], grid: Grid, triangles: Points, low_z_m: float, high_z_m: float) -> None:
    """Set the cells under those parts of triangles (M, 3, 3) that lie in a height band."""
    z = triangles[..., 2]
    triangles = triangles[(z.min(axis=1) <= high_z_m) & (z.max(axis=1) >= low_z_m)]
    if not len(triangles):
        return
    inside = (triangles[..., 2] >= low_z_m) & (triangles[..., 2] <= high_z_m)
    points, valid = [triangles[..., :2]], [inside]
    following = np.roll(triangles, -1, axis=1)
    rise = following[..., 2] - triangles[..., 2]
    for level in (low_z_m, high_z_m):
        fraction = np.divide(level - triangles[..., 2], rise, out=np.full(rise.shape, -1.0), where=rise != 0)
        points.append(triangles[..., :2] + fraction[..., None] * (following - triangles)[..., :2])
        valid.append((fraction >= 0) & (fraction <= 1))
    outline, used = np.concatenate(points, axis=1), np.concatenate(valid, axis=1)
    some = used.any(axis=1)
    outline, used, triangles = outline[some], used[some], triangles[some]
    # Unused slots repeat a used point, so that the hull stays as it is.
    first = outline[np.arange(len(outline)), used.argmax(axis=1)]
    outline = np.where(used[..., None], outline, first[:, None])
    sides = np.roll(triangles[..., :2], -1, axis=1) - triangles[..., :2]
    normal = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    cut = np.stack([-normal[:, 1], normal[:, 0]], axis=1)  # where a horizontal plane cuts the triangle
    _mark(cells, grid, outline, np.concatenate([sides, cut[:, None]], axis=1))


def _mark(cells: NDArray[np.bool_], grid: Grid, outlines: Points, edges: Points) -> None:
    """Mark for outlines (N, K, 2) of which ``edges`` (N, A, 2) contains every edge's direction."""
    length = np.linalg.norm(edges, axis=2, keepdims=True)
    axes = np.divide(edges, length, out=np.zeros_like(edges), where=length > 0)[..., ::-1] * np.array([-1.0, 1.0])
    low, high = outlines.min(axis=1), outlines.max(axis=1)
    origin = np.array([grid.origin_x_m, grid.origin_y_m])
    # An outline flat along x or y still lies in a cell: a shell triangle seen edge-on is a wall.
    first = np.floor((low - origin + _TOUCH) / grid.resolution_m).astype(int)
    last = np.floor((high - origin - _TOUCH) / grid.resolution_m).astype(int)
    first = np.maximum(first, 0)
    last = np.minimum(np.maximum(last, first), np.array([grid.columns, grid.rows]) - 1)
    span = np.maximum(last - first + 1, 0)
    count = span[:, 0] * span[:, 1]
    start = 0
    while start < len(count):
        stop = start + max(1, int(np.searchsorted(np.cumsum(count[start:]), _CHUNK)))
        part = slice(start, stop)
        owner = np.repeat(np.arange(len(count))[part], count[part])
        nth = np.arange(len(owner)) - np.repeat(np.cumsum(count[part]) - count[part], count[part])
        column = first[owner, 0] + nth % span[owner, 0]
        row = first[owner, 1] + nth // span[owner, 0]
        hit = ~_separated(axes, outlines, owner, column, row, grid)
        cells[row[hit], column[hit]] = True
        start = stop


def _separated(
    axes: Points, outlines: Points, owner: Indices, column: Indices, row: Indices, grid: Grid
) -> NDArray[np.bool_]:
    """Whether a line parallel to one of the owner's edges parts the cell from the outline."""
    x = grid.origin_x_m + (column + 0.5) * grid.resolution_m
    y = grid.origin_y_m + (row + 0.5) * grid.resolution_m
    apart = np.zeros(len(owner), bool)
    for i in range(axes.shape[1]):
        projected = np.einsum("nkd,nd->nk", outlines, axes[:, i])
        half = 0.5 * grid.resolution_m * np.abs(axes[:, i]).sum(axis=1)
        center = x * axes[owner, i, 0] + y * axes[owner, i, 1]
        low, high = projected.min(axis=1)[owner], projected.max(axis=1)[owner]
        flat = high - low < 2 * _TOUCH
        slack = np.where(flat, -_TOUCH, _TOUCH)
        real = half[owner] > 0
        apart |= real & ((center + half[owner] <= low + slack) | (center - half[owner] >= high - slack))
    return apart
