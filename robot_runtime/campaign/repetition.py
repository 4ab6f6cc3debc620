"""Repetitions, weighed: whether runs that people can make not to count fall on one policy more often than chance."""

from __future__ import annotations

import math
from collections.abc import Sequence

from robot_runtime.campaign.counting import Kind
from robot_runtime.campaign.state import Attempt, State

SIGNIFICANT = 0.001
"""Probability below which an unequal share of repetitions is no accident."""

OF_PEOPLE: tuple[Kind, ...] = ("interrupted", "killed", "damaged", "start", "battery_change", "invalid")
"""Kinds of which whoever is at the robot decides. So does a person who reports any kind."""


def weigh(state: State) -> tuple[list[str], list[str]]:
    """Compare the policies' shares of runs that did not count.

    Returns:
        Shares that people can cause and that are no accident; and the others that differ.
    """
    attempts = [attempt for attempt in state.attempts.values() if attempt.facts is not None]
    findings: list[str] = []
    notes: list[str] = []
    for policy in sorted(state.plan.policies):
        by_people = _unequal(state, attempts, policy, people=True)
        everything = _unequal(state, attempts, policy, people=False)
        if by_people:
            findings.append(by_people)
        elif everything:
            notes.append(everything)
    return findings, notes


def _unequal(state: State, attempts: Sequence[Attempt], policy: str, people: bool) -> str:
    """One sentence if a policy's runs were repeated more often than those of the others by more than chance."""
    void = [attempt for attempt in attempts if _is_void(state, attempt, people)]
    own = [attempt for attempt in attempts if attempt.policy == policy]
    own_void = sum(attempt.policy == policy for attempt in void)
    probability = tail_probability(own_void, len(own), len(void), len(attempts))
    if probability >= SIGNIFICANT:
        return ""
    others, others_void = len(attempts) - len(own), len(void) - own_void
    return (
        f"{own_void} of {len(own)} runs of {policy} did not count, of the others {others_void} of {others}: "
        f"more than chance (p = {probability:.1g})"
    )


def _is_void(state: State, attempt: Attempt, people: bool) -> bool:
    kind = state.plan.counting.repeated(attempt.kinds)
    return kind is not None and (not people or kind in OF_PEOPLE or kind in attempt.events)


def tail_probability(own_void: int, own: int, void: int, total: int) -> float:
    """Fisher's exact probability that ``own_void`` or more of ``void`` among ``total`` runs fall on ``own`` runs."""
    most = min(own, void)
    ways = sum(math.comb(own, k) * math.comb(total - own, void - k) for k in range(own_void, most + 1))
    return ways / math.comb(total, void)
