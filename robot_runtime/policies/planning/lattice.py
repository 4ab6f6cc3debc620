"""Plans of the task's own actions: the turns and forward moves that bring the robot nearest to its goal.

A robot that turns by 30 degrees and moves by 0.25 m cannot follow a path; it can only stand at the points that such
moves reach. The search goes level by level, one forward move per level, so that all plans compared with one another are
equally long; turning costs steps but no path length. Each level keeps the ``width`` best positions (beam search),
judged by the distance to go, which comes from fast marching and therefore takes dead ends into account. A position once
reached is not entered again: a gap too narrow for the moves empties the beam in front of it and the search goes round.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robot_runtime.actions.discrete import Action, Magnitudes
from robot_runtime.common.geometry import SE2

Floats = NDArray[np.float64]

TURN_COST_M = 0.004
"""Cost of a turn, in meters of path length: decides between plans of equal length."""

_SAMPLE_SPACING_M = 0.05
_BIN_M = 0.03


@dataclass(frozen=True)
class Terrain:
    """The floor as a planner's input. Both functions map arrays x, y (meters) to an array of their shape.

    Attributes:
        slowness: cost of a meter of path length there, >= 1; inf where the robot's center must not be.
        to_go_m: distance to the goal; inf where that is not known.
    """

    slowness: Callable[[Floats, Floats], Floats]
    to_go_m: Callable[[Floats, Floats], Floats]


@dataclass(frozen=True)
class Moves:
    """The planar actions of a task.

    Attributes:
        headings: how many turns make a full circle.
    """

    forward_m: float
    turn_rad: float
    headings: int

    @classmethod
    def of(cls, magnitudes: Magnitudes) -> Moves:
        """The moves that these magnitudes allow; a turn that does not divide the circle is rounded to one that does."""
        headings = max(3, round(360.0 / magnitudes.turn_deg))
        return cls(magnitudes.forward_m, math.radians(magnitudes.turn_deg), headings)

    def angles(self, yaw_rad: float) -> Floats:
        """All headings that turning reaches from ``yaw_rad``, counter-clockwise, ``yaw_rad`` first."""
        return yaw_rad + self.turn_rad * np.arange(self.headings, dtype=np.float64)

    def turns(self, from_heading: int, to_heading: int) -> list[Action]:
        """The shorter way round; left where both are equal."""
        left = (to_heading - from_heading) % self.headings
        if 2 * left <= self.headings:
            return [Action.TURN_LEFT] * left
        return [Action.TURN_RIGHT] * (self.headings - left)

    def facing(self, yaw_rad: float, direction_rad: float) -> list[Action]:
        """The turns after which the robot faces a direction as nearly as it can."""
        return self.turns(0, round((direction_rad - yaw_rad) / self.turn_rad) % self.headings)


@dataclass(frozen=True)
class Step:
    """One action of a plan and the pose at which it should leave the robot."""

    action: Action
    pose: SE2


@dataclass(frozen=True)
class Plan:
    """Actions from a start pose.

    Attributes:
        arrived: whether the plan ends within the distance that was asked for; else it only leads there.
    """

    steps: tuple[Step, ...]
    arrived: bool


@dataclass
class _Level:
    """The positions kept after a number of forward moves; ``parent`` indexes the level before."""

    x: Floats
    y: Floats
    heading: NDArray[np.intp]
    parent: NDArray[np.intp]
    surcharge_m: Floats
    to_go_m: Floats

    @property
    def score_m(self) -> Floats:
        return self.to_go_m + self.surcharge_m

    def take(self, index: NDArray[np.intp]) -> _Level:
        return _Level(*(getattr(self, name)[index] for name in self.__dataclass_fields__))


def search(
    start: SE2,
    moves: Moves,
    terrain: Terrain,
    arrive_m: float,
    width: int,
    max_forwards: int,
    first_headings: NDArray[np.bool_] | None = None,
) -> Plan | None:
    """The shortest plan found that ends with at most ``arrive_m`` to go.

    Args:
        start: present pose of the robot.
        moves: moves of the task.
        terrain: the floor.
        arrive_m: distance to go at which a plan has arrived.
        width: width of the beam.
        max_forwards: the search's horizon. A plan that does not arrive within it is returned as far as it was made.
        first_headings: bool (headings,), which of ``moves.angles(start.yaw_rad)`` the first move may take; all if None.

    Returns:
        None if the robot cannot move to any place with a known distance to go.
    """
    angles = moves.angles(start.yaw_rad)
    zero = np.zeros(1)
    here = terrain.to_go_m(np.array([start.x_m]), np.array([start.y_m]))
    level = _Level(np.array([start.x_m]), np.array([start.y_m]), np.zeros(1, np.intp), np.zeros(1, np.intp), zero, here)
    if here[0] <= arrive_m:
        return Plan((), arrived=True)
    levels = [level]
    visited = _bins(level)
    for depth in range(max_forwards):
        level = _expand(level, moves, angles, terrain, first_headings if depth == 0 else None)
        level, visited = _prune(level, visited, width)
        if not level.x.size:
            break
        levels.append(level)
        if level.to_go_m.min() <= arrive_m:
            arrived = np.where(level.to_go_m <= arrive_m, level.score_m, np.inf)
            return _trace(levels, len(levels) - 1, int(np.argmin(arrived)), start, moves, arrived=True)
    if len(levels) == 1:
        return None
    last = len(levels) - 1
    if last < max_forwards:  # walled in: lead to whatever place is nearest
        last = 1 + int(np.argmin([one.score_m.min() for one in levels[1:]]))
    return _trace(levels, last, int(np.argmin(levels[last].score_m)), start, moves, arrived=False)


def _expand(level: _Level, moves: Moves, angles: Floats, terrain: Terrain, allowed: NDArray[np.bool_] | None) -> _Level:
    """Every position one forward move away, without those in or behind obstacles."""
    samples = math.ceil(moves.forward_m / _SAMPLE_SPACING_M)
    along = moves.forward_m * np.arange(1, samples + 1) / samples
    x = level.x[:, None, None] + np.cos(angles)[:, None] * along
    y = level.y[:, None, None] + np.sin(angles)[:, None] * along
    surcharge_m = (terrain.slowness(x, y).mean(axis=2) - 1.0) * moves.forward_m
    if allowed is not None:
        surcharge_m[:, ~allowed] = np.inf
    parent, heading = np.nonzero(np.isfinite(surcharge_m))
    left = (heading - level.heading[parent]) % moves.headings
    turns = np.minimum(left, moves.headings - left)
    end_x, end_y = x[parent, heading, -1], y[parent, heading, -1]
    child = _Level(
        end_x,
        end_y,
        heading,
        parent,
        level.surcharge_m[parent] + surcharge_m[parent, heading] + TURN_COST_M * turns,
        terrain.to_go_m(end_x, end_y),
    )
    return child.take(np.flatnonzero(np.isfinite(child.to_go_m)))


def _prune(level: _Level, visited: NDArray[np.int64], width: int) -> tuple[_Level, NDArray[np.int64]]:
    """Keep the best of each bin that was not visited before, and of those the ``width`` best."""
    level = level.take(np.argsort(level.score_m, kind="stable"))
    bins, first = np.unique(_bins(level), return_index=True)
    place = np.minimum(np.searchsorted(visited, bins), visited.size - 1)
    fresh = np.sort(first[visited[place] != bins])[:width]
    level = level.take(fresh)
    return level, np.sort(np.concatenate((visited, _bins(level))))


def _bins(level: _Level) -> NDArray[np.int64]:
    columns = np.floor(level.x / _BIN_M).astype(np.int64)
    return columns * (1 << 32) + np.floor(level.y / _BIN_M).astype(np.int64)


def _trace(levels: list[_Level], last: int, index: int, start: SE2, moves: Moves, arrived: bool) -> Plan:
    """The actions that lead to a position, by way of its parents."""
    headings: list[int] = []
    for level in reversed(levels[1 : last + 1]):
        headings.append(int(level.heading[index]))
        index = int(level.parent[index])
    steps: list[Step] = []
    pose, heading = start, 0
    for wanted in reversed(headings):
        for action in [*moves.turns(heading, wanted), Action.MOVE_FORWARD]:
            turn = {Action.TURN_LEFT: moves.turn_rad, Action.TURN_RIGHT: -moves.turn_rad}.get(action, 0.0)
            pose = pose @ SE2(moves.forward_m if action is Action.MOVE_FORWARD else 0.0, 0.0, turn)
            steps.append(Step(action, pose))
        heading = wanted
    return Plan(tuple(steps), arrived)
