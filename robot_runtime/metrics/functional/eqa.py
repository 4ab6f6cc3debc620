"""Metrics of EmbodiedQA: distance to the target of the question, and rank of the answer."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

TieRule = Literal["best", "mean", "worst"]
"""The rank of an answer that shares its score with others.

``best``: the best of the tied places, so an agent that gives every answer one score is always right (EmbodiedQA
``metrics.py``, whose rank is 1 + the number of higher scores). ``mean``: the mean of the tied places.
``worst``: the last of them.
"""


@dataclass(frozen=True, slots=True)
class EqaNavigation:
    """Navigation metrics of Das et al. 2018, section 5, by the names of its Table 1 and code (its text swaps two).

    The means of the last three over episodes are the paper's percentages.

    Attributes:
        d_T: distance to the target at the end, m.
        d_delta: decrease of the distance since the start, negative if farther.
        d_min: smallest distance during the episode, the start included.
        r_T: whether the agent ended in the target's room.
        r_enter: whether it was ever in that room, the start included.
        stop: whether it stopped before the limit.
    """

    d_T: float  # noqa: N815
    d_delta: float
    d_min: float
    r_T: bool  # noqa: N815
    r_enter: bool
    stop: bool


def eqa_navigation(distances_m: ArrayLike, in_room: Sequence[bool], stopped: bool) -> EqaNavigation:
    """Navigation metrics of an episode.

    Args:
        distances_m: distances to the target, at the start and after each action; geodesic in the paper.
        in_room: whether the agent is in the target's room, at the same times.
        stopped: whether the last action was ``stop``.

    Raises:
        ValueError: no distances, one that is not finite (the paper's code leaves such episodes out of the means, so
            report them), or another number of ``in_room``.
    """
    distances = np.asarray(distances_m, np.float64)
    if distances.ndim != 1 or not len(distances) or len(in_room) != len(distances):
        raise ValueError(f"need distances and rooms per moment, got {distances.shape} and {len(in_room)}")
    if not np.isfinite(distances).all() or (distances < 0).any():
        raise ValueError("a distance to the target is not a finite number >= 0")
    return EqaNavigation(
        d_T=float(distances[-1]),
        d_delta=float(distances[0] - distances[-1]),
        d_min=float(distances.min()),
        r_T=bool(in_room[-1]),
        r_enter=any(map(bool, in_room)),
        stop=bool(stopped),
    )


def answer_rank(scores: ArrayLike, truth: int, ties: TieRule = "best") -> float:
    """Rank of the true answer among all answers by score, 1 the best (Das et al. 2018, section 5).

    Args:
        scores: one per answer, higher is better.
        truth: index of the true answer.
        ties: rule for equal scores, a :data:`TieRule`.

    Raises:
        ValueError: a score is NaN, or ``truth`` is not an index of ``scores``.
    """
    array = np.asarray(scores, np.float64)
    if array.ndim != 1 or not 0 <= truth < len(array):
        raise ValueError(f"the true answer {truth} is not among {array.shape} scores")
    if np.isnan(array).any():
        raise ValueError("an answer's score is NaN")
    higher = int((array > array[truth]).sum())
    tied = int((array == array[truth]).sum())
    return higher + {"best": 1, "mean": (tied + 1) / 2, "worst": tied}[ties]


def mean_rank(ranks: Sequence[float]) -> float:
    """Mean over questions; ValueError without one."""
    if not len(ranks):
        raise ValueError("the mean of no ranks is undefined")
    return float(np.mean(ranks))


def answer_accuracy(ranks: Sequence[float]) -> float:
    """Share of questions whose true answer has rank 1; ValueError without one.

    Habitat's ``answer_accuracy`` compares the given answer with the true one, which is the rank of one-hot scores.
    """
    if not len(ranks):
        raise ValueError("the accuracy of no answers is undefined")
    return float(np.mean([rank == 1 for rank in ranks]))


def normalized_entropy(counts: Sequence[int]) -> float:
    """Normalized entropy of a question's answers over houses, in [0, 1] (Das et al. 2018, section 3.2: keep >= 0.5).

    H = -sum p_i log p_i / log n over the n answers counted. 0 for a single answer.

    Args:
        counts: number of occurrences of each answer, each > 0.

    Raises:
        ValueError: no count, or one that is not positive.
    """
    if not len(counts) or not all(0 < count < math.inf for count in counts):
        raise ValueError(f"need positive counts, got {list(counts)}")
    if len(counts) == 1:
        return 0.0
    shares = np.asarray(counts, np.float64) / sum(counts)
    return float(min(1.0, -(shares * np.log(shares)).sum() / math.log(len(counts))))
