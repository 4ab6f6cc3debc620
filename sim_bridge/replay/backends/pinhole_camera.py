"""Cameras of simulators that know square pixels and a principal point in the middle, and nothing else.

A lens whose axis does not meet the middle of its image is drawn on a larger one, of which it is cut out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_runtime.hal.lens import Lens
from sim_bridge.replay.backends.base import TwinUnable

TOLERANCE_PX = 0.5
"""How far from where the lens has it a pixel may be drawn, anywhere in the image."""


@dataclass(frozen=True)
class PlainCamera:
    """What to draw, and what to cut out of it.

    Attributes:
        width, height: of the drawn image. focal_px: its focal length, in both directions.
        rows, columns: of the drawn image, that are the lens's.
    """

    width: int
    height: int
    focal_px: float
    rows: tuple[int, int]
    columns: tuple[int, int]

    @property
    def hfov_deg(self) -> float:
        """Field of view across the whole width."""
        return math.degrees(2 * math.atan(self.width / 2 / self.focal_px))

    @property
    def vfov_deg(self) -> float:
        """Field of view across the whole height."""
        return math.degrees(2 * math.atan(self.height / 2 / self.focal_px))

    def cut(self, drawn: NDArray[Any]) -> NDArray[Any]:
        """The lens's image of the drawn one, (height, width, ...), in memory of its own."""
        return np.ascontiguousarray(drawn[slice(*self.rows), slice(*self.columns)])


def plain_camera(lens: Lens, who: str) -> PlainCamera:
    """How a simulator without lenses draws what ``lens`` sees.

    Args:
        who: is to draw it, for messages.

    Raises:
        TwinUnable: the lens distorts, or its pixels are not square.
    """
    if lens.model != "pinhole":
        raise TwinUnable(
            f"{who}: draws ideal pinholes, and not through a lens of model {lens.model!r}",
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
        raise TwinUnable(
            f"{who}: draws square pixels; of a lens with fx {lens.fx:.2f} and fy {lens.fy:.2f} some would be "
            f"{off_px:.1f} pixels off",
            "replay it into sim, or record with a camera that delivers the training camera's image",
        )
    return PlainCamera(width, height, focal_px, (top, top + lens.height), (left, left + lens.width))


def _widened(size: int, middle: float) -> tuple[int, int]:
    """Size of the image around a principal point, and where in it the lens's image begins."""
    shift = round(2 * middle - (size - 1))  # by so many pixels it is wider on one side
    return size + abs(shift), max(-shift, 0)


def _off(size: int, middle: float, focal: float, drawn_focal: float, drawn_middle: float) -> float:
    """The largest distance between a pixel's place in the lens and where the same ray is drawn, along one axis."""
    ends = np.array([0.0, size - 1.0])
    return float(np.abs((ends - middle) / focal * drawn_focal + drawn_middle - ends).max())
