"""The classical agent: the Habitat paper's SLAM row with GPS and compass in place of SLAM."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from robot_runtime.actions import Action
from robot_runtime.errors import PolicyError
from robot_runtime.geometry import SE2
from robot_runtime.policies.classical.grid import Grid
from robot_runtime.policies.classical.mapping import Mapper
from robot_runtime.policies.classical.navigation import Navigator
from robot_runtime.policies.classical.objectgoal import ObjectGoal
from robot_runtime.policies.classical.pointgoal import PointGoal
from robot_runtime.policies.contact import ContactMemory
from robot_runtime.policies.grids import nearest
from robot_runtime.policies.policy import Observation, Policy, World
from robot_runtime.tasks.task import Task

RESOLUTION_M = 0.05
_BLAME_DEG = sorted(range(-85, 86, 5), key=abs)  # straight ahead first
_HALF_M = 8.0


class Classical(Policy):
    """Maps what it sees, plans on it, goes there; looks for the goal where it is not told.

    PointNav: goes to the ``pointgoal`` through what it knows, taking the unknown for passable until it sees better.
    ObjectNav: drives to frontiers of the known. If the task has the sensor ``semantic`` it goes to the goal category
    once that is in view, faces it and stops. Without that sensor it cannot recognise anything: it explores, and stops
    when there is nothing left to explore.
    """

    name = "classical"
    needs: ClassVar[tuple[str, ...]] = ("depth", "gps", "compass")

    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        """Forget everything.

        Raises:
            PolicyError: if the task tells neither a point goal nor an object goal.
        """
        goal_sensor = {"pointnav": "pointgoal", "objectnav": "objectgoal"}[task.kind]
        if goal_sensor not in task.sensors:
            raise PolicyError(
                f"agent 'classical' needs sensor {goal_sensor!r}, which task {task.name!r} does not have",
                f"add {goal_sensor!r} to the task's 'sensors', or choose another task",
            )
        self._task = task
        self._tilt_rad = task.camera.tilt_rad
        self._grid = Grid(RESOLUTION_M, _HALF_M)
        self._mapper = Mapper(task.camera, self._grid)
        self._contacts = ContactMemory(task.magnitudes.forward_m)
        navigator = Navigator(task, self._grid, self._contacts)
        self._mission: PointGoal | ObjectGoal = (
            PointGoal(task, self._grid, navigator)
            if task.kind == "pointnav"
            else ObjectGoal(task, self._grid, navigator)
        )

    def act(self, observation: Observation) -> Action:
        pose = pose_in_start_frame(observation)
        blocked = self._contacts.observe(pose)
        self._mapper.integrate(pose, self._tilt_rad, observation["depth"], self._wanted(observation))
        self._grid.stand(pose.x_m, pose.y_m, self._task.robot_radius_m)
        if blocked:
            self._bumped(pose)
        action = self._mission.decide(pose, observation)
        self._contacts.acted(action)
        self._tilt_rad += self._task.magnitudes.displacement(action).tilt_rad
        return action

    def info(self) -> dict[str, Any]:
        return self._mission.info()

    def _wanted(self, observation: Observation) -> Any:
        if self._task.kind == "pointnav" or "semantic" not in observation:
            return None
        return observation["semantic"][..., 0] == observation["objectgoal"][0]

    def _bumped(self, pose: SE2) -> None:
        """Blame the contact on what is most likely there, and mark it if it is not on the map."""
        direction_rad, seen = blame(self._grid, pose, self._task.robot_radius_m)
        self._contacts.touching(direction_rad)
        if not seen:
            reach_m = self._task.robot_radius_m + RESOLUTION_M / 2
            self._grid.touch(*SE2(pose.x_m, pose.y_m, direction_rad).apply(reach_m, 0.0))


def pose_in_start_frame(observation: Observation) -> SE2:
    """GPS [forward, right] and compass (left positive) as a pose: x forward, y left, yaw counter-clockwise."""
    forward_m, right_m = (float(value) for value in observation["gps"][:2])
    return SE2(forward_m, -right_m, float(observation["compass"][0]))


def blame(grid: Grid, pose: SE2, radius_m: float) -> tuple[float, bool]:
    """What the robot has probably bumped into: direction in the grid's frame, and whether it is on the map.

    The bumper tells nothing about where along its 180 degrees it is pressed. In order of suspicion: an obstacle on the
    map, a place that something seen may reach into, a place never seen, and whatever is straight ahead.
    """
    bearings_rad = np.radians(_BLAME_DEG)
    angles = pose.yaw_rad + bearings_rad
    # From the rim outwards: a wall's cell may begin up to a cell and a half off.
    along_m = radius_m + RESOLUTION_M * np.arange(0.0, 2.0, 0.5)
    x = pose.x_m + np.cos(angles)[:, None] * along_m
    y = pose.y_m + np.sin(angles)[:, None] * along_m
    columns, rows = grid.cells(x, y)
    for number, layer in enumerate((grid.occupied(), grid.suspect, ~grid.known)):
        found = nearest(layer, columns, rows, outside=False).astype(np.bool_).any(axis=1)
        if found.any():
            return float(angles[int(np.argmax(found))]), number == 0
    return pose.yaw_rad, False
