"""A small textured room, made by hand so that every distance in it is known; and a real house, imported once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
import yaml
from boxes_obj import write_box

from robot_runtime.hal import Robot
from robot_runtime.robots.loader import RobotContext
from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap
from robot_runtime.scenes.scene import Scene, load_scene
from sim_bridge.robot.driver import make_robot
from sim_bridge.scenes.decompose import DecompositionSettings
from sim_bridge.scenes.importer import ImportOptions, import_scene

ROOM_X_M, ROOM_Y_M, WALL_M, HEIGHT_M = 3.0, 2.0, 0.1, 2.5
"""Inner walls stand at x = ±ROOM_X_M and y = ±ROOM_Y_M; the floor is z = 0."""

CRATE = {"id": "crate", "center": (1.5, 1.2, 0.25), "size": (0.5, 0.4, 0.5)}
VASE = {"id": "vase", "center": (-1.5, -1.2, 0.35), "size": (0.3, 0.3, 0.7)}


def write_room(folder: Path, floor: bool = True, hole: bool = False, board_z_m: float | None = None) -> Path:
    """A scene folder: four walls, floor, a crate and a vase.

    Args:
        floor: whether there is a floor to see. hole: whether the floor ends at x = 1.
        board_z_m: middle of a board, 4 cm thick, like a tabletop from x = 1 to 2 and from y = -1.5 to -0.5.
    """
    assets = folder / "assets"
    assets.mkdir(parents=True)
    stripes = np.full((64, 64, 3), 235, np.uint8)
    stripes[:, ::8] = (40, 90, 200)
    cv2.imwrite(str(assets / "stripes.png"), stripes)
    entries = []

    def add(name: str, center: tuple[float, ...], size: tuple[float, ...], material: str, **extra: object) -> None:
        write_box(assets / f"{name}.obj", size)
        entry = {
            "name": name,
            "position": list(center),
            "visual": [{"mesh": f"assets/{name}.obj", "material": material}],
            "collision": [{"shape": "box", "size": list(size)}],
        }
        entries.append({**entry, **extra})

    wall_x, wall_y = ROOM_X_M + WALL_M / 2, ROOM_Y_M + WALL_M / 2
    for name, x, y, along_x in (
        ("wall_east", wall_x, 0.0, False),
        ("wall_west", -wall_x, 0.0, False),
        ("wall_north", 0.0, wall_y, True),
        ("wall_south", 0.0, -wall_y, True),
    ):
        size = (2 * wall_x + WALL_M, WALL_M, HEIGHT_M) if along_x else (WALL_M, 2 * wall_y + WALL_M, HEIGHT_M)
        add(name, (x, y, HEIGHT_M / 2), size, "stripes")
    if floor:
        # Under the walls too: surfaces that only meet at an edge show the sky through single pixels.
        west, east = -ROOM_X_M - WALL_M, 1.0 if hole else ROOM_X_M + WALL_M
        size = (east - west, 2 * (ROOM_Y_M + WALL_M), 0.05)
        add("floor", ((west + east) / 2, 0, -0.025), size, "floor", collision=[])
    add("crate", CRATE["center"], CRATE["size"], "crate", object="crate")
    round_shape = [{"shape": "cylinder", "size": list(VASE["size"])}]
    add("vase", VASE["center"], VASE["size"], "vase", object="vase", collision=round_shape)
    if board_z_m is not None:
        add("board", (1.5, -1.0, board_z_m), (1.0, 1.0, 0.04), "crate")
    document = {
        "schema": 1,
        "name": folder.name,
        "rooms": [
            {
                "id": "room",
                "category": "living_room",
                "polygon": [[x * ROOM_X_M, y * ROOM_Y_M] for x, y in ((-1, -1), (1, -1), (1, 1), (-1, 1))],
            }
        ],
        "objects": [{"category": item["id"], **_plain(item)} for item in (CRATE, VASE)],
        "materials": {
            "stripes": {"texture": "assets/stripes.png"},
            "floor": {"rgba": [0.5, 0.4, 0.3, 1.0]},
            "crate": {"rgba": [0.8, 0.2, 0.1, 1.0]},
            "vase": {"rgba": [0.1, 0.6, 0.2, 1.0]},
        },
        "assets": entries,
    }
    (folder / "scene.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    _write_map(folder)
    return folder


def _plain(item: dict) -> dict:
    return {key: list(value) if isinstance(value, tuple) else value for key, value in item.items()}


def _write_map(folder: Path) -> None:
    resolution = 0.05
    columns, rows = round(2 * (ROOM_X_M + 0.5) / resolution), round(2 * (ROOM_Y_M + 0.5) / resolution)
    cells = np.full((rows, columns), Cell.UNKNOWN, np.uint8)
    x = -ROOM_X_M - 0.5 + (np.arange(columns) + 0.5) * resolution
    y = -ROOM_Y_M - 0.5 + (np.arange(rows) + 0.5) * resolution
    cells[np.ix_(abs(y) < ROOM_Y_M + WALL_M, abs(x) < ROOM_X_M + WALL_M)] = Cell.OCCUPIED
    cells[np.ix_(abs(y) < ROOM_Y_M, abs(x) < ROOM_X_M)] = Cell.FREE
    for item in (CRATE, VASE):
        (cx, cy, _), (sx, sy, _) = item["center"], item["size"]
        cells[np.ix_(abs(y - cy) < sy / 2, abs(x - cx) < sx / 2)] = Cell.OCCUPIED
    OccupancyMap(cells, resolution, -ROOM_X_M - 0.5, -ROOM_Y_M - 0.5).save(folder / "map.yaml")


@pytest.fixture(scope="session")
def room_folder(once: Callable[..., Path]) -> Path:
    """The room's scene folder; do not write into it."""
    return once("room", write_room)


@pytest.fixture(scope="session")
def room(room_folder: Path) -> Scene:
    """The room."""
    return load_scene(room_folder)


@pytest.fixture
def make_room(tmp_path: Path) -> Callable[..., Scene]:
    """Makes rooms of a test's own; takes :func:`write_room`'s arguments."""
    return lambda **arguments: load_scene(write_room(tmp_path / "own_room", **arguments))


@pytest.fixture
def sim(room: Scene) -> Callable[..., Robot]:
    """Makes disconnected simulated robots in the room; takes the robot file's options, a scene and a seed."""

    def make(options: dict[str, object] | None = None, scene: Scene = room, seed: int = 0) -> Robot:
        return make_robot(RobotContext(scene=scene, camera=None, seed=seed), "test", options or {}, "test options")

    return make


@pytest.fixture(scope="session")
def small_house(shared_data: Path) -> Path:
    """The folder of the house as it was published."""
    folder = shared_data / "small_house"
    if not folder.is_dir():
        pytest.skip(f"the small house is not at {folder}")
    return folder


@pytest.fixture(scope="session")
def imported_house(small_house: Path, once: Callable[..., Path]) -> Scene:
    """The house, with coarser contact shapes than by default."""
    world = small_house / "worlds" / "small_house.world"
    options = ImportOptions(texture_px=128, settings=DecompositionSettings(tolerance_m=0.12, search=20))
    return load_scene(once("small_house", lambda folder: import_scene(world, folder, options)))
