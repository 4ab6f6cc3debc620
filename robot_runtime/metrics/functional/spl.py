"""Success weighted by path length, hard and soft, and by time."""

import math
from typing import Literal

ZeroRule = Literal["one_if_still", "zero", "nan", "error"]
"""Value of 0/0, when the episode starts at its goal, as 6 % of RoboTHOR's do.

``one_if_still``: 1 for an agent that does not move, else 0 (ai2thor 2.7.2, AllenAct). ``zero``: 0 (valan).
``nan``, ``error``: the result in numpy and in Python (habitat-lab raises ``ZeroDivisionError`` at reset).
"""


def spl(succeeded: bool | float, shortest_m: float, travelled_m: float, zero: ZeroRule = "one_if_still") -> float:
    """Success weighted by (normalized inverse) path length of an episode, in [0, 1].

    SPL = S * l / max(p, l) (Anderson et al. 2018, "On Evaluation of Embodied Navigation Agents", equation 1).

    Args:
        succeeded: S.
        shortest_m: l, from the start to the nearest goal.
        travelled_m: p.
        zero: rule for an episode that starts at its goal, a :data:`ZeroRule`.

    Returns:
        0 for an infinite ``shortest_m`` of an episode that failed.

    Raises:
        ValueError: a length is negative or NaN, ``travelled_m`` is infinite, or a success on an infinite shortest path.
        ZeroDivisionError: 0/0 under the rule ``error``.
    """
    _check(shortest_m, travelled_m)
    if math.isinf(shortest_m):
        if succeeded:
            raise ValueError("an episode succeeded although no path leads to its goal")
        return 0.0
    return float(succeeded) * _ratio(shortest_m, travelled_m, zero)


def soft_spl(
    distance_at_start_m: float, distance_at_end_m: float, travelled_m: float, zero: ZeroRule = "one_if_still"
) -> float:
    """SPL with the covered fraction of the distance in place of success, in [0, 1]; ``stop`` is not required.

    SoftSPL = (1 - min(1, d_end / d_start)) * d_start / max(p, d_start) (habitat-lab ``nav.py`` class SoftSPL; Datta et
    al. 2020). Starting at the goal gives 0/0 twice: progress is then 1 at the goal and 0 elsewhere, and ``zero`` gives
    the path ratio.

    Returns:
        0 for an infinite distance at start or end.

    Raises:
        ValueError, ZeroDivisionError: as :func:`spl`.
    """
    _check(distance_at_start_m, travelled_m)
    if not distance_at_end_m >= 0:
        raise ValueError(f"a length must not be negative or NaN, got {distance_at_end_m}")
    if math.isinf(distance_at_start_m):
        return 0.0
    if distance_at_start_m == 0:
        progress = 1.0 if distance_at_end_m == 0 else 0.0
    else:
        progress = 1.0 - min(1.0, distance_at_end_m / distance_at_start_m)
    return progress * _ratio(distance_at_start_m, travelled_m, zero)


def sct(succeeded: bool | float, fastest_s: float, taken_s: float, zero: ZeroRule = "one_if_still") -> float:
    """Success weighted by completion time, in [0, 1].

    SCT = S * T / max(C, T) (Yokoyama et al. 2021): SPL of times. ``fastest_s`` T: of the fastest motion that the
    robot's dynamics allow. ``taken_s`` C. Both in one unit.

    Raises:
        ValueError, ZeroDivisionError: as :func:`spl`.
    """
    return spl(succeeded, fastest_s, taken_s, zero)


def _check(shortest_m: float, travelled_m: float) -> None:
    if not shortest_m >= 0 or not 0 <= travelled_m < math.inf:
        raise ValueError(f"a length must not be negative or NaN, got {shortest_m} and {travelled_m}")


def _ratio(shortest_m: float, travelled_m: float, zero: ZeroRule) -> float:
    if shortest_m > 0 or travelled_m > 0:
        # l = 0 and p > 0 needs no rule: every source gives 0.
        return shortest_m / max(travelled_m, shortest_m)
    if zero == "error":
        raise ZeroDivisionError("the shortest path and the travelled path have no length")
    return {"one_if_still": 1.0, "zero": 0.0, "nan": math.nan}[zero]
