"""Rasterization of depth images as surfaces: neighboring pixels span triangles, drawn into the target image.

Measured on an Azure Kinect's geometry against ray-cast truth: the nearest pixel errs by 2 mm in the median and 9 mm at
the 95th percentile, this by 0.15 and 0.4 mm; bilinear interpolation invents depths between a chair and the wall behind.
"""

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.jit import compiled

Array = NDArray[Any]

SPAN_ROWS = 6

_INSIDE = np.float32(-1e-4)
"""Fraction of a triangle's area by which points may lie outside, so that rounding leaves no seam between triangles."""

_WHOLE, _TORN = 1, 2

_kernel = functools.partial(compiled, error_model="numpy", fastmath=True)


@_kernel
def draw_surface(
    depth: Array,
    rays: Array,
    origin: Array,
    unit_m: np.float32,
    bias_m: np.float32,
    near_m: np.float32,
    far_m: np.float32,
    steepest: np.float32,
    vertices: Array,
    spans: Array,
    inverse: Array,
) -> None:
    """Draw a depth image as a surface into another camera's image of inverse depths; the nearest surface wins.

    Inverse depths are linear across the image of a flat triangle. All numbers are float32.

    Args:
        depth: uint16 (h, w), counts; 0 where nothing was measured.
        rays: float32 (3, h, w), each pixel's ray at depth 1 in the target: column times depth, row times depth, and
            depth; depth 0 where the sensor has no ray.
        origin: float32 (3,), the sensor's center, in the same coordinates.
        unit_m: meters are ``depth * unit_m + bias_m``.
        bias_m: see ``unit_m``.
        near_m: smaller depths are ignored.
        far_m: larger depths are ignored.
        steepest: largest relative difference of neighboring depths on one surface.
        vertices: float32 (2, 3, w), scratch.
        spans: int32 (SPAN_ROWS, w), scratch.
        inverse: float32 (H, W), overwritten; 0 where nothing was drawn.
    """
    inverse[:] = 0
    for i in range(depth.shape[0]):
        below = vertices[i & 1]
        _project_row(depth[i], rays[0, i], rays[1, i], rays[2, i], origin, unit_m, bias_m, near_m, far_m, below)
        if i > 0:
            above = vertices[1 - (i & 1)]
            whole, torn = _find_cells(above, below, steepest, inverse.shape[0], inverse.shape[1], spans)
            _draw_whole(above, below, spans, whole, inverse)
            _draw_torn(above, below, spans[4], torn, steepest, inverse)


@_kernel
def depth_of(inverse: Array, near_m: np.float32, far_m: np.float32, depth_m: Array, holes: Array) -> None:
    """Convert inverse depths to float32 meters, 0 for no surface or outside the range, and a bool mask of holes."""
    for y in range(inverse.shape[0]):
        for x in range(inverse.shape[1]):
            w = inverse[y, x]
            depth = np.float32(1) / w
            seen = (w > 0) & (depth >= near_m) & (depth <= far_m)
            holes[y, x] = not seen
            depth_m[y, x] = depth if seen else np.float32(0)


@_kernel
def _project_row(
    counts: Array,
    ray_u: Array,
    ray_v: Array,
    ray_z: Array,
    origin: Array,
    unit_m: np.float32,
    bias_m: np.float32,
    near_m: np.float32,
    far_m: np.float32,
    row: Array,
) -> None:
    """Column, row and inverse depth in the target for one row of pixels; inverse depth 0 for no measurement."""
    origin_u, origin_v, origin_z = origin[0], origin[1], origin[2]
    columns, rows, inverses = row[0], row[1], row[2]
    for j in range(counts.shape[0]):
        z = np.float32(counts[j]) * unit_m + bias_m
        target = z * ray_z[j] + origin_z
        seen = (counts[j] != 0) & (z >= near_m) & (z <= far_m) & (ray_z[j] > 0) & (target > np.float32(0.01))
        w = np.float32(1) / target if seen else np.float32(0)
        columns[j] = (z * ray_u[j] + origin_u) * w
        rows[j] = (z * ray_v[j] + origin_v) * w
        inverses[j] = w


