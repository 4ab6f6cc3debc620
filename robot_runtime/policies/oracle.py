"""The shortest-path oracle: sees the map and the goal, and acts with the task's own actions.

It is the upper bound that the other agents are compared with, and the test that an episode can be solved at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from robot_runtime.actions import Action
from robot_runtime.episodes.episode import Episode, Goal
from robot_runtime.errors import PolicyError
from robot_runtime.geodesic import GeodesicMap
from robot_runtime.geometry import SE2, wrap_angle
from robot_runtime.policies.contact import ContactMemory
from robot_runtime.policies.grids import Floats, bilinear
from robot_runtime.policies.lattice import Moves, Plan, Terrain, search
from robot_runtime.policies.policy import Answer, Observation, Policy, World
from robot_runtime.scene import Scene
from robot_runtime.tasks import areagoal
from robot_runtime.tasks.rules import task_module
from robot_runtime.tasks.task import Task

COMFORT_M = 0.04
"""Clearance beyond the robot's radius below which way counts :data:`TIGHT_SLOWNESS`-fold."""

TIGHT_SLOWNESS = 3.0

BUMP_SLOWNESS = 4.0
"""Added where the robot would run into the place of an earlier contact, which the map does not show."""

_HARD_MARGINS_M = (0.005, -0.0125, -0.03)  # a start pose may stand nearer to a wall than a plan should go
_WIDTHS = (300, 3000)
_MAX_FORWARDS = 2000
_REPLAN_M, _REPLAN_RAD = 0.02, math.radians(2.0)
_VISIBLE_RESERVE_M = 0.15
_ARRIVE_M = 0.1
_ARRIVE_MOST_M = 0.33
"""An instruction ends at a place, however far from it still counts as a success."""

_TILT_LIMIT_RAD = math.radians(60.0)


