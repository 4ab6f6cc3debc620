"""Procedural textures: each function returns a seamless uint8 image.

Grey ones, (256, 256), are tinted by their material's colour, so that one file serves many materials; coloured ones,
(height, width, 3) RGB, are pictures of something and used as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

Image = NDArray[np.uint8]
Field = NDArray[np.float64]
SIZE_PX = 256


@dataclass(frozen=True)
class Texture:
    """How a texture is made and used.

    Attributes:
        draw: makes the image. tile_m: metres of surface that one repetition covers. specular: shininess in [0, 1].
        tinted: whether the material's colour multiplies it (a picture keeps its own colours).
    """

    draw: Callable[[np.random.Generator], Image]
    tile_m: float
    specular: float = 0.05
    tinted: bool = True


def _noise(rng: np.random.Generator, rows: int, columns: int, size: tuple[int, int] = (SIZE_PX, SIZE_PX)) -> Field:
    """Smooth value noise in [0, 1] with that many cells, wrapping round at all edges."""
    grid = np.pad(rng.random((rows, columns)), 2, mode="wrap")
    scale_y, scale_x = size[0] // rows, size[1] // columns
    large = cv2.resize(grid, None, fx=scale_x, fy=scale_y, interpolation=cv2.INTER_CUBIC)
    inner = large[2 * scale_y : 2 * scale_y + size[0], 2 * scale_x : 2 * scale_x + size[1]]
    return np.clip(inner, 0.0, 1.0)


def _grey(values: Field, levels: int = 48) -> Image:
    """[0, 1] to uint8 in few levels: the files stay small."""
    return np.asarray(np.round(np.clip(values, 0, 1) * levels) * (255 / levels), np.uint8)


def _rows_columns() -> tuple[Field, Field]:
    rows, columns = np.mgrid[0:SIZE_PX, 0:SIZE_PX].astype(float)
    return rows, columns


def planks(rng: np.random.Generator) -> Image:
    """Floor boards: eight strips with staggered joints."""
    board_px = SIZE_PX // 8
    image = np.zeros((SIZE_PX, SIZE_PX))
    grain = 0.5 * _noise(rng, 128, 8) + 0.5 * _noise(rng, 64, 4)
    for strip in range(8):
        rows = slice(strip * board_px, (strip + 1) * board_px)
        joints = sorted((int(rng.integers(0, SIZE_PX)), int(rng.integers(0, SIZE_PX))))
        tone = np.full(SIZE_PX, rng.uniform(0.72, 0.95))
        tone[joints[0] : joints[1]] = rng.uniform(0.72, 0.95)
        image[rows] = tone + 0.16 * (np.roll(grain, int(rng.integers(0, SIZE_PX)), axis=1)[rows] - 0.5)
        image[strip * board_px] *= 0.62
        for joint in joints:
            image[rows, joint % SIZE_PX] *= 0.62
    return _grey(image)


def wood(rng: np.random.Generator) -> Image:
    """Furniture wood, grain along u."""
    rows, _ = _rows_columns()
    waves = _noise(rng, 4, 2)
    rings = 0.5 + 0.5 * np.sin(2 * math.pi * (rows / 32 + 1.2 * waves))
    return _grey(0.84 + 0.08 * rings + 0.14 * (_noise(rng, 128, 8) - 0.5))


def tiles(rng: np.random.Generator) -> Image:
    """Four by four square tiles with grout."""
    image = 0.9 + 0.05 * (_noise(rng, 32, 32) - 0.5)
    step = SIZE_PX // 4
    for row in range(4):
        for column in range(4):
            image[row * step : (row + 1) * step, column * step : (column + 1) * step] += rng.uniform(-0.04, 0.04)
    for line in range(4):
        image[line * step : line * step + 3] = 0.58
        image[:, line * step : line * step + 3] = 0.58
    return _grey(image)


def checker(rng: np.random.Generator) -> Image:
    """Two by two tiles, light and dark."""
    rows, columns = _rows_columns()
    half = SIZE_PX // 2
    light = ((rows // half) + (columns // half)) % 2
    image = 0.55 + 0.4 * light + 0.05 * (_noise(rng, 32, 32) - 0.5)
    edge = (rows % half < 2) | (columns % half < 2)
    return _grey(np.where(edge, 0.45, image))


def carpet(rng: np.random.Generator) -> Image:
    """Short pile."""
    return _grey(0.82 + 0.16 * (_noise(rng, 128, 128) - 0.5) + 0.1 * (_noise(rng, 16, 16) - 0.5), levels=32)


def fabric(rng: np.random.Generator) -> Image:
    """A coarse weave."""
    rows, columns = _rows_columns()
    weave = np.sin(2 * math.pi * rows / 16) * np.sin(2 * math.pi * columns / 16)
    return _grey(0.86 + 0.08 * weave + 0.1 * (_noise(rng, 32, 32) - 0.5), levels=32)


def plaster(rng: np.random.Generator) -> Image:
    """A painted wall: nearly even."""
    return _grey(0.95 + 0.05 * (_noise(rng, 64, 64) - 0.5) + 0.05 * (_noise(rng, 8, 8) - 0.5), levels=64)


def stripes(rng: np.random.Generator) -> Image:
    """Wallpaper with broad and narrow stripes."""
    _, columns = _rows_columns()
    phase = columns % 64
    image = np.where(phase < 30, 0.98, 0.84)
    image = np.where((phase > 44) & (phase < 50), 0.98, image)
    return _grey(image + 0.03 * (_noise(rng, 64, 64) - 0.5), levels=64)


def brick(rng: np.random.Generator) -> Image:
    """A running bond: eight courses."""
    rows, columns = _rows_columns()
    course = rows // 32
    shifted = (columns + 32 * (course % 2)) % SIZE_PX
    mortar = (rows % 32 < 4) | (shifted % 64 < 4)
    tone = rng.uniform(0.68, 0.92, (8, 4))[course.astype(int), (shifted // 64).astype(int)]
    return _grey(np.where(mortar, 0.98, tone + 0.16 * (_noise(rng, 64, 64) - 0.5)))


def marble(rng: np.random.Generator) -> Image:
    """Stone with soft veins."""
    veins = np.abs(_noise(rng, 8, 8) + 0.5 * _noise(rng, 16, 16) - 0.75)
    return _grey(0.96 - 0.35 * np.exp(-veins * 26) + 0.03 * (_noise(rng, 16, 16) - 0.5), levels=64)


def metal(rng: np.random.Generator) -> Image:
    """Brushed metal."""
    return _grey(0.9 + 0.12 * (_noise(rng, 128, 4) - 0.5), levels=32)


def wicker(rng: np.random.Generator) -> Image:
    """Basket weave."""
    rows, columns = _rows_columns()
    over = ((rows // 16) + (columns // 32)) % 2
    image = np.where(over > 0, np.abs(np.sin(math.pi * columns / 32)), np.abs(np.sin(math.pi * rows / 16)))
    return _grey(0.55 + 0.42 * image + 0.06 * (_noise(rng, 32, 32) - 0.5), levels=32)


# --- pictures ---------------------------------------------------------------------------------------------------------


def _canvas(height: int, width: int, color: tuple[int, int, int]) -> Image:
    return np.full((height, width, 3), color, np.uint8)


def _vivid(rng: np.random.Generator) -> tuple[int, int, int]:
    hue, saturation, value = rng.uniform(0, 180), rng.uniform(110, 220), rng.uniform(110, 230)
    pixel = cv2.cvtColor(np.array([[[hue, saturation, value]]], np.uint8), cv2.COLOR_HSV2RGB)[0, 0]
    return int(pixel[0]), int(pixel[1]), int(pixel[2])


def books(rng: np.random.Generator) -> Image:
    """Spines side by side, one shelf high."""
    image = _canvas(128, SIZE_PX, (34, 26, 22))
    left = 0
    while left < SIZE_PX:
        width = int(rng.integers(7, 20))
        top = int(rng.integers(6, 40))
        color = _vivid(rng)
        cv2.rectangle(image, (left, top), (left + width - 2, 127), color, -1)
        band = tuple(min(255, c + 50) for c in color)
        cv2.rectangle(image, (left + 1, top + 12), (left + width - 3, top + 18), band, -1)
        cv2.line(image, (left, top), (left, 127), tuple(c // 2 for c in color), 1)
        left += width
    return image


def landscape(rng: np.random.Generator) -> Image:
    """A painting of hills under a sky."""
    image = _canvas(128, 192, (0, 0, 0))
    sky = np.linspace(0, 1, 128)[:, None] * np.array(_vivid(rng)) * 0.4
    image[:] = np.clip(np.array([150, 180, 215]) + 0.3 * sky, 0, 255)[:, None]
    cv2.circle(image, (int(rng.integers(30, 160)), int(rng.integers(18, 40))), 11, (250, 235, 170), -1)
    across = np.arange(192)
    for layer in range(4):
        phase, wave = rng.uniform(0, 6), rng.uniform(0.02, 0.05)
        ridge = 52 + 19 * layer + 11 * np.sin(wave * across + phase)
        outline = np.stack([across, ridge], axis=1).astype(np.int32)
        outline = np.concatenate([outline, [[191, 127], [0, 127]]]).astype(np.int32)
        cv2.fillPoly(image, [outline], tuple(int(c * (0.95 - 0.16 * layer)) for c in _vivid(rng)))
    return image


def abstract(rng: np.random.Generator) -> Image:
    """A painting of overlapping shapes."""
    image = _canvas(192, 128, (238, 232, 218))
    for _ in range(9):
        color = _vivid(rng)
        x, y = int(rng.integers(0, 128)), int(rng.integers(0, 192))
        if rng.random() < 0.5:
            cv2.circle(image, (x, y), int(rng.integers(9, 40)), color, -1)
        else:
            cv2.rectangle(image, (x, y), (x + int(rng.integers(14, 64)), y + int(rng.integers(14, 80))), color, -1)
    return image


def window_view(rng: np.random.Generator) -> Image:
    """What lies outside: sky, clouds, houses, trees."""
    image = _canvas(192, SIZE_PX, (0, 0, 0))
    blend = np.linspace(0, 1, 192)[:, None]
    image[:] = ((1 - blend) * np.array([120, 172, 226]) + blend * np.array([226, 236, 244]))[:, None]
    cloud = cv2.resize(_noise(rng, 8, 8), (SIZE_PX, 192))
    mask = np.clip((cloud - 0.55) * 3, 0, 1)[..., None] * np.linspace(1, 0, 192)[:, None, None]
    image[:] = image + (255 - image) * mask
    for _ in range(6):
        x, width, top = int(rng.integers(0, 230)), int(rng.integers(22, 52)), int(rng.integers(84, 130))
        shade = int(rng.integers(120, 190))
        cv2.rectangle(image, (x, top), (x + width, 191), (shade, shade - 12, shade - 24), -1)
        for wy in range(top + 6, 186, 12):
            for wx in range(x + 4, x + width - 5, 9):
                cv2.rectangle(image, (wx, wy), (wx + 4, wy + 6), (92, 108, 130), -1)
    for _ in range(22):
        green = int(rng.integers(80, 135))
        centre = (int(rng.integers(0, SIZE_PX)), int(rng.integers(158, 192)))
        cv2.circle(image, centre, int(rng.integers(9, 22)), (green // 2, green, green // 2), -1)
    return np.asarray(cv2.GaussianBlur(image, (3, 3), 0), np.uint8)


def television_screen(rng: np.random.Generator) -> Image:
    """A programme on a switched-on screen."""
    image = np.asarray(cv2.resize(landscape(rng), (SIZE_PX, 144)), np.uint8)
    cv2.rectangle(image, (0, 116), (255, 134), (24, 32, 88), -1)
    cv2.rectangle(image, (6, 120), (60, 130), (210, 40, 40), -1)
    for x in range(70, 240, 16):
        cv2.rectangle(image, (x, 123), (x + int(rng.integers(6, 13)), 127), (225, 225, 225), -1)
    return image


def laptop_screen(rng: np.random.Generator) -> Image:
    """Windows with lines of text."""
    image = _canvas(128, 192, (44, 78, 128))
    cv2.rectangle(image, (14, 12), (150, 104), (32, 34, 40), -1)
    cv2.rectangle(image, (14, 12), (150, 19), (96, 100, 110), -1)
    for y in range(26, 100, 6):
        color = [(150, 200, 150), (200, 180, 120), (150, 170, 220)][int(rng.integers(0, 3))]
        indent = int(rng.integers(0, 4)) * 7
        cv2.rectangle(image, (20 + indent, y), (34 + indent + int(rng.integers(4, 76)), y + 2), color, -1)
    cv2.rectangle(image, (0, 118), (191, 127), (20, 24, 34), -1)
    return image


def keyboard(rng: np.random.Generator) -> Image:
    """Keys and a touch pad on aluminium."""
    image = _canvas(96, 160, (172, 174, 178))
    for row in range(5):
        for key in range(13):
            cv2.rectangle(image, (9 + key * 11, 8 + row * 10), (17 + key * 11, 15 + row * 10), (30, 30, 34), -1)
    cv2.rectangle(image, (56, 63), (104, 90), (150, 152, 156), -1)
    return image


def clock_face(rng: np.random.Generator) -> Image:
    """A dial with hands."""
    image = _canvas(128, 128, (245, 243, 235))
    for hour in range(12):
        angle = hour * math.pi / 6
        inner, outer = 44, 56
        start = (int(64 + inner * math.sin(angle)), int(64 - inner * math.cos(angle)))
        cv2.line(image, start, (int(64 + outer * math.sin(angle)), int(64 - outer * math.cos(angle))), (20, 20, 20), 5)
    for length, width, turn in ((30, 7, rng.uniform(0, 6.28)), (46, 5, rng.uniform(0, 6.28))):
        tip = (int(64 + length * math.sin(turn)), int(64 - length * math.cos(turn)))
        cv2.line(image, (64, 64), tip, (20, 20, 20), width)
    return image


def basketball(rng: np.random.Generator) -> Image:
    """An orange ball's seams, for a sphere's texture coordinates."""
    shade = 1 + 0.12 * (_noise(rng, 64, 64) - 0.5)
    image = np.asarray(np.clip(shade[..., None] * np.array([208, 100, 38]), 0, 255), np.uint8)
    rows, columns = _rows_columns()
    curve = 128 + 62 * np.sin(columns / SIZE_PX * 4 * math.pi)
    seam = (np.abs(rows - 128) < 4) | (np.abs(columns % 128 - 64) < 3) | (np.abs(rows - curve) < 4)
    image[seam] = (30, 22, 18)
    return image


def rug(rng: np.random.Generator) -> Image:
    """A bordered rug with a diamond pattern."""
    ground, border, motif = ((np.array(_vivid(rng)) // 2 + 60).tolist() for _ in range(3))
    image = _canvas(192, SIZE_PX, ground)
    for inset, color in ((0, border), (10, (226, 214, 190)), (15, border), (24, ground)):
        cv2.rectangle(image, (inset, inset), (SIZE_PX - 1 - inset, 191 - inset), color, -1)
    for x in range(48, 230, 40):
        for y in range(52, 160, 44):
            diamond = np.array([[x - 16, y], [x, y - 18], [x + 16, y], [x, y + 18]], np.int32)
            cv2.fillPoly(image, [diamond], motif)
            cv2.circle(image, (x, y), 5, (226, 214, 190), -1)
    return image


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
    "books": Texture(books, 1.0, 0.0, tinted=False),
    "landscape": Texture(landscape, 1.0, 0.0, tinted=False),
    "landscape_two": Texture(landscape, 1.0, 0.0, tinted=False),
    "abstract": Texture(abstract, 1.0, 0.0, tinted=False),
    "abstract_two": Texture(abstract, 1.0, 0.0, tinted=False),
    "window_view": Texture(window_view, 1.0, 0.0, tinted=False),
    "television_screen": Texture(television_screen, 1.0, 0.2, tinted=False),
    "laptop_screen": Texture(laptop_screen, 1.0, 0.2, tinted=False),
    "keyboard": Texture(keyboard, 1.0, 0.1, tinted=False),
    "clock_face": Texture(clock_face, 1.0, 0.0, tinted=False),
    "basketball": Texture(basketball, 1.0, 0.05, tinted=False),
    "rug": Texture(rug, 1.0, 0.0, tinted=False),
    "rug_two": Texture(rug, 1.0, 0.0, tinted=False),
}


def draw_png(name: str, seed: int) -> bytes:
    """The PNG file of a texture; each name draws from its own stream of ``seed``."""
    stream = np.random.default_rng([seed, *name.encode()])
    image = TEXTURES[name].draw(stream)
    stored = image if image.ndim == 2 else cv2.cvtColor(image, cv2.COLOR_RGB2BGR)
    return cv2.imencode(".png", stored, [cv2.IMWRITE_PNG_COMPRESSION, 9])[1].tobytes()
