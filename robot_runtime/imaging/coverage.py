"""Coverage of the training camera's image by a sensor, from geometry alone."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robot_runtime.errors import ConfigError
from robot_runtime.hal import Intrinsics
from robot_runtime.hal.lens import Lens
from robot_runtime.imaging.source import Sensor, SensorMode

MIN_FRACTIONS: dict[Sensor, float] = {"color": 0.9, "depth": 0.7}
"""Fraction of the target that a sensor must fill. An Azure Kinect at 79 degrees passes with 92 % of color (a few rows
at top and bottom are missing) and 76 % of depth (a hexagon); a RealSense D435's 53 % of color does not.
"""

DISTANCES = 5
"""Number of distances, even in inverse depth over the rated range, over which depth coverage is averaged, because
parallax shifts it.
"""

SAMPLED_WIDTH = 320
"""Wider targets are subsampled for depth, whose edge is not that exact."""

MAX_DEPTH_M = 5.0
"""Depths beyond are ignored indoors."""

Matrix = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Coverage:
    """The part of the target that a mode fills.

    Attributes:
        mode: mode of the sensor.
        fraction: fraction of the target's pixels.
        rows: fraction of the middle column.
        columns: fraction of the middle row.
    """

    mode: SensorMode
    fraction: float
    rows: float
    columns: float

    @property
    def enough(self) -> bool:
        """Whether the mode fills the required fraction."""
        return self.fraction >= MIN_FRACTIONS[self.mode.sensor]


def coverage(mode: SensorMode, target: Intrinsics, color_from_target: Matrix, color_from_depth: Matrix) -> Coverage:
    """The part of the target's image that a mode fills.

    Args:
        mode: mode of the sensor.
        target: the training camera's pinhole.
        color_from_target: float64 (3, 3), rotation from the target to the color sensor.
        color_from_depth: float64 (4, 4), transform from the depth sensor to the color sensor.
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
    """The pixels that a mode fills, bool (H, W): one mask for color, one for each of ``DISTANCES`` for depth."""
    rays = Lens.of(target).pixel_rays() @ np.asarray(color_from_target).T
    if mode.sensor == "color":
        return [_visible(mode, rays)]
    depth_from_color = np.linalg.inv(color_from_depth)
    near_m, far_m = max(mode.min_m, 0.1), min(mode.max_m, MAX_DEPTH_M)
    depths_m = 1 / np.linspace(1 / near_m, 1 / far_m, DISTANCES)
    turn, shift = depth_from_color[:3, :3], depth_from_color[:3, 3]
    return [_visible(mode, (depth_m * rays) @ turn.T + shift) for depth_m in depths_m]


def check_coverage(used: Sequence[Coverage], possible: Sequence[Coverage], target: Intrinsics, camera: str) -> None:
    """Check that the modes in use fill enough of the target.

    Args:
        used: coverage of the modes in use.
        possible: coverage of every mode of the camera.
        target: the training camera's pinhole.
        camera: its name, for the message.

    Raises:
        ConfigError: naming the mode, what it fills, and the modes of this camera that fill enough.
    """
    for part in used:
        if part.enough:
            continue
        sensor = part.mode.sensor
        better = [f"{other.mode.name} ({other.fraction:.0%})" for other in possible if _better(other, sensor)]
        enough = f"set {sensor} to {' or '.join(better)}" if better else f"no {sensor} mode of this camera fills enough"
        raise ConfigError(
            f"{camera}: {sensor} mode {part.mode.name} fills {part.fraction:.1%} of a {target.width}x{target.height} "
            f"image of {target.hfov_deg:.0f}° ({MIN_FRACTIONS[sensor]:.0%} are required)",
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


def _visible(mode: SensorMode, points: Matrix) -> Mask:
    pixels = mode.lens.project(points)
    x, y = pixels[..., 0], pixels[..., 1]
    visible = mode.lens.holds(pixels)
    corners = np.array(mode.outline, np.float64).reshape(-1, 2)
    for (x0, y0), (x1, y1) in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        visible &= (x1 - x0) * (y - y0) - (y1 - y0) * (x - x0) >= 0  # clockwise on the screen
    return np.asarray(visible)
