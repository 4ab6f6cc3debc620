"""Whether an episode succeeded, and how far from the goal it ended."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def success(stopped: bool, distance_m: float, threshold_m: float, inclusive: bool = False) -> bool:
    """The agent said ``stop``, and did so near enough.

    S = stopped and d < threshold (habitat-lab ``nav.py`` class Success, VLN-CE, R2R's eval.py). Papers print <= instead
    (Anderson et al. 2018; Magalhaes et al. 2019, Table 3): that is ``inclusive``. An infinite distance is a failure.

    Raises:
        ValueError: if ``distance_m`` is NaN or negative.
    """
    if not distance_m >= 0:
        raise ValueError(f"distance_m must be a distance, got {distance_m}")
    near = distance_m <= threshold_m if inclusive else distance_m < threshold_m
    return bool(stopped and near)


def distance_to_goal(position: ArrayLike, goals: ArrayLike) -> float:
    """Straight distance from ``position`` (D,) to the nearest of ``goals`` (N, D), in their unit; inf for no goals.

    Habitat's measure of that name is geodesic (``nav.py`` class DistanceToGoal): ``robot_runtime.geodesic`` gives that;
    habitat-lab v0.1.0 took this one.
    """
    array = np.asarray(goals, np.float64)
    if not array.size:
        return float("inf")
    return float(np.linalg.norm(array - np.asarray(position, np.float64), axis=1).min())
