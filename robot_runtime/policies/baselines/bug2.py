"""Bug2, a complete planner for robots with touch alone (Lumelsky and Stepanov, Algorithmica 2, 1987, pages 403-430).

The robot drives straight to the goal and follows the boundary of each obstacle until it crosses the straight line from
start to goal nearer to the goal than where it left it. Without camera and map, it is the baseline for a camera's gain.

An obstacle is what a forward move does not get past
(:class:`~robot_runtime.policies.planning.contact_memory.ContactMemory`). Its boundary is followed by trials: a
turn away while moves are blocked, a turn towards it after each free move.
"""

import math
from typing import Any

import numpy as np
from typing_extensions import override

from robot_runtime.actions.discrete import Action
from robot_runtime.actions.timed import Decision
from robot_runtime.common.geometry import SE2, gps_to_start_frame, point_goal
from robot_runtime.errors import PolicyError
from robot_runtime.policies.baselines.blind import OFF_AXIS_DEG, STOP_DISTANCE_M, GoalFollower, offset_to_goal
from robot_runtime.policies.planning.contact_memory import ContactMemory
from robot_runtime.policy import Observation, World
from robot_runtime.tasks.task import Task

_NEARER_M = 0.1
"""Least gain in distance to the goal before boundary following ends: less may be an error of localization."""


class Bug(GoalFollower):
    """Bug2 with GPS and compass.

    After a full circle around an obstacle it continues in the other direction: no path is known, but an obstacle in a
    home may have moved.

    Args:
        side: side of the robot on which it keeps the boundary: ``left`` or ``right``.
        stop_distance_m: the goal follower's.
        off_axis_deg: the goal follower's.
    """

    name = "bug"

    def __init__(
        self, side: str = "left", stop_distance_m: float = STOP_DISTANCE_M, off_axis_deg: float = OFF_AXIS_DEG
    ) -> None:
        super().__init__(stop_distance_m, off_axis_deg)
        if side not in ("left", "right"):
            raise PolicyError(f"agent {self.name!r}: side is {side!r}", "give left or right")
        self._first_sign = 1 if side == "left" else -1

    @override
    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        super().reset(task, seed, world)
        self._turn_rad = math.radians(task.magnitudes.turn_deg)
        self._forward_m = task.magnitudes.forward_m
        self._contacts = ContactMemory(self._forward_m)
        self._sign = self._first_sign
        self._hit: SE2 | None = None  # hit point in the start frame: boundary following began there
        self._hit_m = math.inf  # from there to the goal
        self._line_offset_m = 0.0  # signed, from the line between start and goal; left positive
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

    @override
    def overruled(self, decision: Decision) -> None:
        self._contacts.acted(decision)

    @override
    def info(self) -> dict[str, Any]:
        return super().info() | {"follows": "" if self._hit is None else "left" if self._sign > 0 else "right"}

    def _begin(self, pose: SE2) -> None:
        self._hit, self._hit_m, self._followed_m = pose, self._distance_m, 0.0

    def _crosses_line(self, observation: Observation) -> bool:
        """Whether the last move crossed the line from start to goal."""
        goal_x_m, goal_y_m = point_goal(observation["pointgoal"], self._form)
        goal_rad = math.atan2(goal_y_m, goal_x_m)
        forward_m, left_m = offset_to_goal(observation, self._form)
        before_m, self._line_offset_m = (
            self._line_offset_m,
            math.sin(goal_rad) * forward_m - math.cos(goal_rad) * left_m,
        )
        return before_m * self._line_offset_m <= 0

    def _follow(self, pose: SE2, blocked: bool, travelled_m: float) -> Action:
        """Turn away while blocked; else one turn towards the obstacle after each move, then forward."""
        allowed = self._contacts.allowed(np.array([pose.yaw_rad]))
        if blocked or (allowed is not None and not allowed[0]):
            return self._turn(-self._sign)
        if travelled_m > self._forward_m / 2:
            return self._turn(self._sign)
        return Action.MOVE_FORWARD

    @staticmethod
    def _turn(sign: int) -> Action:
        return Action.TURN_LEFT if sign > 0 else Action.TURN_RIGHT
