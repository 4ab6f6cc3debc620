"""Battery model: whether a robot's charge lasts for the runs of the next start."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from robot_runtime.campaign.facts import Facts
from robot_runtime.campaign.plan import Battery


def consumptions(runs: Iterable[Facts]) -> list[float]:
    """Charge that each run took, parts of 1, where it is known."""
    pairs = ((facts.battery, facts.battery_end) for facts in runs)
    return [max(0.0, begin - end) for begin, end in pairs if begin is not None and end is not None]


def expected(taken: Sequence[float], rules: Battery) -> float:
    """Charge that a run takes at most, with a probability of about 0.98: mean and two standard deviations."""
    if len(taken) < 2:
        return max([rules.first_run, *taken])
    return statistics.fmean(taken) + 2 * statistics.stdev(taken)


def must_charge(charge: float | None, runs: int, taken: Sequence[float], rules: Battery) -> bool:
    """Whether the robot must charge before it begins.

    Args:
        charge: now, 0 to 1; None if unknown, which is never too little.
        runs: that follow each other from the next start.
        taken: by each run so far.
        rules: of the plan.
    """
    return charge is not None and charge - runs * expected(taken, rules) < rules.least


def charged(charge: float | None, rules: Battery) -> bool:
    """Whether a robot that was paused goes on."""
    return charge is None or charge >= rules.resume
