"""Starts of episodes: k primitive actions before the target, on a shortest path of actions (Das et al. 2018).

The paper takes the shortest path from a random place to the target and starts the agent 10, 30 and 50 actions before
its end (T-10, T-30, T-50). Here the path is the shortest one, in meters, of the task's own forward moves and turns
(:mod:`robot_runtime.policies.planning.lattice`), to within ``ARRIVE_M`` of a view point of the target, followed by the
turns toward it. Turns count as actions, as in the paper.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robot_runtime.actions.discrete import Action, Magnitudes
from robot_runtime.common.geometry import SE2
from robot_runtime.policies.planning.lattice import Moves, Step, Terrain, search
from robot_runtime.scenes.geodesic import GeodesicMap
from robot_runtime.scenes.grid_interpolation import Floats, bilinear
from robot_runtime.scenes.scene import Scene
from robot_runtime.tasks.episode import Goal

ARRIVE_M = 0.1
_PLACES = 32
_PATHS = 3
_WIDTH = 300
_MAX_FORWARDS = 400


@dataclass(frozen=True)
class ActionPath:
    """Primitive actions from a random place to a pose that faces the target.

    Attributes:
        start: the place.
        steps: each action and the pose after it.
    """

    start: SE2
    steps: tuple[Step, ...]

    def before_end(self, actions: int) -> SE2 | None:
        """The pose that many actions before the end; None if the path is shorter."""
        index = len(self.steps) - actions
        if index < 0 or actions < 0:
            return None
        pose = self.start if index == 0 else self.steps[index - 1].pose
        return SE2(float(pose.x_m), float(pose.y_m), float(pose.yaw_rad))  # the search computes in numpy's numbers


class PathFinder:
    """Search for action paths in one scene."""

    def __init__(self, scene: Scene, magnitudes: Magnitudes, radius_m: float, seed: int) -> None:
        self.space = GeodesicMap(scene.map, radius_m)
        self._scene = scene
        self._moves = Moves.of(magnitudes)
        self._radius_m = radius_m
        self._seed = seed
        self._clearance_m = scene.map.clearance_m()
        # Half a cell's diagonal more than the radius, so that the robot fits anywhere in the cell.
        self._cells = np.argwhere(scene.map.navigable(radius_m + scene.map.resolution_m * math.sqrt(0.5)))

    def path(self, goals: Sequence[Goal], actions: int) -> ActionPath | None:
        """A path to the nearest view point of any goal, from one of the farthest of some random places.

        Of the paths tried, the first of at least ``actions`` actions is taken, else the longest. The same goals in the
        same scene give the same path for the same seed.

        Returns:
            None if no place leads to any view point.
        """
        field = self.space.field([(view.x_m, view.y_m) for goal in goals for view in goal.view_points])
        rng = self._rng(goals)
        places = [self._place(rng) for _ in range(_PLACES if len(self._cells) else 0)]
        reachable = [(field.at(pose.x_m, pose.y_m), pose) for pose in places]
        farthest = sorted((item for item in reachable if math.isfinite(item[0])), key=lambda item: -item[0])
        terrain = Terrain(self._slowness, lambda x, y: bilinear(field.values, *self._scene.map.in_cells(x, y)))
        best: ActionPath | None = None
        for _, start in farthest[:_PATHS]:
            plan = search(start, self._moves, terrain, ARRIVE_M, _WIDTH, _MAX_FORWARDS)
            if plan is None or not plan.arrived:
                continue
            path = ActionPath(start, (*plan.steps, *self._facing(plan.steps[-1].pose if plan.steps else start, goals)))
            if best is None or len(path.steps) > len(best.steps):
                best = path
            if len(best.steps) >= actions:
                break
        return best

    def _rng(self, goals: Sequence[Goal]) -> np.random.Generator:
        target = "/".join(sorted(goal.object_id or "" for goal in goals))
        digest = hashlib.sha256(f"{self._seed}/{self._scene.name}/{target}".encode()).digest()
        return np.random.default_rng(int.from_bytes(digest[:8], "big"))

    def _place(self, rng: np.random.Generator) -> SE2:
        row, column = self._cells[rng.integers(len(self._cells))]
        x_m, y_m = self._scene.map.to_point(row, column)
        return SE2(x_m, y_m, float(rng.uniform(-math.pi, math.pi)))

    def _facing(self, pose: SE2, goals: Sequence[Goal]) -> list[Step]:
        """The turns that face the goal whose view point the pose is at."""
        goal = min(goals, key=lambda goal: min((pose.distance_to(view) for view in goal.view_points), default=math.inf))
        steps: list[Step] = []
        for action in self._moves.facing(pose.yaw_rad, math.atan2(goal.y_m - pose.y_m, goal.x_m - pose.x_m)):
            pose = pose @ SE2(0.0, 0.0, self._moves.turn_rad * (1 if action is Action.TURN_LEFT else -1))
            steps.append(Step(action, pose))
        return steps

    def _slowness(self, x: Floats, y: Floats) -> Floats:
        clearance_m = bilinear(self._clearance_m, *self._scene.map.in_cells(x, y))
        clearance_m = np.where(np.isfinite(clearance_m), clearance_m, 0.0)
        return np.where(clearance_m < self._radius_m, np.inf, 1.0)
