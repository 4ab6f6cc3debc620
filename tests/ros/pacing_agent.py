"""An agent that is nearly always in motion and never arrives."""

from __future__ import annotations

from typing import ClassVar

from robot_runtime.actions.discrete import Action
from robot_runtime.policy import Observation, Policy, World
from robot_runtime.tasks.task import Task


class Pacing(Policy):
    """Forward, then about, and again: over 0.5 m of free floor."""

    name = "pacing"
    needs: ClassVar[tuple[str, ...]] = ()
    loop = (Action.MOVE_FORWARD, Action.MOVE_FORWARD, *[Action.TURN_LEFT] * 6)

    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        self._step = 0

    def act(self, observation: Observation) -> Action:
        self._step += 1
        return self.loop[(self._step - 1) % len(self.loop)]
