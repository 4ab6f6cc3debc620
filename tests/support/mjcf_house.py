"""Houses in the layout of MolmoSpaces: ``train_7.xml`` with its assets, metadata and a variant with ceiling."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

ROOM_M = 4.0
WALL_M = 2.5
CATEGORIES = ("Apple", "Bed", "Chair", "DiningTable", "Laptop", "Mug", "Sofa", "Television", "Vase", "HousePlant")
DIGEST = "2f3a9c41b07de865fa3c1e50"

_DEFAULTS = """
  <compiler autolimits="true" boundmass="0" balanceinertia="true" angle="radian"/>
  <default>
    <default class="/">
      <default class="__VISUAL_MJT__"><geom contype="0" conaffinity="0" group="0" mass="1e-8"/></default>
      <default class="__STRUCTURAL_MJT__">
        <geom contype="8" conaffinity="15" group="4" density="500"/>
        <default class="__STRUCTURAL_WALL_MJT__"><geom group="3"/></default>
      </default>
      <default class="__DYNAMIC_MJT__"><geom conaffinity="15" group="4" density="500"/></default>
    </default>
  </default>"""


def obj_box(size: tuple[float, float, float], uv: bool = False) -> str:
    """An OBJ of a box about the origin; with texture coordinates, each face shows the whole image."""
    x, y, z = (edge / 2 for edge in size)
    corners = [(sx * x, sy * y, sz * z) for sx in (-1, 1) for sy in (-1, 1) for sz in (-1, 1)]
    faces = [(1, 2, 4, 3), (5, 7, 8, 6), (1, 5, 6, 2), (3, 4, 8, 7), (1, 3, 7, 5), (2, 6, 8, 4)]
    lines = [f"v {a} {b} {c}" for a, b, c in corners]
    if uv:
        lines += ["vt 0 0", "vt 1 0", "vt 1 1", "vt 0 1"]
        lines += ["f " + " ".join(f"{corner}/{i + 1}" for i, corner in enumerate(face)) for face in faces]
    else:
        lines += ["f " + " ".join(map(str, face)) for face in faces]
    return "\n".join(lines) + "\n"


def write_house(
    folder: Path, rooms: int = 2, objects: int = 6, name: str = "train_7", seed: int = 0, extra: str = ""
) -> Path:
    """Write a row of square rooms with doorways, furnished at random; return the house's file.

    Args:
        folder: folder of the house.
        rooms: number of rooms.
        objects: number of objects.
        name: name of the house.
        seed: seed of sizes, kinds and places.
        extra: further elements of the world.
    """
    rng = np.random.default_rng(seed)
    assets = folder / f"{name}_assets"
    assets.mkdir(parents=True)
    Image.fromarray(np.array([[[200, 40, 40], [40, 200, 40]], [[40, 40, 200], [220, 220, 40]]], np.uint8)).save(
        assets / "tiles.png"
    )
    meshes: dict[str, str] = {}
    bodies: list[str] = []

    def mesh(label: str, size: tuple[float, float, float], uv: bool = False) -> str:
        if label not in meshes:
            (assets / f"{label}.obj").write_text(obj_box(size, uv))
            meshes[label] = f'<mesh name="{label}" file="{name}_assets/{label}.obj"/>'
        return label

    def wall(label: str, size: tuple[float, float, float], x: float, y: float, z: float = WALL_M / 2) -> None:
        geom = f'type="mesh" mesh="{mesh(label, size)}" pos="{x} {y} {z}"'
        bodies.append(
            f'<body name="{label}"><geom name="{label}_visual_0" class="__VISUAL_MJT__" {geom} rgba=".9 .9 .9 1"/>'
            f'<geom name="{label}_collision_0" class="__STRUCTURAL_WALL_MJT__" {geom}/></body>'
        )

    for room in range(rooms):
        x = room * ROOM_M
        floor = mesh(f"room_{room + 1}", (ROOM_M, ROOM_M, 0.02), uv=True)
        bodies.append(
            f'<body name="{floor}"><geom name="{floor}_visual_0" class="__VISUAL_MJT__" type="mesh" mesh="{floor}" '
            f'pos="{x} 0 -0.01" material="tiles"/></body>'
        )
        for side, y in (("south", -ROOM_M / 2), ("north", ROOM_M / 2)):
            wall(f"wall_{room + 1}_{side}", (ROOM_M, 0.1, WALL_M), x, y)
        wall(f"wall_{room + 1}_west", (0.1, ROOM_M * (0.35 if room else 1), WALL_M), x - 2, -1.3 if room else 0)
        if room:
            wall(f"wall_{room + 1}_west_2", (0.1, ROOM_M * 0.35, WALL_M), x - 2, 1.3)
            wall(f"wall_{room + 1}_lintel", (0.1, ROOM_M * 0.3, 0.4), x - 2, 0, WALL_M - 0.2)
    wall("wall_end", (0.1, ROOM_M, WALL_M), rooms * ROOM_M - 2, 0)

    metadata: dict[str, Any] = {}
    for number in range(objects):
        category = CATEGORIES[number % len(CATEGORIES)]
        kind = f"{category.lower()}_{int(rng.integers(3))}"
        size = tuple(float(edge) for edge in rng.uniform(0.15, 0.45, 3).round(3))
        label = mesh(f"{kind}_{number}", size)  # type: ignore[arg-type]
        key = f"{category.lower()}_{DIGEST}_{number}_0_1"
        x, y = rng.uniform(-1.4, 1.4, 2)
        x += ROOM_M * int(rng.integers(rooms))
        geom = f'type="mesh" mesh="{label}"'
        bodies.append(
            f'<body name="{key}" pos="{x:.3f} {y:.3f} {size[2] / 2:.4f}"><freejoint name="{key}_jnt"/>'
            f'<geom name="{key}_visual_0" class="__VISUAL_MJT__" {geom} rgba=".3 .5 .7 1"/>'
            f'<geom name="{key}_collision_0" class="__DYNAMIC_MJT__" {geom}/></body>'
        )
        metadata[key] = {
            "hash_name": key,
            "asset_id": kind,
            "object_id": f"{category}|{number}",
            "category": category,
            "is_static": category in ("Bed", "Sofa", "DiningTable"),
            "parent": "",
            "room_id": 1,
            "children": [],
        }
    ceilings = "".join(
        f'<body name="ceiling_{room + 1}"><geom class="__VISUAL_MJT__" type="box" size="2 2 .01" '
        f'pos="{room * ROOM_M} 0 {WALL_M + 0.01}" rgba=".8 .8 .8 1"/></body>'
        for room in range(rooms)
    )
    listed = "\n".join(meshes.values())
    for suffix, more in (("", ""), ("_ceiling", ceilings)):
        (folder / f"{name}{suffix}.xml").write_text(
            f'<mujoco model="house">{_DEFAULTS}<asset><texture name="tiles" type="2d" file="{name}_assets/tiles.png"/>'
            f'<material name="tiles" texture="tiles"/>{listed}</asset><worldbody>'
            f'<geom name="floor" type="plane" size="0 0 1" class="__STRUCTURAL_MJT__"/>{"".join(bodies)}{more}{extra}'
            "</worldbody></mujoco>"
        )
    (folder / f"{name}_metadata.json").write_text(json.dumps({"objects": metadata}))
    return folder / f"{name}.xml"
