"""Shortest tour that carries every object to its goal: l of rearrangement's SPL (``spl.py``).

Solved exactly by dynamic programming over the delivered and the carried objects (Held and Karp 1962). The paper
(Batra et al. 2020, A.5) names OR-Tools, whose routing solver searches locally over integer lengths: the tour that it
returns may be longer than the shortest, which would score an agent too high. Tasks have 2 to 5 objects; a dozen take
seconds. The tests compare it with OR-Tools' exact solver.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robot_runtime.metrics.functional.distances import EUCLIDEAN, Array, Distance, Nodes

MAX_OBJECTS = 12
"""Largest number of objects. Time and memory double with every object, and grow faster with a capacity above 1."""


@dataclass(frozen=True)
class Delivery:
    """Places where one object can be picked and dropped.

    Attributes:
        picks: where the agent may stand to grab it (K, D), K >= 1.
        drops: where it may stand to release it (L, D). With one of each this is a traveling salesman problem, with
            several a generalized one: one place of each suffices.
    """

    picks: Any
    drops: Any


@dataclass(frozen=True)
class Tour:
    """A shortest tour.

    Attributes:
        length: length of the tour; inf if an object cannot be reached or delivered; then the rest is empty.
        stops: object, its pick and its drop, as indices, in the order of delivery.
        visits: complete tour: object, whether it is dropped there (else picked), and index of that place.
    """

    length: float
    stops: tuple[tuple[int, int, int], ...]
    visits: tuple[tuple[int, bool, int], ...] = ()


def shortest_tour(
    start: Any, deliveries: Sequence[Delivery], distance: Distance = EUCLIDEAN, capacity: int = 1
) -> Tour:
    """Shortest tour from ``start`` by picks and drops until every object is delivered; it ends at the last drop.

    The caller leaves out objects that are at their goals already.

    Args:
        start: (D,).
        deliveries: objects and their places.
        distance: distance between places.
        capacity: number of objects that can be carried at once: 1 in house cleanup. Of several, the one that was taken
            last is released first, as ``grab_release`` does it.

    Returns:
        length 0 without deliveries.

    Raises:
        ValueError: more than :data:`MAX_OBJECTS`, an object without a place, a coordinate that is not finite, or a
            capacity below 1.
    """
    if len(deliveries) > MAX_OBJECTS:
        raise ValueError(f"{len(deliveries)} objects; the exact tour is computed for at most {MAX_OBJECTS}")
    if capacity < 1:
        raise ValueError(f"nothing can be carried with a capacity of {capacity}")
    if not deliveries:
        return Tour(0.0, ())
    return _Search(distance, start, deliveries, capacity).solve()


_Place = tuple[int, bool]
"""An object, and whether the place is one of its drops or one of its picks; the start is object -1."""

_State = tuple[int, tuple[int, ...], _Place]
"""A bit per delivered object; the carried objects, the last one on top; the object and side at which the agent is."""

_START: _Place = (-1, False)


@dataclass(eq=False)
class _Best:
    """Per place of a state: the shortest length to it, and the state and place before."""

    lengths: Array
    before: list[tuple[_State, int] | None]


class _Search:
    def __init__(self, distance: Distance, start: Any, deliveries: Sequence[Delivery], capacity: int) -> None:
        self._distance, self._count, self._capacity = distance, len(deliveries), capacity
        self._nodes: dict[_Place, Nodes] = {_START: distance.nodes([start])}
        for i, delivery in enumerate(deliveries):
            self._nodes[i, False], self._nodes[i, True] = distance.nodes(delivery.picks), distance.nodes(delivery.drops)
        self._matrices: dict[tuple[_Place, _Place], Array] = {}

    def solve(self) -> Tour:
        """Solve layer by layer, with one visit more in each."""
        layers: list[dict[_State, _Best]] = [{(0, (), _START): _Best(np.zeros(1), [None])}]
        for _ in range(2 * self._count):
            layer: dict[_State, _Best] = {}
            for state, best in layers[-1].items():
                for after in self._after(state):
                    self._improve(layer, after, state, best)
            layers.append(layer)
        ends = layers[-1]
        last = min(ends, key=lambda state: float(ends[state].lengths.min()))
        place = int(ends[last].lengths.argmin())
        length = float(ends[last].lengths[place])
        return self._traced(layers, last, place, length) if np.isfinite(length) else Tour(length, ())

    def _after(self, state: _State) -> Iterator[_State]:
        delivered, carried, _ = state
        if len(carried) < self._capacity:
            for i in range(self._count):
                if not delivered >> i & 1 and i not in carried:
                    yield delivered, (*carried, i), (i, False)
        if carried:
            yield delivered | 1 << carried[-1], carried[:-1], (carried[-1], True)

    def _improve(self, layer: dict[_State, _Best], after: _State, state: _State, best: _Best) -> None:
        both = best.lengths[:, None] + self._matrix(state[2], after[2])
        origins = both.argmin(axis=0)
        lengths = both[origins, np.arange(both.shape[1])]
        known = layer.get(after)
        if known is None:
            layer[after] = _Best(lengths, [(state, int(origin)) for origin in origins])
            return
        for place in np.flatnonzero(lengths < known.lengths).tolist():
            known.lengths[place] = lengths[place]
            known.before[place] = state, int(origins[place])

    def _matrix(self, a: _Place, b: _Place) -> Array:
        if (a, b) not in self._matrices:
            self._matrices[a, b] = self._distance.matrix(self._nodes[a], self._nodes[b])
        return self._matrices[a, b]

    def _traced(self, layers: list[dict[_State, _Best]], state: _State, place: int, length: float) -> Tour:
        visits: list[tuple[int, bool, int]] = []
        for layer in reversed(layers[1:]):
            visits.append((*state[2], place))
            origin = layer[state].before[place]
            assert origin is not None
            state, place = origin
        visits.reverse()
        picked = {i: place for i, dropped, place in visits if not dropped}
        stops = tuple((i, picked[i], place) for i, dropped, place in visits if dropped)
        return Tour(length, stops, tuple(visits))
