"""A flat of two rooms, 6 x 4 m, with a doorway at the top, and a task to go with it. No simulator."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from robot_runtime.common.geometry import SE2
from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap
from robot_runtime.scenes.scene import Room, Scene, SceneFile, SceneObject
from robot_runtime.tasks.task import Task, load_task

CELL_M = 0.025


def occupancy(*blocks: tuple[float, float, float, float], size_m: tuple[float, float] = (6.0, 4.0)) -> OccupancyMap:
    """Free space with occupied blocks (x0, y0, x1, y1)."""
    cells = np.full((round(size_m[1] / CELL_M), round(size_m[0] / CELL_M)), Cell.FREE, np.uint8)
    for x0, y0, x1, y1 in blocks:
        cells[round(y0 / CELL_M) : round(y1 / CELL_M), round(x0 / CELL_M) : round(x1 / CELL_M)] = Cell.OCCUPIED
    return OccupancyMap(cells, CELL_M, 0.0, 0.0)


def flat(door: bool = True, view_points: bool = True, map_: OccupancyMap | None = None) -> Scene:
    """The flat. Two chairs, one in each room; a plant in the east; a vase that nobody can see.

    Args:
        door: whether the wall between the rooms at x = 3 leaves a way at y > 3.
        view_points: whether the scene has them.
    """
    wall = (2.9, 0.0, 3.1, 3.0 if door else 4.0)
    objects = (
        SceneObject("chair_west", "chair", (1.0, 1.0, 0.4), (0.5, 0.5, 0.8)),
        SceneObject("chair_east", "chair", (5.0, 1.0, 0.4), (0.5, 0.5, 0.8)),
        SceneObject("plant_1", "HousePlant", (5.0, 3.0, 0.5), (0.4, 0.4, 1.0)),
        SceneObject("vase_1", "Vase", (3.0, 1.0, 2.4), (0.1, 0.1, 0.2)),
    )
    blocks = [(item.center[0] - 0.25, item.center[1] - 0.25, item.center[0] + 0.25, item.center[1] + 0.25)
              for item in objects[:3]]  # fmt: skip
    seen = {item.id: _around(item) for item in objects[:3]} if view_points else {}
    file = SceneFile(
        schema=1,
        name="small_flat",
        rooms=(
            Room("west", "bedroom", ((0.0, 0.0), (3.0, 0.0), (3.0, 4.0), (0.0, 4.0))),
            Room("east", "living_room", ((3.0, 0.0), (6.0, 0.0), (6.0, 4.0), (3.0, 4.0))),
        ),
        objects=objects,
    )
    return Scene(Path("scenes/small_flat"), file, map_ or occupancy(wall, *blocks), seen, "0" * 64)


def pointnav_task() -> Task:
    return load_task("pointnav_gps_compass")


def objectnav_task() -> Task:
    return load_task("objectnav_habitat2020")


def _around(item: SceneObject) -> tuple[SE2, ...]:
    """Eight poses 0.6 m from the middle of an object, facing it."""
    x_m, y_m, _ = item.center
    angles = [math.tau * k / 8 for k in range(8)]
    return tuple(SE2(x_m + 0.6 * math.cos(a), y_m + 0.6 * math.sin(a), a - math.pi) for a in angles)
