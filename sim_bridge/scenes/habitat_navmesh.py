"""Navigation meshes of habitat-sim: the cells with which they are what was asked, and what they come to in effect.

Recast rounds an agent's radius and height up to whole cells and its climb down, in single precision
(``PathFinder::build``). With habitat-sim's defaults, cells of 5 cm and 20 cm high, a radius of 18 cm becomes 20 cm, the
floor of the mesh lies 20 cm above the lowest point, and things of up to 40 cm may be climbed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

LARGEST_CELL_M, LARGEST_CELL_HEIGHT_M = 0.01, 0.02
"""Greatest cells of a mesh whose radius and climb are those that were asked."""

_MORE = 1 + 1e-5
"""Factor on cells that makes quotients round to the whole number meant, in single precision."""


@dataclass(frozen=True)
class Effective:
    """A navigation mesh as Recast builds it."""

    cell_m: float
    cell_height_m: float
    radius_m: float
    height_m: float
    climb_m: float

    @classmethod
    def of(cls, settings: Any) -> Effective:
        """What ``NavMeshSettings`` come to."""
        single = np.float32
        cell, cell_height = single(settings.cell_size), single(settings.cell_height)
        return cls(
            float(cell),
            float(cell_height),
            float(math.ceil(single(settings.agent_radius) / cell) * cell),
            float(math.ceil(single(settings.agent_height) / cell_height) * cell_height),
            float(math.floor(single(settings.agent_max_climb) / cell_height) * cell_height),
        )

    def floor_m(self, lowest_m: float, floor_m: float = 0.0) -> float:
        """Height of the mesh over a floor in a scene whose lowest point is ``lowest_m``."""
        cells = max(1, math.ceil((floor_m - lowest_m) / self.cell_height_m - 1e-4))
        return lowest_m + cells * self.cell_height_m

    def sentence(self) -> str:
        """Sizes in words."""
        cells = f"cells of {1000 * self.cell_m:.1f} mm, {1000 * self.cell_height_m:.1f} mm high"
        return f"{cells}; radius in effect {1000 * self.radius_m:.0f} mm, climb {1000 * self.climb_m:.0f} mm"


def ask(settings: Any, radius_m: float, height_m: float, climb_m: float) -> None:
    """Set an agent and the cells with which Recast rounds it to less than a millimeter of what is asked."""
    cells = math.ceil(radius_m / LARGEST_CELL_M)
    levels = max(1, math.ceil(climb_m / LARGEST_CELL_HEIGHT_M)) if climb_m > 0 else 0
    cell_height_m = climb_m / levels / _MORE if levels else LARGEST_CELL_HEIGHT_M / 2
    settings.cell_size = radius_m / cells * _MORE
    settings.cell_height = cell_height_m
    settings.agent_radius = radius_m
    settings.agent_height = round(height_m / cell_height_m) * cell_height_m / _MORE
    settings.agent_max_climb = climb_m
