"""Binary heap of indices ordered by a value of each, for compiled searches that change values of queued ones."""

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.jit import compiled

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@compiled
def rise(heap: Ints, place: Ints, times: Floats, at: int) -> None:
    """Move the entry at that place of a binary heap up to where no earlier time stands above it."""
    cell = heap[at]
    while at > 0:
        parent = (at - 1) // 2
        if times[heap[parent]] <= times[cell]:
            break
        heap[at], place[heap[parent]] = heap[parent], at
        at = parent
    heap[at], place[cell] = cell, at


@compiled
def sink(heap: Ints, place: Ints, times: Floats, at: int, size: int) -> None:
    """Move the entry at that place of a binary heap down to where no earlier time stands below it."""
    cell = heap[at]
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and times[heap[child + 1]] < times[heap[child]]:
            child += 1
        if times[cell] <= times[heap[child]]:
            break
        heap[at], place[heap[child]] = heap[child], at
        at = child
    heap[at], place[cell] = cell, at
