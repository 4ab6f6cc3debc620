"""Dynamic time warping: the order-preserving alignment of two paths, its cost, and scores based on it.

Exact, never FastDTW (VLN-CE's default): that bounds the cost from above only, so it scores some paths too low. nDTW
is not invariant to how densely the path is sampled (a parallel path, sampled twice as densely, costs twice as
much), so the sampling rule belongs to the number: one node per action's end, repeats dropped with
:func:`~robot_runtime.metrics.functional.path.without_repeats` or kept.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_runtime.metrics.functional.distances import EUCLIDEAN, Array, Distance, Euclidean
from robot_runtime.metrics.functional.fidelity import check_threshold
from robot_runtime.metrics.functional.path import navigation_error
from robot_runtime.metrics.functional.success import success


def dtw(reference: Any, path: Any, distance: Distance = EUCLIDEAN) -> float:
    """Cost of the best warping, in the nodes' unit.

    DTW = min over warpings of sum d(r_i, q_j) over their pairs; a warping begins at the first nodes, ends at the last,
    and steps by (1, 1), (1, 0) or (0, 1) (Magalhaes et al. 2019, equation 1). Time N * M; memory N + M for
    :class:`Euclidean`, N * M for distances that come as a matrix.

    Returns:
        inf if every warping pairs nodes without a path between them.

    Raises:
        ValueError: a path is empty, a node is not finite, or the points differ in dimension.
    """
    a, b = distance.nodes(reference), distance.nodes(path)
    from robot_runtime.metrics.functional.compiled import dtw_moves, dtw_of_points

    if isinstance(distance, Euclidean):
        if a.shape[1] != b.shape[1]:
            raise ValueError(f"points with {a.shape[1]} and with {b.shape[1]} coordinates have no distance")
        return dtw_of_points(np.ascontiguousarray(a.T), np.ascontiguousarray(b[::-1].T))
    return dtw_moves(_costs(a, b, distance))[0]


def dtw_alignment(reference: Any, path: Any, distance: Distance = EUCLIDEAN) -> tuple[float, NDArray[np.intp]]:
    """The best warping itself, with its cost as :func:`dtw` gives it.

    Returns:
        cost, and pairs (K, 2) of node numbers (reference, path) from (0, 0) to (N-1, M-1). Of equally good warpings the
        one that, from its end, first steps in both paths, then in the reference.
    """
    from robot_runtime.metrics.functional.compiled import dtw_moves

    cost, moves = dtw_moves(_costs(distance.nodes(reference), distance.nodes(path), distance))
    i, j = moves.shape[0] - 1, moves.shape[1] - 1
    pairs = [(i, j)]
    while i or j:
        # On the border there is one predecessor only, also for infinite costs.
        move = 2 if i == 0 else 1 if j == 0 else int(moves[i, j])
        i, j = i - (move != 2), j - (move != 1)
        pairs.append((i, j))
    return cost, np.array(pairs[::-1], np.intp)


def _costs(a: Any, b: Any, distance: Distance) -> Array:
    """(len(a), len(b)), with the shorter path second, because maps compute one field per node of it."""
    costs = distance.matrix(b, a).T if len(a) < len(b) else distance.matrix(a, b)
    return np.ascontiguousarray(costs)


def ndtw(reference: Any, path: Any, threshold: float, distance: Distance = EUCLIDEAN) -> float:
    """Normalized DTW, in [0, 1]; 1 for the reference itself.

    nDTW = exp(-DTW / (|R| * d_th)) (Magalhaes et al. 2019, equation 2). |R| counts the reference's nodes, not the
    warping's pairs, so reference and path cannot be exchanged.

    Args:
        reference: nodes of the reference path.
        path: the executed nodes.
        threshold: d_th > 0, in the nodes' unit; 3 m in R2R.
        distance: distance between nodes.

    Raises:
        ValueError: as :func:`dtw`, or the threshold is not positive.
    """
    check_threshold(threshold)
    return math.exp(-dtw(reference, path, distance) / (len(distance.nodes(reference)) * threshold))


def sdtw(succeeded: bool | float, ndtw_value: float) -> float:
    """Success weighted by nDTW: SDTW = SR * nDTW (Magalhaes et al. 2019, Table 3)."""
    return float(succeeded) * ndtw_value


def sdtw_as_printed(reference: Any, path: Any, threshold: float, distance: Distance = EUCLIDEAN) -> float:
    """SDTW by the letter of the paper's Algorithm 2, which compares the first nodes in place of the last.

    It scores failures, because agents start where references do, and fails paths that start elsewhere; provided to
    recompute published numbers. ``stop`` is not required, and a start at the threshold passes, as printed.
    """
    first_nodes_apart = navigation_error(reference[:1], path[:1], distance)
    return sdtw(success(True, first_nodes_apart, threshold, inclusive=True), ndtw(reference, path, threshold, distance))
