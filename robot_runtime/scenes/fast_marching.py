"""Fast marching on a grid: arrival times of a front, in order of arrival.

Sethian, "A fast marching level set method for monotonically advancing fronts", PNAS 1996; the second order is that of
Sethian, "Level Set Methods and Fast Marching Methods", Cambridge 1999, section 8.4. The cells on both sides of the
front's start are set from its crossings of the grid lines, to sub-cell accuracy.
"""

import functools
import math

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.jit import compiled
from robot_runtime.scenes.index_heap import rise, sink

Floats = NDArray[np.float64]

_BLOCKED, _FAR, _TRIAL, _KNOWN = 0, 1, 2, 3
_NO_TIME = math.inf


def march(
    level: Floats, passable: NDArray[np.bool_], cell_m: float, order: int = 2, slowness: Floats | None = None
) -> Floats:
    """Times at which a front from the zero contour of ``level`` arrives where ``level`` is positive.

    Args:
        level: float64 (rows, columns); negative where the front has been.
        passable: cells that the front enters, bool (rows, columns).
        cell_m: edge of a cell.
        order: order of the finite differences, 1 or 2.
        slowness: float64 (rows, columns), time per meter; None for 1 everywhere; times are then distances.

    Returns:
        float64 (rows, columns); inf where the front does not arrive, or has been.
    """
    level = np.ascontiguousarray(level, np.float64)
    pace = np.ones_like(level) if slowness is None else np.ascontiguousarray(slowness, np.float64)
    times = np.full(level.shape, np.inf)
    _march(
        level.ravel(),
        np.where(passable.ravel(), _FAR, _BLOCKED),
        pace.ravel(),
        level.shape[1],
        cell_m,
        order,
        times.ravel(),
    )
    return np.where(level > 0, times, np.inf)


@functools.partial(compiled, error_model="numpy")
def _march(
    level: Floats, state: NDArray[np.int64], pace: Floats, columns: int, cell_m: float, order: int, times: Floats
) -> None:
    count = len(level)
    _start(level, state, pace, columns, cell_m, times)
    heap = np.empty(count, np.int64)  # cells on trial, the earliest first
    place = np.empty(count, np.int64)  # of each cell in the heap
    size = 0
    for cell in range(count):
        if state[cell] == _FAR and level[cell] > 0:
            time = _arrival(cell, state, pace, columns, cell_m, order, times)
            if time < _NO_TIME:
                state[cell] = _TRIAL
                times[cell] = time
                heap[size], place[cell] = cell, size
                size += 1
                rise(heap, place, times, size - 1)
    while size:
        known = heap[0]
        state[known] = _KNOWN
        size -= 1
        if size:
            heap[0], place[heap[size]] = heap[size], 0
            sink(heap, place, times, 0, size)
        for direction in range(4):
            for reach in range(1, order + 1):
                cell = _neighbor(known, direction, reach, state, columns)
                if cell < 0 or state[cell] == _KNOWN or level[cell] <= 0:
                    continue
                if reach == 2 and (
                    state[cell] != _TRIAL or state[_neighbor(known, direction, 1, state, columns)] != _KNOWN
                ):
                    continue
                times[cell] = _arrival(cell, state, pace, columns, cell_m, order, times)
                if state[cell] == _FAR:
                    state[cell] = _TRIAL
                    heap[size], place[cell] = cell, size
                    size += 1
                rise(heap, place, times, place[cell])
                sink(heap, place, times, place[cell], size)


@compiled
def _start(level: Floats, state: NDArray[np.int64], pace: Floats, columns: int, cell_m: float, times: Floats) -> None:
    """Set the cells next to the zero contour, before it negative."""
    for cell in range(len(level)):
        if state[cell] == _BLOCKED:
            continue
        inverse = 0.0
        for axis in range(2):
            nearest_m = _NO_TIME
            for side in range(2):
                other = _neighbor(cell, 2 * axis + side, 1, state, columns)
                if other >= 0 and level[cell] * level[other] < 0:
                    nearest_m = min(nearest_m, cell_m * level[cell] / (level[cell] - level[other]))
            if nearest_m < _NO_TIME:
                inverse += 1.0 / nearest_m / nearest_m
        if level[cell] == 0.0:
            times[cell] = 0.0
            state[cell] = _KNOWN
        elif inverse > 0.0:
            time = math.sqrt(1.0 / inverse) * pace[cell]
            times[cell] = time if level[cell] > 0 else -time
            state[cell] = -_KNOWN
    for cell in range(len(level)):
        state[cell] = abs(state[cell])


@compiled
def _arrival(
    cell: int, state: NDArray[np.int64], pace: Floats, columns: int, cell_m: float, order: int, times: Floats
) -> float:
    """The later root of the upwind discretization of |grad t| = pace; inf without a known neighbor."""
    inverse = 1.0 / cell_m / cell_m
    while True:
        a = b = c = 0.0
        for axis in range(2):
            first = second = _NO_TIME
            for side in range(2):
                near = _neighbor(cell, 2 * axis + side, 1, state, columns)
                if near < 0 or state[near] != _KNOWN or not abs(times[near]) < abs(first):
                    continue
                # A second of the other side stays: distances between fronts that meet are those of scikit-fmm, from
                # which older scores come.
                first = times[near]
                if order == 2:
                    far = _neighbor(cell, 2 * axis + side, 2, state, columns)
                    if far >= 0 and state[far] == _KNOWN and times[far] <= first:
                        second = times[far]
            weight, value = inverse, first
            if second < _NO_TIME:
                weight, value = 2.25 * inverse, (4.0 * first - second) / 3.0
            if first < _NO_TIME:
                a += weight
                b -= weight * 2.0 * value
                c += weight * value * value
        if a == 0.0:
            return _NO_TIME
        c -= pace[cell] * pace[cell]
        discriminant = b * b - 4.0 * a * c
        if discriminant >= 0.0:
            return (-b + math.sqrt(discriminant)) / 2.0 / a
        if order == 1:  # the neighbors' times differ by more than the way between them takes: the nearest to a root
            return -b / 2.0 / a
        order = 1


@compiled
def _neighbor(cell: int, direction: int, reach: int, state: NDArray[np.int64], columns: int) -> int:
    """The passable cell that far down, up, left or right with none blocked between; -1 if there is none."""
    neighbor = cell
    for _ in range(reach):
        column = neighbor % columns
        if direction == 0:
            neighbor -= columns
        elif direction == 1:
            neighbor += columns
        elif direction == 2:
            neighbor = neighbor - 1 if column > 0 else -1
        else:
            neighbor = neighbor + 1 if column + 1 < columns else -1
        if neighbor < 0 or neighbor >= len(state) or state[neighbor] == _BLOCKED:
            return -1
    return neighbor
