"""A walled room with things to take, push and hide, every distance in it known; shared by the tests that move them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from boxes_obj import write_box

from robot_runtime.hal import Robot
from robot_runtime.robots.loader import RobotContext
from robot_runtime.scenes.objects import ObjectPose, Point3
from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap
from robot_runtime.scenes.scene import Asset, Collision, Material, Room, Scene, SceneFile, SceneObject, Visual
from robot_runtime.tasks.task import TrainingCamera
from sim_bridge.robot.driver import make_robot

CAMERA = TrainingCamera(64, 64, 90.0, 0.88, 0.1, 10.0, depth_normalized=False)

TABLE = SceneObject("table", "Table", (1.0, 0.0, 0.35), (0.6, 0.8, 0.7))
MUG = SceneObject("mug", "Mug", (0.9, 0.0, 0.75), (0.1, 0.1, 0.1), movable=True)
BOWL = SceneObject("bowl", "Bowl", (0.9, 0.0, 0.82), (0.12, 0.12, 0.04), movable=True)
CRATE = SceneObject("crate", "Crate", (-1.5, 1.0, 0.45), (0.6, 0.6, 0.9), movable=True)
WALLS = {
    "east": ((2.05, 0.0, 1.25), (0.1, 4.2, 2.5)),
    "west": ((-2.05, 0.0, 1.25), (0.1, 4.2, 2.5)),
    "north": ((0.0, 2.05, 1.25), (4.2, 0.1, 2.5)),
    "south": ((0.0, -2.05, 1.25), (4.2, 0.1, 2.5)),
    "partition": ((0.5, 1.5, 1.25), (0.1, 1.0, 2.5)),
}
"""Centre and size; the partition stands between the room's north-east corner and the rest."""


def make_scene(folder: Path, *objects: SceneObject) -> Scene:
    """4 x 4 m around the origin, with these objects (a table, a mug with a bowl on it, and a crate by default).

    Args:
        folder: where the meshes of walls and fixed objects are written, each once.
    """
    objects = objects or (TABLE, MUG, BOWL, CRATE)
    fixed = [item for item in objects if not item.movable]
    assets = [_asset(folder, name, None, *box) for name, box in WALLS.items()]
    assets += [_asset(folder, item.id, item.id, item.center, item.size) for item in fixed]
    room = Room("room", "kitchen", ((-2, -2), (2, -2), (2, 2), (-2, 2)))
    gray = {"gray": Material(rgba=(0.6, 0.6, 0.6, 1.0))}
    file = SceneFile(1, "things", (room,), objects, materials=gray, assets=tuple(assets))
    return Scene(folder, file, _map(fixed), {}, "0" * 64)


def _asset(folder: Path, name: str, item: str | None, center: Point3, size: Point3) -> Asset:
    mesh = f"{name}.obj"
    if not (folder / mesh).exists():
        write_box(folder / mesh, size)
    return Asset(name, item, center, visual=(Visual(mesh, "gray"),), collision=(Collision("box", size=size),))


def make_things_robot(scene: Scene, added: tuple[SceneObject, ...] = (), **options: object) -> Robot:
    """The simulated robot in that room, able to move things; not yet connected."""
    context = RobotContext(scene, CAMERA, seed=0, objects_move=True, added_objects=added)
    return make_robot(context, "test", options, "test options")


def crosshair_on(
    point: tuple[float, float, float], robot_x_m: float = 0.0, robot_y_m: float = 0.0
) -> tuple[float, float]:
    """Position of a point in the image of a robot that faces +x with a level camera, as fractions of the image."""
    ahead, left, up = point[0] - robot_x_m, point[1] - robot_y_m, point[2] - CAMERA.height_m
    k = CAMERA.intrinsics
    return 0.5 - left / ahead * k.fx / k.width, 0.5 - up / ahead * k.fy / k.height


def on_floor(item: SceneObject, x_m: float, y_m: float) -> ObjectPose:
    """The object standing there, unturned."""
    return ObjectPose((x_m, y_m, item.size[2] / 2))


def _map(fixed: list[SceneObject]) -> OccupancyMap:
    resolution_m = 0.05
    cells = np.full((88, 88), Cell.UNKNOWN, np.uint8)
    centers = -2.2 + (np.arange(88) + 0.5) * resolution_m
    cells[np.ix_(abs(centers) < 2.1, abs(centers) < 2.1)] = Cell.OCCUPIED
    cells[np.ix_(abs(centers) < 2.0, abs(centers) < 2.0)] = Cell.FREE
    boxes = [(item.center, item.size) for item in fixed] + [WALLS["partition"]]
    for (x, y, _), (sx, sy, _) in boxes:
        cells[np.ix_(abs(centers - y) < sy / 2, abs(centers - x) < sx / 2)] = Cell.OCCUPIED
    return OccupancyMap(cells, resolution_m, -2.2, -2.2)
