"""Collisions of an episode."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Collisions:
    """Collisions of an episode.

    Attributes:
        count: number of steps in which something was touched.
        last: whether the last step was one of them (habitat-lab's ``is_collision``).
        rate: count per step; 0 for an episode without steps.
    """

    count: int
    last: bool
    rate: float


def collisions(flags: Sequence[bool]) -> Collisions:
    """Count the steps that ended in contact (habitat-lab ``nav.py`` class Collisions).

    Args:
        flags: the simulator's ``previous_step_collided``, one per action.
    """
    count = sum(map(bool, flags))
    return Collisions(count, bool(len(flags) and flags[-1]), count / len(flags) if len(flags) else 0.0)
