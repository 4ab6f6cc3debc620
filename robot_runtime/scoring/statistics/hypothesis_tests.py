"""Hypothesis tests of policy differences, sample sizes, and sim-vs-real correlation.

The permutation test is our own: ``scipy.stats.permutation_test`` gives the same p-values up to 16 pairs, where all
patterns are enumerated, in 50 times the time (12 pairs: 29 ms, here 0.6 ms). Beyond, it draws other random signs, so
that published p-values would change (100 pairs: 1.2 s, here 0.24 s), and it has no clusters.
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from robot_runtime.scoring.statistics.intervals import cluster_sums, is_count

_EXACT_UP_TO = 16
"""Units up to which all sign patterns are enumerated, 65,536; for more, ``permutations`` are drawn."""

_ROUNDING = 1e-12
"""Rounding error of sums, in units of the sum of all differences."""


@dataclass(frozen=True, slots=True)
class PairedTest:
    """Result of a test of two policies on the same episodes.

    Attributes:
        episodes: number of pairs.
        units: number of permuted units: pairs, or clusters of pairs.
        difference: mean of a - b.
        p_value: two-sided p-value.
        exact: whether all permutations were enumerated.
    """

    episodes: int
    units: int
    difference: float
    p_value: float
    exact: bool


def paired_permutation_test(
    a: ArrayLike, b: ArrayLike, clusters: Sequence[Hashable] | None = None, permutations: int = 100_000, seed: int = 0
) -> PairedTest:
    """Two-sided paired permutation test (Fisher 1935; Good 2005, chapter 3).

    Under the null hypothesis, the sign of each pair's difference is arbitrary. The statistic is the sum of differences;
    p is the share of sign patterns whose sum is as far from 0: all 2^N for N <= 16 units that differ, else
    (1 + hits) / (1 + drawn). It assumes nothing about the distribution, which for SPL is a spike at 0 and a slope.

    Args:
        a: one value of policy A per episode; runs with several seeds are averaged first.
        b: one value of policy B per episode, the same episodes in the same order.
        clusters: scene or start of each episode; all differences of a cluster change sign together.
        permutations: number of random sign patterns.
        seed: seed of these patterns.

    Raises:
        ValueError: there is no pair, the numbers differ, a value is not finite, there are fewer than two clusters, or
            ``permutations`` is no number of patterns.
    """
    if permutations < 1 or not is_count(permutations):
        raise ValueError(f"{permutations} permutations")
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
    """Number of additional episodes needed to tell two policies apart.

    N = V ((z_(1-alpha/2) + z_power) / difference)^2, the usual size of a paired test, where V is N times the variance
    of the mean difference: the variance of a difference, or that with the clusters' design effect; minus the
    episodes at hand.

    Args:
        a: values of policy A, see :func:`paired_permutation_test`.
        b: values of policy B.
        clusters: scene or start of each episode.
        alpha: level of the test.
        power: probability that the test then finds the difference.
        difference: smallest relevant difference; None for the observed one, which is as uncertain as the data.

    Returns:
        0 if the episodes at hand suffice; None without a difference or without variance.

    Raises:
        ValueError: as the test, there are fewer than two pairs, or ``alpha`` or ``power`` is outside (0, 1).
    """
    differences = _differences(a, b)
    if differences.size < 2:
        raise ValueError("one pair does not determine the spread of differences")
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
    first, second = _paired(a, b, "episodes of both")
    return first - second


def _paired(a: ArrayLike, b: ArrayLike, what: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Two series of finite values that belong together. Raises ``ValueError``, which says of what."""
    first, second = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if first.shape != second.shape or first.ndim != 1 or not first.size:
        raise ValueError(f"need the same {what}, at least one: got {first.shape} and {second.shape}")
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise ValueError("a value is not finite")
    return first, second


def srcc(simulated: ArrayLike, real: ArrayLike) -> float:
    """Sim-vs-real correlation coefficient, in [-1, 1] (Kadian et al. 2020, IV-E): the sample Pearson r.

    Args:
        simulated: mean SPL (or success) of each method in simulation.
        real: mean SPL (or success) of the same methods on the robot.

    Raises:
        ValueError: the numbers of methods differ, there are fewer than 3, a value is not finite, or all values of one
            side are equal, where r is 0/0.
    """
    s, r = _paired(simulated, real, "methods in simulation and on the robot")
    if s.size < 3:
        raise ValueError(f"a correlation needs at least 3 methods, got {s.size}")
    same = [side for side, values in (("in simulation", s), ("on the robot", r)) if np.ptp(values) == 0]
    if same:
        raise ValueError(f"all methods score the same {' and '.join(same)}: the correlation is undefined")
    # Scaled before centering, so that tiny and huge values neither vanish nor overflow when squared.
    s, r = (values / np.abs(values).max() for values in (s, r))
    s, r = s - s.mean(), r - r.mean()
    return float(np.clip((s @ r) / math.sqrt((s @ s) * (r @ r)), -1.0, 1.0))


def rank_reversals(simulated: ArrayLike, real: ArrayLike) -> list[tuple[int, int]]:
    """Pairs (i, j), i < j, of methods that simulation and robot order differently (Kadian et al. 2020); no ties.

    Raises:
        ValueError: the numbers of methods differ, or a value is not finite.
    """
    s, r = _paired(simulated, real, "methods in simulation and on the robot")
    return [
        (i, j) for i in range(s.size) for j in range(i + 1, s.size) if np.sign(s[i] - s[j]) * np.sign(r[i] - r[j]) < 0
    ]


def spl_variance(success_rate: float, path_ratio: float, episodes: int) -> tuple[float, float]:
    """Variance of SPL, of an episode and of the mean over ``episodes``, where success is a coin toss.

    c^2 p (1 - p), and that over N, for success rate p and path ratio c = l / max(p, l). Batra et al. 2020, "ObjectNav
    Revisited", 2.1.1 prints p (1 - p) SPL^2 instead, which is too small by the factor p^2.

    Raises:
        ValueError: a rate or ratio outside [0, 1], or no episode.
    """
    if not 0 <= success_rate <= 1 or not 0 <= path_ratio <= 1 or episodes < 1 or not is_count(episodes):
        raise ValueError(f"success rate {success_rate}, path ratio {path_ratio}, {episodes} episodes")
    one = path_ratio**2 * success_rate * (1 - success_rate)
    return one, one / episodes
