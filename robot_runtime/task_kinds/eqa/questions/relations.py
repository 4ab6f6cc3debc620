"""Spatial relations of boxes: on, above, below, next to.

A relation is True, False, or None where boxes cannot decide: a cushion on a bed lies within the box that the headboard
makes tall, and so would a drawer. A question "what is on the bed?" must then not be asked at all, because a person may
count the object in. With ``h`` the vertical clearance from the lower thing's top to the upper one's bottom, and ``s``
the fraction of the smaller footprint that both share:

* **A on B**: ``|h| <= touch_m`` and ``s >= min_overlap``. Unclear: A reaches deeper into B's height (``h < -touch_m``),
  or shares less (``max_stray < s < min_overlap``), or both lie flat on one level.
* **A above B**: ``h > touch_m`` and ``s >= min_overlap``. Unclear: less shared, or a footprint within ``next_to_m`` of
  B's (a picture over a sofa that stands off the wall), or A is unclear to be on B.
* **A next to B**: footprints at most ``next_to_m`` apart, hardly overlapping (``s <= max_stray``), side by side for at
  least half the height of the lower one, neither flatter than ``touch_m``, neither on nor above the other. Unclear: any
  others that share a height and are at most ``2 next_to_m`` apart.
* **A below B**: B is on A; or B is on nothing, and above A. The support of a table is not below the vase on it.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from robot_runtime.task_kinds.eqa.questions.boxes import Box, gap_m, overlap
from robot_runtime.task_kinds.eqa.questions.rules import RelationRules

T = TypeVar("T")

_MISSED_M = 0.6
_STRAY_M = 0.2
"""Distance that counts for a footprint all of which strays."""

_SAME = 0.5
"""Footprints that share more are not side by side."""

PREPOSITIONS = ("on", "above", "below", "next to")


@dataclass(frozen=True)
class Relations:
    """The relations between boxes for given thresholds."""

    rules: RelationRules

    def on(self, a: Box, b: Box) -> bool | None:
        """Whether ``a`` stands or lies on ``b``."""
        clearance_m = a.bottom_m - b.top_m
        shared = overlap(a, b)
        if clearance_m > self.rules.touch_m or shared <= self.rules.max_stray:
            return False
        other_way = abs(b.bottom_m - a.top_m) <= self.rules.touch_m
        if clearance_m < -self.rules.touch_m:
            return False if b.bottom_m - a.top_m >= -self.rules.touch_m else None
        return True if shared >= self.rules.min_overlap and not other_way else None

    def above(self, a: Box, b: Box) -> bool | None:
        """Whether ``a`` is above ``b`` without touching it."""
        if a.bottom_m - b.top_m <= self.rules.touch_m:
            return None if self.on(a, b) is None else False
        shared = overlap(a, b)
        if shared >= self.rules.min_overlap:
            return True
        return None if shared > self.rules.max_stray or gap_m(a, b) <= self.rules.next_to_m else False

    def next_to(self, a: Box, b: Box) -> bool | None:
        """Whether ``a`` is next to ``b``; the same the other way round."""
        if any((self.on(a, b), self.on(b, a), self.above(a, b), self.above(b, a))):
            return False
        beside_m = min(a.top_m, b.top_m) - max(a.bottom_m, b.bottom_m)
        apart_m = gap_m(a, b)
        if beside_m < -self.rules.touch_m or apart_m > 2 * self.rules.next_to_m:
            return False
        lower_m = min(a.height_m, b.height_m)
        clear = (
            apart_m <= self.rules.next_to_m
            and overlap(a, b) <= self.rules.max_stray
            and lower_m >= self.rules.touch_m
            and beside_m >= lower_m / 2
        )
        return True if clear else None

    def only(self, preposition: str, anchor: Box, others: Sequence[tuple[T, Box]]) -> T | None:
        """The only thing that is ``preposition`` the anchor; None if there is none, several, or it is unclear."""
        find: dict[str, Callable[[Box, Sequence[tuple[T, Box]]], list[T] | None]] = {
            "on": lambda anchor, others: _certain([(item, self.on(box, anchor)) for item, box in others]),
            "above": self._above,
            "below": self._below,
            "next to": lambda anchor, others: _certain([(item, self.next_to(box, anchor)) for item, box in others]),
        }
        found = find[preposition](anchor, others)
        if found is not None and len(found) == 1:
            return found[0]
        return self._likeliest(preposition, anchor, others) if self.rules.likeliest else None

    def _likeliest(self, preposition: str, anchor: Box, others: Sequence[tuple[T, Box]]) -> T | None:
        """The thing whose box misses the relation by the shortest way, if that is at most :data:`_MISSED_M`."""
        missed = [(_missed_m(preposition, anchor, box), number) for number, (_, box) in enumerate(others)]
        least_m, number = min(missed, default=(math.inf, 0))
        return others[number][0] if least_m <= _MISSED_M else None

    def _above(self, anchor: Box, others: Sequence[tuple[T, Box]]) -> list[T] | None:
        # For some people, things on a table are above it too.
        if any(self.on(box, anchor) for _, box in others):
            return None
        return _certain([(item, self.above(box, anchor)) for item, box in others])

    def _below(self, anchor: Box, others: Sequence[tuple[T, Box]]) -> list[T] | None:
        carriers = _certain([(item, self.on(anchor, box)) for item, box in others])
        if carriers:
            return carriers
        return _certain([(item, self.above(anchor, box)) for item, box in others])


def _missed_m(preposition: str, anchor: Box, other: Box) -> float:
    """Distance by which ``other`` misses to be ``preposition`` the anchor; infinite on the wrong side."""
    upper, lower = (anchor, other) if preposition == "below" else (other, anchor)
    clearance_m, beside_m = upper.bottom_m - lower.top_m, gap_m(anchor, other)
    if preposition == "next to":
        level = min(anchor.top_m, other.top_m) - max(anchor.bottom_m, other.bottom_m) > 0
        return beside_m if level and overlap(anchor, other) < _SAME else math.inf
    if preposition == "above":
        return beside_m + (1 - overlap(anchor, other)) * _STRAY_M if clearance_m > 0 else math.inf
    return abs(clearance_m) + beside_m + (1 - overlap(anchor, other)) * _STRAY_M


def _certain(verdicts: Sequence[tuple[T, bool | None]]) -> list[T] | None:
    """The things with verdict True; None if any verdict is None."""
    if any(verdict is None for _, verdict in verdicts):
        return None
    return [item for item, verdict in verdicts if verdict]
