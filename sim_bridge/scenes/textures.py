"""Procedural textures: each function returns a seamless uint8 image.

Those of this module are gray, (256, 256), and tinted by their material's color, so that one file serves many
materials; those of :mod:`sim_bridge.scenes.pictures` keep their colors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import cv2
import numpy as np

from sim_bridge.scenes import pictures
from sim_bridge.scenes.noise import SIZE_PX, Image, gray, noise, rows_columns


@dataclass(frozen=True)
class Texture:
    """How a texture is made and used.

    Attributes:
        draw: makes the image. tile_m: meters of surface that one repetition covers. specular: shininess in [0, 1].
        tinted: whether the material's color multiplies it (a picture keeps its own colors).
    """

    draw: Callable[[np.random.Generator], Image]
    tile_m: float
    specular: float = 0.05
    tinted: bool = True


def planks(rng: np.random.Generator) -> Image:
    """Floor boards: eight strips with staggered joints."""
    board_px = SIZE_PX // 8
    image = np.zeros((SIZE_PX, SIZE_PX))
    grain = 0.5 * noise(rng, 128, 8) + 0.5 * noise(rng, 64, 4)
    for strip in range(8):
        rows = slice(strip * board_px, (strip + 1) * board_px)
        joints = sorted((int(rng.integers(0, SIZE_PX)), int(rng.integers(0, SIZE_PX))))
        tone = np.full(SIZE_PX, rng.uniform(0.72, 0.95))
        tone[joints[0] : joints[1]] = rng.uniform(0.72, 0.95)
        image[rows] = tone + 0.16 * (np.roll(grain, int(rng.integers(0, SIZE_PX)), axis=1)[rows] - 0.5)
        image[strip * board_px] *= 0.62
        for joint in joints:
            image[rows, joint % SIZE_PX] *= 0.62
    return gray(image)


def wood(rng: np.random.Generator) -> Image:
    """Furniture wood, grain along u."""
    rows, _ = rows_columns()
    waves = noise(rng, 4, 2)
    rings = 0.5 + 0.5 * np.sin(2 * math.pi * (rows / 32 + 1.2 * waves))
    return gray(0.84 + 0.08 * rings + 0.14 * (noise(rng, 128, 8) - 0.5))


def tiles(rng: np.random.Generator) -> Image:
    """Four by four square tiles with grout."""
    image = 0.9 + 0.05 * (noise(rng, 32, 32) - 0.5)
    step = SIZE_PX // 4
    for row in range(4):
        for column in range(4):
            image[row * step : (row + 1) * step, column * step : (column + 1) * step] += rng.uniform(-0.04, 0.04)
    for line in range(4):
        image[line * step : line * step + 3] = 0.58
        image[:, line * step : line * step + 3] = 0.58
    return gray(image)


def checker(rng: np.random.Generator) -> Image:
    """Two by two tiles, light and dark."""
    rows, columns = rows_columns()
    half = SIZE_PX // 2
    light = ((rows // half) + (columns // half)) % 2
    image = 0.55 + 0.4 * light + 0.05 * (noise(rng, 32, 32) - 0.5)
    edge = (rows % half < 2) | (columns % half < 2)
    return gray(np.where(edge, 0.45, image))


def carpet(rng: np.random.Generator) -> Image:
    """Short pile."""
    return gray(0.82 + 0.16 * (noise(rng, 128, 128) - 0.5) + 0.1 * (noise(rng, 16, 16) - 0.5), levels=32)


def fabric(rng: np.random.Generator) -> Image:
    """A coarse weave."""
    rows, columns = rows_columns()
    weave = np.sin(2 * math.pi * rows / 16) * np.sin(2 * math.pi * columns / 16)
    return gray(0.86 + 0.08 * weave + 0.1 * (noise(rng, 32, 32) - 0.5), levels=32)


def plaster(rng: np.random.Generator) -> Image:
    """A painted wall: nearly even."""
    return gray(0.95 + 0.05 * (noise(rng, 64, 64) - 0.5) + 0.05 * (noise(rng, 8, 8) - 0.5), levels=64)


def stripes(rng: np.random.Generator) -> Image:
    """Wallpaper with broad and narrow stripes."""
    _, columns = rows_columns()
    phase = columns % 64
    image = np.where(phase < 30, 0.98, 0.84)
    image = np.where((phase > 44) & (phase < 50), 0.98, image)
    return gray(image + 0.03 * (noise(rng, 64, 64) - 0.5), levels=64)


def brick(rng: np.random.Generator) -> Image:
    """A running bond: eight courses."""
    rows, columns = rows_columns()
    course = rows // 32
    shifted = (columns + 32 * (course % 2)) % SIZE_PX
    mortar = (rows % 32 < 4) | (shifted % 64 < 4)
    tone = rng.uniform(0.68, 0.92, (8, 4))[course.astype(int), (shifted // 64).astype(int)]
    return gray(np.where(mortar, 0.98, tone + 0.16 * (noise(rng, 64, 64) - 0.5)))


def marble(rng: np.random.Generator) -> Image:
    """Stone with soft veins."""
    veins = np.abs(noise(rng, 8, 8) + 0.5 * noise(rng, 16, 16) - 0.75)
    return gray(0.96 - 0.35 * np.exp(-veins * 26) + 0.03 * (noise(rng, 16, 16) - 0.5), levels=64)


def metal(rng: np.random.Generator) -> Image:
    """Brushed metal."""
    return gray(0.9 + 0.12 * (noise(rng, 128, 4) - 0.5), levels=32)


def wicker(rng: np.random.Generator) -> Image:
    """Basket weave."""
    rows, columns = rows_columns()
    over = ((rows // 16) + (columns // 32)) % 2
    image = np.where(over > 0, np.abs(np.sin(math.pi * columns / 32)), np.abs(np.sin(math.pi * rows / 16)))
    return gray(0.55 + 0.42 * image + 0.06 * (noise(rng, 32, 32) - 0.5), levels=32)


TEXTURES: dict[str, Texture] = {
    "planks": Texture(planks, 1.0, 0.15),
    "wood": Texture(wood, 0.6, 0.1),
    "tiles": Texture(tiles, 1.2, 0.25),
    "checker": Texture(checker, 0.8, 0.25),
    "carpet": Texture(carpet, 0.5, 0.0),
    "fabric": Texture(fabric, 0.12, 0.0),
    "plaster": Texture(plaster, 1.5, 0.0),
    "stripes": Texture(stripes, 0.8, 0.0),
    "brick": Texture(brick, 1.0, 0.0),
    "marble": Texture(marble, 0.9, 0.3),
    "metal": Texture(metal, 0.4, 0.5),
    "wicker": Texture(wicker, 0.2, 0.0),
    "books": Texture(pictures.books, 1.0, 0.0, tinted=False),
    "landscape": Texture(pictures.landscape, 1.0, 0.0, tinted=False),
    "landscape_two": Texture(pictures.landscape, 1.0, 0.0, tinted=False),
    "abstract": Texture(pictures.abstract, 1.0, 0.0, tinted=False),
    "abstract_two": Texture(pictures.abstract, 1.0, 0.0, tinted=False),
    "window_view": Texture(pictures.window_view, 1.0, 0.0, tinted=False),
    "television_screen": Texture(pictures.television_screen, 1.0, 0.2, tinted=False),
    "laptop_screen": Texture(pictures.laptop_screen, 1.0, 0.2, tinted=False),
    "keyboard": Texture(pictures.keyboard, 1.0, 0.1, tinted=False),
    "clock_face": Texture(pictures.clock_face, 1.0, 0.0, tinted=False),
    "basketball": Texture(pictures.basketball, 1.0, 0.05, tinted=False),
    "rug": Texture(pictures.rug, 1.0, 0.0, tinted=False),
    "rug_two": Texture(pictures.rug, 1.0, 0.0, tinted=False),
}


def draw_png(name: str, seed: int) -> bytes:
    """The PNG file of a texture; each name draws from its own stream of ``seed``."""
    stream = np.random.default_rng([seed, *name.encode()])
    image = TEXTURES[name].draw(stream)
    stored = image if image.ndim == 2 else cv2.cvtColor(image, cv2.COLOR_RGB2BGR)
    return cv2.imencode(".png", stored, [cv2.IMWRITE_PNG_COMPRESSION, 9])[1].tobytes()
