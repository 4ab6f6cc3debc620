"""The parts that furniture is built of: surfaces, collision shapes, models."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robot_runtime.scenes.scene import Collision, Material, Point3
from sim_bridge.scenes.meshes import Array, Mesh, merge
from sim_bridge.scenes.textures import TEXTURES

# Linear tints. The plain color name is what a person would say; woods and fine shades map to it in COLOR_NAMES.
COLORS: dict[str, tuple[float, float, float]] = {
    "white": (0.93, 0.93, 0.91),
    "black": (0.09, 0.09, 0.10),
    "gray": (0.50, 0.51, 0.53),
    "silver": (0.74, 0.75, 0.77),
    "beige": (0.86, 0.78, 0.64),
    "brown": (0.42, 0.27, 0.17),
    "red": (0.74, 0.16, 0.15),
    "orange": (0.88, 0.48, 0.14),
    "yellow": (0.92, 0.78, 0.26),
    "green": (0.28, 0.52, 0.28),
    "blue": (0.20, 0.36, 0.64),
    "purple": (0.44, 0.28, 0.54),
    "pink": (0.88, 0.56, 0.62),
    "oak": (0.80, 0.62, 0.42),
    "birch": (0.90, 0.78, 0.60),
    "walnut": (0.46, 0.30, 0.20),
    "ebony": (0.20, 0.15, 0.13),
    "terracotta": (0.72, 0.38, 0.26),
    "leaf": (0.22, 0.46, 0.20),
    "soil": (0.20, 0.14, 0.10),
    "chrome": (0.82, 0.84, 0.86),
    "glass": (0.72, 0.84, 0.90),
    "sage": (0.72, 0.78, 0.68),
    "sky": (0.70, 0.80, 0.88),
    "cream": (0.94, 0.90, 0.80),
    "sand": (0.88, 0.80, 0.68),
    "rose": (0.88, 0.76, 0.73),
    "mist": (0.82, 0.84, 0.86),
    "glow": (1.0, 0.96, 0.84),
}
COLOR_NAMES = {
    "oak": "brown",
    "birch": "beige",
    "walnut": "brown",
    "ebony": "black",
    "terracotta": "orange",
    "leaf": "green",
    "chrome": "silver",
    "glow": "white",
    "cream": "beige",
}


@dataclass(frozen=True)
class Surface:
    """A tinted texture, or a plain color where ``texture`` is None."""

    color: str
    texture: str | None = None

    @property
    def name(self) -> str:
        """The material's name in ``scene.yaml``."""
        if self.texture is None:
            return self.color
        return f"{self.texture}_{self.color}" if TEXTURES[self.texture].tinted else self.texture

    @property
    def tile_m(self) -> float:
        return TEXTURES[self.texture].tile_m if self.texture else 1.0

    @property
    def color_name(self) -> str:
        """What a person calls the color."""
        return COLOR_NAMES.get(self.color, self.color)

    def material(self) -> Material:
        """The scene file's description of it."""
        opacity = 0.35 if self.color == "glass" and self.texture is None else 1.0
        if self.texture is None:
            shiny = 0.6 if self.color in ("chrome", "silver", "glass") else 0.15
            return Material(None, (*COLORS[self.color], opacity), shiny)
        texture = TEXTURES[self.texture]
        tint = COLORS[self.color] if texture.tinted else (1.0, 1.0, 1.0)
        return Material(f"assets/{self.texture}.png", (*tint, 1.0), texture.specular)


@dataclass(frozen=True)
class Support:
    """A level rectangle on which small things may stand, in the model's frame (meters).

    Attributes:
        headroom_m: free height above it.
    """

    x0: float
    y0: float
    x1: float
    y1: float
    z: float
    headroom_m: float = 1.0


@dataclass(frozen=True, eq=False)
class Model:
    """A piece of furniture or a small object.

    Attributes:
        kind: stem of its mesh files. category: its name in the scene. parts: meshes and their surfaces.
        collision: convex shapes; empty for what a robot drives over. color: its color's plain name.
        movable: whether a person would carry it.
    """

    kind: str
    category: str
    parts: tuple[tuple[Mesh, Surface], ...]
    collision: tuple[Collision, ...]
    supports: tuple[Support, ...] = ()
    color: str | None = None
    movable: bool = False

    @cached_property
    def by_surface(self) -> dict[Surface, Mesh]:
        """One mesh per surface, coordinates rounded as the OBJ files store them."""
        grouped: dict[Surface, list[Mesh]] = {}
        for mesh, surface in self.parts:
            grouped.setdefault(surface, []).append(mesh)
        result = {}
        for surface, meshes in grouped.items():
            whole = merge(meshes)
            result[surface] = Mesh(np.round(whole.vertices, 4), whole.normals, whole.uv_m, whole.faces)
        return result

    @cached_property
    def bounds(self) -> tuple[Array, Array]:
        """Smallest and largest corner of all parts."""
        corners = [mesh.bounds for mesh in self.by_surface.values()]
        return np.min([c[0] for c in corners], axis=0), np.max([c[1] for c in corners], axis=0)

    @property
    def size(self) -> tuple[float, float, float]:
        """Extent along the model's axes."""
        extent = self.bounds[1] - self.bounds[0]
        return float(extent[0]), float(extent[1]), float(extent[2])


def block(size: Point3, base: Point3 = (0.0, 0.0, 0.0)) -> Collision:
    """A contact box standing on ``base``, like :func:`meshes.box`."""
    return Collision("box", _point(base[0], base[1], base[2] + size[2] / 2), _point(*size))


def drum(diameter: float, height: float, base: Point3 = (0.0, 0.0, 0.0)) -> Collision:
    """A contact cylinder standing on ``base``."""
    center, size = _point(base[0], base[1], base[2] + height / 2), _point(diameter, diameter, height)
    return Collision("cylinder", center, size)


def hull_box(parts: tuple[tuple[Mesh, Surface], ...]) -> tuple[Collision, ...]:
    """One contact box round all parts: for small things, whose shape does not matter to a robot."""
    low = np.min([m.bounds[0] for m, _ in parts], axis=0)
    high = np.max([m.bounds[1] for m, _ in parts], axis=0)
    return (Collision("box", _point(*(low + high) / 2), _point(*(high - low))),)


def _point(x: float, y: float, z: float) -> Point3:
    return round(float(x), 4), round(float(y), 4), round(float(z), 4)
