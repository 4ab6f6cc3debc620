"""Printed sheets in a rendered view: calibration boards and tags, drawn exactly through any lens.

A renderer samples a texture as fast as it can; a calibration looks for hundredths of a pixel. Here every pixel is the
mean of what its own area of the sheet shows, by ray casting, and the depth is the plane's own.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SUBSAMPLES = 4
"""Rays per pixel along each axis. A sixteenth of a pixel's contrast moves an edge by less than 0.02 pixels."""

PASTED_M = 0.01
"""A sheet that lies on a surface, or up to this far behind it, covers it."""


@dataclass(frozen=True, eq=False)
class Sheet:
    """A flat picture in the room.

    Attributes:
        picture: uint8 (h, w), gray. Make its texels smaller than the pixels it will be seen with.
        width_m: width of the complete picture.
        height_m: height of the complete picture.
        pose: float64 (4, 4), its frame in ``map``: origin in the middle, x out of the face towards the viewer, y to
            the viewer's right, z to the top, as tags have it (``robot_runtime.scenes.tag_map``).
    """

    picture: NDArray[np.uint8]
    width_m: float
    height_m: float
    pose: Array

    def __post_init__(self) -> None:
        if self.picture.ndim != 2 or self.picture.dtype != np.uint8:
            raise ValueError(f"a sheet's picture is uint8 (h, w), got {self.picture.dtype} {self.picture.shape}")
        if not (self.width_m > 0 and self.height_m > 0 and np.isfinite(self.pose).all() and self.pose.shape == (4, 4)):
            raise ValueError("a sheet needs positive sizes and a finite 4x4 pose")


def draw_sheets(
    sheets: Iterable[Sheet], rays: Array, map_from_camera: Array, rgb: NDArray[np.uint8], depth_m: NDArray[np.float32]
) -> None:
    """Draw sheets into a view, in place, where nothing stands before them.

    Args:
        sheets: the sheets in the room.
        rays: float64 (H, W, 3), ray of each pixel's middle, z = 1, NaN where the lens images nothing
            (``Lens.pixel_rays``).
        map_from_camera: float64 (4, 4), the optical frame in ``map``.
        rgb: uint8 (H, W, 3).
        depth_m: float32 (H, W) along the optical axis, 0 where there is no surface.
    """
    camera_from_map = np.linalg.inv(map_from_camera)
    for sheet in sheets:
        _draw(sheet, rays, camera_from_map @ sheet.pose, rgb, depth_m)


def _draw(
    sheet: Sheet, rays: Array, camera_from_sheet: Array, rgb: NDArray[np.uint8], depth_m: NDArray[np.float32]
) -> None:
    face, right, up = camera_from_sheet[:3, :3].T
    middle = camera_from_sheet[:3, 3]
    if face @ middle >= 0:  # seen from behind
        return
    # A ray r meets the plane at u to the right and v down, at depth 1 / q2, where q = M r is (u q2, v q2, q2).
    inverse = np.linalg.inv(np.column_stack([right, -up, middle]))
    rows, columns = _box(rays, inverse, sheet)
    if rows.stop <= rows.start or columns.stop <= columns.start:
        return
    q = rays[rows, columns] @ inverse.T
    by_row, by_column = np.gradient(q, axis=(0, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        plane_m = 1 / q[..., 2]
        behind = depth_m[rows, columns]
        free = (q[..., 2] > 0) & ((behind == 0) | (plane_m < behind + PASTED_M))
    seen = np.flatnonzero(free & _inside(q, by_row, by_column, sheet))
    if not seen.size:
        return
    q, by_row, by_column = (values.reshape(-1, 3)[seen] for values in (q, by_row, by_column))
    shade, share = np.zeros(seen.size), np.zeros(seen.size)
    for down in _offsets():
        for across in _offsets():
            value, covered = _texel(sheet, q + down * by_row + across * by_column)
            shade += value
            share += covered
    share /= SUBSAMPLES**2
    shade /= SUBSAMPLES**2
    width = plane_m.shape[1]
    at = (rows.start + seen // width, columns.start + seen % width)
    rgb[at] = np.rint(shade[:, None] + (1 - share[:, None]) * rgb[at]).astype(np.uint8)
    middle_covered = _texel(sheet, q)[1] > 0
    depth_m[at[0][middle_covered], at[1][middle_covered]] = plane_m.ravel()[seen][middle_covered]


def _offsets() -> Array:
    return (np.arange(SUBSAMPLES) + 0.5) / SUBSAMPLES - 0.5


def _box(rays: Array, inverse: Array, sheet: Sheet) -> tuple[slice, slice]:
    """Rows and columns that can show the sheet: those of a coarse grid, and one cell of the grid around them."""
    step = 8
    coarse = rays[::step, ::step] @ inverse.T
    edge = np.gradient(coarse, axis=(0, 1))
    near = _inside(coarse, edge[0] * 2, edge[1] * 2, sheet)
    row, column = np.flatnonzero(near.any(axis=1)), np.flatnonzero(near.any(axis=0))
    if not row.size:
        return slice(0, 0), slice(0, 0)
    return (
        slice(max(0, (row[0] - 1) * step), min(rays.shape[0], (row[-1] + 2) * step)),
        slice(max(0, (column[0] - 1) * step), min(rays.shape[1], (column[-1] + 2) * step)),
    )


def _inside(q: Array, by_row: Array, by_column: Array, sheet: Sheet) -> NDArray[np.bool_]:
    """Mask of the rays that meet the sheet, or pass it by less than a pixel."""
    margin = np.abs(by_row) + np.abs(by_column)
    # |u| <= w / 2 times q2, which is positive in front of the camera; NaN compares false.
    return np.asarray(
        (np.abs(q[..., 0]) <= sheet.width_m / 2 * (q[..., 2] + margin[..., 2]) + margin[..., 0])
        & (np.abs(q[..., 1]) <= sheet.height_m / 2 * (q[..., 2] + margin[..., 2]) + margin[..., 1])
        & (q[..., 2] + margin[..., 2] > 0)
    )


def _texel(sheet: Sheet, q: Array) -> tuple[Array, Array]:
    """Per ray, what the sheet shows there (0 outside it), and whether the ray meets it (0 or 1)."""
    height, width = sheet.picture.shape
    with np.errstate(divide="ignore", invalid="ignore"):
        x = (q[:, 0] / q[:, 2] / sheet.width_m + 0.5) * width
        y = (q[:, 1] / q[:, 2] / sheet.height_m + 0.5) * height
    covered = (x >= 0) & (x < width) & (y >= 0) & (y < height) & (q[:, 2] > 0)
    column = np.where(covered, x, 0).astype(np.intp)
    row = np.where(covered, y, 0).astype(np.intp)
    return sheet.picture[row, column] * covered, covered.astype(np.float64)
