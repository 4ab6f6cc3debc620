"""The shortest-path oracle, with access to the map and the goal; it acts with the task's own actions.

It is the upper bound for other agents, and the test that an episode can be solved at all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from typing_extensions import override

from robot_runtime.actions.discrete import Action
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import PolicyError
from robot_runtime.policies.planning.path_follower import PathFollower
from robot_runtime.policy import Answer, Observation, Policy, World
from robot_runtime.scenes.scene import Scene
from robot_runtime.task_kinds.areagoal import task as areagoal
from robot_runtime.task_kinds.eqa.task import Inquiry
from robot_runtime.task_kinds.rearrangement import task as rearrangement
from robot_runtime.task_kinds.rearrangement.oracle import RearrangementOracle
from robot_runtime.tasks.episode import Episode, Goal
from robot_runtime.tasks.registry import kind_of
from robot_runtime.tasks.task import Task

_VISIBLE_RESERVE_M = 0.15
_ARRIVE_M = 0.1
_ARRIVE_MOST_M = 0.33
"""Upper bound of the distance at which it arrives; instruction following has a larger success distance."""

_TILT_LIMIT_RAD = math.radians(60.0)


class Oracle(Policy):
    """Follows the shortest plan of discrete actions to the nearest goal, turns to the goal object, and stops.

    In rearrangement tasks it carries the objects one by one. It does not use the text of an instruction; it returns the
    recorded answer to a question.

    Args:
        looks_every: number of actions per pose update. Between updates the pose is dead reckoned from nominal
            displacements, which measures the value of localization where actions err. 1 for tasks that move objects.
    """

    name = "oracle"
    needs: ClassVar[tuple[str, ...]] = ()
    privileged = True

    def __init__(self, looks_every: int = 1) -> None:
        if not isinstance(looks_every, int) or looks_every < 1:
            raise PolicyError(f"agent 'oracle': looks_every is {looks_every!r}", "give a number of actions, 1 or more")
        self._looks_every = looks_every

    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        """Prepare the episode.

        Raises:
            PolicyError: there is no world, or goal objects that must be seen have no view points.
            EpisodeError: the goals cannot be resolved.
        """
        if world is None:
            raise PolicyError("agent 'oracle' needs the simulator's world", "run it on a simulated robot")
        self._task, self._world = task, world
        self._acted, self._expected_pose = 0, world.pose()
        self._rearrangement: RearrangementOracle | None = None
        if task.kind == "rearrangement":
            if self._looks_every > 1:
                raise PolicyError(
                    f"agent 'oracle': looks_every is {self._looks_every}, and task {task.name!r} moves objects",
                    "leave it out",
                )
            rearrangement.resolve_goals(task, world.scene, world.episode)
            self._rearrangement = RearrangementOracle(task, world)
            return
        rules = kind_of(task)
        episode = rules.resolve_goals(task, world.scene, world.episode)
        self._goals = episode.goals
        arrive_m = _ARRIVE_M
        if task.success.rule == "distance":
            arrive_m = min(max(task.success.distance_m - 0.03, task.success.distance_m / 2), _ARRIVE_MOST_M)
        targets = rules.targets(task, episode, world.scene)
        if task.kind == "objectnav":
            targets = _view_positions(task, world.scene, episode)
        elif task.kind == "areagoal":
            targets = areagoal.well_inside(task, episode, world.scene)
        self._follower = PathFollower(task, world.scene)
        self._follower.go_to(targets, arrive_m)
        self._facing: list[Action] | None = None

    @override
    def act(self, observation: Observation) -> Action:
        if self._rearrangement is not None:
            return self._rearrangement.act()
        pose = self._world.pose() if self._acted % self._looks_every == 0 else self._expected_pose
        self._follower.observe(pose)
        action = self._follower.next(pose) if self._facing is None else None
        if action is None:
            if self._facing is None:
                self._facing = self._facing_actions(pose)
            action = self._facing.pop(0) if self._facing else Action.STOP
        self._follower.acted(action)
        way = self._task.magnitudes.displacement(action)
        self._acted, self._expected_pose = self._acted + 1, pose @ SE2(way.forward_m, 0.0, way.turn_rad)
        return action

    @override
    def answer(self, observation: Observation) -> Answer | None:
        question = Inquiry.of(self._world.episode).question
        return None if question is None else question.answer

    @override
    def info(self) -> dict[str, Any]:
        if self._rearrangement is not None:
            return self._rearrangement.info()
        return {"planned_actions": self._follower.left, "plan_arrives": self._follower.arrived}

    def _facing_actions(self, pose: SE2) -> list[Action]:
        """The turns and looks that bring the goal object into the middle of the view."""
        if self._task.kind not in ("objectnav", "eqa"):
            return []
        goal = min(self._goals, key=lambda goal: _nearest_view_m(goal, pose))
        east_m, north_m = goal.x_m - pose.x_m, goal.y_m - pose.y_m
        turns = self._follower.moves.facing(pose.yaw_rad, math.atan2(north_m, east_m))
        elevation_rad = math.atan2(goal.z_m - self._task.camera.height_m, math.hypot(east_m, north_m))
        low_rad, high_rad = self._task.look_limits_rad or (-_TILT_LIMIT_RAD, _TILT_LIMIT_RAD)
        elevation_rad = max(low_rad, min(high_rad, elevation_rad))
        looks = round((elevation_rad - self._world.tilt_rad()) / math.radians(self._task.magnitudes.tilt_deg))
        look = Action.LOOK_UP if looks > 0 else Action.LOOK_DOWN
        return turns + [look] * (abs(looks) if look in self._task.actions else 0)


def _view_positions(task: Task, scene: Scene, episode: Episode) -> list[tuple[float, float]]:
    """Positions (x, y) at the goal objects' view points; for the visible rule, those well within the distance."""
    views = [(goal, view) for goal in episode.goals for view in goal.view_points]
    if not views:
        raise PolicyError(
            f"episode {episode.id!r}: its goals have no view points, which the oracle needs",
            f"compute them with `robot-runtime scene view-points {scene.folder}`",
        )
    if task.success.rule == "visible":
        reach_m = task.success.distance_m - _VISIBLE_RESERVE_M
        near = [(goal, view) for goal, view in views if _box_distance_m(scene, goal, view) <= reach_m]
        views = near or views
    return [(view.x_m, view.y_m) for _, view in views]


def _box_distance_m(scene: Scene, goal: Goal, view: SE2) -> float:
    """Distance in the plane from a view point to the object's oriented box; to its center if the scene has no box."""
    if goal.object_id is None:
        return math.hypot(goal.x_m - view.x_m, goal.y_m - view.y_m)
    return scene.object(goal.object_id).distance_m(view.x_m, view.y_m)


def _nearest_view_m(goal: Goal, pose: SE2) -> float:
    views: Sequence[SE2] = goal.view_points or (SE2(goal.x_m, goal.y_m),)
    return min(pose.distance_to(view) for view in views)
