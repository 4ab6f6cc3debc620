"""Alignment over the last meter: the few moves of a task that lead to the pose with the best score.

A plan of :mod:`robot_runtime.policies.planning.lattice` ends near a place, with any heading. To point at something, or
to put it down exactly, position and heading must fit together: here every pose that a few moves lead to is scored.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robot_runtime.actions.discrete import Action
from robot_runtime.common.geometry import SE2
from robot_runtime.policies.planning.lattice import Moves
from robot_runtime.scenes.grid_interpolation import Floats

MOST_FORWARDS = 4
"""Largest number of forward moves."""

MOST_FORWARDS_ON_GRID = 16
"""The same where turns are coarse: suitable places may be far apart there, but there are few places in all."""

_COARSE_HEADINGS = 8
_SAMPLE_M = 0.05
_BIN_M = 0.02
_MOST_POSITIONS = 2500
_STEP = 0.1

PoseScore = Callable[[Floats, Floats, Floats], Floats]
"""Score (N, M) of poses with positions x, y (N, 1) and headings yaw (M,): suitable above 0, higher is better."""


@dataclass
class _Level:
    x: Floats
    y: Floats
    heading: NDArray[np.intp]
    parent: NDArray[np.intp]
    turns: Floats


def align(
    start: SE2, moves: Moves, slowness: Callable[[Floats, Floats], Floats], score: PoseScore, good: float
) -> tuple[Action, ...] | None:
    """Return the fewest actions to a pose whose score is ``good`` or better; to the best one if none is that good.

    Returns:
        None if no pose within :data:`MOST_FORWARDS` moves has a score above 0.
    """
    most = MOST_FORWARDS_ON_GRID if moves.headings <= _COARSE_HEADINGS else MOST_FORWARDS
    angles = moves.angles(start.yaw_rad)
    zero = np.zeros(1, np.intp)
    levels = [_Level(np.array([start.x_m]), np.array([start.y_m]), zero, zero, np.zeros(1))]
    best: tuple[float, float, int, int, int] | None = None
    for depth in range(most + 1):
        level = levels[-1]
        found = _best_of(level, angles, score, good, moves, depth)
        if found is not None and (best is None or found[:2] < best[:2]):
            best = (*found[:2], depth, *found[2:])
        if depth < most:
            if best is not None and best[0] == -good and best[1] <= depth + 1:
                break
            levels.append(_expanded(level, moves, angles, slowness))
            if not len(levels[-1].x):
                break
    if best is None:
        return None
    _, _, depth, place, heading = best
    return _traced(levels, depth, place, heading, moves)


def _best_of(
    level: _Level, angles: Floats, score: PoseScore, good: float, moves: Moves, depth: int
) -> tuple[float, float, int, int] | None:
    """Minus the score as far as it matters, number of actions, place and heading; None if no pose is suitable."""
    count = len(angles)
    worth = score(level.x[:, None], level.y[:, None], angles)
    left = (np.arange(count) - level.heading[:, None]) % moves.headings
    actions = level.turns[:, None] + depth + np.minimum(left, moves.headings - left)
    # In steps, so that moving between equally good poses gains nothing.
    worth = np.where(worth > 0, np.minimum(np.ceil(worth / _STEP) * _STEP, good), -np.inf)
    top = worth.max()
    if not np.isfinite(top):
        return None
    place, heading = np.unravel_index(np.argmin(np.where(worth == top, actions, np.inf)), worth.shape)
    return -float(top), float(actions[place, heading]), int(place), int(heading)


def _expanded(level: _Level, moves: Moves, angles: Floats, slowness: Callable[[Floats, Floats], Floats]) -> _Level:
    """Every position one forward move away, once; the nearest in turns of those that fall together."""
    along = moves.forward_m * np.arange(1, math.ceil(moves.forward_m / _SAMPLE_M) + 1)
    along = along / math.ceil(moves.forward_m / _SAMPLE_M)
    x = level.x[:, None, None] + np.cos(angles)[:, None] * along
    y = level.y[:, None, None] + np.sin(angles)[:, None] * along
    parent, heading = np.nonzero(np.isfinite(slowness(x, y)).all(axis=2))
    left = (heading - level.heading[parent]) % moves.headings
    turns = level.turns[parent] + np.minimum(left, moves.headings - left)
    x, y = x[parent, heading, -1], y[parent, heading, -1]
    order = np.argsort(turns, kind="stable")
    bins = np.floor(x[order] / _BIN_M).astype(np.int64) * (1 << 32) + np.floor(y[order] / _BIN_M).astype(np.int64)
    _, first = np.unique(bins, return_index=True)
    kept = order[np.sort(first)[:_MOST_POSITIONS]]
    return _Level(x[kept], y[kept], heading[kept], parent[kept], turns[kept])


def _traced(levels: list[_Level], depth: int, place: int, heading: int, moves: Moves) -> tuple[Action, ...]:
    headings = [heading]
    for level in reversed(levels[1 : depth + 1]):
        headings.append(int(level.heading[place]))
        place = int(level.parent[place])
    actions: list[Action] = []
    now = 0
    for wanted in reversed(headings[1:]):
        actions += [*moves.turns(now, wanted), Action.MOVE_FORWARD]
        now = wanted
    return (*actions, *moves.turns(now, heading))
