"""The kind of task ``objectnav``: find any object of a category."""

from collections.abc import Mapping
from typing import ClassVar

from typing_extensions import override

from robot_runtime.common.geometry import SE2
from robot_runtime.scenes.scene import Scene
from robot_runtime.task_kinds.objectnav import task as objectnav
from robot_runtime.tasks.categories import CategoryGoal, category_of, category_sensor, check_categories
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.kind import TaskKind
from robot_runtime.tasks.sensor import Sensor
from robot_runtime.tasks.task import Task


class ObjectNav(TaskKind):
    """Object navigation. The rule ``visible``: the object is in view, unoccluded, within ``distance_m`` (RoboTHOR)."""

    sensors: ClassVar[Mapping[str, Sensor]] = {
        "objectgoal": category_sensor("the goal category's id in the task", rank=20)
    }
    success_rules: ClassVar[tuple[str, ...]] = ("distance", "visible")
    distance_rules: ClassVar[tuple[str, ...]] = ("distance", "visible")
    verdict_fields: ClassVar[frozenset[str]] = frozenset({"visible"})

    @override
    def check_task(self, task: Task) -> None:
        super().check_task(task)
        check_categories(task)
        if task.success.rule == "visible" and task.success.when != "stop":
            raise ValueError("the rule visible is judged from the frame of the stop: 'when' must be stop")

    @override
    def resolve_goals(self, task: Task, scene: Scene, episode: Episode) -> Episode:
        return objectnav.resolve_goals(task, scene, episode)

    @override
    def targets(self, task: Task, episode: Episode, scene: Scene) -> list[tuple[float, float]]:
        return objectnav.targets(task, episode, scene)

    @override
    def goal(self, task: Task, scene: Scene, episode: Episode, start: SE2) -> object:
        return CategoryGoal(category_of(task, episode).id) if episode.goals else None


KIND = ObjectNav()
