"""The shortest-path oracle, with access to the map and the goal; it acts with the task's own actions.

It is the upper bound for other agents, and the test that an episode can be solved at all.
"""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from typing_extensions import override

from robot_runtime.actions.discrete import Action
from robot_runtime.actions.timed import Decision
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import PolicyError
from robot_runtime.policies.baselines.kind_oracle import oracle_of
from robot_runtime.policies.planning.path_follower import PathFollower
from robot_runtime.policy import Answer, Observation, Policy, World
from robot_runtime.tasks.episode import Goal
from robot_runtime.tasks.kind import kind_of
from robot_runtime.tasks.task import Task

_ARRIVE_M = 0.1
_ARRIVE_MOST_M = 0.33
"""Upper bound of the distance at which it arrives; instruction following has a larger success distance."""

_TILT_LIMIT_RAD = math.radians(60.0)


class Oracle(Policy):
    """Follows the shortest plan of discrete actions to the nearest goal, turns to the goal object, and stops.

    What it goes to, faces and answers is the kind's (:mod:`~robot_runtime.policies.baselines.kind_oracle`). It does not
    use the text of an instruction.

    Args:
        looks_every: number of actions per pose update. Between updates the pose is dead reckoned from nominal
            displacements, which measures the value of localization where actions err. 1 where the kind has an oracle
            of its own.
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
        self._of_kind = oracle_of(task)
        self._own = self._of_kind.policy()
        if self._own is not None and self._looks_every > 1:
            raise PolicyError(
                f"agent 'oracle': looks_every is {self._looks_every}, and in task {task.name!r} of kind {task.kind} it "
                "needs the pose at every action",
                "leave it out",
            )
        episode = kind_of(task).resolve_goals(task, world.scene, world.episode)
        if self._own is not None:
            self._own.reset(task, seed, world)
            return
        self._goals = episode.goals
        arrive_m = _ARRIVE_M
        if task.success.rule == "distance":
            arrive_m = min(max(task.success.distance_m - 0.03, task.success.distance_m / 2), _ARRIVE_MOST_M)
        places = self._of_kind.places(task, episode, world.scene)
        self._follower = PathFollower(task, world.scene)
        self._follower.go_to(places, arrive_m)
        self._facing: list[Action] | None = None

    @override
    def act(self, observation: Observation) -> Decision:
        if self._own is not None:
            return self._own.act(observation)
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
        return self._of_kind.answer(self._world.episode)

    @override
    def info(self) -> dict[str, Any]:
        if self._own is not None:
            return self._own.info()
        return {"planned_actions": self._follower.left, "plan_arrives": self._follower.arrived}

    def _facing_actions(self, pose: SE2) -> list[Action]:
        """The turns and looks that bring the goal object into the middle of the view."""
        if not self._of_kind.faces_goal:
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


def _nearest_view_m(goal: Goal, pose: SE2) -> float:
    views: Sequence[SE2] = goal.view_points or (SE2(goal.x_m, goal.y_m),)
    return min(pose.distance_to(view) for view in views)
