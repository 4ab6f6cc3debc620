"""The blind baselines of the Habitat paper (Savva et al., ICCV 2019, section 4 "Baselines").

All three of them stop "when within 0.2m of the goal (computed using the difference of static goal and dynamic GPS
coordinates)". That radius is the paper's success distance and part of the agents' definition, so it does not follow the
task's: under a looser success rule (0.36 m in the 2020 challenge) they are scored as published. Pass
``stop_distance_m`` to run a variant.
"""

import math
from abc import abstractmethod
from typing import Any, ClassVar

from typing_extensions import override

from robot_runtime.actions.discrete import Action
from robot_runtime.common.geometry import gps_to_start_frame, point_goal, wrap_angle
from robot_runtime.errors import PolicyError
from robot_runtime.policy import Observation, Policy, World, random_generator
from robot_runtime.tasks.task import Task

STOP_DISTANCE_M = 0.2
OFF_AXIS_DEG = 15.0


class GoalSeeker(Policy):
    """Base of the blind baselines: stops near the goal and computes its direction.

    Args:
        stop_distance_m: stops at this straight-line distance from the goal, or nearer.
    """

    needs: ClassVar[tuple[str, ...]] = ("pointgoal", "gps")
    follows: ClassVar[bool] = True  # none of them remembers its actions

    def __init__(self, stop_distance_m: float = STOP_DISTANCE_M) -> None:
        if not (math.isfinite(stop_distance_m) and stop_distance_m > 0):
            raise PolicyError(
                f"agent {self.name!r}: stop_distance_m is {stop_distance_m}", "give it a positive number of meters"
            )
        self.stop_distance_m = stop_distance_m
        self._distance_m = math.inf

    @override
    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        self._distance_m, self._form = math.inf, task.pointgoal_format

    @override
    def act(self, observation: Observation) -> Action:
        forward_m, left_m = offset_to_goal(observation, self._form)
        self._distance_m = math.hypot(forward_m, left_m)
        if self._distance_m <= self.stop_distance_m:
            return Action.STOP
        return self._seek(observation, math.atan2(left_m, forward_m))

    @abstractmethod
    def _seek(self, observation: Observation, goal_direction_rad: float) -> Action:
        """The next action, given the goal's direction in the start frame, counter-clockwise from its forward axis."""

    @override
    def info(self) -> dict[str, Any]:
        return {"distance_m": self._distance_m}


class Random(GoalSeeker):
    """Agent that takes turn_left, turn_right and move_forward with equal probability."""

    name = "random"
    choices = (Action.TURN_LEFT, Action.TURN_RIGHT, Action.MOVE_FORWARD)

    @override
    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        super().reset(task, seed, world)
        self._random = random_generator(seed)

    def _seek(self, observation: Observation, goal_direction_rad: float) -> Action:
        return self.choices[self._random.integers(len(self.choices))]


class ForwardOnly(GoalSeeker):
    """Agent that always moves forward."""

    name = "forward-only"

    def _seek(self, observation: Observation, goal_direction_rad: float) -> Action:
        return Action.MOVE_FORWARD


class GoalFollower(GoalSeeker):
    """Agent that turns towards the goal while it is more than 15 degrees off-axis, else moves forward.

    The paper's agents have no compass, but this one needs its heading; as habitat-lab's implementation
    (``habitat_baselines/agents/simple_agents.py``) it uses one.

    Args:
        stop_distance_m: stops at this straight-line distance from the goal, or nearer.
        off_axis_deg: the paper's 15. Where half the task's turn is larger, that is used instead: with a smaller one the
            agent would turn left and right for ever.
    """

    name = "goal-follower"
    needs = ("pointgoal", "gps", "compass")

    def __init__(self, stop_distance_m: float = STOP_DISTANCE_M, off_axis_deg: float = OFF_AXIS_DEG) -> None:
        super().__init__(stop_distance_m)
        self.off_axis_deg = off_axis_deg

    @override
    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        super().reset(task, seed, world)
        self._off_axis_rad = math.radians(max(self.off_axis_deg, task.magnitudes.turn_deg / 2))

    def _seek(self, observation: Observation, goal_direction_rad: float) -> Action:
        off_axis_rad = wrap_angle(goal_direction_rad - float(observation["compass"][0]))
        if abs(off_axis_rad) <= self._off_axis_rad:
            return Action.MOVE_FORWARD
        return Action.TURN_LEFT if off_axis_rad > 0 else Action.TURN_RIGHT


class RandomActions(Policy):
    """Agent that takes every action of the task but ``stop`` with equal probability, until the task's steps are over.

    For tasks without a point goal, which the paper's baselines need.

    Args:
        lengths: numbers of actions, such as ``20,30``, of which each episode draws one and stops then (Magalhaes et al.
            2019, table 2).
    """

    name = "random-actions"
    follows = True

    def __init__(self, lengths: str = "") -> None:
        if not all(length.strip().isdecimal() for length in lengths.split(",") if lengths):
            raise PolicyError(f"agent {self.name!r}: lengths are {lengths!r}", "give numbers of actions, as 20,30")
        self._lengths = [int(length) for length in lengths.split(",") if lengths]

    @override
    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        self._random = random_generator(seed)
        self._actions = [action for action in task.actions if action is not Action.STOP]
        self._left = float(self._random.choice(self._lengths)) if self._lengths else math.inf

    @override
    def act(self, observation: Observation) -> Action:
        self._left -= 1
        return Action.STOP if self._left < 0 else self._actions[self._random.integers(len(self._actions))]


def offset_to_goal(observation: Observation, form: str = "polar") -> tuple[float, float]:
    """Vector from the robot to the goal, meters along the **start** frame's forward and left axes."""
    goal_m, here_m = point_goal(observation["pointgoal"], form), gps_to_start_frame(observation["gps"])
    return goal_m[0] - here_m[0], goal_m[1] - here_m[1]