@_kernel
def _find_cells(
    above: Array, below: Array, steepest: np.float32, height: int, width: int, spans: Array
) -> tuple[int, int]:
    """Find the cells between two rows of vertices that must be drawn.

    Returns:
        Number of complete cells (four measured corners of a surface) that contain a pixel's center: the left, right,
        top and bottom pixels of these are the first four of ``spans``, their columns the last. Number of torn cells
        with three or more measured corners: their columns are in ``spans[4]``.
    """
    u0, v0, w0, u1, v1, w1 = above[0], above[1], above[2], below[0], below[1], below[2]
    lefts, rights, tops, bottoms, kinds, columns = spans[0], spans[1], spans[2], spans[3], spans[4], spans[5]
    cells = u0.shape[0] - 1
    zero, one = np.float32(0), np.float32(1)
    far_right, far_down = np.float32(width), np.float32(height)
    for j in range(cells):
        left = min(min(u0[j], u0[j + 1]), min(u1[j], u1[j + 1]))
        right = max(max(u0[j], u0[j + 1]), max(u1[j], u1[j + 1]))
        top = min(min(v0[j], v0[j + 1]), min(v1[j], v1[j + 1]))
        bottom = max(max(v0[j], v0[j + 1]), max(v1[j], v1[j + 1]))
        # Clamped to nonnegative numbers, whose truncation rounds down in one instruction.
        lefts[j] = width - np.int32(min(max(far_right - left, zero), far_right))
        rights[j] = np.int32(min(max(right, -one) + one, far_right)) - 1
        tops[j] = height - np.int32(min(max(far_down - top, zero), far_down))
        bottoms[j] = np.int32(min(max(bottom, -one) + one, far_down)) - 1
        low = min(min(w0[j], w0[j + 1]), min(w1[j], w1[j + 1]))
        high = max(max(w0[j], w0[j + 1]), max(w1[j], w1[j + 1]))
        measured = np.int32(w0[j] > 0) + np.int32(w0[j + 1] > 0) + np.int32(w1[j] > 0) + np.int32(w1[j + 1] > 0)
        one_surface = (low > 0) & (high - low <= steepest * high)
        kinds[j] = _WHOLE if one_surface else (_TORN if measured >= 3 else 0)
    whole = torn = 0
    for j in range(cells):  # moves the cells to draw to the front, without unpredictable branches
        kind = kinds[j]
        left, right, top, bottom = lefts[j], rights[j], tops[j], bottoms[j]
        lefts[whole], rights[whole], tops[whole], bottoms[whole], columns[whole] = left, right, top, bottom, j
        whole += (kind == _WHOLE) & (left <= right) & (top <= bottom)
        if kind == _TORN:
            kinds[torn] = j
            torn += 1
    return whole, torn


@_kernel
def _draw_whole(above: Array, below: Array, spans: Array, count: int, inverse: Array) -> None:
    """Draw cells a b / c d as the triangles a b d and a d c, clockwise on the screen."""
    u0, v0, w0, u1, v1, w1 = above[0], above[1], above[2], below[0], below[1], below[2]
    for n in range(count):
        j = spans[5, n]
        u, v, w = u0[j], v0[j], w0[j]
        bx, by, bw = u0[j + 1] - u, v0[j + 1] - v, w0[j + 1] - w
        cx, cy, cw = u1[j] - u, v1[j] - v, w1[j] - w
        dx, dy, dw = u1[j + 1] - u, v1[j + 1] - v, w1[j + 1] - w
        upper, lower = bx * dy - by * dx, dx * cy - dy * cx
        for y in range(spans[2, n], spans[3, n] + 1):
            py = np.float32(y) - v
            for x in range(spans[0, n], spans[1, n] + 1):
                px = np.float32(x) - u
                along = px * dy - py * dx
                if along >= 0:
                    area, first, first_w, second, second_w = upper, along, bw, bx * py - by * px, dw
                else:
                    area, first, first_w, second, second_w = lower, px * cy - py * cx, dw, -along, cw
                limit = _INSIDE * area
                if area > 0 and first >= limit and second >= limit and area - first - second >= limit:
                    depth = w + (first * first_w + second * second_w) / area
                    if depth > inverse[y, x]:
                        inverse[y, x] = depth


@_kernel
def _draw_torn(above: Array, below: Array, columns: Array, count: int, steepest: np.float32, inverse: Array) -> None:
    """Draw the triangles of cells a b / c d that are one surface; the diagonal has the smaller depth difference."""
    u0, v0, w0, u1, v1, w1 = above[0], above[1], above[2], below[0], below[1], below[2]
    for n in range(count):
        j = columns[n]
        k = j + 1
        a, b, c, d = w0[j], w0[k], w1[j], w1[k]
        if abs(a - d) <= abs(b - c):
            _draw_triangle(u0[j], v0[j], a, u0[k], v0[k], b, u1[k], v1[k], d, steepest, inverse)
            _draw_triangle(u0[j], v0[j], a, u1[k], v1[k], d, u1[j], v1[j], c, steepest, inverse)
        else:
            _draw_triangle(u0[j], v0[j], a, u0[k], v0[k], b, u1[j], v1[j], c, steepest, inverse)
            _draw_triangle(u0[k], v0[k], b, u1[k], v1[k], d, u1[j], v1[j], c, steepest, inverse)


@_kernel
def _draw_triangle(
    u0: float,
    v0: float,
    w0: float,
    u1: float,
    v1: float,
    w1: float,
    u2: float,
    v2: float,
    w2: float,
    steepest: np.float32,
    inverse: Array,
) -> None:
    low, high = min(w0, w1, w2), max(w0, w1, w2)
    if not (low > 0 and high - low <= steepest * high):
        return
    left, right = (
        max(np.int64(np.ceil(min(u0, u1, u2))), 0),
        min(np.int64(np.floor(max(u0, u1, u2))), inverse.shape[1] - 1),
    )
    top, bottom = (
        max(np.int64(np.ceil(min(v0, v1, v2))), 0),
        min(np.int64(np.floor(max(v0, v1, v2))), inverse.shape[0] - 1),
    )
    ax, ay, bx, by = u1 - u0, v1 - v0, u2 - u0, v2 - v0
    area = ax * by - ay * bx
    if not area > 0:
        return  # back-facing or degenerate
    limit = _INSIDE * area
    for y in range(top, bottom + 1):
        py = np.float32(y) - v0
        for x in range(left, right + 1):
            px = np.float32(x) - u0
            first, second = px * by - py * bx, ax * py - ay * px
            if first >= limit and second >= limit and area - first - second >= limit:
                depth = w0 + (first * (w1 - w0) + second * (w2 - w0)) / area
                if depth > inverse[y, x]:
                    inverse[y, x] = depth
