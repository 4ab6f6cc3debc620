"""The kind of task ``areagoal``: go into a room of a category."""

from collections.abc import Mapping
from typing import ClassVar

from typing_extensions import override

from robot_runtime.common.geometry import SE2
from robot_runtime.scenes.scene import Scene
from robot_runtime.task_kinds.areagoal import task as areagoal
from robot_runtime.tasks.categories import CategoryGoal, category_of, category_sensor, check_categories
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.kind import TaskKind
from robot_runtime.tasks.sensor import Sensor
from robot_runtime.tasks.task import Task


class AreaGoal(TaskKind):
    """Navigation to a room. The rule ``room``: the robot's center is in a goal room."""

    sensors: ClassVar[Mapping[str, Sensor]] = {
        "areagoal": category_sensor("the id of the goal room's category in the task")
    }
    success_rules: ClassVar[tuple[str, ...]] = ("room",)
    distance_rules: ClassVar[tuple[str, ...]] = ()

    @override
    def check_task(self, task: Task) -> None:
        super().check_task(task)
        check_categories(task)

    @override
    def resolve_goals(self, task: Task, scene: Scene, episode: Episode) -> Episode:
        return areagoal.resolve_goals(task, scene, episode)

    @override
    def targets(self, task: Task, episode: Episode, scene: Scene) -> list[tuple[float, float]]:
        return areagoal.targets(task, episode, scene)

    @override
    def goal(self, task: Task, scene: Scene, episode: Episode, start: SE2) -> object:
        return CategoryGoal(category_of(task, episode).id) if episode.category is not None else None


KIND = AreaGoal()
