"""Interface of a kind of task in the layer of tasks; its defaults are those of plain navigation.

A kind is offered by an entry point (:data:`robot_runtime.tasks.payloads.TASK_KINDS`). What it gives the layers above
has groups of their own, under the same name: measures, generators, oracles, report panels.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from robot_runtime.actions.discrete import Action
from robot_runtime.actions.timed import Decision
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import EpisodeError
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.payloads import Payloads
from robot_runtime.tasks.session import TaskSession
from robot_runtime.tasks.state import StateFormat
from robot_runtime.tasks.task import Task

if TYPE_CHECKING:
    from robot_runtime.scenes.scene import Scene
from robot_runtime.common.plugins import Registry
from robot_runtime.tasks import payloads
from robot_runtime.tasks.sensor import Sensor

UNCOMMON_ACTIONS = frozenset({Action.GRAB_RELEASE})
"""Actions that only tasks of some kinds have."""


class TaskKind(Payloads):
    """A kind of task; settings, details and sensors are those of :class:`~robot_runtime.tasks.payloads.Payloads`.

    Attributes:
        success_rules: rules of success that the kind can judge.
        distance_rules: those of them that need ``Success.distance_m``.
        actions: actions that each of the kind's tasks must have; no other kind has an uncommon one.
        verdict_fields: fields of a person's or judge's verdict that the kind's measures use, of ``visible`` and
            ``objects``.
        session: class of the task's part in the course of an episode.
        state: place in the log of what the session adds to each step.
    """

    success_rules: ClassVar[tuple[str, ...]] = ("distance",)
    distance_rules: ClassVar[tuple[str, ...]] = ("distance",)
    actions: ClassVar[frozenset[Action]] = frozenset()
    verdict_fields: ClassVar[frozenset[str]] = frozenset()
    session: ClassVar[type[TaskSession]] = TaskSession
    state: ClassVar[StateFormat] = StateFormat()

    def check_task(self, task: Task) -> None:
        """Check that the settings of a task go together. Raises ``ValueError``."""
        success, rules = task.success, self.success_rules
        if success.rule not in rules:
            raise ValueError(
                f"a task of kind {task.kind} succeeds by the rule {' or '.join(rules)}, not {success.rule}"
            )
        if (success.rule in self.distance_rules) != (success.distance_m > 0):
            measured = " and ".join(self.distance_rules) or "none of this kind"
            raise ValueError(f"distance_m goes with the rules {measured}, got {success.rule}, {success.distance_m}")
        if not isinstance(task.settings, self.settings_type or type(None)):
            has = f"needs {self.settings_field!r}" if self.settings_type is not None else "has no settings of its own"
            raise ValueError(f"a task of kind {task.kind} {has}")
        if missing := self.actions - set(task.actions):
            raise ValueError(f"a task of kind {task.kind} needs the action {_names(missing)}")
        if foreign := (UNCOMMON_ACTIONS - self.actions) & set(task.actions):
            raise ValueError(f"a task of kind {task.kind} does not have the action {_names(foreign)}")

    def resolve_goals(self, task: Task, scene: Scene, episode: Episode) -> Episode:
        """The episode with the goals that its file leaves to the scene.

        Raises:
            EpisodeError: the episode lacks what the kind needs, or its goals cannot be resolved.
        """
        if not episode.goals:
            raise EpisodeError(f"episode {episode.id!r}: field 'goals' is empty", "give it a goal position")
        return episode

    def targets(self, task: Task, episode: Episode, scene: Scene) -> list[tuple[float, float]]:
        """The points (x, y in map, meters) that distance to the goal is measured to: its view points, or its position.

        Goals that the episode leaves to the scene are filled in. Raises as :meth:`resolve_goals`.
        """
        goals = self.resolve_goals(task, scene, episode).goals
        if task.success.target == "view_points" and any(goal.view_points for goal in goals):
            return [(pose.x_m, pose.y_m) for goal in goals for pose in goal.view_points]
        return [(goal.x_m, goal.y_m) for goal in goals]

    def goal(self, task: Task, scene: Scene, episode: Episode, start: SE2) -> object:
        """What the kind's sensors show of the episode's goal: ``Moment.goal``; None if the episode has no goal.

        Args:
            task: the task whose sensors are computed.
            scene: the scene of the episode.
            episode: the episode, with resolved goals.
            start: origin of the start frame, in map.
        """
        return None

    def example_goal(self) -> object:
        """A goal for measuring the speed of observations without an episode; None if the kind has none."""
        return None

    def answer_due(self, task: Task, action: Decision, step: int) -> bool:
        """Whether the policy must answer a question together with an action.

        Args:
            task: the task of the episode.
            action: the policy's decision.
            step: index of the step that the action leads to.
        """
        return False


def _names(actions: Iterable[Action]) -> str:
    return ", ".join(sorted(action.value for action in actions))


KINDS: Registry[TaskKind] = Registry(payloads.TASK_KINDS, "kind of task", TaskKind)
SENSORS: Registry[Sensor] = Registry(payloads.COMMON_SENSORS, "sensor", Sensor)


def kind_of(task: Task) -> TaskKind:
    """The kind of a task. Raises ``PluginError`` if the package that offers it cannot be used."""
    return KINDS.load(task.kind)


def has_sensor(task: Task, name: str) -> bool:
    """Whether a task may have a sensor of that name."""
    return name in SENSORS or name in kind_of(task).sensors


def sensor_of(task: Task, name: str) -> Sensor:
    """A sensor that a task may have. Raises ``ConfigError`` if there is no such sensor for this kind."""
    return kind_of(task).sensors.get(name) or SENSORS.load(name)
