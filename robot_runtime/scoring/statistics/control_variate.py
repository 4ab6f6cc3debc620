"""Mean of real episodes, with simulated runs of the same and of further starts as a control variate.

From each real value a multiple of the twin's deviation is subtracted: z = y - weight (f - g), where f is the simulated
value of the same start and g the mean of simulated values of other starts, used for this episode only. The mean of z is
that of y, whatever the simulation is like, if the weight comes from earlier episodes alone. With correlation r and many
other starts its variance is 1 - r^2 of that of y.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from robot_runtime.scoring.statistics.intervals import CONFIDENCE, SEED, Interval
from robot_runtime.scoring.statistics.sequential import ConfidenceSequence

_PRIOR_PAIRS, _PRIOR_SLOPE = 4, 0.5
"""Imagined pairs of successes, half of them 1, and their regression of reality on simulation. They make the weights of
the first episodes useful where simulation is good, and are outvoted where it is not."""


@dataclass(frozen=True)
class ControlVariate:
    """Intervals of the mean of a metric with values between 0 and 1, without and with simulation.

    Attributes:
        real: number of real episodes.
        twins: number of real episodes that were simulated, too.
        further: number of simulated starts per real episode that were used in addition to the twins.
        correlation: correlation of real and simulated values; NaN if one of them does not vary.
        weight: weight of the simulation in the next episode.
        without: mean of the real values, with Wilson's interval for this number of episodes.
        adjusted: mean with simulation, with the same interval.
        without_any_time: the first mean with its confidence sequence, valid after every episode.
        adjusted_any_time: the second mean with its confidence sequence.
    """

    real: int
    twins: int
    further: int
    correlation: float
    weight: float
    without: Interval
    adjusted: Interval
    without_any_time: Interval
    adjusted_any_time: Interval


def control_variate(
    real: Sequence[float],
    simulated: Sequence[float],
    further: Sequence[float],
    confidence: float = CONFIDENCE,
    planned: int | None = None,
) -> ControlVariate:
    """Estimate the mean over starts of a metric on the robot.

    Starts must be drawn alike for both worlds: which of the simulated ones the robot runs must not depend on outcomes.

    Args:
        real: values in the order of the runs, between 0 and 1, N >= 1.
        simulated: simulated values of the same starts, between 0 and 1; NaN where a start was not simulated.
        further: simulated values of other starts.
        confidence: confidence level of the intervals.
        planned: largest number of real episodes, over which ``further`` is divided; None for N. State it where
            intervals are read before the last episode.

    Raises:
        ValueError: there is no value, a value is outside its range, or the lengths differ.
    """
    y, f, g = (np.asarray(values, np.float64) for values in (real, simulated, further))
    if not y.size or y.shape != f.shape:
        raise ValueError(f"{y.size} real values and {f.size} twins")
    for values in (y, f[~np.isnan(f)], g):
        if not ((values >= 0) & (values <= 1)).all():
            raise ValueError("a control variate needs values between 0 and 1")
    each = g.size // max(planned or 0, y.size)
    others = np.random.default_rng(SEED).permutation(g)[: each * y.size].reshape(y.size, each)
    deviations = np.where(np.isnan(f), 0.0, f - others.mean(axis=1)) if each else np.zeros(y.size)
    weights, following, correlation = _weights(y, f, each)
    z = y - weights * deviations
    return ControlVariate(
        real=y.size,
        twins=int(np.count_nonzero(~np.isnan(f))),
        further=each,
        correlation=correlation,
        weight=following,
        without=_at_this_number(y, y, confidence),
        adjusted=_at_this_number(y, z, confidence),
        without_any_time=_any_time(y, np.zeros(y.size), confidence),
        adjusted_any_time=_any_time(z, np.abs(weights), confidence),
    )


def _weights(y: NDArray[np.float64], f: NDArray[np.float64], each: int) -> tuple[NDArray[np.float64], float, float]:
    """Weight of each episode from those before it, that of the next, and the correlation of all.

    The least-squares weight of the past and of :data:`_PRIOR_PAIRS` imagined pairs, multiplied by 1 - 1 / (n r^2) or 0:
    without correlation an estimated weight would add noise, whose share of the variance is about 1/n.
    """
    weights = np.zeros(y.size + 1)
    count = mean_y = mean_f = square_y = square_f = product = 0.0
    prior = _PRIOR_PAIRS / 4
    correlation = math.nan
    for number, (real, twin) in enumerate(zip(y, f, strict=True)):
        weights[number + 1] = weights[number]
        if math.isnan(twin):
            continue
        count += 1
        off_y, off_f = real - mean_y, twin - mean_f
        mean_y, mean_f = mean_y + off_y / count, mean_f + off_f / count
        square_y += off_y * (real - mean_y)
        square_f += off_f * (twin - mean_f)
        product += off_y * (twin - mean_f)
        if square_y > 0 and square_f > 0:
            correlation = product / math.sqrt(square_y * square_f)
        if not each:
            continue
        expected, spread = product + _PRIOR_SLOPE * prior, square_f + prior
        squared = expected**2 / (spread * (square_y + prior))
        shrunk = max(0.0, 1 - 1 / ((count + _PRIOR_PAIRS) * squared)) if squared else 0.0
        weights[number + 1] = min(1.0, max(-1.0, shrunk * expected / (spread * (1 + 1 / each))))
    return weights[:-1], float(weights[-1]), correlation


def _at_this_number(y: NDArray[np.float64], z: NDArray[np.float64], confidence: float) -> Interval:
    """Wilson's interval around the mean of ``z``, for as many successes as would vary like ``z``."""
    mean = float(z.mean())
    spread = float(y.mean() * (1 - y.mean()))
    variance = float(z.var())
    count = y.size * spread / variance if spread > 0 and variance > 0 else float(y.size)
    squared = float(ndtri((1 + confidence) / 2)) ** 2
    share = min(1.0, max(0.0, mean))
    middle = (share + squared / (2 * count)) / (1 + squared / count)
    half = math.sqrt(squared * (share * (1 - share) / count + squared / (4 * count**2))) / (1 + squared / count)
    return Interval(mean, max(0.0, middle - half), min(1.0, middle + half))


def _any_time(z: NDArray[np.float64], weights: NDArray[np.float64], confidence: float) -> Interval:
    """Confidence sequence of the mean; a value is at most its weight beyond 0 and 1."""
    sequence = ConfidenceSequence(1 - confidence)
    for value, weight in zip(2 * z - 1, 2 * weights, strict=True):
        sequence.add(value, -1 - weight, 1 + weight)
    return Interval(float(z.mean()), (sequence.low + 1) / 2, (sequence.high + 1) / 2)
