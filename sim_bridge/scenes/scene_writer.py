"""From placed furniture to the files of a scene folder."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from robot_runtime.scenes.scene import Asset, Material, SceneObject, Visual
from sim_bridge.scenes.furniture.kit import Surface
from sim_bridge.scenes.meshes import Mesh, merge
from sim_bridge.scenes.placement import Placed
from sim_bridge.scenes.textures import draw_png


class AssetStore:
    """Collects meshes and materials; equal meshes become one file, named after the first model that has them."""

    def __init__(self) -> None:
        self.materials: dict[str, Material] = {}
        self._path_of: dict[str, str] = {}  # OBJ text -> path
        self._text_of: dict[str, str] = {}  # path -> OBJ text
        self._textures: set[str] = set()

    def visual(self, stem: str, mesh: Mesh, surface: Surface) -> Visual:
        """Register a mesh with its surface."""
        self.materials.setdefault(surface.name, surface.material())
        if surface.texture is not None:
            self._textures.add(surface.texture)
        text = to_obj(mesh, surface.tile_m)
        if text not in self._path_of:
            number, path = 0, f"assets/{stem}.obj"
            while path in self._text_of:
                number += 1
                path = f"assets/{stem}_{number + 1}.obj"
            self._path_of[text] = path
            self._text_of[path] = text
        return Visual(self._path_of[text], surface.name)

    def visuals(self, stem: str, parts: list[tuple[Mesh, Surface]]) -> tuple[Visual, ...]:
        """Register parts, those of one surface as one mesh."""
        grouped: dict[Surface, list[Mesh]] = {}
        for mesh, surface in parts:
            grouped.setdefault(surface, []).append(mesh)
        return tuple(self.visual(f"{stem}_{s.name}", merge(meshes), s) for s, meshes in grouped.items())

    def write(self, folder: Path, seed: int) -> None:
        """Write all OBJ and PNG files below ``folder``."""
        (folder / "assets").mkdir(parents=True, exist_ok=True)
        for path, text in self._text_of.items():
            (folder / path).write_text(text, encoding="ascii", newline="\n")
        for name in sorted(self._textures):
            (folder / "assets" / f"{name}.png").write_bytes(draw_png(name, seed))


def scene_object(item: Placed, object_id: str) -> SceneObject:
    """The object's entry: its oriented box is the tight one round its meshes."""
    low, high = item.model.bounds
    x, y = item.point(float(low[0] + high[0]) / 2, float(low[1] + high[1]) / 2)
    center = (round(x, 4), round(y, 4), round(item.z + float(low[2] + high[2]) / 2, 4))
    width, depth, height = (round(float(v), 4) for v in high - low)
    return SceneObject(
        object_id,
        item.model.category,
        center,
        (width, depth, height),
        item.yaw_deg,
        item.room,
        item.model.color,
        item.model.movable,
    )


def object_asset(item: Placed, object_id: str, store: AssetStore) -> Asset:
    """The thing to draw and to bump into."""
    half = math.radians(item.yaw_deg) / 2
    return Asset(
        object_id,
        object_id,
        (item.x, item.y, item.z),
        (round(math.cos(half), 6), 0.0, 0.0, round(math.sin(half), 6)),
        tuple(store.visual(f"{item.model.kind}_{s.name}", mesh, s) for s, mesh in item.model.by_surface.items()),
        item.model.collision,
    )


def to_obj(mesh: Mesh, tile_m: float) -> str:
    """Wavefront OBJ text: positions in meters (0.1 mm), texture coordinates in tiles of ``tile_m``."""
    lines: list[str] = []
    columns = []
    for keyword, values, decimals in (
        ("v", mesh.vertices, 4),
        ("vt", mesh.uv_m / tile_m, 3),
        ("vn", mesh.normals, 3),
    ):
        unique, inverse = np.unique(np.round(values, decimals) + 0.0, axis=0, return_inverse=True)
        lines += [keyword + "".join(f" {_short(value, decimals)}" for value in row) for row in unique]
        columns.append(inverse.reshape(-1) + 1)
    corner = np.stack(columns, axis=1)
    lines += ["f " + " ".join("/".join(map(str, corner[k])) for k in face) for face in mesh.faces]
    return "\n".join(lines) + "\n"


def _short(value: float, decimals: int) -> str:
    text = f"{value:.{decimals}f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text
