"""PointNav for the classical agent: go where the point goal is, and stop there."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_runtime.actions.discrete import Action
from robot_runtime.common.geometry import SE2, point_goal
from robot_runtime.policies.baselines.classical.navigation import Navigator, Target
from robot_runtime.policies.baselines.classical.planning import CostMap, disc
from robot_runtime.policies.planning.lattice import Moves
from robot_runtime.policy import Observation
from robot_runtime.scenes.grid_interpolation import Floats
from robot_runtime.tasks.task import Task

_RETRIES = 10
_RESERVE_M = 0.03
"""Margin inside the success radius at which it stops, for errors of localization and grid."""


class PointGoal:
    """The behavior in a PointNav episode."""

    def __init__(self, task: Task, navigator: Navigator) -> None:
        self._navigator, self._form = navigator, task.pointgoal_format
        self._stop_m = max(task.success.distance_m - _RESERVE_M, task.success.distance_m / 2)
        self._headings = Moves.of(task.magnitudes).headings
        self._turns_left = self._headings  # a full turn adds no path length and shows the surroundings
        self._retries = _RETRIES
        self._target: Target | None = None
        self._distance_m = math.inf

    def decide(self, pose: SE2, observation: Observation) -> Action:
        """Stop at the goal; else the next action of the way there.

        Where no path is left, look round and try again, at most :data:`_RETRIES` times; then stop.
        """
        goal_x_m, goal_y_m = point_goal(observation["pointgoal"], self._form)
        self._distance_m = math.hypot(goal_x_m - pose.x_m, goal_y_m - pose.y_m)
        if self._distance_m <= self._stop_m:
            return Action.STOP
        if self._turns_left > 0:
            self._turns_left -= 1
            return Action.TURN_LEFT
        if self._target is None:
            self._target = point_target(goal_x_m, goal_y_m, self._stop_m)
        action = self._navigator.towards(self._target, pose)
        if action is not None:
            return action
        if self._retries == 0:
            return Action.STOP
        self._retries -= 1
        self._turns_left = self._headings - 1
        return Action.TURN_LEFT

    def info(self) -> dict[str, Any]:
        """Return the log entry of the last decision."""
        return {"distance_m": round(self._distance_m, 3), **self._navigator.info()}


def point_target(x_m: float, y_m: float, radius_m: float) -> Target:
    """The disc of ``radius_m`` around a point; if nothing in it is free, a disc up to 8 times as wide."""

    def sources(costs: CostMap) -> NDArray[np.bool_]:
        cells = disc(costs, x_m, y_m, radius_m)
        for wider in (2, 4, 8):
            if np.isfinite(costs.slowness[cells]).any():
                break
            cells = disc(costs, x_m, y_m, wider * radius_m)
        return cells

    def arrived(x: Floats, y: Floats) -> NDArray[np.bool_]:
        return np.asarray(np.hypot(x - x_m, y - y_m) <= radius_m)

    return Target((x_m, y_m), sources, arrived)
