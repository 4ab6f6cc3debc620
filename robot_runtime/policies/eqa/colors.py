"""Names of colors by the histogram of an object's pixels.

The weights are those of a logistic regression on the square roots of the histogram's shares, learned from the pixels of
objects in generated flats (``sim_bridge.training.eqa_colors``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.float32]

_BITS = (5, 4, 4)
"""Right shift per channel of CIELAB in 8 bits: 8 x 16 x 16 bins."""

BINS = 8 * 16 * 16
WEIGHTS = Path(__file__).with_name("colors.npz")


def histogram(pixels: NDArray[np.uint8]) -> Counts:
    """Number of pixels (N, 3), RGB, in each of :data:`BINS` bins of CIELAB; float32 (BINS,)."""
    lab = cv2.cvtColor(np.ascontiguousarray(pixels)[None], cv2.COLOR_RGB2LAB)[0].astype(np.intp)
    light, a, b = (lab[:, i] >> bits for i, bits in enumerate(_BITS))
    return np.bincount(light << 8 | a << 4 | b, minlength=BINS).astype(np.float32)


@dataclass(frozen=True, eq=False)
class ColorNames:
    """A classifier of histograms.

    Attributes:
        names: of the colors.
        bins: indices of the bins that have weights.
        weights: (bins, names).
        bias: (names,).
    """

    names: tuple[str, ...]
    bins: NDArray[np.intp]
    weights: NDArray[np.float32]
    bias: NDArray[np.float32]

    def probabilities(self, counts: Counts) -> Mapping[str, float]:
        """Probability of each name for a histogram with at least one pixel."""
        logits = np.sqrt(counts[self.bins] / max(float(counts.sum()), 1.0)) @ self.weights + self.bias
        shares = np.exp(logits - logits.max())
        return dict(zip(self.names, (shares / shares.sum()).tolist(), strict=True))


@cache
def color_names() -> ColorNames:
    """The classifier that ships."""
    with np.load(WEIGHTS) as data:
        names = tuple(str(name) for name in data["names"])
        return ColorNames(names, data["bins"].astype(np.intp), data["weights"].astype(np.float32), data["bias"])
