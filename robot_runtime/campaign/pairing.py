"""Conditions under which runs from one start are comparable."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

from robot_runtime.campaign.facts import Facts
from robot_runtime.campaign.plan import Plan


def mismatch(plan: Plan, runs: Sequence[Facts]) -> str:
    """The first condition that differs by more than the plan allows; empty if none does.

    What a log does not tell (charge, brightness, measured start) is not compared; the map always is.
    """
    limits = plan.pairs
    for a, b in combinations(runs, 2):
        if a.map != b.map:
            return "the map is another version"
        if a.battery is not None and b.battery is not None and abs(a.battery - b.battery) > limits.battery:
            return f"the charges differ by {100 * abs(a.battery - b.battery):.0f} %"
        if a.light is not None and b.light is not None and _ratio(a.light, b.light) > limits.light:
            return f"the first images differ by {100 * _ratio(a.light, b.light):.0f} % in brightness"
        if a.x_m is not None and a.y_m is not None and b.x_m is not None and b.y_m is not None:
            apart_m = math.hypot(a.x_m - b.x_m, a.y_m - b.y_m)
            if apart_m > limits.apart_m:
                return f"the starts are {100 * apart_m:.0f} cm apart"
    return ""


def _ratio(a: float, b: float) -> float:
    """The brighter one over the darker one, less 1; images are never quite black."""
    low, high = sorted((max(a, 1 / 255), max(b, 1 / 255)))
    return high / low - 1
