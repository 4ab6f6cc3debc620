"""Surfaces of generated flats: colors, procedural textures, and meshes that carry them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from sim_bridge.scenes.mesh_files import Appearance, MeshPart

Array = NDArray[np.float64]
Pixels = NDArray[np.uint8]
SIZE_PX = 128

COLORS: dict[str, tuple[float, float, float]] = {
    "white": (0.93, 0.93, 0.91), "black": (0.09, 0.09, 0.10), "gray": (0.50, 0.51, 0.53),
    "silver": (0.74, 0.75, 0.77), "beige": (0.86, 0.78, 0.64), "brown": (0.42, 0.27, 0.17),
    "red": (0.74, 0.16, 0.15), "orange": (0.88, 0.48, 0.14), "yellow": (0.92, 0.78, 0.26),
    "green": (0.28, 0.52, 0.28), "blue": (0.20, 0.36, 0.64), "purple": (0.44, 0.28, 0.54),
    "pink": (0.88, 0.56, 0.62), "oak": (0.80, 0.62, 0.42), "birch": (0.90, 0.78, 0.60),
    "walnut": (0.46, 0.30, 0.20), "ebony": (0.20, 0.15, 0.13), "terracotta": (0.72, 0.38, 0.26),
    "leaf": (0.22, 0.46, 0.20), "soil": (0.20, 0.14, 0.10), "chrome": (0.82, 0.84, 0.86),
    "glass": (0.72, 0.84, 0.90), "sage": (0.72, 0.78, 0.68), "sky": (0.70, 0.80, 0.88),
    "cream": (0.94, 0.90, 0.80), "sand": (0.88, 0.80, 0.68), "rose": (0.88, 0.76, 0.73), "mist": (0.82, 0.84, 0.86),
}  # fmt: skip
"""Linear RGB by name."""

_PLAIN_NAMES = {
    "oak": "brown", "birch": "beige", "walnut": "brown", "ebony": "black", "terracotta": "orange", "leaf": "green",
    "chrome": "silver", "cream": "beige", "soil": "brown", "mist": "white",
}  # fmt: skip
"""The color that a person names, where it differs."""


def noise(rng: np.random.Generator, rows: int, columns: int) -> Array:
    """Smooth noise in [0, 1], float64 (SIZE_PX, SIZE_PX), that repeats seamlessly after its cells."""
    grid = np.pad(rng.random((rows, columns)), 2, mode="wrap")
    y, x = SIZE_PX // rows, SIZE_PX // columns
    large = cv2.resize(grid, None, fx=x, fy=y, interpolation=cv2.INTER_CUBIC)
    return np.clip(large[2 * y : 2 * y + SIZE_PX, 2 * x : 2 * x + SIZE_PX], 0.0, 1.0)


def _tiled(rows: int, columns: int, stagger: bool, joint: float, spread: float) -> Callable[..., Array]:
    """A texture of rectangles with joints of another brightness, alternate rows shifted by half a rectangle."""

    def draw(rng: np.random.Generator) -> Array:
        v, u = np.mgrid[0:rows:SIZE_PX * 1j, 0:columns:SIZE_PX * 1j] * (1 - 1e-9)  # fmt: skip
        u = (u + 0.5 * stagger * (np.floor(v) % 2)) % columns
        tone = rng.uniform(0.9 - spread, 0.9, (rows, columns))[v.astype(int), u.astype(int)]
        gap = (v % 1 < 2.5 * rows / SIZE_PX) | (u % 1 < 2.5 * columns / SIZE_PX)
        return np.where(gap, joint, tone + 0.1 * (noise(rng, 64, 8) - 0.5))

    return draw


def _noisy(mean: float, amplitude: float, rows: int, columns: int) -> Callable[..., Array]:
    return lambda rng: mean + amplitude * (noise(rng, rows, columns) - 0.5)


def _wood(rng: np.random.Generator) -> Array:
    rows = np.mgrid[0:SIZE_PX, 0:SIZE_PX][0] / 16
    rings = np.sin(2 * math.pi * (rows + noise(rng, 4, 2)))
    return np.asarray(0.84 + 0.05 * rings + 0.12 * (noise(rng, 64, 4) - 0.5))


def _vivid(rng: np.random.Generator) -> tuple[int, int, int]:
    pixel = np.array([[[rng.uniform(0, 180), rng.uniform(110, 220), rng.uniform(110, 230)]]], np.uint8)
    red, green, blue = cv2.cvtColor(pixel, cv2.COLOR_HSV2RGB)[0, 0].tolist()
    return red, green, blue


def _canvas(color: tuple[int, int, int], height: int = SIZE_PX) -> Pixels:
    return np.full((height, 192, 3), color, np.uint8)


def _landscape(rng: np.random.Generator) -> Pixels:
    image = _canvas((160, 190, 225))
    cv2.circle(image, (int(rng.integers(30, 160)), 28), 11, (250, 235, 170), -1)
    across = np.arange(192)
    for layer in range(4):
        ridge = 52 + 19 * layer + 11 * np.sin(rng.uniform(0.02, 0.05) * across + rng.uniform(0, 6))
        outline = np.concatenate([np.stack([across, ridge], axis=1), [[191, 127], [0, 127]]]).astype(np.int32)
        cv2.fillPoly(image, [outline], _vivid(rng))
    return image


def _abstract(rng: np.random.Generator) -> Pixels:
    image = _canvas((238, 232, 218))
    for _ in range(9):
        cv2.circle(
            image, (int(rng.integers(0, 192)), int(rng.integers(0, 128))), int(rng.integers(8, 36)), _vivid(rng), -1
        )
    return image


def _books(rng: np.random.Generator) -> Pixels:
    image = _canvas((34, 26, 22))
    left = 0
    while left < 192:
        width, top = int(rng.integers(6, 14)), int(rng.integers(2, 34))
        cv2.rectangle(image, (left, top), (left + width - 2, 127), _vivid(rng), -1)
        cv2.rectangle(image, (left + 1, top + 10), (left + width - 3, top + 16), (225, 215, 190), -1)
        left += width
    return image


def _window(rng: np.random.Generator) -> Pixels:
    image = _canvas((170, 205, 235))
    for _ in range(6):
        left, top = int(rng.integers(0, 170)), int(rng.integers(50, 90))
        cv2.rectangle(image, (left, top), (left + int(rng.integers(16, 40)), 127), _vivid(rng), -1)
    for x in range(0, 200, 12):
        cv2.circle(image, (x, 120), int(rng.integers(8, 16)), (60, 110, 60), -1)
    return image


def _television(rng: np.random.Generator) -> Pixels:
    image = _landscape(rng)
    cv2.rectangle(image, (0, 104), (191, 122), (24, 32, 88), -1)
    cv2.rectangle(image, (6, 108), (50, 118), (210, 40, 40), -1)
    return image


def _laptop(rng: np.random.Generator) -> Pixels:
    image = _canvas((44, 78, 128))
    cv2.rectangle(image, (14, 12), (150, 104), (32, 34, 40), -1)
    for y in range(24, 100, 7):
        left = 20 + 7 * int(rng.integers(0, 4))
        cv2.rectangle(image, (left, y), (left + int(rng.integers(20, 90)), y + 2), (150, 200, 150), -1)
    return image


def _clock(rng: np.random.Generator) -> Pixels:
    image: Pixels = _canvas((245, 243, 235))[:, :128].copy()
    for length, width, turn in [(54, 3, k * math.pi / 6) for k in range(12)] + [(34, 8, 1.0), (48, 6, 4.5)]:
        tip = (int(64 + length * math.sin(turn)), int(64 - length * math.cos(turn)))
        start = (64, 64) if width > 3 else (int(64 + 0.8 * (tip[0] - 64)), int(64 + 0.8 * (tip[1] - 64)))
        cv2.line(image, start, tip, (20, 20, 20), width)
    return image


def _basketball(rng: np.random.Generator) -> Pixels:
    image = _canvas((208, 100, 38))
    for start, end in (((96, 0), (96, 127)), ((0, 64), (191, 64))):
        cv2.line(image, start, end, (30, 22, 18), 4)
    for x in (10, 182):
        cv2.ellipse(image, (x, 64), (52, 70), 0, 0, 360, (30, 22, 18), 4)
    return image


def _rug(rng: np.random.Generator) -> Pixels:
    ground, border = _vivid(rng), _vivid(rng)
    image = _canvas(border)
    cv2.rectangle(image, (8, 8), (183, 119), (226, 214, 190), -1)
    cv2.rectangle(image, (12, 12), (179, 115), ground, -1)
    for x in range(36, 180, 30):
        for y in (38, 64, 90):
            cv2.fillPoly(image, [np.array([[x - 12, y], [x, y - 12], [x + 12, y], [x, y + 12]], np.int32)], border)
    return image


TINTED: dict[str, tuple[Callable[..., Array], float]] = {
    "planks": (_tiled(8, 2, True, 0.55, 0.25), 1.0),
    "tiles": (_tiled(4, 4, False, 0.58, 0.08), 1.2),
    "checker": (_tiled(2, 2, False, 0.45, 0.45), 0.8),
    "brick": (_tiled(8, 4, True, 0.98, 0.25), 1.0),
    "wood": (_wood, 0.6),
    "fabric": (_noisy(0.88, 0.2, 64, 64), 0.12),
    "carpet": (_noisy(0.85, 0.2, 32, 32), 0.5),
    "plaster": (_noisy(0.95, 0.05, 32, 32), 1.5),
    "marble": (_noisy(0.85, 0.3, 8, 8), 0.9),
}
"""Brightness in [0, 1], multiplied by a color, and the meters that one repetition covers."""

PICTURES: dict[str, Callable[[np.random.Generator], Pixels]] = {
    "landscape": _landscape, "abstract": _abstract, "books": _books, "window": _window, "rug": _rug,
    "television_screen": _television, "laptop_screen": _laptop, "clock_face": _clock, "basketball": _basketball,
}  # fmt: skip
"""RGB images, uint8 (H, W, 3), each stretched over an entire mesh."""


@lru_cache(maxsize=256)
def draw(name: str, seed: int) -> Image.Image:
    """The RGB image of a texture; each name has a random stream of its own in ``seed``."""
    rng = np.random.default_rng([seed, *name.encode()])
    if name in PICTURES:
        return Image.fromarray(PICTURES[name](rng))
    levels = np.round(np.clip(TINTED[name][0](rng), 0, 1) * 48) * (255 / 48)
    return Image.fromarray(np.repeat(levels.astype(np.uint8)[..., None], 3, axis=2))


@dataclass(frozen=True)
class Surface:
    """A color, a texture in a color, or a picture."""

    color: str = "white"
    texture: str | None = None

    @classmethod
    def parse(cls, token: str) -> Surface:
        """The surface of ``color``, ``texture:color`` or a picture's name."""
        if token in PICTURES:
            return cls(texture=token)
        texture, _, color = token.rpartition(":")
        return cls(color, texture or None)

    @property
    def color_name(self) -> str:
        """The color's plain name."""
        if self.texture == "basketball":
            return "orange"
        return _PLAIN_NAMES.get(self.color, self.color)

    def appearance(self, seed: int) -> Appearance:
        """Image and tint."""
        rgba = (*COLORS[self.color], 0.35 if self.color == "glass" else 1.0)
        if self.texture is None:
            return Appearance(image_name=self.color, rgba=rgba)
        tint = (1.0, 1.0, 1.0, 1.0) if self.texture in PICTURES else rgba
        return Appearance(draw(self.texture, seed), self.texture, tint)


def surface_mesh(corners: Array, normals: Array, surface: Surface, seed: int) -> MeshPart:
    """A mesh with its surface; a texture is projected along the axis that each triangle faces most.

    Args:
        corners: float64 (M, 3, 3), meters.
        normals: float64 (M, 3, 3).
        surface: Repeats in meters, or, of a picture, covers the entire mesh.
        seed: Of the texture.
    """
    appearance, uv = surface.appearance(seed), None
    if surface.texture in PICTURES:
        low, extent = corners.min(axis=(0, 1)), np.ptp(corners, axis=(0, 1))
        uv = ((corners - low) / np.maximum(extent, 1e-9))[..., [0, 1 if extent[2] < 0.02 else 2]]
    elif surface.texture is not None:
        across = np.array([[1, 2], [0, 2], [0, 1]])[np.abs(normals.sum(axis=1)).argmax(axis=1)]
        uv = np.take_along_axis(corners, across[:, None, :].repeat(3, axis=1), axis=2) / TINTED[surface.texture][1]
    return MeshPart(surface.texture or surface.color, corners, normals, uv, appearance)
