"""Synthetic observations of a task, different at each step and small when compressed."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_runtime.policies.package.manifest import QUESTION, Manifest
from robot_runtime.tasks.kind import sensor_of

_PATCH_PX = 16
_LEVELS = 64
_FAR = 5.0


def patchwork(manifest: Manifest, seed: int) -> dict[str, NDArray[Any]]:
    """Images of patches in random brightness, a few of them sloping, and random goals and poses, in the task's shapes.

    Edges and slopes excite a network more than noise, whose mean is uniform.
    """
    random = np.random.default_rng(seed)
    observation: dict[str, NDArray[Any]] = {}
    for name in manifest.needs:
        sensor = sensor_of(manifest.task, name)
        low, high = sensor.bounds(manifest.task)
        if name == QUESTION:
            assert manifest.vocabulary is not None
            observation[name] = np.array(" ".join(random.choice(manifest.vocabulary.words, 6)))
            continue
        values: NDArray[Any]
        shape = sensor.shape(manifest.task)
        if len(shape) == 3:
            values = _patches(random, shape) * (float(np.max(high)) - float(np.min(low))) + float(np.min(low))
        elif np.dtype(sensor.dtype).kind == "f":
            lowest, highest = np.maximum(low, -_FAR), np.minimum(high, _FAR)
            values = lowest + (highest - lowest) * random.random(shape)
        else:
            values = random.integers(np.asarray(low, np.int64), np.asarray(high, np.int64), shape, endpoint=True)
        observation[name] = values.astype(sensor.dtype)
    return observation


def _patches(random: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float64]:
    height, width, channels = shape
    rows, columns = -(-height // _PATCH_PX), -(-width // _PATCH_PX)
    levels = random.integers(0, _LEVELS, (rows, columns, channels)) / _LEVELS
    image = levels.repeat(_PATCH_PX, 0).repeat(_PATCH_PX, 1)[:height, :width]
    slope = np.linspace(0, 1, height)[:, None, None] * random.random()
    return np.round((0.8 * image + 0.2 * slope) * 255) / 255
