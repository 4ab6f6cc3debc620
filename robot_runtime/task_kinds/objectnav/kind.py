"""The kind of task ``objectnav``: find any object of a category."""

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from typing_extensions import override

from robot_runtime.common.geometry import SE2
from robot_runtime.errors import EpisodeError
from robot_runtime.scenes.scene import Scene
from robot_runtime.tasks import categories
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.kind import TaskKind
from robot_runtime.tasks.sensor import Sensor
from robot_runtime.tasks.task import Task


class ObjectNav(TaskKind):
    """Object navigation. The rule ``visible``: the object is in view, unoccluded, within ``distance_m`` (RoboTHOR)."""

    sensors: ClassVar[Mapping[str, Sensor]] = {
        "objectgoal": categories.category_sensor("the goal category's id in the task", rank=20)
    }
    success_rules: ClassVar[tuple[str, ...]] = ("distance", "visible")
    distance_rules: ClassVar[tuple[str, ...]] = ("distance", "visible")
    verdict_fields: ClassVar[frozenset[str]] = frozenset({"visible"})

    @override
    def check_task(self, task: Task) -> None:
        super().check_task(task)
        categories.check_categories(task)
        if task.success.rule == "visible" and task.success.when != "stop":
            raise ValueError("the rule visible is judged from the frame of the stop: 'when' must be stop")

    @override
    def resolve_goals(self, task: Task, scene: Scene, episode: Episode) -> Episode:
        """The episode with the goals that it leaves to the scene.

        Goals from the file stay if they serve the task: that is, unless it measures to view points and they have none.
        Otherwise every instance in the scene becomes a goal (any instance counts in both challenges); for view points,
        instances that cannot be seen from anywhere are left out, as Batra et al. 2020 section 3 does.

        Raises:
            EpisodeError: category unknown, no instance in the scene, or none with view points; names the remedy.
        """
        needs_views = task.success.target == "view_points"
        if any(goal.view_points or not needs_views for goal in episode.goals):
            return episode
        found = categories.instances(task, scene, episode)
        if not found:
            wanted = f"{episode.category!r} ({', '.join(categories.category_of(task, episode).matches)})"
            raise EpisodeError(
                f"episode {episode.id!r}: scene {scene.name!r} has no object of category {wanted}",
                f"choose another episode, or add the object to {scene.folder / 'scene.yaml'}",
            )
        goals = [categories.object_goal(scene, item) for item in found]
        if needs_views:
            goals = [goal for goal in goals if goal.view_points]
        if not goals:
            raise EpisodeError(
                f"episode {episode.id!r}: no view points of {', '.join(item.id for item in found)} "
                f"in {scene.folder / 'view_points.json'}",
                "compute them with `robot-runtime scene view-points`",
            )
        return replace(episode, goals=tuple(goals))

    @override
    def goal(self, task: Task, scene: Scene, episode: Episode, start: SE2) -> object:
        return categories.CategoryGoal(categories.category_of(task, episode).id) if episode.goals else None


KIND = ObjectNav()
