"""Whether two policies differ, and whether simulation predicts the robot."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from robot_runtime.scoring.statistics.intervals import cluster_sums

_EXACT_UP_TO = 16
"""Signs of so many episodes are enumerated: 65,536 ways; of more, ``permutations`` are drawn."""

_ROUNDING = 1e-12
"""Sums this near, in units of the sum of all differences, are equal: the order of adding makes them differ."""


@dataclass(frozen=True, slots=True)
class PairedTest:
    """Two policies on the same episodes.

    Attributes:
        episodes: pairs. units: what was permuted: pairs, or clusters of them.
        difference: mean of a - b. p_value: two-sided. exact: all permutations were counted, none drawn.
    """

    episodes: int
    units: int
    difference: float
    p_value: float
    exact: bool


def paired_permutation_test(
    a: ArrayLike,
    b: ArrayLike,
    clusters: Sequence[Hashable] | None = None,
    permutations: int = 100_000,
    seed: int = 0,
) -> PairedTest:
    """How often chance alone makes a difference as large as the observed one (Fisher 1935; Good 2005, chapter 3).

    If the policies are equal, each pair's difference might as well have the other sign. The statistic is the sum of
    differences; p is the share of sign patterns whose sum is as far from 0: all 2^N for N <= 16 units that differ,
    else (1 + hits) / (1 + drawn). No assumption about the values' distribution, which for SPL is a spike at 0 and a
    slope.

    Args:
        a, b: one value per episode, of the same episodes in the same order; runs with several seeds averaged first.
        clusters: per episode, its scene or start; all differences of a cluster change sign together.

    Raises:
        ValueError: no pair, different numbers, a value that is not finite, or fewer than two clusters.
    """
    differences = _differences(a, b)
    units = differences if clusters is None else cluster_sums(differences, clusters)[0]
    observed = abs(float(units.sum()))
    moving = units[units != 0]
    slack = _ROUNDING * float(np.abs(moving).sum())
    exact = moving.size <= _EXACT_UP_TO
    if exact:
        signs = 1.0 - 2.0 * (np.arange(1 << moving.size)[:, None] >> np.arange(moving.size) & 1)
        p_value = float(np.mean(np.abs(signs @ moving) >= observed - slack))
    else:
        hits = _random_hits(moving, observed - slack, permutations, seed)
        p_value = (1 + hits) / (1 + permutations)
    return PairedTest(differences.size, units.size, float(differences.mean()), p_value, exact)


def _random_hits(moving: NDArray[np.float64], threshold: float, permutations: int, seed: int) -> int:
    random = np.random.default_rng(seed)
    rows = max(1, (1 << 22) // moving.size)
    hits = 0
    for done in range(0, permutations, rows):
        signs = random.integers(0, 2, (min(rows, permutations - done), moving.size), np.int8) * 2.0 - 1.0
        hits += int((np.abs(signs @ moving) >= threshold).sum())
    return hits


def further_episodes(
    a: ArrayLike,
    b: ArrayLike,
    clusters: Sequence[Hashable] | None = None,
    alpha: float = 0.05,
    power: float = 0.8,
    difference: float | None = None,
) -> int | None:
    """How many more episodes of the same kind it takes to tell two policies apart.

    N = V ((z_(1-alpha/2) + z_power) / difference)^2, the usual size of a paired test, where V is N times the variance
    of the mean difference: the variance of one difference, or that with the clusters' design effect. Minus the episodes
    at hand.

    Args:
        a, b, clusters: as :func:`paired_permutation_test`.
        power: probability that the test at level ``alpha`` then finds the difference.
        difference: the smallest that matters. None takes the observed one, which is as uncertain as the data: a lucky
            small sample promises too few.

    Returns:
        0 if the episodes at hand suffice; None if no number does: no difference, or nothing that varies to judge by.

    Raises:
        ValueError: as the test; fewer than two pairs; ``alpha`` or ``power`` outside (0, 1).
    """
    differences = _differences(a, b)
    if differences.size < 2:
        raise ValueError("one pair says nothing about the spread of differences")
    if not 0 < alpha < 1 or not 0 < power < 1:
        raise ValueError(f"alpha and power must lie in (0, 1), got {alpha} and {power}")
    effect = float(differences.mean()) if difference is None else difference
    deviations = differences - differences.mean()
    sums = deviations if clusters is None else cluster_sums(deviations, clusters)[0]
    spread = float((sums**2).sum()) / differences.size * sums.size / (sums.size - 1)
    if effect == 0 or spread == 0:
        return None
    needed = spread * (float(ndtri(1 - alpha / 2) + ndtri(power)) / effect) ** 2
    return max(0, math.ceil(needed) - differences.size)


def _differences(a: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:
    first, second = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if first.shape != second.shape or first.ndim != 1 or not first.size:
        raise ValueError(f"need the same episodes of both, at least one: got {first.shape} and {second.shape}")
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise ValueError("a value is not finite")
    return first - second


def srcc(simulated: ArrayLike, real: ArrayLike) -> float:
    """Sim-vs-real correlation coefficient, in [-1, 1] (Kadian et al. 2020, IV-E): the sample Pearson r.

    Args:
        simulated, real: mean SPL (or success) of the same methods in simulation and on the robot.

    Raises:
        ValueError: different numbers of methods, fewer than 3, a value that is not finite, or all values of one side
            equal, where r is 0/0.
    """
    s, r = _methods(simulated, real)
    if s.size < 3:
        raise ValueError(f"a correlation of {s.size} methods says nothing; it needs 3")
    same = [side for side, values in (("in simulation", s), ("on the robot", r)) if np.ptp(values) == 0]
    if same:
        raise ValueError(f"all methods score the same {' and '.join(same)}: the correlation is undefined")
    # Scaled before centring, so that tiny and huge values neither vanish nor overflow when squared.
    s, r = (values / np.abs(values).max() for values in (s, r))
    s, r = s - s.mean(), r - r.mean()
    return float(np.clip((s @ r) / math.sqrt((s @ s) * (r @ r)), -1.0, 1.0))


def rank_reversals(simulated: ArrayLike, real: ArrayLike) -> list[tuple[int, int]]:
    """Pairs (i, j), i < j, of methods that simulation orders one way and the robot the other (Kadian et al. 2020).

    Ties on either side reverse nothing. The share is the number over n (n - 1) / 2.

    Raises:
        ValueError: different numbers of methods, or a value that is not finite.
    """
    s, r = _methods(simulated, real)
    return [
        (i, j) for i in range(s.size) for j in range(i + 1, s.size) if np.sign(s[i] - s[j]) * np.sign(r[i] - r[j]) < 0
    ]


def _methods(simulated: ArrayLike, real: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    s, r = np.asarray(simulated, np.float64), np.asarray(real, np.float64)
    if s.shape != r.shape or s.ndim != 1 or not s.size:
        raise ValueError(f"need the same methods in simulation and on the robot: got {s.shape} and {r.shape}")
    if not (np.isfinite(s).all() and np.isfinite(r).all()):
        raise ValueError("a method's score is not finite")
    return s, r


def spl_variance(success_rate: float, path_ratio: float, episodes: int) -> tuple[float, float]:
    """Variance of SPL, of one episode and of the mean over ``episodes``, where success is a coin toss.

    c^2 p (1 - p), and that over N, for success rate p and path ratio c = l / max(p, l). Batra et al. 2020, "ObjectNav
    Revisited", 2.1.1 prints p (1 - p) SPL^2 instead, which is too small by the factor p^2.

    Raises:
        ValueError: a rate or ratio outside [0, 1], or no episode.
    """
    if not 0 <= success_rate <= 1 or not 0 <= path_ratio <= 1 or episodes < 1:
        raise ValueError(f"success rate {success_rate}, path ratio {path_ratio}, {episodes} episodes")
    one = path_ratio**2 * success_rate * (1 - success_rate)
    return one, one / episodes
