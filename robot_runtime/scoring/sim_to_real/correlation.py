"""Confidence interval of the sim-vs-real correlation, with correct coverage for few episodes.

Errors of the policies' means attenuate the correlation (Spearman 1904). A percentile bootstrap adds errors to those in
the data: for six policies in 25 episodes with coefficient 0.97, its 95 % interval covers the truth one time in three.
So the interval inverts a test (Davison and Hinkley 1997, 5.5): it holds every coefficient under which the observed one
is not in the tails. The benchmark ``gap`` measures the coverage.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robot_runtime.scoring.statistics.hypothesis_tests import srcc
from robot_runtime.scoring.statistics.intervals import Interval

Floats = NDArray[np.float64]

_HALVINGS = 14
"""Bisections of the half circle of angles between the worlds, to 0.01 degrees."""

_LEAST_SPREAD = 0.5
"""Lower bound of the policies' true spread, as a part of the observed one."""


def correlation_interval(
    simulated: ArrayLike,
    real: ArrayLike,
    confidence: float = 0.95,
    draws: int = 4_000,
    seed: int = 0,
    further: float | None = None,
) -> Interval:
    """The SRCC of policies' means with its interval, for these policies and any episodes of the same kind.

    The means of a world are a vector over policies, and the correlation is the cosine of the angle between the
    vectors' deviations from their means. To test a coefficient, the two directions are rotated in their plane to its
    angle, with the observed lengths minus the part that errors explain, and normal errors are added. Their covariance
    is that of the episodes, which are hard for several policies and in both worlds. A mean's variance is at least that
    of its episodes plus one success and one failure, so that a policy that never failed has an error. Coefficients
    above the median of equal worlds, or below that of opposite ones, are taken for that median.

    Args:
        simulated: float (policies, episodes), values in [0, 1] (success, SPL); NaN where a policy did not run.
        real: float (policies, episodes), values of the same episodes in the same order, with NaN in the same places.
        confidence: confidence level of the interval.
        draws: number of draws of the errors.
        seed: seed of the draws.
        further: predict the coefficient of a further campaign with this multiple of the episodes, whose means have
            errors as well; None for the coefficient of the means themselves.

    Raises:
        ValueError: as :func:`srcc`, the shapes differ, or a policy has no episode.
    """
    pair = _pair(simulated, real)
    means = np.nanmean(pair, axis=2)
    mean = srcc(*means)
    covariance = _covariance(pair) * (1 if further is None else 1 + 1 / further)
    experiment = _Campaigns.of(covariance, means, draws, np.random.default_rng(seed))
    tail = (1 - confidence) / 2
    least, most = experiment.median(math.pi), experiment.median(0.0)
    low = _boundary(lambda angle: experiment.share_above(angle, min(mean, most)) <= tail)
    high = _boundary(lambda angle: experiment.share_below(angle, max(mean, least)) > tail)
    return Interval(mean, min(low, mean), max(high, mean))


