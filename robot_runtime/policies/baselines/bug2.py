"""Bug2: the classical agent of robots that only feel (Lumelsky and Stepanov, Algorithmica 2, 1987, pages 403-430).

Straight to the goal; round whatever is in the way, by touch, until the straight line from the start to the goal is
crossed nearer to the goal than where it was left. It proves a way where there is one, sees nothing and maps nothing,
and so tells what a camera is worth.

Here an obstacle is what a forward move does not get past
(:class:`~robot_runtime.planning.contact_memory.ContactMemory`), and
it is followed by trying: away from it while moves are refused, towards it after each that was not.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from robot_runtime.actions.continuous import Decision
from robot_runtime.actions.discrete import Action
from robot_runtime.common.geometry import SE2, gps_to_start_frame
from robot_runtime.errors import PolicyError
from robot_runtime.planning.contact_memory import ContactMemory
from robot_runtime.policies.baselines.blind import OFF_AXIS_DEG, STOP_DISTANCE_M, GoalFollower, offset_to_goal
from robot_runtime.policy import Observation, World
from robot_runtime.tasks.task import Task

_NEARER_M = 0.1
"""So much nearer to the goal a following must have led: less may be what localization errs by."""


class Bug(GoalFollower):
    """Bug2 with GPS and compass.

    A following that comes back to where it began goes on the other way round: nothing is known to lead there, and in
    a home something that moves may.

    Args:
        side: where it keeps what it follows: ``left`` or ``right``.
        stop_distance_m, off_axis_deg: as the goal follower's, which it is in the open.
    """

    name = "bug"

    def __init__(
        self, side: str = "left", stop_distance_m: float = STOP_DISTANCE_M, off_axis_deg: float = OFF_AXIS_DEG
    ) -> None:
        super().__init__(stop_distance_m, off_axis_deg)
        if side not in ("left", "right"):
            raise PolicyError(f"agent {self.name!r}: side is {side!r}", "give left or right")
        self._first_sign = 1 if side == "left" else -1

    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        super().reset(task, seed, world)
        self._turn_rad = math.radians(task.magnitudes.turn_deg)
        self._forward_m = task.magnitudes.forward_m
        self._contacts = ContactMemory(self._forward_m)
        self._sign = self._first_sign
        self._hit: SE2 | None = None  # where following began, in the start frame
        self._hit_m = math.inf  # from there to the goal
        self._beside_m = 0.0  # signed, from the line between start and goal; left positive
        self._followed_m = 0.0
        self._pose = SE2()

    def _seek(self, observation: Observation, goal_direction_rad: float) -> Action:
        pose = SE2(*gps_to_start_frame(observation["gps"]), float(observation["compass"][0]))
        travelled_m, self._pose = pose.distance_to(self._pose), pose
        blocked = self._contacts.observe(pose)
        crossed = self._crosses_line(observation)
        if self._hit is None:
            if blocked:
                self._begin(pose)
        else:
            self._followed_m += travelled_m
            if crossed and self._distance_m < self._hit_m - _NEARER_M:
                self._hit = None
            elif self._followed_m > 4 * self._forward_m and pose.distance_to(self._hit) < self._forward_m:
                self._sign = -self._sign
                self._begin(pose)
        action = self._follow(pose, blocked, travelled_m) if self._hit is not None else None
        action = action or super()._seek(observation, goal_direction_rad)
        self._contacts.acted(action)
        return action

    def overruled(self, decision: Decision) -> None:
        self._contacts.acted(decision)

    def info(self) -> dict[str, Any]:
        return super().info() | {"follows": "" if self._hit is None else "left" if self._sign > 0 else "right"}

    def _begin(self, pose: SE2) -> None:
        self._hit, self._hit_m, self._followed_m = pose, self._distance_m, 0.0

    def _crosses_line(self, observation: Observation) -> bool:
        """Whether the last move led over the line from start to goal."""
        goal_rad = float(observation["pointgoal"][1])
        forward_m, left_m = offset_to_goal(observation)
        before_m, self._beside_m = self._beside_m, math.sin(goal_rad) * forward_m - math.cos(goal_rad) * left_m
        return before_m * self._beside_m <= 0

    def _follow(self, pose: SE2, blocked: bool, travelled_m: float) -> Action:
        """Away while refused; else one turn towards the obstacle after each move, and on."""
        allowed = self._contacts.allowed(np.array([pose.yaw_rad]))
        if blocked or (allowed is not None and not allowed[0]):
            return self._turn(-self._sign)
        if travelled_m > self._forward_m / 2:
            return self._turn(self._sign)
        return Action.MOVE_FORWARD

    @staticmethod
    def _turn(sign: int) -> Action:
        return Action.TURN_LEFT if sign > 0 else Action.TURN_RIGHT
