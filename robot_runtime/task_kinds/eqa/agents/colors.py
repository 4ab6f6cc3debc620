"""Names of colors by the histogram of an object's pixels.

The weights are those of a logistic regression on the square roots of the histogram's shares, learned from the pixels of
objects in generated flats (``sim_bridge.training.eqa_colors``). The category counts, too: a stool whose seat shines is
not white, because no stool of these flats is.
"""

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

_HALF_PIXELS = 120.0
"""Pixels that count half as much as many: those of an object far away are mixed with what is around it."""

_ELSEWHERE = 0.1
"""Share of objects whose color is any, whatever generated flats say of their category: other homes differ from them."""

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
        names: names of the colors.
        bins: indices of the bins that have weights.
        weights: (bins, names).
        bias: (names,).
        categories: categories of objects, in words.
        priors: (categories, names), logarithm of each color's share among the objects of a category.
    """

    names: tuple[str, ...]
    bins: NDArray[np.intp]
    weights: NDArray[np.float32]
    bias: NDArray[np.float32]
    categories: tuple[str, ...]
    priors: NDArray[np.float32]

    def probabilities(self, counts: Counts, category: str) -> Mapping[str, float]:
        """Probability of each name.

        Args:
            counts: histogram with at least one pixel.
            category: category of the object, in words; one that is not among ``categories`` says nothing.
        """
        pixels = max(float(counts.sum()), 1.0)
        logits = np.sqrt(counts[self.bins] / pixels) @ self.weights + self.bias
        logits = logits * (pixels / (pixels + _HALF_PIXELS))
        if category in self.categories:
            there = np.exp(self.priors[self.categories.index(category)])
            logits = logits + np.log((1 - _ELSEWHERE) * there + _ELSEWHERE / len(self.names))
        shares = np.exp(logits - logits.max())
        return dict(zip(self.names, (shares / shares.sum()).tolist(), strict=True))


@cache
def color_names() -> ColorNames:
    """The classifier that ships."""
    with np.load(WEIGHTS) as data:
        names, categories = (tuple(str(name) for name in data[key]) for key in ("names", "categories"))
        weights, bias, priors = (data[key].astype(np.float32) for key in ("weights", "bias", "priors"))
        return ColorNames(names, data["bins"].astype(np.intp), weights, bias, categories, priors)
