"""Refinement of numeric options between the values of a grid, by likelihood."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from sim_bridge.tuning.settings import UNCHANGED, Range, Setting, make_setting

GOLDEN = (math.sqrt(5) - 1) / 2
EVALUATIONS = 18
"""Likelihoods per key and round; they narrow a range to a six-hundredth."""

ROUNDS = 2
"""Passes over all keys, because the best value of one may depend on the others."""

COARSE = 5
"""Evenly spaced values that are evaluated first, because the likelihood may have several peaks."""


def refine(
    start: Setting, ranges: Sequence[Range], total: Callable[[Setting], float], on_evaluated: Callable[[], None]
) -> Setting:
    """The most likely setting that differs from ``start`` in the ranges' keys only.

    One key after the other: five values over its range, then a golden-section search (Kiefer 1953) between the
    neighbors of the best; twice, if there are several keys.

    Args:
        start: the setting to refine.
        ranges: keys and their limits.
        total: logarithm of a setting's likelihood.
        on_evaluated: function that is called before each evaluation.

    Raises:
        ConfigError: an option does not exist, or does not take a value of its range.
    """
    changes: dict[str, str] = {}

    def made(key: str, value: float) -> Setting:
        return make_setting(start.robot, start.path, list({**changes, key: f"{value:.6g}"}.items()))

    def evaluated(key: str, value: float) -> float:
        on_evaluated()
        return total(made(key, value))

    for limits in ranges:
        made(limits.key, limits.low)
        made(limits.key, limits.high)
    for _ in range(ROUNDS if len(ranges) > 1 else 1):
        for limits in ranges:
            changes[limits.key] = f"{_peak(limits, partial(evaluated, limits.key)):.6g}"
    refined = make_setting(start.robot, start.path, list(changes.items()))
    others = "" if start.name == UNCHANGED else f" ({start.name})"
    return replace(refined, name=f"refined: {refined.name}{others}", changes=(*start.changes, *refined.changes))


def evaluations(ranges: Sequence[Range]) -> int:
    """Number of likelihoods that :func:`refine` evaluates."""
    return len(ranges) * EVALUATIONS * (ROUNDS if len(ranges) > 1 else 1)


def _peak(limits: Range, evaluated: Callable[[float], float]) -> float:
    grid = [limits.low + (limits.high - limits.low) * i / (COARSE - 1) for i in range(COARSE)]
    tried = {value: evaluated(value) for value in grid}
    best = max(grid, key=lambda value: tried[value])
    index = grid.index(best)
    low, high = grid[max(0, index - 1)], grid[min(COARSE - 1, index + 1)]
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    tried[left], tried[right] = evaluated(left), evaluated(right)
    for _ in range(EVALUATIONS - COARSE - 2):
        if tried[left] >= tried[right]:
            high, right = right, left
            left = high - GOLDEN * (high - low)
            tried[left] = evaluated(left)
        else:
            low, left = left, right
            right = low + GOLDEN * (high - low)
            tried[right] = evaluated(right)
    return max(tried, key=lambda value: tried[value])
