"""Choice of the way to a missing fact: to an object that was seen badly, to a room, to the next frontier."""

import math
from collections.abc import Mapping, Sequence

import cv2
import numpy as np

from robot_runtime.actions.discrete import Action
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.policies.baselines.classical.exploration import FrontierDrive
from robot_runtime.policies.baselines.classical.grid import Grid
from robot_runtime.policies.baselines.classical.navigation import Navigator, Target
from robot_runtime.policies.baselines.classical.planning import Bools
from robot_runtime.policies.baselines.classical.pointgoal import point_target
from robot_runtime.policies.planning.lattice import Moves
from robot_runtime.scenes.grid_interpolation import Floats
from robot_runtime.task_kinds.eqa.agents.floor_plan import FloorPlan, PlanRoom
from robot_runtime.task_kinds.eqa.agents.object_memory import RememberedObject
from robot_runtime.tasks.task import Task

NEAR_M = 1.0
"""An object is looked at from this distance or nearer."""

_ELSEWHERE_M = 6.0
"""Detour for which a frontier in the room in question is preferred to one elsewhere."""

_TURN_M = 0.15
"""Path length that one turn is worth when frontiers are compared: a frontier behind the robot costs twenty turns."""

_LOOK_M = 2.0
"""Way that looking at a room is worth, besides the way to it, when rooms are compared."""

_WALL_M = 0.3
"""Distance from a room's border at which a wall is expected."""

_AHEAD_M = 2.0
_SAMPLE_M = 0.15
_INSIDE_M = 0.3
_SEEN_SHARE = 0.7
"""A room of whose floor this share is known was looked at."""


class Explorer:
    """Choice of the next action that may bring a missing fact.

    Attributes:
        doing: the last decision in words.
    """

    def __init__(self, task: Task, grid: Grid, navigator: Navigator, plan: FloorPlan) -> None:
        self.doing = "looks"
        self._plan = plan
        self._room: PlanRoom | None = None
        self._entries: dict[str, Target] = {}
        self._floor: dict[str, tuple[Floats, Floats]] = {}
        self._grid, self._navigator = grid, navigator
        self._moves = Moves.of(task.magnitudes)
        self._frontiers = FrontierDrive(self._moves, grid, navigator)
        self._object: tuple[int, Target] | None = None
        self._looked_at: set[int] = set()
        _expect_walls(grid, plan)

    def next(
        self, pose: SE2, rooms: Sequence[PlanRoom], expected: Mapping[str, float], about: Sequence[RememberedObject]
    ) -> Action:
        """The next action; ``stop`` when nothing is left to explore.

        Args:
            pose: pose of the robot in the start frame.
            rooms: that the question names.
            expected: probability, by the room's id, that an object in question is in it.
            about: objects to look at.
        """
        for item in about:
            action = self._towards_object(item, pose) if item.number not in self._looked_at else None
            if action is not None:
                self.doing = f"goes to object {item.number}"
                return action
        return self._explore(pose, rooms or self._unseen_room(pose, expected))

    def _unseen_room(self, pose: SE2, expected: Mapping[str, float]) -> list[PlanRoom]:
        """The room to look at next, where the question names none: little of it was seen, and it is worth the way."""
        if self._room is None or self._known(self._room).mean() > _SEEN_SHARE:
            left = [room for room in self._plan.rooms if self._known(room).mean() <= _SEEN_SHARE]
            self._room = max(left, key=lambda room: expected[room.id] / (_LOOK_M + _cost_m(room, pose)), default=None)
        return [] if self._room is None else [self._room]

    def explored(self, rooms: Sequence[PlanRoom]) -> float:
        """Share of the rooms' floor that is known, 0..1; 0 without rooms."""
        known = [self._known(room) for room in rooms]
        cells = np.concatenate(known) if known else np.zeros(1, np.bool_)
        return float(cells.mean())

    def _known(self, room: PlanRoom) -> Bools:
        """Whether each of some points on a room's floor is known."""
        if room.id not in self._floor:
            self._floor[room.id] = _floor_points(room)
        x, y = self._floor[room.id]
        columns, rows = (np.floor(value).astype(np.intp) for value in self._grid.in_cells(x, y))
        inside = (rows >= 0) & (rows < self._grid.shape[0]) & (columns >= 0) & (columns < self._grid.shape[1])
        known = np.zeros(len(x), np.bool_)
        known[inside] = self._grid.known[rows[inside], columns[inside]]
        return known

    def _towards_object(self, item: RememberedObject, pose: SE2) -> Action | None:
        """The next action towards an object or of turning to it; None once it was looked at, or is out of reach."""
        x_m, y_m, _ = item.center
        if self._object is None or self._object[0] != item.number:
            self._object = (item.number, point_target(x_m, y_m, NEAR_M))
        if not self._object[1].arrived(np.array(pose.x_m), np.array(pose.y_m)):
            action = self._navigator.towards(self._object[1], pose, boldest=0)
            if action is not None:
                return action
        turns = self._moves.facing(pose.yaw_rad, math.atan2(y_m - pose.y_m, x_m - pose.x_m))
        if turns:
            return turns[0]
        self._looked_at.add(item.number)
        return None

    def _explore(self, pose: SE2, rooms: Sequence[PlanRoom]) -> Action:
        def penalty_m(x_m: float, y_m: float) -> float:
            direction_rad = math.atan2(y_m - pose.y_m, x_m - pose.x_m)
            turn_rad = abs(wrap_angle(direction_rad - pose.yaw_rad))
            # Of frontiers around the robot, which differ in nothing else, the one towards the room is taken.
            beyond_m = max(0.0, _AHEAD_M - math.hypot(y_m - pose.y_m, x_m - pose.x_m))
            x_m, y_m = x_m + beyond_m * math.cos(direction_rad), y_m + beyond_m * math.sin(direction_rad)
            away_m = min((max(0.0, -room.depth_m(x_m, y_m)) for room in rooms), default=0.0)
            return _TURN_M * turn_rad / self._moves.turn_rad + min(away_m, _ELSEWHERE_M)

        for room in rooms:
            action = self._into(room, pose)
            if action is not None:
                self.doing = f"goes to the {room.name or 'next room'}"
                return action
        self.doing = "explores"
        action = self._frontiers.next(pose, penalty_m)
        if action is Action.STOP:
            self.doing = "has nothing left to explore"
        return action

    def _into(self, room: PlanRoom, pose: SE2) -> Action | None:
        """The next action towards the middle of a room of which little was seen, through what is not known yet.

        None in the room, or where no path leads.
        """
        if room.depth_m(pose.x_m, pose.y_m) > _INSIDE_M or self._known(room).mean() > _SEEN_SHARE:
            return None
        entry = self._entries.setdefault(room.id, point_target(*room.center, NEAR_M))
        return self._navigator.towards(entry, pose)


