"""Fast marching against exact distances, a general solver, and the values that earlier versions computed."""

from __future__ import annotations

import heapq
import math

import numpy as np
import pytest
from numpy.typing import NDArray

from robot_runtime.scenes.fast_marching import march

CELL_M = 0.025


def disc_level(shape: tuple[int, int], row: float, column: float, radius_m: float) -> NDArray[np.float64]:
    rows, columns = np.indices(shape)
    return np.asarray(CELL_M * np.hypot(rows - row, columns - column) - radius_m)


@pytest.mark.parametrize(("order", "error_m"), [(1, 0.06), (2, 0.006)])
def test_distances_from_a_disc_in_the_open(order: int, error_m: float) -> None:
    level = disc_level((120, 160), 60.3, 70.7, 0.25)
    found = march(level, np.ones(level.shape, bool), CELL_M, order)
    outside = level > 0
    assert np.abs(found - level)[outside].max() < error_m
    assert np.isinf(found[~outside]).all()


def test_a_front_goes_round_walls_and_never_through_them() -> None:
    passable = np.ones((41, 41), bool)
    passable[20, :35] = False
    passable[0:9, 0:9] = False
    passable[2:5, 2:5] = True  # a room without a door
    level = disc_level(passable.shape, 10.0, 20.0, 0.05)
    found = march(level, passable, CELL_M)
    assert np.isinf(found[~passable]).all()
    assert np.isinf(found[2:5, 2:5]).all()
    corner_m = CELL_M * (math.hypot(10, 15) + math.hypot(10, 15)) - 0.05  # by the end of the wall
    assert found[30, 20] == pytest.approx(corner_m, rel=0.03)


def test_first_order_solves_the_upwind_equations_of_a_random_ground() -> None:
    """The same equations, solved by a marching that keeps its front in Python's heap and never moves an entry."""
    random = np.random.default_rng(3)
    passable = random.random((60, 50)) > 0.2
    slowness = random.uniform(1.0, 5.0, passable.shape)
    level = np.where(disc_level(passable.shape, 30.0, 20.0, 0.1) < 0, -1.0, 1.0)
    found = march(level, passable, CELL_M, order=1, slowness=slowness)
    expected = plain_march(level, passable, slowness)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert np.isfinite(found).sum() > 1000


def plain_march(
    level: NDArray[np.float64], passable: NDArray[np.bool_], slowness: NDArray[np.float64]
) -> NDArray[np.float64]:
    rows, columns = level.shape
    times = np.full(level.shape, np.inf)

    def beside(row: int, column: int) -> list[list[tuple[int, int]]]:
        axes = [[(row - 1, column), (row + 1, column)], [(row, column - 1), (row, column + 1)]]
        return [[at for at in axis if 0 <= at[0] < rows and 0 <= at[1] < columns and passable[at]] for axis in axes]

    heap: list[tuple[float, int, int]] = []
    for row, column in np.argwhere(passable & (level > 0)).tolist():
        crossed = sum(any(level[at] < 0 for at in axis) for axis in beside(row, column))
        if crossed:  # half a cell away, along one axis or two
            heapq.heappush(heap, (CELL_M / 2 / math.sqrt(crossed) * slowness[row, column], row, column))
    known: set[tuple[int, int]] = set()
    start = {(row, column) for _, row, column in heap}
    for time, row, column in heap:
        times[row, column] = time
    while heap:
        time, row, column = heapq.heappop(heap)
        if (row, column) in known or time > times[row, column]:
            continue
        known.add((row, column))
        for axis in beside(row, column):
            for at in axis:
                if level[at] > 0 and at not in known and at not in start:
                    values = [
                        min((times[near] for near in side if near in known | start), default=math.inf)
                        for side in beside(*at)
                    ]
                    new = upwind(sorted(values), slowness[at] * CELL_M)
                    if new < times[at]:
                        times[at] = new
                        heapq.heappush(heap, (new, *at))
    return times


def upwind(values: list[float], step: float) -> float:
    low, high = values
    if math.isinf(high):
        return low + step
    return (low + high + math.sqrt(max(2 * step**2 - (high - low) ** 2, 0.0))) / 2


EARLIER_COUNT = 1987
EARLIER_SUM = 1054.5004590875155
EARLIER = {
    (0, 1): 0.43513526061991553,
    (4, 26): 0.23599423160873464,
    (8, 27): 0.2178982595094671,
    (13, 5): 0.2250743393359363,
    (17, 32): 0.340431023472205,
    (21, 42): 0.6171691207977336,
    (25, 51): 0.8703011918086254,
    (29, 58): 1.0906177350447728,
    (34, 17): 0.48050901580652905,
    (38, 18): 0.5848880840948372,
}


def test_the_distances_of_earlier_versions() -> None:
    """Computed with scikit-fmm 2025.6.23, from which older scores come."""
    random = np.random.default_rng(11)
    passable = random.random((40, 60)) > 0.15
    level = np.minimum(disc_level(passable.shape, 12.3, 15.7, 0.1), 1.0)
    found = march(level, passable, CELL_M)
    reached = np.isfinite(found)
    assert int(reached.sum()) == EARLIER_COUNT
    np.testing.assert_allclose([found[at] for at in EARLIER], list(EARLIER.values()), atol=1e-9)
    assert found[reached].sum() == pytest.approx(EARLIER_SUM, abs=1e-6)
