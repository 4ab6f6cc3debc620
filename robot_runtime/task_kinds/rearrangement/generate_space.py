"""Space in which objects are rearranged: what can be moved, the floor that stays free, and places that moves reach."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from robot_runtime.common.geometry import SE2
from robot_runtime.scenes.geodesic import GeodesicMap
from robot_runtime.scenes.objects import ObjectPose
from robot_runtime.scenes.occupancy_map import OccupancyMap
from robot_runtime.scenes.scene import Scene, SceneObject
from robot_runtime.task_kinds.rearrangement.task import Point
from robot_runtime.tasks.task import Task

ON_FLOOR_M = 0.02
"""An object whose lower face is not above this stands on the floor."""

_EIGHT_NEIGHBORS = np.ones((3, 3))


def largest_part(free: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The largest connected part of the free cells, in which a robot can move."""
    labels, _ = ndimage.label(free, _EIGHT_NEIGHBORS)
    return np.asarray(labels == 1 + int(np.argmax(np.bincount(labels[labels > 0])[1:])))


@dataclass(frozen=True)
class Movable:
    """An object that the robot can move.

    Attributes:
        item: the object, and its pose in the scene.
        places: places from where it can be grabbed there.
        template: model of an object that the episode adds; None for the scene's own.
    """

    item: SceneObject
    places: tuple[Point, ...] = ()
    template: str | None = None

    @property
    def pose(self) -> ObjectPose:
        """Its pose in the scene."""
        return ObjectPose.upright(self.item.center, math.radians(self.item.yaw_deg))

    @property
    def radius_m(self) -> float:
        """Of a circle around the box, seen from above."""
        return math.hypot(self.item.size[0], self.item.size[1]) / 2

    def low_m(self, pose: ObjectPose) -> float:
        """Height of its lower face at a pose."""
        return pose.position[2] - self.item.size[2] / 2

    def is_on_floor(self, pose: ObjectPose) -> bool:
        """Whether it stands on the floor at a pose."""
        return self.low_m(pose) <= ON_FLOOR_M


class FreeFloor:
    """The part of the floor that objects leave free for the robot."""

    def __init__(self, map_: OccupancyMap, free: NDArray[np.bool_], robot_radius_m: float) -> None:
        self._map, self._free, self._robot_radius_m = map_, free, robot_radius_m
        self._discs: list[tuple[float, float, float]] = []

    def fits(self, movable: Movable, pose: ObjectPose) -> bool:
        """Whether the robot can pass between the object and the others, and the floor stays in one piece."""
        x_m, y_m, _ = pose.position
        for other_x, other_y, other_m in self._discs:
            if math.hypot(x_m - other_x, y_m - other_y) < movable.radius_m + other_m + 2 * self._robot_radius_m:
                return False
        if not movable.is_on_floor(pose):
            return True
        left = self._free & ~self._blocked(movable, pose)
        parts = np.bincount(ndimage.label(left, _EIGHT_NEIGHBORS)[0][left])
        return bool(parts.size and parts.max() >= 0.98 * left.sum())  # crumbs may be cut off

    def occupy(self, movable: Movable, pose: ObjectPose) -> None:
        """Put an object there."""
        if movable.is_on_floor(pose):
            self._free = self._free & ~self._blocked(movable, pose)
        self._discs.append((pose.position[0], pose.position[1], movable.radius_m))

    def _blocked(self, movable: Movable, pose: ObjectPose) -> NDArray[np.bool_]:
        x, y = self._map.centers(*np.indices(self._map.cells.shape))
        return np.asarray(
            np.hypot(x - pose.position[0], y - pose.position[1]) < movable.radius_m + self._robot_radius_m
        )


class MoveGrid:
    """The places and headings that a robot with coarse turns reaches by straight moves through free space.

    Attributes:
        points: x and y in map.
        headings_rad: all headings at each point.
    """

    def __init__(self, scene: Scene, task: Task, start: SE2) -> None:
        count = round(360 / task.magnitudes.turn_deg)
        self.headings_rad = [start.yaw_rad + k * math.tau / count for k in range(count)]
        self._start, self._step_m = start, task.magnitudes.forward_m
        space = GeodesicMap(scene.map, task.robot_radius_m)
        steps = [(self._step_m * math.cos(yaw), self._step_m * math.sin(yaw)) for yaw in self.headings_rad]
        todo = [(start.x_m, start.y_m)]
        found = {self._key(*todo[0]): todo[0]}
        while todo:
            x_m, y_m = todo.pop()
            for dx, dy in steps:
                point, key = (x_m + dx, y_m + dy), self._key(x_m + dx, y_m + dy)
                if key not in found and space.is_clear(x_m, y_m, *point):
                    found[key] = point
                    todo.append(point)
        self.points = list(found.values())
        self._keys = found.keys()

    def has(self, x_m: float, y_m: float) -> bool:
        """Whether the robot gets to this place, within a tenth of a move."""
        i, j = self._key(x_m, y_m)
        return any((i + di, j + dj) in self._keys for di in (-1, 0, 1) for dj in (-1, 0, 1))

    def _key(self, x_m: float, y_m: float) -> tuple[int, int]:
        local = SE2(x_m, y_m).relative_to(self._start)
        return round(local.x_m * 10 / self._step_m), round(local.y_m * 10 / self._step_m)
