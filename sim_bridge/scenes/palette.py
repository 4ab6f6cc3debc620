"""Surfaces that are colored corner by corner, for a renderer that knows textures only.

One image holds every color of 16 bits; a triangle of a color has its three corners in the middle of that pixel. So
any number of triangles share one small texture, and no filtering mixes two colors.
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image

SIZE_PX = 256
_BITS = (5, 6, 5)  # red, green, blue: the eye tells greens apart best


@cache
def palette() -> Image.Image:
    """All colors, RGB, 256 x 256."""
    index = np.arange(SIZE_PX * SIZE_PX)
    red, green, blue = index >> 11, (index >> 5) & 63, index & 31
    levels = [np.rint(part * (255 / (2**bits - 1))) for part, bits in zip((red, green, blue), _BITS, strict=True)]
    return Image.fromarray(np.stack(levels, axis=1).astype(np.uint8).reshape(SIZE_PX, SIZE_PX, 3))


def palette_uv(colors: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Texture coordinates (M, 3, 2), v upwards, that give triangles the colors (M, 3), to within 4 levels of 255."""
    red, green, blue = (
        np.rint(colors[:, i].astype(np.float64) / 255 * (2**bits - 1)).astype(np.int64) for i, bits in enumerate(_BITS)
    )
    index = red << 11 | green << 5 | blue
    point = np.stack([(index % SIZE_PX + 0.5) / SIZE_PX, 1 - (index // SIZE_PX + 0.5) / SIZE_PX], axis=1)
    return np.repeat(point[:, None], 3, axis=1)
