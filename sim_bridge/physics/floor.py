"""Presence of floor in a compiled scene."""

import functools

import mujoco
import numpy as np
from numpy.typing import NDArray

from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap

TOLERANCE_M = 0.03
"""Greatest height above or below z = 0 of a surface that carries a wheel."""

_SAMPLES = 64


def has_floor(model: mujoco.MjModel, data: mujoco.MjData, groups: tuple[int, ...], x_m: float, y_m: float) -> bool:
    """Whether a ray straight down from under the robot's body meets a surface near z = 0.

    Args:
        model: the compiled scene.
        data: its state.
        groups: groups of the geoms that count.
        x_m: x coordinate of the point in ``map``.
        y_m: y coordinate of the point in ``map``.
    """
    distance_m = mujoco.mj_ray(
        model, data, (x_m, y_m, TOLERANCE_M), (0.0, 0.0, -1.0), _group_mask(groups), 1, -1, np.empty(1, np.int32), None
    )
    return bool(0 <= distance_m <= 2 * TOLERANCE_M)


def is_missing(model: mujoco.MjModel, groups: tuple[int, ...], occupancy: OccupancyMap) -> bool:
    """Whether most of the map's free cells have no floor: the scene's meshes leave it out."""
    free = np.argwhere(occupancy.cells == Cell.FREE)
    if len(free) == 0:
        return False
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    sampled = free[:: max(1, len(free) // _SAMPLES)]
    points = [occupancy.to_point(row, column) for row, column in sampled.tolist()]
    carried = sum(has_floor(model, data, groups, x_m, y_m) for x_m, y_m in points)
    return 2 * carried < len(points)


@functools.cache
def _group_mask(groups: tuple[int, ...]) -> NDArray[np.uint8]:
    mask = np.zeros(mujoco.mjNGROUP, np.uint8)
    mask[list(groups)] = 1
    return mask