class Oracle(Policy):
    """Follows the shortest plan of discrete actions to the nearest goal; at an object, turns to it; stops.

    It has not read the instruction that it is scored by, but it knows the answer to the question.
    """

    name = "oracle"
    needs: ClassVar[tuple[str, ...]] = ()
    privileged = True

    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        """Prepare the episode.

        Raises:
            PolicyError: without a world, or if goal objects that must be seen have no view points.
            EpisodeError: if the goals cannot be resolved.
        """
        if world is None:
            raise PolicyError("agent 'oracle' needs the simulator's world", "run it on a simulated robot")
        self._task, self._world = task, world
        self._moves = Moves.of(task.magnitudes)
        rules = task_module(task)
        episode = rules.resolve_goals(task, world.scene, world.episode)
        self._goals = episode.goals
        self._arrive_m = _ARRIVE_M
        if task.success.rule == "distance":
            self._arrive_m = min(max(task.success.distance_m - 0.03, task.success.distance_m / 2), _ARRIVE_MOST_M)
        targets = rules.targets(task, episode, world.scene)
        if task.kind == "objectnav":
            targets = _standpoints(task, world.scene, episode)
        elif task.kind == "areagoal":
            targets = areagoal.well_inside(task, episode, world.scene)
        self._space = GeodesicMap(world.scene.map, task.robot_radius_m)
        self._field = self._space.field(targets)
        self._clearance_m = world.scene.map.clearance_m()
        self._contacts = ContactMemory(task.magnitudes.forward_m)
        self._bumps: list[tuple[float, float]] = []
        self._plan = Plan((), arrived=False)
        self._next = 0
        self._aim: list[Action] | None = None

    def act(self, observation: Observation) -> Action:
        pose = self._world.pose()
        if self._contacts.observe(pose):
            self._bumps.append(pose.apply(self._task.robot_radius_m, 0.0))
        action = self._travel(pose) if self._aim is None else None
        if action is None:
            if self._aim is None:
                self._aim = self._aiming(pose)
            action = self._aim.pop(0) if self._aim else Action.STOP
        self._contacts.acted(action)
        return action

    def answer(self, observation: Observation) -> Answer | None:
        question = self._world.episode.question
        return None if question is None else question.answer

    def info(self) -> dict[str, Any]:
        return {"planned_actions": len(self._plan.steps) - self._next, "plan_arrives": self._plan.arrived}

    def _travel(self, pose: SE2) -> Action | None:
        """The next action of the plan; None at its end."""
        if self._next >= len(self._plan.steps) and self._plan.arrived and self._on_plan(pose):
            return None
        if self._next >= len(self._plan.steps) or not self._on_plan(pose):
            self._plan, self._next = self._search(pose), 0
            if not self._plan.steps:
                return None
        self._next += 1
        return self._plan.steps[self._next - 1].action

    def _on_plan(self, pose: SE2) -> bool:
        if self._next == 0:
            return not self._plan.steps and self._plan.arrived
        expected = self._plan.steps[self._next - 1].pose
        return (
            pose.distance_to(expected) <= _REPLAN_M and abs(wrap_angle(pose.yaw_rad - expected.yaw_rad)) <= _REPLAN_RAD
        )

    def _search(self, pose: SE2) -> Plan:
        """A plan from here; the best incomplete one if none arrives, an empty one if the robot cannot move."""
        best = Plan((), arrived=False)
        allowed = self._contacts.allowed(self._moves.angles(pose.yaw_rad))
        for margin_m in _HARD_MARGINS_M:
            for width in _WIDTHS:
                terrain = Terrain(self._slowness(margin_m), self._to_go_m)
                plan = search(pose, self._moves, terrain, self._arrive_m, width, _MAX_FORWARDS, allowed)
                if plan is not None and plan.arrived:
                    return plan
                best = best if plan is None else plan
        return best

    def _slowness(self, margin_m: float) -> Callable[[Floats, Floats], Floats]:
        radius_m = self._task.robot_radius_m

        def slowness(x: Floats, y: Floats) -> Floats:
            clearance_m = bilinear(self._clearance_m, *self._cells(x, y))
            clearance_m = np.where(np.isfinite(clearance_m), clearance_m, 0.0)
            free = np.where(clearance_m < radius_m + COMFORT_M, TIGHT_SLOWNESS, 1.0)
            for bump_x_m, bump_y_m in self._bumps:
                free += np.where(np.hypot(x - bump_x_m, y - bump_y_m) < radius_m + COMFORT_M, BUMP_SLOWNESS, 0.0)
            return np.where(clearance_m < radius_m + margin_m, np.inf, free)

        return slowness

    def _to_go_m(self, x: Floats, y: Floats) -> Floats:
        return bilinear(self._field.values, *self._cells(x, y))

    def _cells(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        grid = self._space.map
        return (x - grid.origin_x_m) / grid.resolution_m, (y - grid.origin_y_m) / grid.resolution_m

    def _aiming(self, pose: SE2) -> list[Action]:
        """The turns and looks that bring the object reached into the middle of the view."""
        if self._task.kind not in ("objectnav", "eqa"):
            return []
        goal = min(self._goals, key=lambda goal: _nearest_view_m(goal, pose))
        east_m, north_m = goal.x_m - pose.x_m, goal.y_m - pose.y_m
        turns = self._moves.facing(pose.yaw_rad, math.atan2(north_m, east_m))
        elevation_rad = math.atan2(goal.z_m - self._task.camera.height_m, math.hypot(east_m, north_m))
        elevation_rad = max(-_TILT_LIMIT_RAD, min(_TILT_LIMIT_RAD, elevation_rad))
        looks = round((elevation_rad - self._world.tilt_rad()) / math.radians(self._task.magnitudes.tilt_deg))
        look = Action.LOOK_UP if looks > 0 else Action.LOOK_DOWN
        return turns + [look] * (abs(looks) if look in self._task.actions else 0)


def _standpoints(task: Task, scene: Scene, episode: Episode) -> list[tuple[float, float]]:
    """Where to stand to have reached an object: its view points; for the visible rule, those with room to spare."""
    views = [(goal, view) for goal in episode.goals for view in goal.view_points]
    if not views:
        raise PolicyError(
            f"episode {episode.id!r}: its goals have no view points, and the oracle goes to those",
            f"compute them with `robot-runtime scene view-points {scene.folder}`",
        )
    if task.success.rule == "visible":
        reach_m = task.success.distance_m - _VISIBLE_RESERVE_M
        near = [(goal, view) for goal, view in views if _box_distance_m(scene, goal, view) <= reach_m]
        views = near or views
    return [(view.x_m, view.y_m) for _, view in views]


def _box_distance_m(scene: Scene, goal: Goal, view: SE2) -> float:
    """Distance in the plane from a view point to the object's oriented box; to its centre if the scene has no box."""
    if goal.object_id is None:
        return math.hypot(goal.x_m - view.x_m, goal.y_m - view.y_m)
    return scene.object(goal.object_id).distance_m(view.x_m, view.y_m)


def _nearest_view_m(goal: Goal, pose: SE2) -> float:
    views: Sequence[SE2] = goal.view_points or (SE2(goal.x_m, goal.y_m),)
    return min(pose.distance_to(view) for view in views)
