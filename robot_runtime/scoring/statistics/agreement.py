"""Agreement of two judges beyond chance."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.special import ndtri

from robot_runtime.scoring.statistics.intervals import CONFIDENCE, Interval


@dataclass(frozen=True)
class Agreement:
    """Agreement of two people in their verdicts on the same episodes.

    Attributes:
        episodes: number of episodes that both judged.
        disagreements: number of episodes with different verdicts.
        kappa: Cohen's kappa with its interval; NaN where all verdicts of both are the same. The ends are NaN also where
            they never disagree, or all verdicts of a person are the same: the scatter is then unknown.
    """

    episodes: int
    disagreements: int
    kappa: Interval


def agreement(first: Sequence[bool], second: Sequence[bool], confidence: float = CONFIDENCE) -> Agreement:
    """Cohen's kappa (1960) with the large-sample interval of Fleiss, Cohen and Everitt (1969).

    Args:
        first: verdicts of a person.
        second: verdicts of the other on the same episodes in the same order.
        confidence: confidence level of the interval.

    Raises:
        ValueError: there is no verdict, or the lengths differ.
    """
    if len(first) != len(second) or not first:
        raise ValueError(f"{len(first)} verdicts of the first and {len(second)} of the second judge")
    table = np.zeros((2, 2))
    np.add.at(table, (np.asarray(first, int), np.asarray(second, int)), 1 / len(first))
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    disagreements = sum(a != b for a, b in zip(first, second, strict=True))
    observed, chance = 1 - disagreements / len(first), float(rows @ columns)
    if chance > 1 - 1e-12:
        return Agreement(len(first), disagreements, Interval(math.nan, math.nan, math.nan))
    kappa = (observed - chance) / (1 - chance)
    if not disagreements or max(rows.max(), columns.max()) > 1 - 1e-12:
        return Agreement(len(first), disagreements, Interval(kappa, math.nan, math.nan))
    same = sum(table[i, i] * (1 - (rows[i] + columns[i]) * (1 - kappa)) ** 2 for i in (0, 1))
    other = (1 - kappa) ** 2 * sum(table[i, 1 - i] * (columns[i] + rows[1 - i]) ** 2 for i in (0, 1))
    variance = float(same + other - (kappa - chance * (1 - kappa)) ** 2) / (len(first) * (1 - chance) ** 2)
    half = float(ndtri((1 + confidence) / 2)) * math.sqrt(max(0.0, variance))
    return Agreement(len(first), disagreements, Interval(kappa, max(-1.0, kappa - half), min(1.0, kappa + half)))


def agreements(episodes: Iterable[Mapping[str, bool]]) -> dict[tuple[str, str], Agreement]:
    """Agreement of each pair of people on the episodes that both judged, by their names.

    Args:
        episodes: verdicts on each episode, by the name of the person; True for success.
    """
    pairs: dict[tuple[str, str], list[tuple[bool, bool]]] = {}
    for given in episodes:
        for first, second in combinations(sorted(given), 2):
            pairs.setdefault((first, second), []).append((given[first], given[second]))
    return {names: agreement([a for a, _ in given], [b for _, b in given]) for names, given in pairs.items()}


def agreement_lines(episodes: Iterable[Mapping[str, bool]]) -> list[str]:
    """A sentence for each pair of people of :func:`agreements`."""
    lines = []
    for names, found in agreements(episodes).items():
        kappa = found.kappa
        ends = "" if math.isnan(kappa.low) else f" [{kappa.low:.2f}, {kappa.high:.2f}]"
        value = "not defined: both always judged alike" if math.isnan(kappa.mean) else f"{kappa.mean:.2f}{ends}"
        count = f"{found.episodes} episode{'' if found.episodes == 1 else 's'}"
        judged = f"{count} judged by {' and '.join(names)}: they disagree on {found.disagreements}"
        lines.append(f"{judged}, Cohen's κ {value}")
    return lines
