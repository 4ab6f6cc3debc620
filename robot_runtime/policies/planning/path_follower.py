"""Path following with a task's own moves, by a map and the true pose, for privileged agents."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from robot_runtime.actions.discrete import Action
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.policies.planning.contact_memory import ContactMemory
from robot_runtime.policies.planning.lattice import Moves, Plan, Terrain, search
from robot_runtime.scenes.geodesic import DistanceField, GeodesicMap
from robot_runtime.scenes.grid_interpolation import Floats, bilinear
from robot_runtime.scenes.scene import Scene
from robot_runtime.tasks.task import Task

COMFORT_M = 0.04
"""Clearance beyond the robot's radius below which path length counts :data:`TIGHT_SLOWNESS`-fold."""

TIGHT_SLOWNESS = 3.0

BUMP_SLOWNESS = 4.0
"""Added where the robot would run into the place of an earlier contact, which the map does not show."""

_HARD_MARGINS_M = (0.005, -0.0125, -0.03)  # a start pose may stand nearer to a wall than a plan should go
_WIDTHS = (300, 3000)
_MAX_FORWARDS = 2000
_REPLAN_M, _REPLAN_RAD = 0.02, math.radians(2.0)

Disc = tuple[float, float, float]
"""Center x, y and radius, meters."""


class PathFollower:
    """Follows the shortest plan of discrete actions to the nearest of some places, and replans where it strays.

    Call :meth:`observe` with each new pose and :meth:`acted` with each action that is carried out.

    Attributes:
        moves: moves of the task.
        space: space of the scene's map and the task's robot radius.
        obstacles: discs on the floor that the map does not show.
    """

    def __init__(self, task: Task, scene: Scene) -> None:
        self.moves = Moves.of(task.magnitudes)
        self.space = GeodesicMap(scene.map, task.robot_radius_m)
        self.obstacles: list[Disc] = []
        self._radius_m = task.robot_radius_m
        self._clearance_m = scene.map.clearance_m()
        self._contacts = ContactMemory(task.magnitudes.forward_m)
        self._bumps: list[tuple[float, float]] = []
        self._field: DistanceField | None = None
        self._arrive_m = 0.0
        self.stay()

    def go_to(self, targets: Sequence[tuple[float, float]], arrive_m: float) -> None:
        """Aim at the nearest of these places (x, y in map); nearer than ``arrive_m`` is there."""
        self._field = self.space.field(targets)
        self._arrive_m = arrive_m
        self.stay()

    def stay(self) -> None:
        """Forget the plan, not the aim."""
        self._plan = Plan((), arrived=False)
        self._next = 0

    def observe(self, pose: SE2) -> None:
        """Take note of the pose after the last action."""
        if self._contacts.observe(pose):
            self._bumps.append(pose.apply(self._radius_m, 0.0))

    def acted(self, action: Action) -> None:
        """Take note of the action that the robot carries out next."""
        self._contacts.acted(action)

    @property
    def arrived(self) -> bool:
        """Whether the last plan led all the way."""
        return self._plan.arrived

    @property
    def left(self) -> int:
        """Actions of the plan that are still to come."""
        return len(self._plan.steps) - self._next

    def next(self, pose: SE2) -> Action | None:
        """The next action of the plan; None at its end."""
        if self._next >= len(self._plan.steps) and self._plan.arrived and self._on_plan(pose):
            return None
        if self._next >= len(self._plan.steps) or not self._on_plan(pose):
            self._plan, self._next = self._search(pose), 0
            if not self._plan.steps:
                return None
        self._next += 1
        return self._plan.steps[self._next - 1].action

    def _on_plan(self, pose: SE2) -> bool:
        if self._next == 0:
            return not self._plan.steps and self._plan.arrived
        expected = self._plan.steps[self._next - 1].pose
        return (
            pose.distance_to(expected) <= _REPLAN_M and abs(wrap_angle(pose.yaw_rad - expected.yaw_rad)) <= _REPLAN_RAD
        )

    def _search(self, pose: SE2) -> Plan:
        """A plan from here; the best incomplete one if none arrives, an empty one if the robot cannot move."""
        best = Plan((), arrived=False)
        allowed = self._contacts.allowed(self.moves.angles(pose.yaw_rad))
        for margin_m in _HARD_MARGINS_M:
            for width in _WIDTHS:
                terrain = Terrain(self.slowness(margin_m), self._to_go_m)
                plan = search(pose, self.moves, terrain, self._arrive_m, width, _MAX_FORWARDS, allowed)
                if plan is not None and plan.arrived:
                    return plan
                best = best if plan is None else plan
        return best

    def slowness(self, margin_m: float, obstacles: Sequence[Disc] | None = None) -> Callable[[Floats, Floats], Floats]:
        """``Terrain.slowness`` for a robot that keeps ``margin_m`` away from everything; it may be negative.

        Args:
            margin_m: clearance beyond the robot's radius.
            obstacles: other ones than the follower's own.
        """
        radius_m, discs = self._radius_m, self.obstacles if obstacles is None else list(obstacles)

        def slowness(x: Floats, y: Floats) -> Floats:
            clearance_m = bilinear(self._clearance_m, *self.space.map.in_cells(x, y))
            clearance_m = np.where(np.isfinite(clearance_m), clearance_m, 0.0)
            for disc_x_m, disc_y_m, disc_m in discs:
                apart_m = np.hypot(x - disc_x_m, y - disc_y_m) - disc_m
                clearance_m = np.minimum(clearance_m, np.maximum(apart_m, 0.0))
            free = np.where(clearance_m < radius_m + COMFORT_M, TIGHT_SLOWNESS, 1.0)
            for bump_x_m, bump_y_m in self._bumps:
                free += np.where(np.hypot(x - bump_x_m, y - bump_y_m) < radius_m + COMFORT_M, BUMP_SLOWNESS, 0.0)
            return np.where(clearance_m < radius_m + margin_m, np.inf, free)

        return slowness

    def _to_go_m(self, x: Floats, y: Floats) -> Floats:
        assert self._field is not None
        return bilinear(self._field.values, *self.space.map.in_cells(x, y))
