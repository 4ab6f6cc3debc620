"""Length of an executed path, and its distances to the goal."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from robot_runtime.metrics.functional.distances import EUCLIDEAN, Array, Distance


def path_length(path: Any, distance: Distance = EUCLIDEAN) -> float:
    """Sum of the distances between successive nodes, in their unit.

    PL = sum_i d(q_i, q_(i+1)) (Magalhaes et al. 2019, Table 3). The sampling of nodes determines the effect of
    noise: 2 cm of white noise at 10 Hz turn 5 m into more than 20 m; sampled at the ends of actions they add
    centimeters.

    Args:
        path: N >= 1 nodes, in order.
        distance: distance between nodes.

    Returns:
        0 for a single node.

    Raises:
        ValueError: no node, or one that is not finite.
    """
    return float(distance.steps(distance.nodes(path)).sum())


def navigation_error(reference: Any, path: Any, distance: Distance = EUCLIDEAN) -> float:
    """Distance from the path's end to the reference's end.

    NE = d(q_last, r_last) (Magalhaes et al. 2019, Table 3). The reference may be the goal alone, ``[goal]``.

    Raises:
        ValueError: a path is empty, or a node is not finite.
    """
    goal, nodes = distance.nodes(reference)[-1:], distance.nodes(path)
    return float(distance.matrix(nodes[-1:], goal)[0, 0])


def oracle_navigation_error(reference: Any, path: Any, distance: Distance = EUCLIDEAN) -> float:
    """Smallest distance from a node of the path to the reference's end: the node where the agent should have stopped.

    ONE = min_q d(q, r_last) (Magalhaes et al. 2019, Table 3). Nodes only: a segment that crosses the goal between two
    nodes does not count.

    Raises:
        ValueError: a path is empty, or a node is not finite.
    """
    goal = distance.nodes(reference)[-1:]
    return float(distance.matrix(distance.nodes(path), goal).min())


def without_repeats(points: Any, tolerance: float = 0.0) -> Array:
    """The path without nodes that repeat the last retained one: turns, blocked moves, ``stop``.

    DTW and nDTW count repeated nodes, so a published number must state whether this was applied. VLN-CE's
    NDTW drops exact repeats (the default).

    Args:
        points: (N, D), N >= 1.
        tolerance: a node this near to the last retained one is dropped, in the points' unit.

    Raises:
        ValueError: no node, or one that is not finite.
    """
    nodes = EUCLIDEAN.nodes(points)
    if tolerance == 0:
        return np.asarray(nodes[np.concatenate([[True], (nodes[1:] != nodes[:-1]).any(axis=1)])])
    retained = [0]
    for i in range(1, len(nodes)):
        if np.linalg.norm(nodes[i] - nodes[retained[-1]]) > tolerance:
            retained.append(i)
    return np.asarray(nodes[retained])


def episode_length(actions: Sequence[Any], count_stop: bool = True, stop_names: Sequence[str] = ("stop", "end")) -> int:
    """Number of actions.

    Args:
        actions: names, or :class:`~robot_runtime.actions.discrete.Action`. RoboTHOR's ``ep_len`` counts poses
            instead: one more.
        count_stop: VLN-CE's StepsTaken and RoboTHOR's ``actions_taken`` count the stop, valan does not.
        stop_names: names of ``stop``, in lower case (AllenAct's is ``End``).
    """
    if count_stop:
        return len(actions)
    return sum(str(getattr(action, "value", action)).lower() not in stop_names for action in actions)
