"""ObjectNav for the classical agent: explore until the object is in view, go near it, face it, stop."""

import math
from typing import Any

import numpy as np
from scipy import ndimage

from robot_runtime.actions.discrete import Action
from robot_runtime.common.geometry import SE2
from robot_runtime.policies.baselines.classical.exploration import TRIED_M, FrontierDrive
from robot_runtime.policies.baselines.classical.grid import Grid
from robot_runtime.policies.baselines.classical.navigation import Navigator, Target
from robot_runtime.policies.baselines.classical.planning import Bools, CostMap, disc
from robot_runtime.policies.planning.lattice import Moves
from robot_runtime.policy import Observation
from robot_runtime.scenes.grid_interpolation import Floats
from robot_runtime.tasks.task import Task

NEAR_M = 0.75
"""Stopping distance from an observed part of the object. Both challenges allow 1 m (Batra et al. 2020, section 2.1)."""

_SEEN_TIMES = 2
_SCAN = (Action.LOOK_DOWN, Action.LOOK_UP, Action.LOOK_UP, Action.LOOK_DOWN)


class ObjectGoal:
    """The behavior in an ObjectNav episode."""

    def __init__(self, task: Task, grid: Grid, navigator: Navigator) -> None:
        self._task = task
        self._grid = grid
        self._navigator = navigator
        self._moves = Moves.of(task.magnitudes)
        self._frontiers = FrontierDrive(self._moves, grid, navigator, boldest=0)
        self._look_round = self._moves.headings
        self._target: Target | None = None
        self._tried: list[SE2] = []
        self._queue: list[Action] | None = None
        self._seen_cells = 0
        self._doing = "looks round"

    def decide(self, pose: SE2, observation: Observation) -> Action:
        """Stop before the object; else the next action of looking for it, or of the way to it."""
        if int((self._grid.goal_counts >= _SEEN_TIMES).sum()):
            action = self._approach(pose, observation)
            if action is not None:
                return action
        return self._explore(pose)

    def info(self) -> dict[str, Any]:
        """Return the log entry of the last decision."""
        return {"doing": self._doing, "goal_cells": self._seen_cells, **self._navigator.info()}

    def _explore(self, pose: SE2) -> Action:
        """Look round once, then go from frontier to frontier; stop when there are no more."""
        if self._look_round > 0:
            self._look_round -= 1
            return Action.TURN_LEFT
        self._doing = "explores"
        action = self._frontiers.next(pose)
        if action is Action.STOP:
            self._doing = "has nothing left to explore"
        return action

    def _approach(self, pose: SE2, observation: Observation) -> Action | None:
        """The next action on the way to the object, of turning to it, or stop; None if no place near it is left."""
        if self._queue is not None:
            return self._verify(pose, observation)
        self._doing = "approaches"
        self._frontiers.leave()
        cells = int((self._grid.goal_counts >= _SEEN_TIMES).sum())
        if not 0.8 <= self._seen_cells / cells <= 1.25 or self._target is None:
            self._seen_cells, self._target = cells, self._near_object()
        if not self._target.arrived(np.array(pose.x_m), np.array(pose.y_m)):
            action = self._navigator.towards(self._target, pose)
            if action is None:
                self._seen_cells = 0
            return action
        x_m, y_m = self._nearest_seen(pose)
        self._queue = self._moves.facing(pose.yaw_rad, math.atan2(y_m - pose.y_m, x_m - pose.x_m))
        looks = [action for action in _SCAN if action in self._task.actions]
        self._queue += looks if len(looks) == len(_SCAN) else []
        return self._verify(pose, observation)

    def _verify(self, pose: SE2, observation: Observation) -> Action | None:
        """Stop if the object is in view; else take the next turn or look; after the last, try another place."""
        assert self._queue is not None
        self._doing = "faces the object"
        goal_mask = observation["semantic"][..., 0] == observation["objectgoal"][0]
        turning = bool(self._queue) and self._queue[0] in (Action.TURN_LEFT, Action.TURN_RIGHT)
        if not turning and int(goal_mask.sum()) >= self._task.success.min_visible_pixels:
            return Action.STOP
        if self._queue:
            return self._queue.pop(0)
        self._queue, self._target = None, None
        self._tried.append(pose)
        return self._approach(pose, observation)

    def _near_object(self) -> Target:
        """Everywhere within :data:`NEAR_M` of an observed part of the object, except the places already tried."""
        rows, columns = np.nonzero(self._grid.goal_counts >= _SEEN_TIMES)
        x_m, y_m = self._grid.centers(rows, columns)

        def sources(costs: CostMap) -> Bools:
            seen = np.zeros_like(costs.known)
            column, row = (np.floor(value).astype(np.intp) for value in costs.in_cells(x_m, y_m))
            inside = (row >= 0) & (row < seen.shape[0]) & (column >= 0) & (column < seen.shape[1])
            seen[row[inside], column[inside]] = True
            near = ndimage.distance_transform_edt(~seen) * costs.resolution_m <= NEAR_M
            for pose in self._tried:
                near &= ~disc(costs, pose.x_m, pose.y_m, TRIED_M)
            return np.asarray(near)

        def arrived(x: Floats, y: Floats) -> Bools:
            there = np.hypot(x[..., None] - x_m, y[..., None] - y_m).min(axis=-1) <= NEAR_M
            for pose in self._tried:
                there &= np.hypot(x - pose.x_m, y - pose.y_m) > TRIED_M
            return np.asarray(there)

        return Target((float(x_m.mean()), float(y_m.mean())), sources, arrived)

    def _nearest_seen(self, pose: SE2) -> tuple[float, float]:
        """The mean position of the nearest observed parts of the object."""
        rows, columns = np.nonzero(self._grid.goal_counts >= _SEEN_TIMES)
        x_m, y_m = self._grid.centers(rows, columns)
        away_m = np.hypot(x_m - pose.x_m, y_m - pose.y_m)
        near = away_m <= away_m.min() + 0.3
        return float(x_m[near].mean()), float(y_m[near].mean())
