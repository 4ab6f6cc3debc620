"""Shares that an imperfect judge decided: calibrated abstention, and correction for the judge's error rates.

A judge gives a score in 0..1 per episode, and decides only above ``high`` or below ``low``. Its sensitivity and
specificity are counted on episodes of known truth; the share of successes that it reports is corrected for them (Rogan
and Gladen 1978), with the interval of Lang and Reiczigel (Preventive Veterinary Medicine 113, 2014), which counts the
uncertainty of all three proportions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from robot_runtime.scoring.statistics.intervals import Interval


@dataclass(frozen=True)
class Judge:
    """A judge's thresholds and what is known of its errors.

    Attributes:
        low: below this score the judge says no.
        high: at this score or above it says yes; between the two it abstains.
        positives: calibration episodes whose truth is yes and that it decided.
        true_positives: of them, those to which it said yes.
        negatives: calibration episodes whose truth is no and that it decided.
        true_negatives: of them, those to which it said no.
    """

    low: float
    high: float
    positives: int
    true_positives: int
    negatives: int
    true_negatives: int

    def verdict(self, score: float) -> bool | None:
        """Yes, no, or None: it abstains."""
        return True if score >= self.high else False if score < self.low else None


def calibrate(scores: ArrayLike, truth: ArrayLike, abstention: float = 0.1) -> Judge:
    """The thresholds of highest agreement with the truth among those that abstain at most so often.

    Args:
        scores: (N,), 0..1.
        truth: (N,), bool.
        abstention: largest share of episodes without a verdict.

    Raises:
        ValueError: no scores, other numbers of truths, a score that is no number in 0..1, or only one kind of truth.
    """
    values, yes = np.asarray(scores, np.float64), np.asarray(truth, np.bool_)
    if values.ndim != 1 or values.shape != yes.shape or not ((values >= 0) & (values <= 1)).all():
        raise ValueError(f"need scores in 0..1 and as many truths, got {values.shape} and {yes.shape}")
    if yes.all() or not yes.any():
        raise ValueError("a judge cannot be calibrated on episodes of one outcome")
    levels = np.unique(np.quantile(values, np.linspace(0, 1, 101), method="nearest"))  # values that occur
    best, found = (-1.0, 0.0), (0.5, 0.5)
    for i, low in enumerate(levels):
        for high in levels[i:]:
            decided = (values < low) | (values >= high)
            missed = float((~decided).mean())
            if missed > abstention or not decided.any():
                continue
            agreement = (float(((values >= high) == yes)[decided].mean()), -missed)
            if agreement > best:
                best, found = agreement, (float(low), float(high))
    return count_errors(values, yes, *found)


def count_errors(scores: ArrayLike, truth: ArrayLike, low: float, high: float) -> Judge:
    """The judge of these thresholds with its errors on episodes of known truth, (N,) each."""
    values, yes = np.asarray(scores, np.float64), np.asarray(truth, np.bool_)
    says, denies = values >= high, values < low
    counts = (yes & (says | denies), yes & says, ~yes & (says | denies), ~yes & denies)
    return Judge(low, high, *(int(mask.sum()) for mask in counts))


def corrected_share(yes: int, decided: int, judge: Judge, confidence: float = 0.95) -> Interval:
    """The share of true successes among the episodes that a judge decided.

    Args:
        yes: episodes that it called successes.
        decided: episodes that it decided; abstentions are no part of the result and must be reported beside it.
        judge: with its errors.
        confidence: of the interval.

    Returns:
        The corrected share and its interval, within 0..1.

    Raises:
        ValueError: impossible counts, or a judge that is no better than chance.
    """
    if not 0 <= yes <= decided or decided < 1 or min(judge.positives, judge.negatives) < 1:
        raise ValueError(f"need 0 <= yes <= decided and calibration episodes of both outcomes, got {yes} of {decided}")
    z = float(ndtri(0.5 + confidence / 2))
    n, n_se, n_sp = decided + z * z, judge.positives + 2, judge.negatives + 2
    share = (yes + z * z / 2) / n
    sensitivity, specificity = (judge.true_positives + 1) / n_se, (judge.true_negatives + 1) / n_sp
    skill = sensitivity + specificity - 1
    if skill <= 0:
        raise ValueError(f"a judge of sensitivity {sensitivity:.2f} and specificity {specificity:.2f} says nothing")
    true = (share + specificity - 1) / skill
    of_se, of_sp = sensitivity * (1 - sensitivity) / n_se, specificity * (1 - specificity) / n_sp
    shift = 2 * z * z * (true * of_se - (1 - true) * of_sp)
    spread = z * math.sqrt(share * (1 - share) / n + true**2 * of_se + (1 - true) ** 2 * of_sp) / skill
    low, middle, high = (min(max(value, 0.0), 1.0) for value in (true + shift - spread, true, true + shift + spread))
    return Interval(middle, low, high)
