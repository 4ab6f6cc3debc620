"""Policies trained with Gymnasium on :mod:`robot_runtime.gym`: observations in, a position in the task's actions out.

An object with ``predict(observation)``, as Stable-Baselines3's models have it (``state`` and ``episode_start`` are
passed to those that take them; the second returned value is the next state), or with ``act(observation)``.
"""

from typing import Any

from typing_extensions import override

from robot_runtime.actions.timed import Decision
from robot_runtime.errors import UnknownAction
from robot_runtime.policies.agents.interface import Interface, single
from robot_runtime.policy import Answer
from robot_runtime.tasks.task import Task


class GymInterface(Interface):
    """Agents with ``predict`` or ``act`` that return a position in the task's actions."""

    kind = "gym"

    @override
    def decision(self, returned: Any, task: Task) -> tuple[Decision, Answer | None]:
        value = single(returned)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.invalid_answer(returned, "return one integer, as spaces.Discrete has it")
        if not 0 <= value < len(task.actions):
            known = ", ".join(f"{number} {action}" for number, action in enumerate(task.actions))
            raise UnknownAction(f"agent {self.name!r} returned action {value}", f"use one of: {known}")
        return task.actions[value], None
