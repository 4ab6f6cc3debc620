"""How much of the training camera's image a sensor can fill: geometry alone, before anything is switched on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robot_runtime.errors import ConfigError
from robot_runtime.hal import Intrinsics
from robot_runtime.hal.lens import Lens
from robot_runtime.imaging.source import Sensor, SensorMode

NEEDED: dict[Sensor, float] = {"color": 0.9, "depth": 0.7}
"""Least share of the target that counts as filled. An Azure Kinect at 79 degrees passes with 92 % of color (a few rows
at top and bottom are missing) and 76 % of depth (a hexagon); a RealSense D435's 53 % of color does not."""

DISTANCES = 5
"""At how many distances, even in inverse depth over the rated range, depth coverage is averaged: parallax moves it."""

SAMPLED_WIDTH = 320
"""Targets wider than this are sampled at every second pixel, third, ... for depth, whose edge is not that exact."""

FARTHEST_M = 5.0
"""What lies beyond decides nothing indoors."""

Matrix = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Coverage:
    """What one mode can fill: ``fraction`` of the target's pixels; ``rows`` and ``columns`` of the middle of it."""

    mode: SensorMode
    fraction: float
    rows: float
    columns: float

    @property
    def enough(self) -> bool:
        """Whether it counts as filled."""
        return self.fraction >= NEEDED[self.mode.sensor]


def coverage(mode: SensorMode, target: Intrinsics, color_from_target: Matrix, color_from_depth: Matrix) -> Coverage:
    """What a mode fills of the target's image.

    Args:
        color_from_target: float64 (3, 3), directions of the target to the color sensor.
        color_from_depth: float64 (4, 4), points of the depth sensor to the color sensor.
    """
    view = target if mode.sensor == "color" else _sampled(target)
    masks = masks_of(mode, view, color_from_target, color_from_depth)
    middle_row = [mask[len(mask) // 2].mean() for mask in masks]
    middle_column = [mask[:, mask.shape[1] // 2].mean() for mask in masks]
    return Coverage(
        mode,
        float(np.mean([mask.mean() for mask in masks])),
        rows=float(np.mean(middle_column)),
        columns=float(np.mean(middle_row)),
    )


def masks_of(
    mode: SensorMode, target: Intrinsics, color_from_target: Matrix, color_from_depth: Matrix
) -> Sequence[Mask]:
    """bool (H, W) of the pixels that a mode fills: one image for color, one for each of ``DISTANCES`` for depth."""
    rays = Lens.of(target).pixel_rays() @ np.asarray(color_from_target).T
    if mode.sensor == "color":
        return [_seen(mode, rays)]
    depth_from_color = np.linalg.inv(color_from_depth)
    near_m, far_m = max(mode.min_m, 0.1), min(mode.max_m, FARTHEST_M)
    depths_m = 1 / np.linspace(1 / near_m, 1 / far_m, DISTANCES)
    turn, shift = depth_from_color[:3, :3], depth_from_color[:3, 3]
    return [_seen(mode, (depth_m * rays) @ turn.T + shift) for depth_m in depths_m]


def check_coverage(used: Sequence[Coverage], possible: Sequence[Coverage], target: Intrinsics, camera: str) -> None:
    """Whether the modes in use fill enough of the target.

    Args:
        used: of the color and of the depth mode in use. possible: of every mode that the camera has.

    Raises:
        ConfigError: naming the mode, what it fills, and the modes of this camera that fill enough.
    """
    for found in used:
        if found.enough:
            continue
        sensor = found.mode.sensor
        better = [f"{other.mode.name} ({other.fraction:.0%})" for other in possible if _better(other, sensor)]
        enough = f"set {sensor} to {' or '.join(better)}" if better else f"no {sensor} mode of this camera fills enough"
        raise ConfigError(
            f"{camera}: {sensor} mode {found.mode.name} fills {found.fraction:.1%} of a {target.width}x{target.height} "
            f"image of {target.hfov_deg:.0f}° ({NEEDED[sensor]:.0%} are asked for)",
            f"{enough}; or set 'allow_partial_coverage: true' under 'imaging': the rest stays black, or holes in depth",
        )


def _sampled(target: Intrinsics) -> Intrinsics:
    """The same view in fewer pixels."""
    step = max(1, target.width // SAMPLED_WIDTH)
    return Intrinsics(
        target.width // step,
        target.height // step,
        target.fx / step,
        target.fy / step,
        (target.cx + 0.5) / step - 0.5,
        (target.cy + 0.5) / step - 0.5,
    )


def _better(other: Coverage, sensor: Sensor) -> bool:
    return other.mode.sensor == sensor and other.enough


def _seen(mode: SensorMode, points: Matrix) -> Mask:
    pixels = mode.lens.project(points)
    x, y = pixels[..., 0], pixels[..., 1]
    seen = mode.lens.holds(pixels)
    corners = np.array(mode.outline, np.float64).reshape(-1, 2)
    for (x0, y0), (x1, y1) in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        seen &= (x1 - x0) * (y - y0) - (y1 - y0) * (x - x0) >= 0  # clockwise on the screen
    return np.asarray(seen)
