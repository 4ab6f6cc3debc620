"""Camera model of simulators that support square pixels and a centered principal point only.

A lens whose principal point is off center is rendered on a larger image and cropped.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_runtime.hal.lens import Lens
from sim_bridge.replay.backends.base import UnsupportedBySimulator

TOLERANCE_PX = 0.5
"""Largest error of a rendered pixel's position, anywhere in the image."""


@dataclass(frozen=True)
class PinholeCamera:
    """Size and focal length of the image to render, and the part of it that is the lens's.

    Attributes:
        focal_px: focal length in both directions.
        rows: first and end row of the lens's image.
        columns: first and end column of the lens's image.
    """

    width: int
    height: int
    focal_px: float
    rows: tuple[int, int]
    columns: tuple[int, int]

    @property
    def hfov_deg(self) -> float:
        """Field of view across the full width."""
        return math.degrees(2 * math.atan(self.width / 2 / self.focal_px))

    @property
    def vfov_deg(self) -> float:
        """Field of view across the full height."""
        return math.degrees(2 * math.atan(self.height / 2 / self.focal_px))

    def crop(self, drawn: NDArray[Any]) -> NDArray[Any]:
        """A copy of the lens's part of the rendered image, (height, width, ...)."""
        return np.ascontiguousarray(drawn[slice(*self.rows), slice(*self.columns)])


def pinhole_camera(lens: Lens, who: str) -> PinholeCamera:
    """The camera that renders the image of ``lens``.

    Raises:
        UnsupportedBySimulator: the lens distorts, or its pixels are not square.
    """
    if lens.model != "pinhole":
        raise UnsupportedBySimulator(
            f"{who}: renders ideal pinholes, and not a lens of model {lens.model!r}",
            "replay it into sim, or record with a camera that delivers the training camera's image",
        )
    focal_px = (lens.fx + lens.fy) / 2
    width, left = _widened(lens.width, lens.cx)
    height, top = _widened(lens.height, lens.cy)
    off_px = max(
        _off(lens.width, lens.cx, lens.fx, focal_px, (width - 1) / 2 - left),
        _off(lens.height, lens.cy, lens.fy, focal_px, (height - 1) / 2 - top),
    )
    if off_px > TOLERANCE_PX:
        raise UnsupportedBySimulator(
            f"{who}: renders square pixels; of a lens with fx {lens.fx:.2f} and fy {lens.fy:.2f} some would be "
            f"{off_px:.1f} pixels off",
            "replay it into sim, or record with a camera that delivers the training camera's image",
        )
    return PinholeCamera(width, height, focal_px, (top, top + lens.height), (left, left + lens.width))


def _widened(size: int, middle: float) -> tuple[int, int]:
    """Size of the image centered on a principal point, and offset of the lens's image in it."""
    shift = round(2 * middle - (size - 1))  # pixels by which it is wider on one side
    return size + abs(shift), max(-shift, 0)


def _off(size: int, middle: float, focal: float, drawn_focal: float, drawn_middle: float) -> float:
    """Largest distance along one axis between a pixel of the lens and the rendered position of its ray."""
    ends = np.array([0.0, size - 1.0])
    return float(np.abs((ends - middle) / focal * drawn_focal + drawn_middle - ends).max())
