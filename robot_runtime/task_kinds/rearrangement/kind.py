"""The kind of task ``rearrangement``: bring objects to where they should be."""

from collections.abc import Mapping
from typing import ClassVar

from typing_extensions import override

from robot_runtime.actions.discrete import Action
from robot_runtime.common.geometry import SE2
from robot_runtime.scenes.scene import Scene
from robot_runtime.task_kinds.rearrangement import task as rearrangement
from robot_runtime.task_kinds.rearrangement.sensors import REARRANGEMENT_SENSORS, RearrangementGoal
from robot_runtime.task_kinds.rearrangement.session import RearrangementSession
from robot_runtime.task_kinds.rearrangement.settings import Rearrangement
from robot_runtime.task_kinds.rearrangement.state import STATE_FORMAT
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.kind import TaskKind
from robot_runtime.tasks.sensor import Sensor
from robot_runtime.tasks.session import TaskSession
from robot_runtime.tasks.state import StateFormat
from robot_runtime.tasks.task import Task


class RearrangementKind(TaskKind):
    """Rearrangement. The rule ``objects``: every object is as it should be, and nothing was harmed."""

    settings_field: ClassVar[str] = "rearrangement"
    settings_type: ClassVar[type] = Rearrangement
    details_type: ClassVar[type] = rearrangement.Layout
    sensors: ClassVar[Mapping[str, Sensor]] = REARRANGEMENT_SENSORS
    success_rules: ClassVar[tuple[str, ...]] = ("objects",)
    distance_rules: ClassVar[tuple[str, ...]] = ()
    actions: ClassVar[frozenset[Action]] = frozenset({Action.GRAB_RELEASE})
    verdict_fields: ClassVar[frozenset[str]] = frozenset({"objects"})
    session: ClassVar[type[TaskSession]] = RearrangementSession
    state: ClassVar[StateFormat] = STATE_FORMAT

    @override
    def resolve_goals(self, task: Task, scene: Scene, episode: Episode) -> Episode:
        return rearrangement.resolve_goals(task, scene, episode)

    @override
    def targets(self, task: Task, episode: Episode, scene: Scene) -> list[tuple[float, float]]:
        return rearrangement.targets(task, episode, scene)

    @override
    def goal(self, task: Task, scene: Scene, episode: Episode, start: SE2) -> object:
        return RearrangementGoal(episode)


KIND = RearrangementKind()
