"""Battery model: whether a robot's charge lasts for the runs of the next start."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from robot_runtime.campaign.facts import Facts
from robot_runtime.campaign.plan import Battery


def consumptions(runs: Iterable[tuple[int, Facts]]) -> list[float]:
    """Charge that each run took, with the way to its start, parts of 1, where it is known.

    Args:
        runs: number of the robot and facts of the run, in order.
    """
    taken: list[float] = []
    last: dict[int, float] = {}
    for robot, facts in runs:
        if facts.battery is None or facts.battery_end is None:
            continue
        before = max(facts.battery, last.get(robot, 0.0))  # less than the last run's end where it was charged since
        taken.append(max(0.0, before - facts.battery_end))
        last[robot] = facts.battery_end
    return taken


def expected(taken: Sequence[float], rules: Battery) -> float:
    """Charge that a run takes at most, with a probability of about 0.98: mean and two standard deviations."""
    if len(taken) < 2:
        return max([rules.first_run, *taken])
    return statistics.fmean(taken) + 2 * statistics.stdev(taken)


def must_charge(charge: float | None, runs: int, taken: Sequence[float], rules: Battery) -> bool:
    """Whether the robot must charge before it begins; one that is charged enough to go on never must.

    Args:
        charge: now, 0 to 1; None if unknown; unknown is never too little.
        runs: number of runs that follow each other from the next start.
        taken: charge that each run has taken so far.
        rules: battery rules of the plan.
    """
    return charge is not None and not charged(charge, rules) and charge - runs * expected(taken, rules) < rules.least


def charged(charge: float | None, rules: Battery) -> bool:
    """Whether a robot that was paused goes on."""
    return charge is None or charge >= rules.resume
