"""Numbers between the values of a grid: the most likely one, found by likelihood alone, which needs no policy."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from robot_runtime.errors import ConfigError
from sim_bridge.tuning.settings import AS_IT_IS, Setting, make_setting

GOLDEN = (math.sqrt(5) - 1) / 2
EVALUATIONS = 18
"""Per key and round: what is left of a range is a six-hundredth."""

ROUNDS = 2
"""Of all keys; where they are coupled, the second round sees what the first found for the others."""

COARSE = 5
"""Values, evenly over the range, among which the likelihood's peak is looked for first: it may have several."""


@dataclass(frozen=True)
class Range:
    """A key and the numbers between which it is looked for."""

    key: str
    low: float
    high: float

    @classmethod
    def parse(cls, text: str) -> Range:
        """What ``KEY=LOW:HIGH`` says. Raises ``ConfigError``."""
        key, equals, ends = text.partition("=")
        low, colon, high = ends.partition(":")
        try:
            found = cls(key, float(low), float(high))
        except ValueError:
            colon = ""
        if not (key and equals and colon) or not -math.inf < found.low < found.high < math.inf:
            raise ConfigError(f"--refine {text!r} is not KEY=LOW:HIGH", "write it like --refine camera.latency_s=0:0.3")
        return found


def refine(
    start: Setting, ranges: Sequence[Range], total: Callable[[Setting], float], on_evaluated: Callable[[], None]
) -> Setting:
    """The most likely setting that differs from ``start`` in the ranges' keys only.

    One key after the other: five values over its range, then a golden-section search (Kiefer 1953) between the
    neighbours of the best; twice, if there are several keys.

    Args:
        total: logarithm of a setting's likelihood. on_evaluated: told of each.

    Raises:
        ConfigError: an option does not exist, or does not take a value of its range.
    """
    changes: dict[str, str] = {}

    def made(key: str, value: float) -> Setting:
        return make_setting(start.robot, start.path, list({**changes, key: f"{value:.6g}"}.items()))

    def judged(key: str, value: float) -> float:
        on_evaluated()
        return total(made(key, value))

    for one in ranges:
        made(one.key, one.low)
        made(one.key, one.high)
    for _ in range(ROUNDS if len(ranges) > 1 else 1):
        for one in ranges:
            changes[one.key] = f"{_peak(one, partial(judged, one.key)):.6g}"
    found = make_setting(start.robot, start.path, list(changes.items()))
    others = "" if start.name == AS_IT_IS else f" ({start.name})"
    return replace(found, name=f"refined: {found.name}{others}", changes=(*start.changes, *found.changes))


def evaluations(ranges: Sequence[Range]) -> int:
    """How many likelihoods :func:`refine` asks for."""
    return len(ranges) * EVALUATIONS * (ROUNDS if len(ranges) > 1 else 1)


def _peak(one: Range, judged: Callable[[float], float]) -> float:
    grid = [one.low + (one.high - one.low) * i / (COARSE - 1) for i in range(COARSE)]
    tried = {value: judged(value) for value in grid}
    best = max(grid, key=lambda value: tried[value])
    index = grid.index(best)
    low, high = grid[max(0, index - 1)], grid[min(COARSE - 1, index + 1)]
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    tried[left], tried[right] = judged(left), judged(right)
    for _ in range(EVALUATIONS - COARSE - 2):
        if tried[left] >= tried[right]:
            high, right = right, left
            left = high - GOLDEN * (high - low)
            tried[left] = judged(left)
        else:
            low, left = left, right
            right = low + GOLDEN * (high - low)
            tried[right] = judged(right)
    return max(tried, key=lambda value: tried[value])
