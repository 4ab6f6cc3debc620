"""Part of a task in the course of an episode: preparation, phases, effects of actions, additions to the records.

:class:`~robot_runtime.env.Env` calls a session in this order::

    begin_episode ──► begin_phase ──► observe (step 0)
    after_action ──► begin_phase, where a phase ended ──► observe (step n)
"""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from robot_runtime.actions.discrete import Action
from robot_runtime.hal import Robot
from robot_runtime.scenes.objects import ObjectSource
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.state import NO_STATE, StepState
from robot_runtime.tasks.task import Task

T = TypeVar("T")


class Observed(NamedTuple):
    """Additions of a session to one step.

    Attributes:
        state: state of the episode, for the step's record.
        goal: what the kind's sensors show at this step (``Moment.goal``); None if that is the same as at the start.
    """

    state: StepState = NO_STATE
    goal: object = None


class TaskSession:
    """Session of a task that only navigates: one phase without a name, and nothing is moved.

    Attributes:
        object_source: source of the objects' poses; None where none are moved.

    Raises:
        ConfigError: the robot lacks a part that the task needs.
    """

    object_source: ObjectSource | None = None

    def __init__(self, robot: Robot, task: Task) -> None:
        pass

    @property
    def scored(self) -> bool:
        """Whether the running phase counts for success and for the limits of steps and time."""
        return True

    def begin_episode(self, episode: Episode, place: Callable[[], object]) -> Episode:
        """Prepare an episode, before its first phase; return it with what was seen in preparing.

        Args:
            episode: the checked episode.
            place: brings the robot to the episode's start.
        """
        return episode

    def begin_phase(self, place: Callable[[], T]) -> T:
        """Bring scene and robot to the start of the next phase, and return what ``place`` returned.

        Args:
            place: brings the robot there.
        """
        return place()

    def after_action(self, action: Action, index: int) -> bool:
        """Carry out what an action does besides moving the robot; return whether the next phase is due.

        Args:
            action: the one that was carried out.
            index: index of its step.
        """
        return False

    def observe(self, after_ns: int) -> Observed:
        """Return the additions to a step, measured at ``after_ns`` or later. Raises ``StaleData``."""
        return Observed()
