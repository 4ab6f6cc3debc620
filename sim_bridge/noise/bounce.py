"""Multipath by one diffuse bounce, compiled by numba: import this module only where it is called."""

import math

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.jit import compiled

Floats = NDArray[np.float32]
Numbers = NDArray[np.float64]

NEAREST_M = 0.05
"""Smallest distance between two patches that counts; nearer ones lie on one surface at this resolution."""

MOST = 0.5
"""Greatest light of a patch relative to the direct return; grazing ones would exceed it by rounding."""


@compiled
def one_bounce(points: Floats, normals: Floats, incidence: Numbers, offsets: Numbers, patch_sr: float) -> Numbers:
    """Increase of the amplitude-weighted mean range by light that came over one other patch of a white diffuse surface.

    Args:
        points: (H, W, 3), from the camera; 0 without a surface.
        normals: (H, W, 3), unit.
        incidence: (H, W), cosine of the angle of incidence.
        offsets: (N, 3), rows and columns to the other patches, and the number of pixels that each represents.
        patch_sr: solid angle of a pixel.

    Returns:
        float64 (H, W), meters.
    """
    height, width = incidence.shape
    excess = np.zeros((height, width))
    for row in range(height):
        for column in range(width):
            x, y, z = points[row, column]
            far = math.sqrt(x * x + y * y + z * z)
            if far == 0:
                continue
            total = 0.0
            for index in range(offsets.shape[0]):
                other_row, other_column = row + int(offsets[index, 0]), column + int(offsets[index, 1])
                if not (0 <= other_row < height and 0 <= other_column < width):
                    continue
                ox, oy, oz = points[other_row, other_column]
                wx, wy, wz = ox - x, oy - y, oz - z
                distance = max(math.sqrt(wx * wx + wy * wy + wz * wz), NEAREST_M)
                a, b = normals[other_row, other_column], normals[row, column]
                leaves = -(a[0] * wx + a[1] * wy + a[2] * wz) / distance
                arrives = (b[0] * wx + b[1] * wy + b[2] * wz) / distance
                if leaves <= 0 or arrives <= 0:
                    continue
                form = leaves * arrives / (math.pi * distance * distance)
                light = patch_sr * offsets[index, 2] * form * far * far / incidence[row, column]
                longer = (math.sqrt(ox * ox + oy * oy + oz * oz) + distance - far) / 2
                total += min(light, MOST) * max(longer, 0.0)
            excess[row, column] = total
    return excess
