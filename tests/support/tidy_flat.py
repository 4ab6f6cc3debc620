"""A flat of two rooms, 7 x 4 m, with things to tidy up: a table, a rug, objects on them and on the floor."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap
from robot_runtime.scenes.scene import Room, Scene, SceneFile, SceneObject

CELL_M = 0.025
TABLE = SceneObject("table_1", "Table", (6.0, 3.4, 0.2), (1.2, 0.6, 0.4), room="east")
RUG = SceneObject("rug_1", "Rug", (5.0, 1.0, 0.005), (1.4, 1.0, 0.01), room="east")
BALL = SceneObject("ball_1", "Ball", (1.0, 0.6, 0.15), (0.3, 0.3, 0.3), room="west", movable=True)
BIN = SceneObject("bin_1", "Bin", (0.5, 3.5, 0.2), (0.3, 0.3, 0.4), room="west", movable=True)
CRATE = SceneObject("crate_1", "Crate", (6.4, 0.5, 0.25), (0.35, 0.35, 0.5), room="east", movable=True)
BOWL = SceneObject("bowl_1", "Bowl", (5.7, 3.3, 0.46), (0.25, 0.25, 0.12), room="east", movable=True)
NEEDLE = SceneObject("needle_1", "Needle", (2.0, 2.0, 0.1), (0.01, 0.01, 0.2), room="west", movable=True)
OBJECTS = (TABLE, RUG, BALL, BIN, CRATE, BOWL, NEEDLE)


def tidy_flat(objects: tuple[SceneObject, ...] = OBJECTS) -> Scene:
    """A wall at x = 3.5 with a doorway at y = 1.4 to 2.6."""
    cells = np.full((round(4 / CELL_M), round(7 / CELL_M)), Cell.FREE, np.uint8)
    blocks = [
        (0, 0, 7, 0.05),
        (0, 3.95, 7, 4),
        (0, 0, 0.05, 4),
        (6.95, 0, 7, 4),
        (3.45, 0, 3.55, 1.4),
        (3.45, 2.6, 3.55, 4),
    ]
    for item in objects:
        if item.size[2] > 0.05 and item.center[2] - item.size[2] / 2 < 0.1 and item.size[0] > 0.05:
            half = item.size[0] / 2, item.size[1] / 2
            blocks.append((item.center[0] - half[0], item.center[1] - half[1],
                           item.center[0] + half[0], item.center[1] + half[1]))  # fmt: skip
    for x0, y0, x1, y1 in blocks:
        cells[round(y0 / CELL_M) : round(y1 / CELL_M), round(x0 / CELL_M) : round(x1 / CELL_M)] = Cell.OCCUPIED
    file = SceneFile(
        schema=1,
        name="tidy_flat",
        rooms=(
            Room("west", "bedroom", ((0.0, 0.0), (3.5, 0.0), (3.5, 4.0), (0.0, 4.0))),
            Room("east", "living_room", ((3.5, 0.0), (7.0, 0.0), (7.0, 4.0), (3.5, 4.0))),
        ),
        objects=objects,
    )
    return Scene(Path("scenes/tidy_flat"), file, OccupancyMap(cells, CELL_M, 0.0, 0.0), {}, "1" * 64)
