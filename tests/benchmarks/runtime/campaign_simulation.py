"""Rows of ``bench campaign`` about simulation as a control variate, on synthetic realities."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from robot_runtime.scoring.statistics.control_variate import ControlVariate, control_variate
from robot_runtime.scoring.statistics.intervals import Interval
from tests.benchmarks.report import Row

REALITIES = 1000
WIDTHS = 30
COVERED_EPISODES = 100
LONG_EPISODES = 400
FURTHER = 100
RATES = (0.5, 0.6, 0.7, 0.8)


@dataclass(frozen=True)
class World:
    """A reality and its simulation: success rates of both, and the correlation of successes on one start."""

    real: float
    simulated: float
    correlation: float

    def draw(self, random: np.random.Generator, episodes: int, further: int) -> ControlVariate:
        """The estimate from one campaign."""
        p, q = self.real, self.simulated
        both = p * q + self.correlation * math.sqrt(p * (1 - p) * q * (1 - q))
        outcome = random.choice(4, episodes, p=[both, p - both, q - both, 1 - p - q + both])
        others = random.random(episodes * further) < q
        real, twins = (outcome < 2).astype(float), (outcome % 2 == 0).astype(float)
        return control_variate(real.tolist(), twins.tolist(), others.astype(float).tolist())


WORLDS = {
    "good": World(0.6, 0.6, 0.8),
    "unrelated": World(0.6, 0.9, 0.0),
    "opposite": World(0.6, 0.5, -0.5),
    "too easy": World(0.5, 0.85, 0.3),
}


def simulation_rows(seed: int) -> list[Row]:
    """Rows of width and coverage with simulated twins."""
    random = np.random.default_rng(seed)
    widths = {rate: _ratios(random, World(rate, rate, 0.8), LONG_EPISODES) for rate in RATES}
    fewer = _ratios(random, WORLDS["good"], COVERED_EPISODES)
    useless = [_ratios(random, WORLDS["unrelated"], count) for count in (COVERED_EPISODES, LONG_EPISODES)]
    once, always = _coverage(random)
    any_time = [ratio for _, ratio in widths.values()]
    return [
        Row(
            "control_variate_width_r.8",
            "width of the any-time interval with simulation over that without, correlation 0.8",
            float(np.mean(any_time)),
            "",
            0.6,
            "<=",
            low=min(any_time),
            high=max(any_time),
            note=f"mean and range of success rates {', '.join(map(str, RATES))}; {LONG_EPISODES} real episodes, "
            f"{FURTHER} further simulated per real one, {WIDTHS} realities each; interval for this number of episodes "
            f"{np.mean([ratio for ratio, _ in widths.values()]):.3f}; after {COVERED_EPISODES} episodes {fewer[1]:.3f} "
            f"and {fewer[0]:.3f}; for many episodes a linear control variate cannot fall below 0.6",
        ),
        Row(
            "control_variate_coverage",
            "95 % intervals for this number of episodes that contain the real success rate; target 0.95 ± 0.014",
            float(np.mean(list(once.values()))),
            "",
            0.936,
            low=min(once.values()),
            high=max(once.values()),
            note=f"{REALITIES:,} realities of {COVERED_EPISODES} episodes; "
            + ", ".join(f"simulation {name} {once[name]:.3f} (any-time interval {always[name]:.3f})" for name in once),
        ),
        Row(
            "control_variate_width_r0",
            "width of the any-time interval with simulation over that without, no correlation",
            max(one[1] for one in useless),
            "",
            1.05,
            "<=",
            note=f"the larger of {COVERED_EPISODES} and {LONG_EPISODES} episodes; interval for this number of episodes "
            f"{max(one[0] for one in useless):.3f}",
        ),
    ]


def _ratios(random: np.random.Generator, world: World, episodes: int) -> tuple[float, float]:
    """Ratio of mean widths, for this number of episodes and at any time."""
    found = [world.draw(random, episodes, FURTHER) for _ in range(WIDTHS)]
    return (
        sum(_width(one.adjusted) for one in found) / sum(_width(one.without) for one in found),
        sum(_width(one.adjusted_any_time) for one in found) / sum(_width(one.without_any_time) for one in found),
    )


def _coverage(random: np.random.Generator) -> tuple[dict[str, float], dict[str, float]]:
    once, always = {}, {}
    for name, world in WORLDS.items():
        found = [world.draw(random, COVERED_EPISODES, 20) for _ in range(REALITIES // len(WORLDS))]
        once[name] = float(np.mean([one.adjusted.low <= world.real <= one.adjusted.high for one in found]))
        always[name] = float(
            np.mean([one.adjusted_any_time.low <= world.real <= one.adjusted_any_time.high for one in found])
        )
    return once, always


def _width(interval: Interval) -> float:
    return interval.high - interval.low
