"""All metrics of a path against a reference, by one set of rules that is stored next to the numbers."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from robot_runtime.metrics.functional.distances import EUCLIDEAN, Distance
from robot_runtime.metrics.functional.dtw import ndtw, sdtw
from robot_runtime.metrics.functional.fidelity import DegenerateRule, average_deviation, cls, max_deviation
from robot_runtime.metrics.functional.path import (
    navigation_error,
    oracle_navigation_error,
    path_length,
    without_repeats,
)
from robot_runtime.metrics.functional.spl import ZeroRule, soft_spl, spl
from robot_runtime.metrics.functional.success import success

EditUnit = Literal["edges", "nodes"]
"""Unit that is inserted, deleted and replaced. ``edges``: pairs of successive nodes, which are the actions of a graph
(Chen et al. 2019 as printed in Magalhaes et al. 2019, Appendix A). ``nodes``: the nodes themselves (Touchdown's code).
"""


def sed(succeeded: bool | float, reference: Sequence[Any], path: Sequence[Any], unit: EditUnit = "edges") -> float:
    """Success weighted by normalized edit distance, in [0, 1].

    SED = S * (1 - Lev(A_R, A_Q) / max(|A_R|, |A_Q|)), A per ``unit`` (Chen et al. 2019, Touchdown). Nodes are equal or
    not, however near: use it on a graph's nodes, or on points that were snapped to one. Two paths without an edge
    are equal: 1 for a success, even if they stand on different nodes, since no action was wrong.

    Args:
        succeeded: S.
        reference: names, or points (N, D), which are equal if all coordinates are.
        path: executed nodes, of the same form.
        unit: unit of the distance, an :data:`EditUnit`.

    Raises:
        ValueError: a path is empty, or a coordinate is NaN.
    """
    a, b = _units(reference, unit), _units(path, unit)
    if not a and not b:
        return float(succeeded)
    from robot_runtime.metrics.functional.compiled import levenshtein

    numbers: dict[Hashable, int] = {}
    coded = [np.array([numbers.setdefault(item, len(numbers)) for item in side], np.int64) for side in (a, b)]
    return float(succeeded) * (1 - levenshtein(*coded) / max(len(a), len(b)))


def _units(path: Sequence[Any], unit: EditUnit) -> list[Hashable]:
    if isinstance(path, np.ndarray):
        path = path.tolist()
    if isinstance(path, str) or not len(path):
        raise ValueError(f"a path needs a sequence of at least one node, got {path!r}")
    nodes: list[Hashable] = [tuple(node) if isinstance(node, list | tuple | np.ndarray) else node for node in path]
    if any(value != value for node in nodes for value in (node if isinstance(node, tuple) else (node,))):
        raise ValueError("a node of the path is not a number")
    return nodes if unit == "nodes" else list(pairwise(nodes))


@dataclass(frozen=True, kw_only=True)
class RouteRules:
    """Choices in which published scorers of instruction following differ; store them as ``dataclasses.asdict``.

    Attributes:
        threshold_m: d_th of success, CLS and nDTW: 3 m in R2R, R2R-CE and RxR-CE.
        inclusive: success at the threshold itself, as papers print; code takes < (Habitat, VLN-CE, valan, R2R).
        drop_repeats: nodes that repeat the one before do not count, as in VLN-CE's NDTW; without it every turn in
            place costs as much as its distance to the reference. Points only; names stay.
        repeat_m: distance up to which a node repeats the last retained one; 0, as in VLN-CE, for exact repeats alone.
            Measured poses need more: a robot moves by millimeters when it turns in place.
        zero_path: SPL of an episode that starts at its goal.
        edit_unit: unit of SED.
        degenerate: CLS of two paths without length.
    """

    threshold_m: float = 3.0
    inclusive: bool = False
    drop_repeats: bool = True
    repeat_m: float = 0.0
    zero_path: ZeroRule = "one_if_still"
    edit_unit: EditUnit = "edges"
    degenerate: DegenerateRule = "coverage"


def route_metrics(
    reference: Any,
    path: Any,
    shortest_m: float,
    stopped: bool,
    rules: RouteRules | None = None,
    distance: Distance = EUCLIDEAN,
    to_goal_m: Sequence[float] | None = None,
) -> dict[str, float | bool]:
    """Table 3 of Magalhaes et al. 2019 for one episode, and SoftSPL.

    Args:
        reference: R, its last node the goal.
        path: Q, the executed path.
        shortest_m: length of the shortest path from the start to the goal, SPL's l; not the reference's length.
        stopped: whether the episode ended with ``stop``: required for success, not for oracle success.
        rules: choices that change metrics; None for the defaults.
        distance: distance between nodes.
        to_goal_m: distances from each node of ``path`` to the goal, if they differ from ``distance``: VLN-CE's are
            geodesic for navigation error and success, and Euclidean for nDTW.

    Returns:
        Keys: ``path_length_m``, ``navigation_error_m``, ``oracle_navigation_error_m``, ``success``, ``oracle_success``,
        ``average_deviation_m``, ``max_deviation_m``, ``spl``, ``soft_spl``, ``sed``, ``cls``, ``ndtw``, ``sdtw``.

    Raises:
        ValueError: a path is empty, a node is not finite, or a length is not one.
    """
    rules = rules or RouteRules()
    threshold = rules.threshold_m
    travelled_m = path_length(path, distance)
    if rules.drop_repeats and distance.nodes(path).ndim == 2:
        path = without_repeats(path, rules.repeat_m)
    error_m = navigation_error(reference, path, distance) if to_goal_m is None else to_goal_m[-1]
    oracle_error_m = oracle_navigation_error(reference, path, distance) if to_goal_m is None else min(to_goal_m)
    succeeded = success(stopped, error_m, threshold, rules.inclusive)
    similarity = ndtw(reference, path, threshold, distance)
    return {
        "path_length_m": travelled_m,
        "navigation_error_m": error_m,
        "oracle_navigation_error_m": oracle_error_m,
        "success": succeeded,
        "oracle_success": success(True, oracle_error_m, threshold, rules.inclusive),
        "average_deviation_m": average_deviation(reference, path, distance),
        "max_deviation_m": max_deviation(reference, path, distance),
        "spl": spl(succeeded, shortest_m, travelled_m, rules.zero_path),
        "soft_spl": soft_spl(shortest_m, error_m, travelled_m, rules.zero_path),
        "sed": sed(succeeded, reference, path, rules.edit_unit),
        "cls": cls(reference, path, threshold, distance, rules.degenerate),
        "ndtw": similarity,
        "sdtw": sdtw(succeeded, similarity),
    }
