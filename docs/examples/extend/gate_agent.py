"""An agent that drives towards the gate and stops behind it."""

import math

from robot_runtime.actions.discrete import Action
from robot_runtime.policy import Observation, Policy, World
from robot_runtime.tasks.task import Task


class GateFollower(Policy):
    """Turns to the gate's middle, drives there, and stops; it does not avoid obstacles.

    Args:
        near_m: distance to the gate's middle at which it stops.
    """

    name = "gate-follower"
    needs = ("gate",)
    kinds = ("gatenav",)

    def __init__(self, near_m: float = 0.2) -> None:
        self._near_m = near_m

    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        self._half_turn_rad = math.radians(task.magnitudes.turn_deg) / 2

    def act(self, observation: Observation) -> Action:
        distance_m, azimuth_rad = observation["gate"]
        if distance_m < self._near_m:
            return Action.STOP
        if abs(azimuth_rad) > self._half_turn_rad:
            return Action.TURN_LEFT if azimuth_rad > 0 else Action.TURN_RIGHT
        return Action.MOVE_FORWARD
