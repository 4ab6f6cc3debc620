"""An agent that answers the next two seconds of a circle to the left, and stops after a while."""

from __future__ import annotations

import math
from typing import ClassVar

from robot_runtime.actions.discrete import Action
from robot_runtime.actions.timed import Decision, trajectory
from robot_runtime.policy import Observation, Policy, World
from robot_runtime.tasks.task import Task

RADIUS_M, SPEED_M_S, PERIOD_S, DECISIONS = 0.4, 0.2, 0.25, 40


class Circling(Policy):
    """Circles of 0.4 m radius at 0.2 m/s."""

    name = "circling"
    needs: ClassVar[tuple[str, ...]] = ()

    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        self._left = DECISIONS

    def act(self, observation: Observation) -> Decision:
        self._left -= 1
        if self._left < 0:
            return Action.STOP
        turns = [SPEED_M_S * PERIOD_S / RADIUS_M * number for number in range(1, 9)]
        return trajectory(
            [(RADIUS_M * math.sin(turn), RADIUS_M * (1 - math.cos(turn)), turn) for turn in turns], PERIOD_S
        )
