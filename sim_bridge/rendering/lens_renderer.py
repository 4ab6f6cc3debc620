"""The view of a lens, rendered by one or several ideal pinholes and resampled; an ideal pinhole is rendered directly.

Depth is taken from the nearest drawn pixel and moved along the surface that it lies on: 1 / depth is linear in a
pinhole's image of a plane, and of the differences to either neighbor the smaller one is the surface's own. So planes
are exact in the middle of each pixel, and at an edge a pixel shows one side or the other, never something between.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import cv2
import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.jit import compiled
from robot_runtime.hal import Intrinsics, Lens
from robot_runtime.hal.simulation import Pose3
from sim_bridge.physics.scene_model import SKY_M
from sim_bridge.rendering.renderer import SceneRenderer

WIDEST_RAD = math.radians(100)
"""Greatest field of view of a single pinhole; twice the angle needs many times the pixels."""

VIEW_RAD = math.radians(75)
"""Greatest field of view of each of several pinholes."""

MARGIN_PX = 2
"""Margin around the view of a lens, so that every pixel has its neighbors."""

SCALE_PERCENTILE = 1.0
"""Percentage of a lens's pixels that may be rendered at a coarser resolution: those at its folding edge."""

NOWHERE = -1e4
"""Entry of a map without a source pixel."""

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class PinholeView:
    """One pinhole of a view.

    Attributes:
        from_lens: float64 (3, 3), takes directions of the lens's optical frame to the pinhole's.
        pinhole: principal point in the middle, square pixels.
        map_x: float32 (H, W), column of each of the lens's pixels in the pinhole's image; ``NOWHERE`` for pixels of
            another view and those without a ray.
        map_y: float32 (H, W), row of those pixels in the pinhole's image; the bottom row is the first.
        depth_scale: float32 (H, W), depth along the lens's axis over depth along the pinhole's.
    """

    from_lens: NDArray[np.float64]
    pinhole: Intrinsics
    map_x: Floats
    map_y: Floats
    depth_scale: Floats


def render(
    renderer: SceneRenderer, lens: Lens, map_from_camera: Pose3, color: bool = True, depth: bool = True
) -> tuple[NDArray[np.uint8] | None, Floats | None]:
    """Color, uint8 (H, W, 3), and depth along the optical axis, float32 (H, W), each None unless wanted.

    Both are 0 where the lens images nothing; depth is 0 where there is no surface.
    """
    pinhole = native_pinhole(lens)
    if pinhole is not None:
        renderer.set_intrinsics(pinhole)
        drawn_rgb, drawn_m = renderer.render(map_from_camera[:3, 3].copy(), map_from_camera[:3, :3] * (1, -1, -1))
        drawn_m[drawn_m > SKY_M] = 0
        return drawn_rgb if color else None, drawn_m if depth else None
    shape = lens.height, lens.width
    rgb = np.zeros((*shape, 3), np.uint8) if color else None
    depth_m = np.zeros(shape, np.float32) if depth else None
    scale, offset = renderer.inverse_depth
    for view in pinhole_views(lens):
        rotation = map_from_camera[:3, :3] @ view.from_lens.T
        renderer.set_intrinsics(view.pinhole)
        # OpenGL's camera looks along -z, with y up.
        drawn, buffer = renderer.draw_raw(map_from_camera[:3, 3].copy(), rotation * (1, -1, -1), color)
        if rgb is not None:
            cv2.remap(drawn, view.map_x, view.map_y, cv2.INTER_LINEAR, dst=rgb, borderMode=cv2.BORDER_TRANSPARENT)
        if depth_m is not None:
            resample_depth(buffer, scale, offset, np.float32(SKY_M), view.map_x, view.map_y, view.depth_scale, depth_m)
    return rgb, depth_m


def native_pinhole(lens: Lens) -> Intrinsics | None:
    """The pinhole of a lens that OpenGL itself draws: an ideal one.

    So such a lens sees what the simulated camera with that pinhole sees, to the last bit.
    """
    if lens.model != "pinhole" or lens.max_radius is not None:
        return None
    return Intrinsics(lens.width, lens.height, lens.fx, lens.fy, lens.cx, lens.cy)


@lru_cache(maxsize=8)
def pixel_rays(lens: Lens) -> NDArray[np.float64]:
    """``lens.pixel_rays()``, cached."""
    return lens.pixel_rays()


@lru_cache(maxsize=8)
def pinhole_views(lens: Lens) -> tuple[PinholeView, ...]:
    """The pinholes that together cover the view of a lens, each at no coarser resolution."""
    rays = pixel_rays(lens)
    x, y = rays[..., 0], rays[..., 1]
    yaw, pitch = np.arctan(x), np.arctan2(y, np.hypot(x, 1))
    wide = 2 * max(float(np.nanmax(np.abs(angle))) for angle in (yaw, np.arctan(y)))
    if wide <= WIDEST_RAD:
        return (_view(rays, np.isfinite(x), 0.0, 0.0),)
    views = []
    for (low_yaw, high_yaw), (low_pitch, high_pitch) in _pieces(yaw, pitch):
        mine = (yaw >= low_yaw) & (yaw < high_yaw) & (pitch >= low_pitch) & (pitch < high_pitch)
        if mine.any():
            views.append(_view(rays, mine, (low_yaw + high_yaw) / 2, (low_pitch + high_pitch) / 2))
    return tuple(views)


def _pieces(*angles: NDArray[np.float64]) -> list[tuple[tuple[float, float], ...]]:
    """Every combination of equal intervals that cover each array of angles."""
    pieces: list[tuple[tuple[float, float], ...]] = [()]
    for angle in angles:
        low, high = float(np.nanmin(angle)), float(np.nanmax(angle)) + 1e-9
        edges = np.linspace(low, high, math.ceil((high - low) / VIEW_RAD) + 1).tolist()
        pieces = [(*piece, interval) for piece in pieces for interval in pairwise(edges)]
    return pieces


def _view(rays: NDArray[np.float64], mine: NDArray[np.bool_], yaw_rad: float, pitch_rad: float) -> PinholeView:
    """The pinhole for the pixels that are ``mine``, turned right by a yaw and down by a pitch."""
    cy, sy, cp, sp = math.cos(yaw_rad), math.sin(yaw_rad), math.cos(pitch_rad), math.sin(pitch_rad)
    forward, right = np.array([sy * cp, sp, cy * cp]), np.array([cy, 0.0, -sy])
    from_lens = np.stack([right, np.cross(forward, right), forward])
    seen = np.where(mine[..., None], rays, np.nan) @ from_lens.T
    x, y = seen[..., 0] / seen[..., 2], seen[..., 1] / seen[..., 2]
    steps = [np.hypot(np.diff(x, axis=axis), np.diff(y, axis=axis)) for axis in (0, 1)]
    f = 1 / min(float(np.nanpercentile(step, SCALE_PERCENTILE)) for step in steps)
    width, height = (2 * (math.ceil(f * float(np.nanmax(np.abs(extent)))) + MARGIN_PX) for extent in (x, y))
    pinhole = Intrinsics(width, height, f, f, (width - 1) / 2, (height - 1) / 2)
    map_x, map_y = x * f + pinhole.cx, (height - 1) - (y * f + pinhole.cy)
    return PinholeView(
        from_lens,
        pinhole,
        np.where(mine, map_x, NOWHERE).astype(np.float32),
        np.where(mine, map_y, NOWHERE).astype(np.float32),
        np.where(mine, 1 / seen[..., 2], 0).astype(np.float32),
    )


# --- depth at the lens's rays, compiled by numba --------------------------------------------------------------------


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
