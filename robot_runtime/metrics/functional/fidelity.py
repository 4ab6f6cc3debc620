"""Fidelity of a path to a reference regardless of the order of nodes: deviation and coverage. For order: ``dtw.py``."""

import math
from typing import Any, Literal

import numpy as np

from robot_runtime.metrics.functional.distances import EUCLIDEAN, Array, Distance

DegenerateRule = Literal["coverage", "one"]
"""CLS if reference and path both have no length, so that its length score is 0/0.

``coverage``: the length score is 1, so CLS is the coverage: a robot that stands far from a one-node reference gets
less than one that stands on it. ``one``: CLS is 1 for any position (valan).
"""


def average_deviation(reference: Any, path: Any, distance: Distance = EUCLIDEAN) -> float:
    """Mean distance from the path's nodes to their nearest nodes of the reference.

    AD = sum_q min_r d(q, r) / |Q| (Magalhaes et al. 2019, Table 3; the minimum is hidden in their d(q, R), Appendix A).
    One direction only: nodes that the path leaves out cost nothing.

    Raises:
        ValueError: a path is empty, or a node is not finite.
    """
    return float(_deviations(reference, path, distance).mean())


def max_deviation(reference: Any, path: Any, distance: Distance = EUCLIDEAN) -> float:
    """Distance of the path's node that is farthest from the reference.

    MD = max_q min_r d(q, r) (Magalhaes et al. 2019, Table 3); errors as :func:`average_deviation`.
    """
    return float(_deviations(reference, path, distance).max())


def _deviations(reference: Any, path: Any, distance: Distance) -> Array:
    return distance.nearest(distance.nodes(path), distance.nodes(reference))


def path_coverage(reference: Any, path: Any, threshold: float, distance: Distance = EUCLIDEAN) -> float:
    """Share of the reference that the path comes near to, in (0, 1].

    PC = mean_r exp(-min_q d(r, q) / d_th) (Jain et al. 2019, "Stay on the Path").

    Args:
        reference: nodes of the reference path.
        path: the executed nodes.
        threshold: d_th > 0, in the nodes' unit; 3 m in R2R.
        distance: distance between nodes.

    Raises:
        ValueError: a path is empty, a node is not finite, or the threshold is not positive.
    """
    check_threshold(threshold)
    nearest = distance.nearest(distance.nodes(reference), distance.nodes(path))
    return float(np.exp(-nearest / threshold).mean())


def cls(
    reference: Any, path: Any, threshold: float, distance: Distance = EUCLIDEAN, degenerate: DegenerateRule = "coverage"
) -> float:
    """Coverage weighted by length score, in [0, 1].

    CLS = PC * LS, LS = EPL / (EPL + |EPL - PL(Q)|), EPL = PC * PL(R) (Jain et al. 2019). Independent of the order of
    nodes. Zero for a path that moves where the reference has no length.

    Args:
        reference: nodes of the reference path.
        path: the executed nodes.
        threshold: d_th > 0, in the nodes' unit.
        distance: distance between nodes.
        degenerate: rule for a degenerate path, a :data:`DegenerateRule`.

    Raises:
        ValueError: as :func:`path_coverage`; or one of the paths has an infinite length.
    """
    coverage = path_coverage(reference, path, threshold, distance)
    lengths = [float(distance.steps(distance.nodes(nodes)).sum()) for nodes in (reference, path)]
    if not all(map(math.isfinite, lengths)):
        raise ValueError("two successive nodes of a path are not connected")
    if lengths == [0.0, 0.0]:
        return 1.0 if degenerate == "one" else coverage
    expected = coverage * lengths[0]
    shortfall = abs(expected - lengths[1])
    if expected + shortfall == 0:
        return 0.0  # so far away that the coverage underflows
    return coverage * expected / (expected + shortfall)


def check_threshold(threshold: float) -> None:
    """Raise ValueError unless 0 < ``threshold`` < inf."""
    if not 0 < threshold < math.inf:
        raise ValueError(f"the threshold must be positive and finite, got {threshold}")
