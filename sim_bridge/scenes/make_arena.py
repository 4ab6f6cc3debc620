"""The bundled arena: one room with boxes in it, where an episode takes a fraction of a second.

``python -m sim_bridge.scenes.make_arena FOLDER`` writes it. It is made by arithmetic, so map, shapes and pictures agree
to the last digit, and every box can be gone round on both sides.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap

INSIDE_M = (7.0, 5.0)
"""From wall to wall; the room's south-west corner is the map's origin."""

WALL_M, HEIGHT_M = 0.1, 2.4
RESOLUTION_M = 0.05
MARGIN_M = 0.5


@dataclass(frozen=True)
class Block:
    """An upright box on the floor, or a wall."""

    name: str
    x_m: float
    y_m: float
    size_m: tuple[float, float, float]
    yaw_deg: float = 0.0
    material: str = "crate"


BLOCKS = (
    Block("crate_1", 1.6, 3.5, (0.6, 0.6, 1.0), 45.0),
    Block("crate_2", 1.7, 1.4, (0.9, 0.5, 1.0), 20.0, "teal"),
    Block("screen", 3.5, 2.7, (0.12, 1.7, 1.6), -15.0, "grey"),
    Block("crate_3", 5.1, 3.7, (0.8, 0.5, 1.0), -30.0, "teal"),
    Block("crate_4", 5.4, 1.6, (0.6, 0.6, 1.0), 10.0),
    Block("crate_5", 3.6, 0.8, (0.5, 0.5, 1.0), 45.0, "yellow"),
)

MATERIALS = {
    "wall": [0.86, 0.85, 0.8, 1.0],
    "floor": [0.52, 0.45, 0.36, 1.0],
    "crate": [0.72, 0.35, 0.2, 1.0],
    "teal": [0.15, 0.45, 0.5, 1.0],
    "grey": [0.6, 0.62, 0.66, 1.0],
    "yellow": [0.85, 0.66, 0.15, 1.0],
}


def walls() -> tuple[Block, ...]:
    """The four of the room."""
    x_m, y_m = INSIDE_M
    long, short = (x_m + 2 * WALL_M, WALL_M, HEIGHT_M), (WALL_M, y_m + 2 * WALL_M, HEIGHT_M)
    return (
        Block("wall_south", x_m / 2, -WALL_M / 2, long, material="wall"),
        Block("wall_north", x_m / 2, y_m + WALL_M / 2, long, material="wall"),
        Block("wall_west", -WALL_M / 2, y_m / 2, short, material="wall"),
        Block("wall_east", x_m + WALL_M / 2, y_m / 2, short, material="wall"),
    )


def write_arena(folder: Path) -> Path:
    """Write the scene folder and return it."""
    (folder / "assets").mkdir(parents=True, exist_ok=True)
    x_m, y_m = INSIDE_M
    blocks = (*walls(), *BLOCKS)
    floor = Block("floor", x_m / 2, y_m / 2, (x_m + 2 * WALL_M, y_m + 2 * WALL_M, 0.05), material="floor")
    assets = [_asset(folder, block, block.size_m[2] / 2, True) for block in blocks]
    assets.append(_asset(folder, floor, -0.025, False))
    document = {
        "schema": 1,
        "name": "arena",
        "rooms": [
            {"id": "arena", "category": "living_room", "polygon": [[0.0, 0.0], [x_m, 0.0], [x_m, y_m], [0.0, y_m]]}
        ],
        "objects": [],
        "materials": {name: {"rgba": rgba} for name, rgba in MATERIALS.items()},
        "assets": assets,
    }
    text = yaml.safe_dump(document, sort_keys=False, default_flow_style=None, width=120)
    (folder / "scene.yaml").write_text(text, encoding="utf-8")
    _map(blocks).save(folder / "map.yaml")
    return folder


def _asset(folder: Path, block: Block, z_m: float, solid: bool) -> dict[str, Any]:
    (folder / "assets" / f"{block.name}.obj").write_text(box_obj(block.size_m), encoding="utf-8")
    half_rad = math.radians(block.yaw_deg) / 2
    return {
        "name": block.name,
        "position": [block.x_m, block.y_m, z_m],
        "quaternion": [round(math.cos(half_rad), 8), 0.0, 0.0, round(math.sin(half_rad), 8)],
        "visual": [{"mesh": f"assets/{block.name}.obj", "material": block.material}],
        "collision": [{"shape": "box", "size": list(block.size_m)}] if solid else [],
    }


def box_obj(size_m: tuple[float, float, float]) -> str:
    """A box about its own centre as Wavefront OBJ, its faces outward."""
    x, y, z = (side / 2 for side in size_m)
    corners = [(i * x, j * y, k * z) for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)]
    faces = ("1 2 4 3", "5 7 8 6", "1 5 6 2", "3 4 8 7", "1 3 7 5", "2 6 8 4")
    lines = [f"v {a:g} {b:g} {c:g}" for a, b, c in corners] + [f"f {face}" for face in faces]
    return "\n".join(lines) + "\n"


def _map(blocks: tuple[Block, ...]) -> OccupancyMap:
    columns, rows = (round((side + 2 * MARGIN_M) / RESOLUTION_M) for side in INSIDE_M)
    x = -MARGIN_M + (np.arange(columns) + 0.5) * RESOLUTION_M
    y = -MARGIN_M + (np.arange(rows)[:, None] + 0.5) * RESOLUTION_M
    inside = (x > 0) & (x < INSIDE_M[0]) & (y > 0) & (y < INSIDE_M[1])
    cells = np.where(inside, Cell.FREE, Cell.UNKNOWN).astype(np.uint8)
    for block in blocks:
        cos, sin = math.cos(math.radians(block.yaw_deg)), math.sin(math.radians(block.yaw_deg))
        along, aside = cos * (x - block.x_m) + sin * (y - block.y_m), cos * (y - block.y_m) - sin * (x - block.x_m)
        reach_m = RESOLUTION_M / 2
        cells[(abs(along) < block.size_m[0] / 2 + reach_m) & (abs(aside) < block.size_m[1] / 2 + reach_m)] = (
            Cell.OCCUPIED
        )
    return OccupancyMap(cells, RESOLUTION_M, -MARGIN_M, -MARGIN_M)


if __name__ == "__main__":
    write_arena(Path(sys.argv[1]))
