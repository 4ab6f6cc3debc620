"""Confidence intervals for means over episodes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

_BLOCK = 1 << 22  # numbers drawn at once, to bound memory


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean and the ends of its interval."""

    mean: float
    low: float
    high: float


def bootstrap_mean(
    values: Sequence[float], confidence: float = 0.95, resamples: int = 10_000, seed: int = 0
) -> Interval:
    """Percentile bootstrap of the mean (Efron and Tibshirani 1993, chapter 13), resampling episodes.

    Args:
        values: one per episode, N >= 1. One infinite value makes everything infinite.
        seed: same values and seed, same interval.

    Raises:
        ValueError: no value, a NaN, or a ``confidence`` outside (0, 1).
    """
    array = np.asarray(values, np.float64)
    if not array.size or np.isnan(array).any():
        raise ValueError("the mean of no values, or with NaN among them, has no interval")
    _check(confidence)
    mean = float(array.mean())
    if not math.isfinite(mean):
        return Interval(mean, mean, mean)
    random = np.random.default_rng(seed)
    rows = max(1, _BLOCK // array.size)
    means = np.concatenate(
        [
            array[random.integers(0, array.size, (min(rows, resamples - done), array.size))].mean(axis=1)
            for done in range(0, resamples, rows)
        ]
    )
    low, high = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2])
    # Rounding in the mean of equal values must not put it outside.
    return Interval(mean, min(float(low), mean), max(float(high), mean))


def wilson(successes: int, episodes: int, confidence: float = 0.95) -> Interval:
    """Score interval of a success rate (Wilson 1927): honest near 0 and 1, where the bootstrap has no width.

    Raises:
        ValueError: unless 0 <= ``successes`` <= ``episodes`` and ``episodes`` >= 1.
    """
    if not 0 <= successes <= episodes or episodes < 1:
        raise ValueError(f"{successes} successes of {episodes} episodes")
    _check(confidence)
    z = float(norm.ppf((1 + confidence) / 2))
    rate = successes / episodes
    middle = (rate + z * z / (2 * episodes)) / (1 + z * z / episodes)
    half = z * math.sqrt(rate * (1 - rate) / episodes + (z / (2 * episodes)) ** 2) / (1 + z * z / episodes)
    return Interval(rate, max(0.0, min(rate, middle - half)), min(1.0, max(rate, middle + half)))


def _check(confidence: float) -> None:
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie in (0, 1), got {confidence}")
