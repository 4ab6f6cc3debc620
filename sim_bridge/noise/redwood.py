"""A PrimSense-like structured-light sensor, as the Habitat challenges simulate depth.

Choi, Zhou and Koltun, "Robust reconstruction of indoor scenes", CVPR 2015, supplement; the authors' ``simdepth.py`` on
redwood-data.org. In this order: a pixel measures at a neighbor's place (0.25 pixels), at half the resolution; depth is
stretched by a table of the device's own distortion (Teichman, Miller and Thrun, RSS 2013); disparity has noise of 1/36
of its unit and is rounded to eighths of it. What is 10 m away or farther is not measured.
"""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.config import NonNegative, Strict
from robot_runtime.errors import ConfigError
from robot_runtime.hal.lens import Lens
from robot_runtime.hal.simulation import DepthNoise
from sim_bridge.noise.azure_kinect import shifted
from sim_bridge.noise.surface import Floats

FAR_M = 10.0
DISPARITY_M = 35.130
"""Depth times disparity, of the device that was measured."""

DISPARITY_STD = 1 / 36
STEPS = 8
TABLE_SIDE, TABLE_DEPTHS = 80, 5
"""The distortion table: columns and rows of blocks, and depths of 1, 3, 5, 7 and 9 meters."""


FACTORS = (0.5, 2.0)
"""Possible median of the table: a device errs by percents."""


@dataclass(frozen=True)
class RedwoodOptions(Strict):
    """Options of the Redwood model.

    Attributes:
        multiplier: factor of all errors, Habitat's ``noise_multiplier``.
        distortion: file ``dist-model.txt`` of the authors; None leaves that part out.
    """

    model: Literal["redwood"] = "redwood"
    multiplier: NonNegative = 1.0
    distortion: str | None = None


class RedwoodNoise(DepthNoise):
    """See the module's docstring. Raises ``ConfigError`` for a table that cannot be read."""

    def __init__(self, options: RedwoodOptions) -> None:
        self._options = options
        self._table = None if options.distortion is None else read_table(Path(options.distortion))

    def measure(self, depth_m: Floats, lens: Lens, random: np.random.Generator) -> Floats:
        multiplier = self._options.multiplier
        height, width = depth_m.shape
        # Every pixel of a 2x2 block sees the block's first.
        halved = depth_m[0::2, 0::2].repeat(2, 0).repeat(2, 1)[:height, :width]
        seen = shifted(halved, 0.25 * multiplier, random)
        if self._table is not None:
            seen = self._undistorted(seen)
        noise = random.standard_normal(seen.shape, np.float32) * np.float32(DISPARITY_STD * multiplier)
        with np.errstate(divide="ignore", invalid="ignore"):
            disparity = np.rint((np.float32(DISPARITY_M) / seen + noise) * STEPS)
            measured = np.float32(DISPARITY_M * STEPS) / disparity
        valid = (seen > 0) & (seen < FAR_M) & (disparity > 0)
        return np.where(valid, measured, 0).astype(np.float32)

    def _undistorted(self, depth_m: Floats) -> Floats:
        """Depth over the table's factor; the factor is linear in depth between its entries."""
        assert self._table is not None
        height, width = depth_m.shape
        row = np.minimum(np.arange(height) * TABLE_SIDE // height, TABLE_SIDE - 1)[:, None]
        column = np.minimum(np.arange(width) * TABLE_SIDE // width, TABLE_SIDE - 1)[None, :]
        entry = np.clip((depth_m - 1) / 2, 0, TABLE_DEPTHS - 1)
        low = np.floor(entry).astype(np.int32)
        high = np.minimum(low + 1, TABLE_DEPTHS - 1)
        factor = self._table[row, column, low] * (1 - (entry - low)) + self._table[row, column, high] * (entry - low)
        return np.asarray(np.divide(depth_m, factor, out=np.zeros_like(depth_m), where=factor > 1e-5), np.float32)


def read_table(path: Path) -> NDArray[np.float32]:
    """The distortion table, float32 (rows, columns, depths). Raises ``ConfigError``."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # an empty file is an error below
            numbers = np.loadtxt(path, comments="%", skiprows=5, dtype=np.float64).ravel()
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"noise model redwood: distortion: {path}: {error}", "name the authors' dist-model.txt"
        ) from error
    entry = 3 + TABLE_DEPTHS * 4
    if not 0 <= numbers.size - TABLE_SIDE**2 * entry < entry:
        raise ConfigError(
            f"noise model redwood: distortion: {path}: has {numbers.size / entry:.1f} blocks of {entry} numbers, "
            f"not {TABLE_SIDE} x {TABLE_SIDE}",
            "name the authors' dist-model.txt, unchanged",
        )
    blocks = numbers[: TABLE_SIDE**2 * entry].reshape(TABLE_SIDE, TABLE_SIDE, entry)
    factors = blocks[..., 3 : 3 + TABLE_DEPTHS]
    known = np.asarray((factors < 8000).all(axis=-1, keepdims=True))
    low, high = FACTORS
    if not known.any() or not low <= float(np.median(factors[known[..., 0]])) <= high:
        raise ConfigError(
            f"noise model redwood: distortion: {path}: its factors of depth are not near 1",
            "name the authors' dist-model.txt, unchanged; factors have no unit",
        )
    return np.where(known, factors, 0).astype(np.float32)
