"""The shortest way to carry every object to its goal, one at a time: l of rearrangement's SPL (``spl.py``).

Solved exactly by dynamic programming over sets of delivered objects (Held and Karp 1962). The paper (Batra et al. 2020,
A.5) names OR-Tools, whose routing solver searches locally over integer lengths: the tour that it returns may be longer
than the shortest, which would score an agent too high. Tasks have 2 to 5 objects; a dozen take a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robot_runtime.scoring.metrics.distances import EUCLIDEAN, Array, Distance

MAX_OBJECTS = 12
"""Time and memory double with every object."""


@dataclass(frozen=True)
class Delivery:
    """One object's places.

    Attributes:
        picks: where the agent may stand to grab it (K, D), K >= 1. drops: where it may stand to release it (L, D).
            With one of each this is a travelling salesman, with several a generalised one: one place of each suffices.
    """

    picks: Any
    drops: Any


@dataclass(frozen=True)
class Tour:
    """A shortest tour.

    Attributes:
        length: inf if an object cannot be reached or delivered; then the rest is empty.
        stops: per object in the order of the tour: which object, which of its picks, which of its drops.
    """

    length: float
    stops: tuple[tuple[int, int, int], ...]


def shortest_tour(start: Any, deliveries: Sequence[Delivery], distance: Distance = EUCLIDEAN) -> Tour:
    """From ``start`` (D,) to a pick of some object, to a drop of the same, and so on until all are delivered.

    The agent carries one object at a time, as in house cleanup, and ends where it releases the last. Objects that
    already lie at their goals are the caller's to leave out.

    Returns:
        length 0 without deliveries.

    Raises:
        ValueError: more than :data:`MAX_OBJECTS`, an object without a place, or a coordinate that is not finite.
    """
    if len(deliveries) > MAX_OBJECTS:
        raise ValueError(f"{len(deliveries)} objects; the exact tour is computed for at most {MAX_OBJECTS}")
    if not deliveries:
        return Tour(0.0, ())
    picks = [distance.nodes(delivery.picks) for delivery in deliveries]
    drops = [distance.nodes(delivery.drops) for delivery in deliveries]
    carries = [distance.matrix(picks[i], drops[i]) for i in range(len(deliveries))]
    here = distance.nodes([start])
    first = [_via(distance.matrix(here, picks[i]), carries[i]) for i in range(len(deliveries))]
    then = [
        [_via(distance.matrix(drops[i], picks[j]), carries[j]) if i != j else None for j in range(len(deliveries))]
        for i in range(len(deliveries))
    ]
    return _solve(first, then)


@dataclass(frozen=True, eq=False)
class _Leg:
    """To every drop of an object, by its best pick: lengths and picks, (places before, drops)."""

    lengths: Array
    picks: Any


def _via(to_picks: Array, carry: Array) -> _Leg:
    both = to_picks[:, :, None] + carry[None, :, :]
    best = both.argmin(axis=1)
    return _Leg(np.take_along_axis(both, best[:, None, :], axis=1)[:, 0, :], best)


def _solve(first: Sequence[_Leg], then: Sequence[Sequence[_Leg | None]]) -> Tour:
    """Shortest length per set of delivered objects, last of them, and its drop; then the way back through them."""
    count = len(first)
    lengths: dict[tuple[int, int], Array] = {}
    origins: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for i in range(count):
        lengths[1 << i, i] = first[i].lengths[0]
    for members in range(1, 1 << count):
        for j in range(count):
            rest = members & ~(1 << j)
            if not members >> j & 1 or not rest:
                continue
            before = [i for i in range(count) if rest >> i & 1]
            options = []
            for i in before:
                leg = then[i][j]
                assert leg is not None
                options.append(lengths[rest, i][:, None] + leg.lengths)
            places = [(i, k) for i, option in zip(before, options, strict=True) for k in range(len(option))]
            stacked = np.concatenate(options)
            best = stacked.argmin(axis=0)
            lengths[members, j] = stacked[best, np.arange(stacked.shape[1])]
            origins[members, j] = [places[row] for row in best]
    everything = (1 << count) - 1
    last = min(range(count), key=lambda i: float(lengths[everything, i].min()))
    drop = int(lengths[everything, last].argmin())
    length = float(lengths[everything, last][drop])
    if not np.isfinite(length):
        return Tour(length, ())
    stops: list[tuple[int, int, int]] = []
    members = everything
    while True:
        rest = members & ~(1 << last)
        if not rest:
            stops.append((last, int(first[last].picks[0, drop]), drop))
            return Tour(length, tuple(reversed(stops)))
        previous, place = origins[members, last][drop]
        leg = then[previous][last]
        assert leg is not None
        stops.append((last, int(leg.picks[place, drop]), drop))
        members, last, drop = rest, previous, place
