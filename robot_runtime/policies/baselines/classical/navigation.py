"""Navigation to a target through a map that changes at every step."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from robot_runtime.actions.discrete import Action
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.policies.baselines.classical import planning
from robot_runtime.policies.baselines.classical.grid import Grid
from robot_runtime.policies.planning.contact_memory import ContactMemory
from robot_runtime.policies.planning.lattice import Moves, Plan, Step, Terrain, search
from robot_runtime.scenes.grid_interpolation import Floats
from robot_runtime.tasks.task import Task

_WIDTH = 48
_HORIZON = 8
_FORWARDS_PER_PLAN = 3
_WINDOW_MARGIN_M = 0.6
_OFF_PLAN_M, _OFF_PLAN_RAD = 0.05, math.radians(5.0)
_LEAST_TO_GO_M = 0.02
_STUCK_AFTER_MOVES, _STUCK_WITHIN_M = 12, 0.75
_NOWHERE = Plan((), arrived=False)


@dataclass(frozen=True, eq=False)
class Target:
    """A region to go to.

    Attributes:
        point: somewhere in the middle of it; the map is searched at least that far.
        sources: the cells that count as being there, bool of the shape of the map's window.
        arrived: whether points x, y count as being there, bool of their shape.
    """

    point: tuple[float, float]
    sources: Callable[[planning.CostMap], planning.Bools]
    arrived: Callable[[Floats, Floats], planning.Bools]


class Navigator:
    """Follower of a short plan, which it replaces when the plan is used up or an obstacle blocks it."""

    def __init__(self, task: Task, grid: Grid, contacts: ContactMemory) -> None:
        self._moves = Moves.of(task.magnitudes)
        self._radius_m = task.robot_radius_m
        self._grid = grid
        self._contacts = contacts
        self._boldness = self._least_boldness = 0
        self._trail: list[tuple[float, float]] = []
        self._target: Target | None = None
        self._plan, self._next = _NOWHERE, 0
        self._marches = 0

    @property
    def parameters(self) -> planning.CostParameters:
        """Clearances from obstacles, smaller at a higher boldness."""
        return planning.CostParameters.of(self._radius_m, self._grid.resolution_m, self._boldness)

    def costs(self) -> planning.CostMap:
        """The cost map of everything known, with a margin."""
        return planning.CostMap(self._grid, self.parameters, self._grid.known_window(_WINDOW_MARGIN_M))

    def towards(self, target: Target, pose: SE2, boldest: int = planning.BOLDEST) -> Action | None:
        """The next action on the path; None where no path leads, not even through the unknown, or the robot is stuck.

        Args:
            target: the region to reach.
            pose: pose of the robot, in the start frame.
            boldest: highest boldness allowed for this target (``CostParameters.of``).
        """
        if target is not self._target:
            self._target, self._least_boldness, self._plan = target, 0, _NOWHERE
            self._trail.clear()
        if self._is_stuck(pose):
            self._plan = _NOWHERE
            if self._least_boldness >= boldest:
                return None
            self._least_boldness += 1
        if not self._usable(pose):
            self._plan, self._next = self._make_plan(target, pose, boldest), 0
        if not self._plan.steps:
            return None
        self._next += 1
        action = self._plan.steps[self._next - 1].action
        if action is Action.MOVE_FORWARD:
            self._trail.append((pose.x_m, pose.y_m))
        return action

    def _is_stuck(self, pose: SE2) -> bool:
        """Whether the last forward moves made no progress; true once, then counting starts again."""
        if len(self._trail) < _STUCK_AFTER_MOVES:
            return False
        away_m = max(math.hypot(x - pose.x_m, y - pose.y_m) for x, y in self._trail)
        self._trail.pop(0)
        if away_m > _STUCK_WITHIN_M:
            self._least_boldness = 0
            return False
        self._trail.clear()
        return True

    def info(self) -> dict[str, Any]:
        """Return the log entry of the last decision."""
        return {
            "planned_actions": len(self._plan.steps) - self._next,
            "boldness": self._boldness,
            "marches": self._marches,
        }

    def _usable(self, pose: SE2) -> bool:
        """Whether the plan has steps left, the robot is at the planned pose, and the rest is still free."""
        if self._next >= len(self._plan.steps):
            return False
        expected = self._plan.steps[self._next - 1].pose
        if pose.distance_to(expected) > _OFF_PLAN_M:
            return False
        if abs(wrap_angle(pose.yaw_rad - expected.yaw_rad)) > _OFF_PLAN_RAD:
            return False
        ahead = [step.pose for step in self._plan.steps[self._next :]]
        x, y = np.array([p.x_m for p in ahead]), np.array([p.y_m for p in ahead])
        costs = planning.CostMap(self._grid, self.parameters, self._window_around([pose, *ahead]))
        return bool(np.isfinite(costs.slowness_from(pose.x_m, pose.y_m, x, y)).all())

    def _window_around(self, poses: list[SE2]) -> planning.Window:
        """The part of the grid in which obstacles can touch a robot at these poses."""
        margin_m = 2 * self._radius_m
        x, y = [pose.x_m for pose in poses], [pose.y_m for pose in poses]
        return self._grid.window(min(x) - margin_m, min(y) - margin_m, max(x) + margin_m, max(y) + margin_m)

    def _make_plan(self, target: Target, pose: SE2, boldest: int) -> Plan:
        """The plan to the target at the lowest boldness that gives one."""
        self._grid.include(*target.point, _WINDOW_MARGIN_M)
        for boldness in range(self._least_boldness, boldest + 1):
            self._boldness = boldness
            plan = self._search(target, pose)
            if plan.steps:
                return plan
        return _NOWHERE

    def _search(self, target: Target, pose: SE2) -> Plan:
        field = self._march(target, pose)

        def to_go_m(x: Floats, y: Floats) -> Floats:
            return np.where(target.arrived(x, y), 0.0, np.maximum(field.at(x, y), _LEAST_TO_GO_M))

        terrain = Terrain(lambda x, y: field.costs.slowness_from(pose.x_m, pose.y_m, x, y), to_go_m)
        allowed = self._contacts.allowed(self._moves.angles(pose.yaw_rad))
        plan = search(pose, self._moves, terrain, 0.0, _WIDTH, _HORIZON, allowed)
        if plan is None:
            return _NOWHERE
        return plan if plan.arrived else Plan(_first_forwards(plan), arrived=False)

    def _march(self, target: Target, pose: SE2) -> planning.Field:
        """The target's field over the known cells; over the whole grid, if no path lies within them."""
        self._marches += 1
        window = self._grid.known_window(_WINDOW_MARGIN_M, including=target.point)
        everything = (slice(0, self._grid.shape[0]), slice(0, self._grid.shape[1]))
        field = self._field(target, window)
        reachable = np.isfinite(self._nearby_to_go_m(field, pose))
        return field if reachable else self._field(target, everything)

    def _field(self, target: Target, window: planning.Window) -> planning.Field:
        costs = planning.CostMap(self._grid, self.parameters, window)
        return planning.march(costs, target.sources(costs))

    def _nearby_to_go_m(self, field: planning.Field, pose: SE2) -> float:
        """The least cost to go from the poses one forward move away."""
        angles = self._moves.angles(pose.yaw_rad)
        reach_m = self._moves.forward_m
        return float(field.at(pose.x_m + reach_m * np.cos(angles), pose.y_m + reach_m * np.sin(angles)).min())


def _first_forwards(plan: Plan) -> tuple[Step, ...]:
    """A plan up to its third forward move; the rest is planned again on a better map."""
    forwards = [i for i, step in enumerate(plan.steps) if step.action is Action.MOVE_FORWARD]
    return plan.steps[: forwards[min(_FORWARDS_PER_PLAN, len(forwards)) - 1] + 1]
