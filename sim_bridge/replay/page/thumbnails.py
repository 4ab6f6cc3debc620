"""Images of a replay's page: reduced in size and number, and compressed as the pairs are made."""

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
"""Steps with images on one page; of longer episodes every second, third, ... step is shown."""

MOST_BYTES = 10_000_000
"""Size of a page's images, above which every second of them is left out."""

WIDTH_PX = 320

SCALES_MM = (5, 10, 20, 50, 100, 200, 500, 1000, 2000)
"""Depth errors that the darkest colors of an error map can stand for."""

SHADES = 31
_NEARER, _SAME, _FARTHER = (33, 102, 172), (247, 247, 247), (178, 24, 43)
_NOT_RECORDED, _NOT_SIMULATED, _NEITHER = (90, 96, 105), (150, 158, 168), (60, 64, 70)


@dataclass(frozen=True)
class StepImages:
    """Images of a step as data URIs."""

    index: int
    recorded: str
    simulated: str
    error: str

    @property
    def size(self) -> int:
        """Length of the URIs."""
        return len(self.recorded) + len(self.simulated) + len(self.error)


class Gallery:
    """Collector of the images of a log's pose replay; called with each pair."""

    def __init__(self, indices: Sequence[int]) -> None:
        self.every = max(1, math.ceil(len(indices) / MOST_SHOWN))
        self._wanted = {*indices[:: self.every], *indices[-1:]}
        self._images: list[tuple[int, str, str, NDArray[np.float16], NDArray[np.uint8]]] = []

    def __call__(self, pair: FramePair) -> None:
        """Add a pair."""
        if pair.index not in self._wanted:
            return
        # Single pixels, not means: at an edge a mean would be an error that no pixel has.
        step = max(1, pair.recorded_depth_m.shape[1] // WIDTH_PX)
        recorded_m, simulated_m = (
            depth_m[::step, ::step] for depth_m in (pair.recorded_depth_m, pair.simulated_depth_m)
        )
        error_mm = (1000 * depth_error_m(recorded_m, simulated_m)).astype(np.float16)
        missing = np.asarray((recorded_m <= 0) + 2 * (simulated_m <= 0).astype(np.uint8), np.uint8)
        images = jpeg_uri(pair.recorded_rgb), jpeg_uri(pair.simulated_rgb)
        self._images.append((pair.index, *images, error_mm, missing))

    def scale_mm(self) -> int:
        """Scale of the error maps, the same for the entire episode."""
        if not self._images:
            return SCALES_MM[0]
        errors_mm = np.concatenate([np.abs(error_mm[~np.isnan(error_mm)])[::17] for *_, error_mm, _ in self._images])
        most = float(np.percentile(errors_mm.astype(np.float64), 90)) if errors_mm.size else 0.0
        return next((scale for scale in SCALES_MM if scale >= most), SCALES_MM[-1])

    def images(self) -> list[StepImages]:
        """The images, in the order of the steps."""
        scale = self.scale_mm()
        shown = [
            StepImages(index, recorded, simulated, _png_uri(_levels(error_mm, missing, scale)))
            for index, recorded, simulated, error_mm, missing in self._images
        ]
        while sum(image.size for image in shown) > MOST_BYTES and len(shown) > 1:
            shown = shown[::2]
            self.every *= 2
        return shown


def _levels(error_mm: NDArray[np.float16], missing: NDArray[np.uint8], scale_mm: int) -> NDArray[np.uint8]:
    """Indices into :func:`palette`, uint8 (H, W)."""
    middle = SHADES // 2
    shade = np.rint(middle + middle * np.clip(np.nan_to_num(error_mm.astype(np.float32)) / scale_mm, -1, 1))
    return np.where(missing > 0, SHADES - 1 + missing, shade.astype(np.uint8)).astype(np.uint8)


def palette() -> NDArray[np.uint8]:
    """Colors of error maps, uint8 (N, 3): from nearer to farther, then those of missing depth."""
    middle = SHADES // 2
    ramp = [
        np.add(np.multiply(_SAME, 1 - weight), np.multiply(_NEARER if i < middle else _FARTHER, weight))
        for i in range(SHADES)
        for weight in [math.sqrt(abs(i - middle) / middle)]
    ]
    return np.rint(np.array([*ramp, _NOT_RECORDED, _NOT_SIMULATED, _NEITHER], np.float64)).astype(np.uint8)


def _png_uri(levels: NDArray[np.uint8]) -> str:
    """A palette PNG: small, and without blur over edges."""
    image = Image.frombytes("P", levels.shape[::-1], levels.tobytes())
    image.putpalette(palette().tobytes())
    png = io.BytesIO()
    image.save(png, "PNG", optimize=True, bits=6)
    return "data:image/png;base64," + base64.b64encode(png.getvalue()).decode()
