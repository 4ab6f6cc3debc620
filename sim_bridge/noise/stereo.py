"""A RealSense D435's active stereo.

Depth is baseline times focal length over disparity, so its error grows with the square of the distance: z² times the
disparity's error over both (Grunnet-Jepsen, Sweetser and Woodfill, "Best-known-methods for tuning Intel RealSense D400
depth cameras for best performance", 2018, where 0.08 pixels are typical). Matching compares windows, so the error is
alike in neighboring pixels and edges of near things are fattened by half a window. Disparity comes in 1/32 of a pixel,
at most 126 of them, which is the least distance (datasheet 337029, 4.4). What only the left imager sees, behind edges
and in a band at the left, is not measured.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from robot_runtime.common.config import NonNegative, Positive, Strict
from robot_runtime.common.quantities import Baseline
from robot_runtime.hal.lens import Lens
from robot_runtime.hal.simulation import DepthNoise
from sim_bridge.noise.surface import Floats

MOST_DISPARITY_PX = 126


@dataclass(frozen=True)
class D435Options(Strict):
    """Options of the D435.

    Attributes:
        baseline_m: distance between the imagers.
        error_px: standard deviation of the disparity.
        window_px: size of the matching window, within which errors are alike.
        step_px: step to which disparity is rounded.
        outliers: share of pixels that match something else and are left out by the device.
    """

    model: Literal["d435"] = "d435"
    baseline_m: Baseline = 0.050
    error_px: NonNegative = 0.08
    window_px: Annotated[int, Field(ge=1, le=31)] = 7
    step_px: Positive = 1 / 32
    outliers: Annotated[float, Field(ge=0, le=1)] = 0.003


class D435Noise(DepthNoise):
    """The depth noise of a D435, as the module describes it."""

    def __init__(self, options: D435Options) -> None:
        self._options = options

    def measure(self, depth_m: Floats, lens: Lens, random: np.random.Generator) -> Floats:
        options = self._options
        reach = np.float32(options.baseline_m * lens.fx)
        true = np.divide(reach, depth_m, out=np.zeros_like(depth_m), where=depth_m > 0)
        window = np.ones((options.window_px, options.window_px), np.uint8)
        fattened = np.asarray(cv2.dilate(true, window), np.float32)
        # Only edges get fatter; on a slanted surface the window's own disparity is measured.
        disparity = np.where(fattened - true > 1, fattened, true)
        noise = random.standard_normal(depth_m.shape, np.float32)
        noise = np.asarray(cv2.blur(noise, (options.window_px, options.window_px)), np.float32)
        disparity += noise * np.float32(options.error_px * options.window_px)
        step = np.float32(options.step_px)
        disparity = np.rint(disparity / step) * step
        seen = (true > 0) & (disparity > 0) & (disparity <= MOST_DISPARITY_PX)
        seen &= matched(disparity) & (random.random(depth_m.shape, np.float32) >= options.outliers)
        return np.asarray(np.divide(reach, disparity, out=np.zeros_like(depth_m), where=seen), np.float32)


def matched(disparity: Floats) -> NDArray[np.bool_]:
    """Mask, bool (H, W), of the pixels that the right imager sees too: inside its image and not occluded."""
    width = disparity.shape[1]
    at = np.rint(np.arange(width, dtype=np.float32) - disparity).astype(np.int32)
    rows = np.arange(disparity.shape[0])[:, None]
    inside = (at >= 0) & (at < width)
    at[~inside] = 0
    nearest = np.zeros_like(disparity)
    np.maximum.at(nearest, (rows, at), np.where(inside, disparity, 0))
    return np.asarray(inside & (disparity > nearest[rows, at] - 1))
