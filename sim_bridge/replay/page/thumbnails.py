"""The images of a replay's page: small, few enough, and compressed, as the pairs go by."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from robot_runtime.scoring.report.pages import jpeg_uri
from sim_bridge.replay.image_error import depth_error_m
from sim_bridge.replay.pose_replay import FramePair

MOST_SHOWN = 120
"""Steps with images on one page; of longer episodes every second, third, ... is shown."""

MOST_BYTES = 10_000_000
"""Of a page's images; where they are full of noise, again every second of them is left out."""

WIDTH_PX = 320

SCALES_MM = (5, 10, 20, 50, 100, 200, 500, 1000, 2000)
"""What the darkest colours of an error map can stand for."""

SHADES = 31
_NEARER, _SAME, _FARTHER = (33, 102, 172), (247, 247, 247), (178, 24, 43)
_NOT_RECORDED, _NOT_IN_TWIN, _NEITHER = (90, 96, 105), (150, 158, 168), (60, 64, 70)


@dataclass(frozen=True)
class Shown:
    """Images of one step as data URIs."""

    index: int
    recorded: str
    twin: str
    error: str

    @property
    def size(self) -> int:
        """In bytes of a page."""
        return len(self.recorded) + len(self.twin) + len(self.error)


class Gallery:
    """Takes the pairs of one log as they are made.

    Args:
        indices: of all steps of the log.

    Attributes:
        every: of how many steps one is shown.
    """

    def __init__(self, indices: Sequence[int]) -> None:
        self.every = max(1, math.ceil(len(indices) / MOST_SHOWN))
        self._wanted = {*indices[:: self.every], *indices[-1:]}
        self._kept: list[tuple[int, str, str, NDArray[np.float16], NDArray[np.uint8]]] = []

    def __call__(self, pair: FramePair) -> None:
        """Take one pair."""
        if pair.index not in self._wanted:
            return
        recorded_m, twin_m = pair.recorded_depth_m, pair.twin_depth_m
        # Single pixels, not means: at an edge a mean would be an error that no pixel has.
        step = max(1, recorded_m.shape[1] // WIDTH_PX)
        recorded_m, twin_m = recorded_m[::step, ::step], twin_m[::step, ::step]
        error_mm = (1000 * depth_error_m(recorded_m, twin_m)).astype(np.float16)
        missing = (recorded_m <= 0) + 2 * (twin_m <= 0).astype(np.uint8)
        self._kept.append(
            (pair.index, jpeg_uri(pair.recorded_rgb), jpeg_uri(pair.twin_rgb), error_mm, np.asarray(missing, np.uint8))
        )

    def scale_mm(self) -> int:
        """Of this episode's error maps: one for all, so that colours mean the same from step to step."""
        if not self._kept:
            return SCALES_MM[0]
        amounts = np.concatenate([np.abs(error_mm[~np.isnan(error_mm)])[::17] for *_, error_mm, _ in self._kept])
        most = float(np.percentile(amounts.astype(np.float64), 90)) if amounts.size else 0.0
        return next((scale for scale in SCALES_MM if scale >= most), SCALES_MM[-1])

    def shown(self) -> list[Shown]:
        """The images, in the order of the steps."""
        scale = self.scale_mm()
        found = [
            Shown(index, recorded, twin, _png_uri(_levels(error_mm, missing, scale)))
            for index, recorded, twin, error_mm, missing in self._kept
        ]
        while sum(one.size for one in found) > MOST_BYTES and len(found) > 1:
            found = found[::2]
            self.every *= 2
        return found


def _levels(error_mm: NDArray[np.float16], missing: NDArray[np.uint8], scale_mm: int) -> NDArray[np.uint8]:
    """Entries of :func:`palette`, uint8 (H, W)."""
    middle = SHADES // 2
    shade = np.rint(middle + middle * np.clip(np.nan_to_num(error_mm.astype(np.float32)) / scale_mm, -1, 1))
    return np.where(missing > 0, SHADES - 1 + missing, shade.astype(np.uint8)).astype(np.uint8)


def palette() -> NDArray[np.uint8]:
    """Colours of error maps, uint8 (N, 3): from nearer through the same to farther, then what sees nothing."""
    middle = SHADES // 2
    ramp = [
        np.add(np.multiply(_SAME, 1 - amount), np.multiply(_NEARER if i < middle else _FARTHER, amount))
        for i in range(SHADES)
        for amount in [math.sqrt(abs(i - middle) / middle)]
    ]
    return np.rint(np.array([*ramp, _NOT_RECORDED, _NOT_IN_TWIN, _NEITHER], np.float64)).astype(np.uint8)


def _png_uri(levels: NDArray[np.uint8]) -> str:
    """A map without errors takes a few hundred bytes, and one with errors has no blur over its edges."""
    image = Image.frombytes("P", levels.shape[::-1], levels.tobytes())
    image.putpalette(palette().tobytes())
    png = io.BytesIO()
    image.save(png, "PNG", optimize=True, bits=6)
    return "data:image/png;base64," + base64.b64encode(png.getvalue()).decode()
