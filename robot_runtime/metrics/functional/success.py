"""Success of an episode, and its distance to the goal."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from robot_runtime.metrics.functional.distances import EUCLIDEAN, Distance


@dataclass(frozen=True, slots=True)
class Collisions:
    """Collisions of an episode.

    Attributes:
        count: number of steps in which something was touched.
        last: whether the last step was one of them (habitat-lab's ``is_collision``).
        rate: count per step; 0 for an episode without steps.
    """

    count: int
    last: bool
    rate: float


def collisions(flags: Sequence[bool]) -> Collisions:
    """Count the steps that ended in contact (habitat-lab ``nav.py`` class Collisions).

    Args:
        flags: the simulator's ``previous_step_collided``, one per action.
    """
    count = sum(map(bool, flags))
    return Collisions(count, bool(len(flags) and flags[-1]), count / len(flags) if len(flags) else 0.0)


def success(stopped: bool, distance_m: float, threshold_m: float, inclusive: bool = False) -> bool:
    """Whether the agent stopped near enough to the goal.

    S = stopped and d < threshold (habitat-lab ``nav.py`` class Success, VLN-CE, valan, R2R's eval.py). Papers print <=
    instead (Anderson et al. 2018; Magalhaes et al. 2019, Table 3): that is ``inclusive``. An infinite distance is a
    failure. Oracle success (OSR) is the same of the oracle navigation error, as if the agent had stopped there:
    ``success(True, oracle_navigation_error(...), threshold_m)``.

    Raises:
        ValueError: if ``distance_m`` is NaN or negative.
    """
    if not distance_m >= 0:
        raise ValueError(f"distance_m must be a distance, got {distance_m}")
    near = distance_m <= threshold_m if inclusive else distance_m < threshold_m
    return bool(stopped and near)


def visible_success(stopped: bool, visible: bool) -> bool:
    """Whether the agent stopped while an instance of the goal was visible (RoboTHOR 2021, ``challenge.py``).

    Args:
        stopped: whether the last action was ``stop``.
        visible: whether an instance was visible as ai2thor defines it: in the frame, unobstructed, and within 1 m of
            the agent's vertical axis.
    """
    return bool(stopped and visible)


def distance_to_goal(position: Any, goals: Any, distance: Distance = EUCLIDEAN) -> float:
    """Distance from ``position`` (D,) to the nearest of ``goals`` (N, D), in their unit; inf for no goals.

    Habitat's measure of that name is geodesic (``nav.py`` class DistanceToGoal); habitat-lab v0.1.0 took the straight
    one, which is the default here because it needs no map.

    Raises:
        ValueError: a coordinate is not finite.
    """
    here = distance.nodes([position])
    if not len(goals):
        return float("inf")
    return float(distance.nearest(here, distance.nodes(goals))[0])
