"""Rows of ``bench campaign`` about statistics, on campaigns drawn from a model of two policies.

The model is a probit: a start's difficulty is common to both policies, and ``correlation`` is its share of the
variance. A positive latent value is a success. The graded score is like SPL: 0 for a failure, and for a success from
0.5 to 1 with the latent value.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from robot_runtime.common.clock import Stopwatch
from robot_runtime.scoring.statistics.planner import CAMPAIGNS as PLANNED
from robot_runtime.scoring.statistics.planner import DIFFERENCES, WorkTimes, forecast, power_table
from robot_runtime.scoring.statistics.sequential import SequentialPairedTest, stopping_times
from tests.benchmarks.report import Row

ALPHA = 0.05
MAX_PAIRS = 500
CAMPAIGNS = 1000
EQUAL_CAMPAIGNS = 10_000
SEQUENCES = 1000
SEQUENCE_PAIRS = 200

FORECASTS = 100
PILOT_PAIRS = 400
TIMED_EPISODES = 40
PLANNED_PAIRS = 200
REPEATS = 1000
_DURATION_SPREAD = 0.4
"""Standard deviation of the logarithm of an episode's duration."""

FIELDTRIAL_PAIRS = 100
FIELDTRIAL = {(0.6, 0.75): (0.30, 86), (0.6, 0.9): (0.99, 40), (0.4, 0.9): (1.0, 20)}
"""Power, and mean pairs of at most 100, of fieldtrial's anytime test by the success rates of two policies.

Two-sided, alpha 0.05, 400 simulated campaigns each (github.com/rokbenko/fieldtrial, docs/stats/step-evaluation.md).
"""

FIELDTRIAL_ERROR = 1.05
"""Pairs of 400 campaigns have a standard error of up to 1.5 pairs, and are printed as whole numbers."""

_STAKES = np.linspace(0.05, 0.95, 19)
_BLOCK = 1000
"""Campaigns drawn at once, to bound memory."""


def latent_values(
    random: np.random.Generator, shape: tuple[int, int], rates: tuple[float, float], correlation: float
) -> NDArray[np.float64]:
    """Latent values of two policies that succeed at ``rates``, shape (2, campaigns, pairs)."""
    own, difficulty = random.standard_normal((2, *shape)), random.standard_normal(shape)
    own *= np.sqrt(1 - correlation)
    own += np.sqrt(correlation) * difficulty
    own += ndtri(np.array(rates))[:, None, None]
    return own


