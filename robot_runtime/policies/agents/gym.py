"""Policies trained with Gymnasium on :mod:`robot_runtime.gym`: observations in, a position in the task's actions out.

An object with ``predict(observation)``, as Stable-Baselines3's models have it (``state`` and ``episode_start`` are
passed to those that take them; the second returned value is the next state), or with ``act(observation)``. Its
``observation_space`` says what it gets: the sensors that a ``Dict`` names, or the one that has the form of a ``Box``.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from typing_extensions import override

from robot_runtime.actions.timed import Decision
from robot_runtime.errors import PolicyMismatch, UnknownAction
from robot_runtime.policies.agents.interface import Interface, single
from robot_runtime.policy import Answer, Observation
from robot_runtime.tasks.kind import sensor_of
from robot_runtime.tasks.task import Task


class GymInterface(Interface):
    """Agents with ``predict`` or ``act`` that return a position in the task's actions."""

    kind = "gym"

    @override
    def check(self, task: Task) -> None:
        space: Any = self.about.get("space")
        for name in task.sensors if isinstance(space, dict) else ():
            if isinstance(space.get(name), list) and not _fits(space[name], name, task):
                sensor = sensor_of(task, name)
                raise PolicyMismatch(
                    f"agent {self.name!r} takes {name} as {_form(space[name])}, task {task.name!r} gives "
                    f"{_form([sensor.shape(task), np.dtype(sensor.dtype).name])}",
                    "choose the task that it was trained in",
                )
        if isinstance(space, list) and len(fitting := self._fitting(space, task)) != 1:
            raise PolicyMismatch(
                f"agent {self.name!r} takes one array, {_form(space)}; of task {task.name!r} {len(fitting)} sensors "
                "have this form" + f": {', '.join(fitting)}" * bool(fitting),
                "choose a task with one such sensor, or train with a spaces.Dict, which names them",
            )

    @override
    def agent_observation(self, observation: Observation, task: Task) -> dict[str, Any]:
        space, shown = self.about.get("space"), super().agent_observation(observation, task)
        return {name: shown[name] for name in self._fitting(space, task)[:1]} if isinstance(space, list) else shown

    @staticmethod
    def _fitting(space: list[Any], task: Task) -> list[str]:
        return [name for name in task.sensors if _fits(space, name, task)]

    @override
    def decision(self, returned: Any, task: Task) -> tuple[Decision, Answer | None]:
        value = single(returned)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.invalid_answer(returned, "return one integer, as spaces.Discrete has it")
        if not 0 <= value < len(task.actions):
            known = ", ".join(f"{number} {action}" for number, action in enumerate(task.actions))
            raise UnknownAction(f"agent {self.name!r} returned action {value}", f"use one of: {known}")
        return task.actions[value], None


def _fits(space: Sequence[Any], name: str, task: Task) -> bool:
    """Whether a sensor has the form of a space; Stable-Baselines3 moves channels to the front, in ``predict`` too."""
    sensor = sensor_of(task, name)
    shape = sensor.shape(task) or (1,)
    same = (tuple(space[0]) or (1,)) in (shape, (*shape[-1:], *shape[:-1]))
    return same and np.dtype(space[1]).kind == np.dtype(sensor.dtype).kind


def _form(space: Sequence[Any]) -> str:
    return f"{space[1]} {tuple(space[0])}"
