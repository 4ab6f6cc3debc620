"""Compiled inner loops of the metrics, to be imported where they are called (see ``robot_runtime.common.jit``)."""

import math

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.jit import compiled

Array = NDArray[np.float64]


@compiled
def dtw_of_points(reference: Array, path: Array) -> float:
    """DTW with Euclidean distances, in memory linear in the lengths.

    Along an antidiagonal i + j = k no cell depends on another, so each is computed as a whole, in SIMD registers;
    row by row every cell would wait for the one before it.

    Args:
        reference: (D, N).
        path: (D, M), its nodes in reverse order, so that an antidiagonal reads both forward.
    """
    axes, n = reference.shape
    m = path.shape[1]
    # Index i + 1 holds row i; index 0 is the border row. What a diagonal has not reached yet stays infinite.
    before, last, current = np.full(n + 1, np.inf), np.full(n + 1, np.inf), np.full(n + 1, np.inf)
    squares = np.empty(n)
    before[0] = 0.0
    for k in range(n + m - 1):
        low, high = max(0, k - m + 1), min(n, k + 1)
        shift = m - 1 - k
        # Slices in place of offsets: the compiler uses no SIMD for indices that may be negative.
        square = squares[low:high]
        for axis in range(axes):
            a, b = reference[axis, low:high], path[axis, low + shift : high + shift]
            if axis == 0:
                for i in range(len(square)):
                    square[i] = (a[i] - b[i]) * (a[i] - b[i])
            else:
                for i in range(len(square)):
                    square[i] += (a[i] - b[i]) * (a[i] - b[i])
        left, up, corner, here = (
            last[low + 1 : high + 1],
            last[low:high],
            before[low:high],
            current[low + 1 : high + 1],
        )
        for i in range(len(square)):
            best = left[i] if left[i] < up[i] else up[i]
            best = best if best < corner[i] else corner[i]
            here[i] = math.sqrt(square[i]) + best
        before[0] = np.inf
        before, last, current = last, current, before
    return float(last[n])


@compiled
def dtw_moves(costs: Array) -> tuple[float, NDArray[np.uint8]]:
    """DTW, and per cell the last move of the best warping to it: 0 from (i-1, j-1), 1 from (i-1, j), 2 from (i, j-1).

    Of equally good moves the diagonal wins, then (i-1, j), so that equal inputs have equal warpings.
    """
    n, m = costs.shape
    row = np.full(m + 1, np.inf)
    row[0] = 0.0
    moves = np.zeros((n, m), np.uint8)
    for i in range(n):
        corner = row[0]
        row[0] = np.inf
        for j in range(m):
            above = row[j + 1]
            best, move = corner, 0
            if above < best:
                best, move = above, 1
            if row[j] < best:
                best, move = row[j], 2
            moves[i, j] = move
            row[j + 1] = costs[i, j] + best
            corner = above
    return float(row[m]), moves


@compiled
def levenshtein(a: NDArray[np.int64], b: NDArray[np.int64]) -> int:
    """Smallest number of insertions, deletions and replacements that turn ``a`` into ``b``."""
    row = np.arange(len(b) + 1)
    for i in range(len(a)):
        corner = row[0]
        row[0] = i + 1
        for j in range(len(b)):
            above = row[j + 1]
            row[j + 1] = min(corner + (0 if a[i] == b[j] else 1), above + 1, row[j] + 1)
            corner = above
    return int(row[len(b)])