@dataclass(frozen=True)
class _Campaigns:
    """Simulation of campaigns in worlds with a given angle.

    Attributes:
        between: float (policies,), axis of the plane halfway between the worlds.
        across: float (policies,), the other axis.
        lengths: lengths of the two worlds' deviations, without errors.
        errors: float (2, draws, policies).
    """

    between: Floats
    across: Floats
    lengths: tuple[float, float]
    errors: Floats

    @classmethod
    def of(cls, covariance: Floats, means: Floats, draws: int, random: np.random.Generator) -> "_Campaigns":
        policies = means.shape[1]
        deviations = means - means.mean(axis=1, keepdims=True)
        directions = deviations / np.linalg.norm(deviations, axis=1, keepdims=True)
        blocks = covariance.reshape(2, policies, 2, policies)
        lengths = [
            math.sqrt(max(total - float(np.trace(_centered(blocks[world, :, world]))), _LEAST_SPREAD**2 * total))
            for world, total in enumerate((deviations**2).sum(axis=1))
        ]
        values, vectors = np.linalg.eigh(covariance)
        root = vectors * np.sqrt(np.maximum(values, 0))
        errors = random.standard_normal((draws, 2 * policies)) @ root.T
        between, across = directions[0] + directions[1], directions[0] - directions[1]
        if np.linalg.norm(across) < 1e-9:
            across = _orthogonal(between)
        if np.linalg.norm(between) < 1e-9:
            between = _orthogonal(across)
        return cls(
            between / np.linalg.norm(between),
            across / np.linalg.norm(across),
            (lengths[0], lengths[1]),
            errors.reshape(draws, 2, policies).transpose(1, 0, 2),
        )

    def share_below(self, angle_rad: float, observed: float) -> float:
        """Share of campaigns with at most the observed coefficient."""
        return float(np.mean(self._drawn(angle_rad) <= observed))

    def share_above(self, angle_rad: float, observed: float) -> float:
        """Share of campaigns with at least the observed coefficient."""
        return float(np.mean(self._drawn(angle_rad) >= observed))

    def median(self, angle_rad: float) -> float:
        """Median coefficient of the campaigns."""
        return float(np.median(self._drawn(angle_rad)))

    def _drawn(self, angle_rad: float) -> Floats:
        along, aside = math.cos(angle_rad / 2) * self.between, math.sin(angle_rad / 2) * self.across
        simulated = self.lengths[0] * (along + aside) + self.errors[0]
        real = self.lengths[1] * (along - aside) + self.errors[1]
        simulated -= simulated.mean(axis=1, keepdims=True)
        real -= real.mean(axis=1, keepdims=True)
        products = np.einsum("dp,dp->d", simulated, real)
        return np.asarray(products / (np.linalg.norm(simulated, axis=1) * np.linalg.norm(real, axis=1)))


def _pair(simulated: ArrayLike, real: ArrayLike) -> Floats:
    a, b = np.asarray(simulated, np.float64), np.asarray(real, np.float64)
    if a.ndim != 2 or a.shape != b.shape:
        raise ValueError(f"both worlds need the same policies and episodes, got shapes {a.shape} and {b.shape}")
    pair = np.stack((a, b))
    if np.isnan(pair).all(axis=2).any():
        raise ValueError("a policy has no episode")
    return pair


def _covariance(pair: Floats) -> Floats:
    """Covariance of all means, the simulated world's first, float (2 policies, 2 policies)."""
    flat = pair.reshape(-1, pair.shape[2])
    counts = np.isfinite(flat).sum(axis=1)
    deviations = np.nan_to_num(flat - np.nanmean(flat, axis=1, keepdims=True))
    covariance = deviations @ deviations.T / np.outer(counts, np.maximum(counts - 1, 1))
    covariance = (covariance + covariance.T) / 2
    more = counts + 2
    mean = (np.nansum(flat, axis=1) + 1) / more
    least = ((np.nansum(flat**2, axis=1) + 1) / more - mean**2) / more
    own = np.diagonal(covariance)
    return np.asarray(covariance + np.diag(np.maximum(least - own, 0)))


def _centered(covariance: Floats) -> Floats:
    """Covariance of the deviations from the mean over policies."""
    return np.asarray(covariance - covariance.mean(axis=0))


def _orthogonal(direction: Floats) -> Floats:
    """A direction of deviations orthogonal to another, which exists for three policies or more."""
    first = np.linalg.svd(np.stack((direction, np.ones_like(direction))))[2][-1]
    return np.asarray(first)


def _boundary(beyond: Callable[[float], bool]) -> float:
    """Cosine of the angle in [0, pi] from which on ``beyond`` holds."""
    if beyond(0.0):
        return 1.0
    near, far = 0.0, math.pi
    if not beyond(far):
        return -1.0
    for _ in range(_HALVINGS):
        middle = (near + far) / 2
        near, far = (near, middle) if beyond(middle) else (middle, far)
    return math.cos((near + far) / 2)
