"""Shares that an imperfect judge decided: calibrated abstention, and correction for the judge's error rates.

A judge gives a score in 0..1 per episode, and decides only above ``high`` or below ``low``. Its sensitivity and
specificity are counted on episodes of known truth; the share of successes that it reports is corrected for them (Rogan
and Gladen 1978), with the interval of Lang and Reiczigel (Preventive Veterinary Medicine 113, 2014), which counts the
uncertainty of all three proportions.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from robot_runtime.scoring.statistics.intervals import Interval, is_count, wilson
from robot_runtime.verdicts import Judge


def calibrate(scores: ArrayLike, truth: ArrayLike, abstention: float = 0.1) -> Judge:
    """The thresholds of highest agreement with the truth among those that abstain at most so often.

    Args:
        scores: scores of the episodes, (N,), 0..1.
        truth: true outcomes of the episodes, (N,), bool.
        abstention: largest share of episodes without a verdict.

    Raises:
        ValueError: no scores, other numbers of truths, a score outside 0..1, only one kind of truth, or a share of
            abstentions outside [0, 1).
    """
    values, yes = _scored(scores, truth)
    if not 0 <= abstention < 1:
        raise ValueError(f"a share of abstentions of {abstention} is not in [0, 1)")
    if yes.all() or not yes.any():
        raise ValueError("a judge cannot be calibrated on episodes of the same outcome")
    levels = np.unique(np.quantile(values, np.linspace(0, 1, 101), method="nearest"))  # values that occur
    best, thresholds = (-1.0, 0.0), (0.5, 0.5)
    for i, low in enumerate(levels):
        for high in levels[i:]:
            decided = (values < low) | (values >= high)
            missed = float((~decided).mean())
            if missed > abstention or not decided.any():
                continue
            agreement = (float(((values >= high) == yes)[decided].mean()), -missed)
            if agreement > best:
                best, thresholds = agreement, (float(low), float(high))
    return count_errors(values, yes, *thresholds)


def count_errors(scores: ArrayLike, truth: ArrayLike, low: float, high: float) -> Judge:
    """The judge of these thresholds with its errors on episodes of known truth, (N,) each.

    Raises:
        ValueError: other numbers of truths than scores, or a score outside 0..1.
    """
    values, yes = _scored(scores, truth)
    says, denies = values >= high, values < low
    counts = (yes & (says | denies), yes & says, ~yes & (says | denies), ~yes & denies)
    return Judge(low, high, *(int(mask.sum()) for mask in counts))


def _scored(scores: ArrayLike, truth: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    values, yes = np.asarray(scores, np.float64), np.asarray(truth, np.bool_)
    if values.ndim != 1 or values.shape != yes.shape or not ((values >= 0) & (values <= 1)).all():
        raise ValueError(f"need scores in 0..1 and as many truths, got {values.shape} and {yes.shape}")
    return values, yes


def corrected_share(yes: int, decided: int, judge: Judge, confidence: float = 0.95) -> Interval:
    """The share of true successes among the episodes that a judge decided.

    Args:
        yes: number of episodes that it called successes.
        decided: number of episodes that it decided; the result leaves out abstentions, which must be reported with it.
        judge: judge with its errors.
        confidence: confidence level of the interval.

    Returns:
        The corrected share and its interval, within 0..1.

    Raises:
        ValueError: impossible counts, or a judge that is not better than chance.
    """
    counts = is_count(yes) and is_count(decided) and 0 < confidence < 1
    if not counts or yes > decided or decided < 1 or min(judge.positives, judge.negatives) < 1:
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


def corrected_success(yes: int, judged: int, failed: int, judge: Judge, confidence: float = 0.95) -> Interval:
    """The share of successes where some episodes failed whatever the judge says: they did not stop, or not near.

    The product of two shares, with the interval of Donner and Zou (Statistical Methods in Medical Research 21, 2012),
    which needs only those of both.

    Args:
        yes: number of judged episodes that it called successes.
        judged: number of episodes that the judge's verdict decided.
        failed: number of episodes that failed whatever it says.
        judge: judge with its errors.
        confidence: confidence level of the interval.

    Raises:
        ValueError: as :func:`corrected_share`.
    """
    share, gate = corrected_share(yes, judged, judge, confidence), wilson(judged, judged + failed, confidence)
    open_share = judged / (judged + failed)
    mean = share.mean * open_share
    down = math.hypot(open_share * (share.mean - share.low), share.mean * (open_share - gate.low))
    up = math.hypot(open_share * (share.high - share.mean), share.mean * (gate.high - open_share))
    return Interval(mean, max(0.0, mean - down), min(1.0, mean + up))
