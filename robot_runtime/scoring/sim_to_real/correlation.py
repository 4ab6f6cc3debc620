"""How well a campaign knows the sim-vs-real correlation: an interval that keeps its word for few episodes.

Policies' means over episodes err, and errors make two worlds look less alike than they are (Spearman 1904,
"attenuation"). A percentile bootstrap draws errors on top of those in the data and so errs a second time the same way:
of six policies in 25 episodes whose worlds agree (coefficient 0.97), its 95 % interval holds the truth one time in
three. So the interval is found the other way round, by inverting a test (Davison and Hinkley 1997, 5.5): it holds every
coefficient under which the observed one would have been no surprise. ``robot-runtime bench gap`` counts how often.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robot_runtime.scoring.statistics.hypothesis_tests import srcc
from robot_runtime.scoring.statistics.intervals import Interval

Floats = NDArray[np.float64]

_HALVINGS = 14
"""Of the half circle of angles between the worlds: to 0.01 degrees."""

_LEAST_SPREAD = 0.5
"""Policies differ at least by this part of how they seem to differ, however much of it errors explain."""


def correlation_interval(
    simulated: ArrayLike,
    real: ArrayLike,
    confidence: float = 0.95,
    draws: int = 4_000,
    seed: int = 0,
    further: float | None = None,
) -> Interval:
    """The SRCC of policies' means with its interval, for these policies and any episodes of the same kind.

    The means are a point each in the space of policies, and the correlation is the cosine of the angle between their
    deviations. Under a coefficient on trial, the two directions are turned, in the plane that they span, to the angle
    that it says; as long as observed, less what errors alone make of them. Errors are drawn normally, with the
    covariance that the episodes show: an episode that is hard for one policy is hard for others and in the other world.
    A mean's variance is at least that of its episodes and one success and one failure more, for nobody knows that a
    policy that never failed never will. A coefficient that is higher than worlds that are one show half of the time is
    luck, and says no more than theirs; likewise one that is lower than opposites show.

    Args:
        simulated, real: float (policies, episodes), values in [0, 1] (success, SPL), the same episodes in the same
            order; NaN where a policy did not run, the same places in both.
        further: foretell the coefficient that a further campaign will show, of so many times as many episodes, whose
            means err as well; None for the coefficient of the means themselves.

    Raises:
        ValueError: as :func:`srcc`; different shapes; or a policy without any episode.
    """
    pair = _pair(simulated, real)
    means = np.nanmean(pair, axis=2)
    mean = srcc(*means)
    covariance = _covariance(pair) * (1 if further is None else 1 + 1 / further)
    experiment = _Experiment.of(covariance, means, draws, np.random.default_rng(seed))
    tail = (1 - confidence) / 2
    least, most = experiment.median(math.pi), experiment.median(0.0)
    low = _boundary(lambda angle: experiment.share_above(angle, min(mean, most)) <= tail)
    high = _boundary(lambda angle: experiment.share_below(angle, max(mean, least)) > tail)
    return Interval(mean, min(low, mean), max(high, mean))


@dataclass(frozen=True)
class _Experiment:
    """The same campaign over and over, in worlds whose angle is chosen.

    Attributes:
        between, across: float (policies,), the plane's axes: the direction halfway between the worlds, and the other.
        lengths: of the two worlds' deviations, without errors. errors: float (2, draws, policies).
    """

    between: Floats
    across: Floats
    lengths: tuple[float, float]
    errors: Floats

    @classmethod
    def of(cls, covariance: Floats, means: Floats, draws: int, random: np.random.Generator) -> _Experiment:
        policies = means.shape[1]
        deviations = means - means.mean(axis=1, keepdims=True)
        directions = deviations / np.linalg.norm(deviations, axis=1, keepdims=True)
        blocks = covariance.reshape(2, policies, 2, policies)
        lengths = [
            math.sqrt(max(total - float(np.trace(_centred(blocks[world, :, world]))), _LEAST_SPREAD**2 * total))
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
        """How often a campaign shows no more."""
        return float(np.mean(self._drawn(angle_rad) <= observed))

    def share_above(self, angle_rad: float, observed: float) -> float:
        """How often a campaign shows no less."""
        return float(np.mean(self._drawn(angle_rad) >= observed))

    def median(self, angle_rad: float) -> float:
        """Of what campaigns show."""
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
    """Of all means, those of the simulated world first: float (2 policies, 2 policies)."""
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


def _centred(covariance: Floats) -> Floats:
    """That of deviations from the mean over policies."""
    return np.asarray(covariance - covariance.mean(axis=0))


def _orthogonal(direction: Floats) -> Floats:
    """Some direction of deviations at right angles to another. Three policies have one at least."""
    first = np.linalg.svd(np.stack((direction, np.ones_like(direction))))[2][-1]
    return np.asarray(first)


def _boundary(beyond: Callable[[float], bool]) -> float:
    """The cosine of the angle, between 0 and pi, from which on ``beyond`` holds."""
    if beyond(0.0):
        return 1.0
    near, far = 0.0, math.pi
    if not beyond(far):
        return -1.0
    for _ in range(_HALVINGS):
        middle = (near + far) / 2
        near, far = (near, middle) if beyond(middle) else (middle, far)
    return math.cos((near + far) / 2)
