"""Color sensors: noise, rolling exposure, motion blur.

``sensor``: the variance of a pixel is linear in its value, by photons and by reading it out (Foi, Trimeche, Katkovnik
and Egiazarian, "Practical Poissonian-Gaussian noise modeling and fitting for single-image raw-data", IEEE Transactions
on Image Processing 2008). While it is exposed the camera moves, which blurs, and each row is exposed a little after the
one above it, which shears (Forssén and Ringaby, "Rectifying rolling shutter video from hand-held devices", CVPR 2010):
both follow from the motion and the depth of what is seen, to first order.

``gaussian``: the same noise everywhere; with an intensity of 0.1 that of the Habitat challenges of 2020 and 2021
(habitat-sim, ``GaussianNoiseModel``).
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.config import NonNegative, Strict
from robot_runtime.common.quantities import Exposure
from robot_runtime.hal.lens import Lens
from robot_runtime.hal.simulation import CameraMotion, ColorNoise, Image
from sim_bridge.noise.surface import Floats, pixel_rays

FAR_M = 100.0
"""Distance of surfaces without a depth."""

BLUR_PX, BLUR_VIEWS = 1.0, 16
"""Pixels of blur per averaged view, and the greatest number of views."""

_FLOW_S = 1e-3
_SPARE = 1 << 16


@dataclass(frozen=True)
class SensorOptions(Strict):
    """Options of ``sensor``; the defaults are an indoor exposure's.

    Attributes:
        photon: variance per gray level, in gray levels.
        read: standard deviation in the dark, in gray levels.
        exposure_s: exposure time of each row.
        readout_s: time from the first row's exposure to the last one's.
    """

    model: Literal["sensor"] = "sensor"
    photon: NonNegative = 0.02
    read: NonNegative = 1.0
    exposure_s: Exposure = 0.008
    readout_s: Exposure = 0.016


@dataclass(frozen=True)
class GaussianOptions(Strict):
    """Options of ``gaussian``: its standard deviation as a share of the range of gray levels."""

    model: Literal["gaussian"] = "gaussian"
    intensity: NonNegative = 0.1


class SensorNoise(ColorNoise):
    """Photon and read noise, rolling shutter and motion blur."""

    def __init__(self, options: SensorOptions) -> None:
        self._options = options
        levels = np.arange(256, dtype=np.float32)
        self._std = np.sqrt(options.photon * levels + options.read**2).astype(np.float32)

    def expose(
        self, rgb: Image, depth_m: Floats | None, lens: Lens, motion: CameraMotion, random: np.random.Generator
    ) -> Image:
        options = self._options
        if not motion.still and (options.exposure_s or options.readout_s):
            rgb = moved(rgb, flow(lens, depth_m, motion), options.exposure_s, options.readout_s)
        if not (options.photon or options.read):
            return rgb
        return noisy(rgb, np.asarray(cv2.LUT(rgb, self._std), np.float32), random)


class GaussianNoise(ColorNoise):
    """Normal noise with a standard deviation of 1."""

    def __init__(self, options: GaussianOptions) -> None:
        self._std = np.float32(255 * options.intensity)

    def expose(
        self, rgb: Image, depth_m: Floats | None, lens: Lens, motion: CameraMotion, random: np.random.Generator
    ) -> Image:
        return noisy(rgb, self._std, random)


def noisy(rgb: Image, std: NDArray[np.floating] | np.float32, random: np.random.Generator) -> Image:
    """An image with normal noise.

    The numbers come from one long sequence at a random offset, since drawing millions takes longer than rendering.
    """
    start = int(random.integers(_SPARE))
    row = _normal_numbers(rgb.size + _SPARE)[start : start + rgb.size].reshape(rgb.shape)
    return cv2.add(rgb, np.asarray(row * std), dtype=cv2.CV_8U)  # type: ignore[return-value]


@lru_cache(maxsize=4)
def _normal_numbers(count: int) -> Floats:
    numbers = np.random.default_rng(count).standard_normal(count, np.float32)
    numbers.flags.writeable = False
    return numbers


def flow(lens: Lens, depth_m: Floats | None, motion: CameraMotion) -> Floats:
    """Optical flow, float32 (H, W, 2), pixels per second."""
    points = pixel_rays(lens) * (
        np.float32(FAR_M) if depth_m is None else np.where(depth_m > 0, depth_m, FAR_M)[..., None]
    )
    linear, angular = (np.array(part) for part in (motion.linear_m_s, motion.angular_rad_s))
    moved_points = points - _FLOW_S * (linear + np.cross(angular, points))
    columns, rows = np.meshgrid(np.arange(lens.width), np.arange(lens.height))
    shift = lens.project(moved_points) - np.stack([columns, rows], axis=-1)
    return np.nan_to_num(shift / _FLOW_S).astype(np.float32)


def moved(rgb: Image, flow_px_s: Floats, exposure_s: float, readout_s: float) -> Image:
    """An image whose rows were exposed one after the other, each for a while, by a camera that moved.

    Args:
        rgb: the view in the middle of the exposure of the middle row.
        flow_px_s: (H, W, 2), from :func:`flow`.
        exposure_s: exposure time of each row.
        readout_s: time from the first row's exposure to the last row's.
    """
    height, width = rgb.shape[:2]
    columns, rows = np.meshgrid(np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32))
    row_s = ((rows + 0.5) / height - 0.5) * np.float32(readout_s)
    longest_px = float(np.abs(flow_px_s).max()) * exposure_s
    views = max(1, min(BLUR_VIEWS, round(longest_px / BLUR_PX)))
    total = np.zeros(rgb.shape, np.float32)
    for view in range(views):
        at_s = row_s + np.float32(((view + 0.5) / views - 0.5) * exposure_s)
        seen = cv2.remap(
            rgb,
            columns - flow_px_s[..., 0] * at_s,
            rows - flow_px_s[..., 1] * at_s,
            cv2.INTER_LINEAR,
            borderMode=cv2.BORDER_REPLICATE,
        )
        cv2.accumulate(seen, total)
    return np.rint(total / views).astype(np.uint8)