def _expect_walls(grid: Grid, plan: FloorPlan) -> None:
    """Mark the borders of rooms as suspect: a way through one that was not seen yet is probably none."""
    for room in plan.rooms:
        for x_m, y_m in room.polygon.tolist():
            grid.include(x_m, y_m, _WALL_M)
    borders = np.zeros(grid.shape, np.uint8)
    for room in plan.rooms:
        corners = np.stack(grid.in_cells(*room.polygon.T.astype(np.float64)), axis=1)
        cv2.polylines(borders, [corners.astype(np.int32)], True, 1, round(2 * _WALL_M / grid.resolution_m))
    grid.suspect |= (borders > 0) & ~grid.known


def _floor_points(room: PlanRoom) -> tuple[Floats, Floats]:
    """Points x, y, one in every square of :data:`_SAMPLE_M` whose middle lies in the room; its middle if none does."""
    low, high = room.polygon.min(axis=0), room.polygon.max(axis=0)
    x, y = np.meshgrid(*[np.arange(a + _SAMPLE_M / 2, b, _SAMPLE_M) for a, b in zip(low, high, strict=True)])
    inside = [at for at in zip(x.ravel().tolist(), y.ravel().tolist(), strict=True) if room.depth_m(*at) > 0]
    points = np.array(inside or [room.center], np.float64)
    return points[:, 0], points[:, 1]


def _cost_m(room: PlanRoom, pose: SE2) -> float:
    """Straight way to a room, with the turn towards it."""
    x_m, y_m = room.center
    turn_rad = abs(wrap_angle(math.atan2(y_m - pose.y_m, x_m - pose.x_m) - pose.yaw_rad))
    return max(0.0, -room.depth_m(pose.x_m, pose.y_m)) + turn_rad / math.pi
