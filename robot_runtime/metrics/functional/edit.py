"""Success weighted by edit distance."""

from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import Any, Literal

import numpy as np

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
