"""Forecast of a campaign before its first episode: pairs until the decision, power and robot-hours, from pilot runs.

The pilot gives the distribution of the paired differences. It is tilted exponentially until its mean is the difference
that the campaign shall find, which leaves the possible values as they are; from it, campaigns are drawn and decided by
the sequential test. Nothing is assumed about the shape. The pilot's own mean, which few runs cannot tell, is not used.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from robot_runtime.errors import ConfigError
from robot_runtime.scoring.statistics.intervals import is_count
from robot_runtime.scoring.statistics.sequential import Sides, stopping_times

CAMPAIGNS = 10_000
DIFFERENCES = (0.05, 0.1, 0.15, 0.2, 0.3)
"""Differences of a power table."""

_LARGEST_TILT = 60.0
_POSSIBLE = (-1.0, 0.0, 1.0)
_WEIGHT = 0.1
"""Values that every campaign may have, and their weight in pairs of the pilot."""


@dataclass(frozen=True)
class WorkTimes:
    """Time and charge of a robot's work.

    Attributes:
        episode_s: seconds of each pilot episode.
        placing_s: seconds from the end of an episode to the start of the next, without judging and charging.
        judging_s: seconds of judging an episode, if the robot waits for it; else 0.
        battery_per_h: share of the battery that an hour of episodes takes; 0 if unknown.
        usable: share of the battery between two charges.
        charging_s: seconds of a charge by that share.
        repeated: share of episodes that have to be repeated.
    """

    episode_s: tuple[float, ...]
    placing_s: float = 60.0
    judging_s: float = 0.0
    battery_per_h: float = 0.0
    usable: float = 0.65
    charging_s: float = 3600.0
    repeated: float = 0.0

    def __post_init__(self) -> None:
        if not self.episode_s or min(self.episode_s) < 0 or not all(map(math.isfinite, self.episode_s)):
            raise ConfigError("a forecast needs durations of episodes", "give pilot logs with an end record")
        if min(self.placing_s, self.judging_s, self.battery_per_h, self.charging_s) < 0 or self.usable <= 0:
            raise ConfigError(f"times and charges cannot be negative: {self}", "correct them")
        if not 0 <= self.repeated < 1:
            raise ConfigError(f"the share of repeated episodes is {self.repeated}", "it must be at least 0 and below 1")

    def hours(self, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
        """Robot-hours of campaigns with these numbers of pairs, charges included, on average."""
        episodes = 2 * pairs / (1 - self.repeated)
        driven_s = episodes * (math.fsum(self.episode_s) / len(self.episode_s))
        charges = np.floor(driven_s / 3600 * self.battery_per_h / self.usable)
        return np.asarray((driven_s + episodes * (self.placing_s + self.judging_s) + charges * self.charging_s) / 3600)


@dataclass(frozen=True)
class Forecast:
    """Forecast for one true difference.

    Attributes:
        difference: mean of B - A over starts.
        power: probability that the better policy is found by the largest number of pairs.
        wrong: probability that the worse policy is found.
        pairs: mean number of pairs until the end.
        pairs_range: 10 % and 90 % quantiles of the number of pairs.
        hours: mean robot-hours.
        hours_range: 10 % and 90 % quantiles of the robot-hours.
    """

    difference: float
    power: float
    wrong: float
    pairs: float
    pairs_range: tuple[float, float]
    hours: float
    hours_range: tuple[float, float]


def forecast(
    pilot: Sequence[float],
    difference: float,
    times: WorkTimes,
    alpha: float = 0.05,
    sides: Sides = "two",
    max_pairs: int = 200,
    campaigns: int = CAMPAIGNS,
    seed: int = 0,
) -> Forecast:
    """Forecast of campaigns whose true mean difference is ``difference``.

    Args:
        pilot: paired differences B - A of a metric between 0 and 1, on the robot or in simulation, N >= 1.
        difference: true difference of the campaigns, in (-1, 1).
        times: time and charge of the robot's work.
        alpha: level of the test.
        sides: sides of the test.
        max_pairs: largest number of pairs of the plan.
        campaigns: number of simulated campaigns.
        seed: seed of these campaigns.

    Raises:
        ConfigError: no pilot, a value outside [-1, 1], or a difference that no such distribution has.
    """
    if not all(is_count(count) and count >= 1 for count in (max_pairs, campaigns)):
        raise ConfigError(f"{campaigns} campaigns of {max_pairs} pairs", "give whole numbers of at least 1")
    values, chances = tilted(pilot, difference)
    random = np.random.default_rng(seed)
    drawn = random.choice(values, (campaigns, max_pairs), p=chances)
    pairs, better = stopping_times(drawn, alpha, sides)
    hours = times.hours(pairs)
    sign = 1 if difference >= 0 else -1
    return Forecast(
        difference=difference,
        power=float(np.mean(better == sign)) if difference else 0.0,
        wrong=float(np.mean(better == -sign) if difference else np.mean(better != 0)),
        pairs=float(pairs.mean()),
        pairs_range=_range(pairs),
        hours=float(hours.mean()),
        hours_range=_range(hours),
    )


def power_table(
    pilot: Sequence[float],
    times: WorkTimes,
    differences: Sequence[float] = DIFFERENCES,
    alpha: float = 0.05,
    sides: Sides = "two",
    max_pairs: int = 200,
    campaigns: int = CAMPAIGNS,
) -> list[Forecast]:
    """Forecasts for several differences. Raises as :func:`forecast`."""
    return [forecast(pilot, difference, times, alpha, sides, max_pairs, campaigns) for difference in differences]


def tilted(pilot: Sequence[float], mean: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Values and probabilities of the pilot's differences, tilted to a mean.

    A small weight is put on -1, 0 and 1, because a short pilot may not have seen a loss.

    Raises:
        ConfigError: as :func:`forecast`.
    """
    observed = np.asarray(pilot, np.float64)
    if not observed.size or not (np.abs(observed) <= 1).all():
        raise ConfigError("a forecast needs paired differences between -1 and 1", "give pilot runs of both policies")
    if not -1 < mean < 1:
        raise ConfigError(f"a difference of {mean} is not between -1 and 1", "give the smallest one that matters")
    values, counts = np.unique(np.concatenate([observed, _POSSIBLE]), return_counts=True)
    weights = counts - np.isin(values, _POSSIBLE) * (1 - _WEIGHT)

    def probabilities(tilt: float) -> NDArray[np.float64]:
        powers = np.exp(tilt * values - abs(tilt)) * weights
        return np.asarray(powers / powers.sum())

    tilt = brentq(lambda tilt: float(probabilities(tilt) @ values) - mean, -_LARGEST_TILT, _LARGEST_TILT)
    return values, probabilities(tilt)


def _range(values: NDArray[np.int64] | NDArray[np.float64]) -> tuple[float, float]:
    low, high = np.quantile(values, (0.1, 0.9))
    return float(low), float(high)