def graded(latent: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores like SPL of latent values."""
    return np.where(latent > 0, np.clip(0.5 + latent / 4, 0, 1), 0.0)


def sequential_rows(seed: int) -> list[Row]:
    """Rows of paired against unpaired tests, false alarms, and coverage of confidence sequences."""
    random = np.random.default_rng(seed)
    rows = [_against_unpaired(random, (0.5, 0.7), 0.5), _against_unpaired(random, (0.6, 0.7), 0.35)]
    rows += [_against_fieldtrial(random, correlation) for correlation in (0.0, 0.8)]
    alarms = sum(_false_alarms(random, _BLOCK) for _ in range(EQUAL_CAMPAIGNS // _BLOCK))
    rows.append(
        Row(
            "false_alarm_rate",
            "campaigns of equal policies that find one better",
            alarms / EQUAL_CAMPAIGNS,
            "",
            ALPHA,
            "<=",
            note=f"{EQUAL_CAMPAIGNS:,} campaigns of up to {MAX_PAIRS} pairs, graded, two-sided; success rate 0.6, "
            "correlation 0.5",
        )
    )
    rows.append(
        Row(
            "sequence_coverage",
            f"95 % confidence sequences that contain the difference at each of {SEQUENCE_PAIRS} pairs",
            float(np.mean([_covers(random) for _ in range(SEQUENCES)])),
            "",
            1 - ALPHA,
            note=f"{SEQUENCES:,} campaigns of 0.6 against 0.7, correlation 0.5, graded",
        )
    )
    return rows


def _against_unpaired(random: np.random.Generator, rates: tuple[float, float], target: float) -> Row:
    shares, counts = [], []
    for correlation in (0.5, 0.8):
        latent = latent_values(random, (CAMPAIGNS, MAX_PAIRS), rates, correlation)
        a, b = graded(latent)
        paired = float(stopping_times(b - a, ALPHA)[0].mean())
        signs = float(stopping_times((latent[1] > 0) * 1.0 - (latent[0] > 0), ALPHA)[0].mean())
        unpaired = float(unpaired_stopping_times(latent[0] > 0, latent[1] > 0, ALPHA)[0].mean())
        shares.append(paired / unpaired)
        known = _episodes_with_known_stake(b - a)
        counts.append(
            f"correlation {correlation}: {paired:.0f} paired and graded ({known:.0f} with the best stake, which only "
            f"who knows the distribution can choose), {signs:.0f} paired successes, {unpaired:.0f} unpaired"
        )
    low, high = (f"{rate:.1f}".lstrip("0") for rate in rates)
    return Row(
        f"episodes_vs_unpaired_{low}_{high}",
        f"episodes per policy until the decision, paired and graded over unpaired successes, success rates {low} and "
        f"{high}; mean of correlation 0.5 and 0.8, and both",
        float(np.mean(shares)),
        "",
        target,
        "<=",
        low=min(shares),
        high=max(shares),
        note="; ".join(counts) + f"; one-sided, up to {MAX_PAIRS}, {CAMPAIGNS:,} campaigns each",
    )


def _against_fieldtrial(random: np.random.Generator, correlation: float) -> Row:
    """Row of the pairs until the decision over those that fieldtrial publishes, in its worst cell."""
    shares, cells = [], []
    for rates, (power, pairs) in FIELDTRIAL.items():
        latent = latent_values(random, (CAMPAIGNS, FIELDTRIAL_PAIRS), rates, correlation)
        used, better = stopping_times((latent[1] > 0) * 1.0 - (latent[0] > 0), ALPHA, "two")
        own = float(used.mean())
        shares.append(own / pairs)
        cells.append(
            f"{rates[0]} against {rates[1]}: {own:.0f} pairs, power {np.mean(better == 1):.2f} ({pairs}, {power:.2f})"
        )
    return Row(
        f"episodes_vs_fieldtrial_r{correlation:g}".replace("0.", "."),
        "pairs until the decision over those that fieldtrial publishes for its anytime test, the worst of three cells; "
        f"outcomes correlate with {correlation:g}",
        max(shares),
        "",
        FIELDTRIAL_ERROR if correlation == 0 else 1.0,
        "<=",
        low=min(shares),
        high=max(shares),
        note="; ".join(cells) + f"; in brackets as published; {CAMPAIGNS:,} campaigns each, successes, two-sided",
    )


def _episodes_with_known_stake(differences: NDArray[np.float64]) -> float:
    """Mean pairs until the decision with the constant stake of fastest growth: no test that bets needs much fewer."""
    best = max(_STAKES, key=lambda stake: float(np.log1p(stake * differences).mean()))
    reached = np.log1p(best * differences).cumsum(axis=1) >= -np.log(ALPHA)
    return float(np.where(reached.any(axis=1), reached.argmax(axis=1) + 1, MAX_PAIRS).mean())


def _false_alarms(random: np.random.Generator, campaigns: int) -> int:
    a, b = graded(latent_values(random, (campaigns, MAX_PAIRS), (0.6, 0.6), 0.5))
    return int(np.count_nonzero(stopping_times(b - a, ALPHA, "two")[1]))


def _covers(random: np.random.Generator) -> bool:
    """Whether the sequence contains the true difference at all times."""
    a, b = graded(latent_values(random, (1, SEQUENCE_PAIRS), (0.6, 0.7), 0.5))
    test = SequentialPairedTest("spl", ALPHA)
    for pair in zip(a[0], b[0], strict=True):
        test.add(*pair)
        if not test.interval.low <= _TRUE_DIFFERENCE <= test.interval.high:
            return False
    return True


def _mean_score(rate: float) -> float:
    """The expected score at a success rate, by quadrature."""
    latent = np.linspace(-8, 8, 160_001)
    density = np.exp(-((latent - ndtri(rate)) ** 2) / 2)
    return float((graded(latent) * density).sum() / density.sum())


_TRUE_DIFFERENCE = _mean_score(0.7) - _mean_score(0.6)


# --- planner --------------------------------------------------------------------------------------------------------


def planner_rows(seed: int) -> list[Row]:
    """Rows of the forecasts' error, and of the time that a power table takes."""
    random = np.random.default_rng(seed)
    errors, inside = zip(*(_planned(random) for _ in range(FORECASTS)), strict=True)
    pilot = np.subtract(*reversed(graded(latent_values(random, (1, PILOT_PAIRS), (0.6, 0.7), 0.5))))[0]
    timer = Stopwatch()
    power_table(pilot.tolist(), WorkTimes((60.0,)), max_pairs=MAX_PAIRS, campaigns=PLANNED)
    return [
        Row(
            "power_table_s",
            f"power table of {len(DIFFERENCES)} differences, {PLANNED:,} campaigns of up to {MAX_PAIRS} pairs each",
            timer.elapsed_s(),
            "s",
            60.0,
            "<=",
        ),
        Row(
            "planner_error_pct",
            f"error of forecast robot-hours that 90 of {FORECASTS} simulated campaigns do not exceed",
            float(np.quantile(np.abs(errors), 0.9)),
            "%",
            15.0,
            "<=",
            note=f"forecast from {PILOT_PAIRS} simulated pilot pairs and {TIMED_EPISODES} timed episodes, for the true "
            f"difference, against the mean of {REPEATS} repetitions of the same campaign (up to {PLANNED_PAIRS} pairs, "
            f"two-sided); the forecast 80 % range contained {100 * np.mean(inside):.0f} % of single campaigns",
        ),
    ]


def _planned(random: np.random.Generator) -> tuple[float, bool]:
    """Error of a forecast in percent, and whether one campaign's hours lay in its range; of a random question."""
    low, correlation = random.uniform(0.4, 0.7), random.uniform(0.3, 0.8)
    rates = (low, low + float(random.choice([0.1, 0.15, 0.2])))
    difference = _mean_score(rates[1]) - _mean_score(rates[0])
    median_s = random.uniform(30, 120)
    times = {"placing_s": 60.0, "judging_s": 15.0, "battery_per_h": 0.4, "repeated": 0.05}
    a, b = graded(latent_values(random, (REPEATS, PLANNED_PAIRS), rates, correlation))
    pairs, _ = stopping_times(b - a, ALPHA, "two")
    truth = WorkTimes((float(median_s * np.exp(_DURATION_SPREAD**2 / 2)),), **times)
    a, b = graded(latent_values(random, (1, PILOT_PAIRS), rates, correlation))
    timed = median_s * np.exp(random.normal(0, _DURATION_SPREAD, TIMED_EPISODES))
    work = WorkTimes(tuple(timed.tolist()), **times)
    found = forecast((b - a)[0].tolist(), difference, work, ALPHA, "two", PLANNED_PAIRS, REPEATS)
    actual = truth.hours(pairs)
    return 100 * (found.hours / float(actual.mean()) - 1), bool(
        found.hours_range[0] <= actual[0] <= found.hours_range[1]
    )


def unpaired_stopping_times(
    a: ArrayLike, b: ArrayLike, alpha: float = 0.05
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Episodes per policy until B is found better by successes alone, without pairs: the comparison for pairs.

    The E-variable of two binomial samples by Turner and Grünwald (2023): predicted rates of both against the nearest
    pair of equal rates, with Beta(1, 2) and Beta(2, 1) priors of A and B.

    Args:
        a: successes of A, 0 or 1, shape (campaigns, max_episodes).
        b: successes of B, 0 or 1, shape (campaigns, max_episodes).
        alpha: probability of a wrong decision.

    Returns:
        Episodes used of each policy, and whether B was found better; both of shape (campaigns,).
    """
    won_a, won_b = np.asarray(a, bool), np.asarray(b, bool)
    campaigns, most = won_a.shape
    episodes = np.full(campaigns, most)
    found = np.zeros(campaigns, bool)
    log_e = np.zeros(campaigns)
    sum_a, sum_b = np.zeros(campaigns), np.zeros(campaigns)
    for number in range(most):
        rate_a, rate_b = (sum_a + 1) / (number + 3), (sum_b + 2) / (number + 3)
        middle = (rate_a + rate_b) / 2
        null_a, null_b = np.where(rate_b > rate_a, (middle, middle), (rate_a, rate_b))
        for won, rate, null in ((won_a[:, number], rate_a, null_a), (won_b[:, number], rate_b, null_b)):
            log_e += np.log(np.where(won, rate / null, (1 - rate) / (1 - null)))
        sum_a += won_a[:, number]
        sum_b += won_b[:, number]
        now = ~found & (log_e >= -math.log(alpha))
        episodes[now] = number + 1
        found |= now
    return episodes, found
