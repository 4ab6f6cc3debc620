"""Colored textures: pictures of something, (height, width, 3) RGB, used as they are."""

from __future__ import annotations

import math

import cv2
import numpy as np

from sim_bridge.scenes.noise import SIZE_PX, Image, noise, rows_columns


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
    cloud = cv2.resize(noise(rng, 8, 8), (SIZE_PX, 192))
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
        center = (int(rng.integers(0, SIZE_PX)), int(rng.integers(158, 192)))
        cv2.circle(image, center, int(rng.integers(9, 22)), (green // 2, green, green // 2), -1)
    return np.asarray(cv2.GaussianBlur(image, (3, 3), 0), np.uint8)


def television_screen(rng: np.random.Generator) -> Image:
    """A program on a switched-on screen."""
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
    shade = 1 + 0.02 * np.round(6 * (noise(rng, 64, 64) - 0.5))
    image = np.asarray(np.clip(shade[..., None] * np.array([208, 100, 38]), 0, 255), np.uint8)
    rows, columns = rows_columns()
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
