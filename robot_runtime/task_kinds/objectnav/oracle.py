"""The shortest-path oracle in ObjectNav: it goes to view points of the goal objects, and faces the nearest object."""

import math
from typing import ClassVar

from typing_extensions import override

from robot_runtime.common.geometry import SE2
from robot_runtime.errors import PolicyError
from robot_runtime.policies.baselines.kind_oracle import KindOracle
from robot_runtime.scenes.scene import Scene
from robot_runtime.tasks.episode import Episode, Goal
from robot_runtime.tasks.task import Task

_VISIBLE_RESERVE_M = 0.15


class ObjectOracle(KindOracle):
    """Goes to a view point of a goal object and faces the object."""

    faces_goal: ClassVar[bool] = True

    @override
    def places(self, task: Task, episode: Episode, scene: Scene) -> list[tuple[float, float]]:
        """Positions of the goal objects' view points; for the visible rule, those well within the distance.

        Raises:
            PolicyError: the goals have no view points.
        """
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
