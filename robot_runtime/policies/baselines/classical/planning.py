"""Cost map of the grid, and fast marching on it to a goal."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from robot_runtime.policies.baselines.classical.grid import Grid
from robot_runtime.scenes.grid_interpolation import Floats, GridFrame, bilinear, nearest

Bools = NDArray[np.bool_]
Window = tuple[slice, slice]

BOLDEST = 2


@dataclass(frozen=True)
class CostParameters:
    """Cost of a path, as a multiple of its length.

    Attributes:
        hard_m: least distance of the robot's center from the center of an occupied cell.
        tight_m: distance up to which the cost is ``tight_slowness``; it falls to 1 at ``comfort_m``.
        comfort_m: distance from which on clearance costs nothing.
        tight_slowness: cost factor next to obstacles.
        unknown_slowness: cost factor of cells not observed yet. A little more than 1: unknown cells count as free, but
            of two paths of the same length the known one is taken.
        suspect_slowness: cost factor of cells that an object seen beyond them may reach into.
        touch_slowness: addend for every earlier contact near the cell.
    """

    hard_m: float
    tight_m: float
    comfort_m: float
    tight_slowness: float = 4.0
    unknown_slowness: float = 1.1
    suspect_slowness: float = 4.0
    touch_slowness: float = 1.5

    @classmethod
    def of(cls, radius_m: float, resolution_m: float, boldness: int = 0) -> CostParameters:
        """The parameters of a round robot; an obstacle's surface lies up to half a cell nearer than its cell's center.

        Args:
            radius_m: radius of the robot.
            resolution_m: edge of a cell.
            boldness: 0 keeps clear of that surface; values up to :data:`BOLDEST` allow gaps that are free only if
                obstacles fill no more than the far halves of their cells.
        """
        hard_m = radius_m + (0.2 - 0.5 * boldness) * resolution_m
        return cls(hard_m, radius_m + 0.6 * resolution_m, radius_m + 2.0 * resolution_m)


class CostMap(GridFrame):
    """A planner's copy of a window of the grid.

    Attributes:
        known: bool, as the grid's.
        suspect: bool, as the grid's.
        ground: float64, cost per meter from the state of the floor alone.
        clearance_m: float32, from each cell's center to the center of the nearest occupied cell in the window.
        slowness: float64, cost per meter; inf where the robot's center must not be.
    """

    def __init__(self, grid: Grid, parameters: CostParameters, window: Window) -> None:
        self.parameters = parameters
        self.resolution_m = grid.resolution_m
        self.origin_x_m = grid.origin_x_m + window[1].start * grid.resolution_m
        self.origin_y_m = grid.origin_y_m + window[0].start * grid.resolution_m
        self.known = grid.known[window].copy()
        self.suspect = grid.suspect[window].copy()
        unknown = np.where(self.suspect, parameters.suspect_slowness, parameters.unknown_slowness)
        self.ground = np.where(self.known, 1.0, unknown)
        if grid.touched[window].any():
            reach = int(parameters.hard_m / grid.resolution_m)
            disc_cells = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * reach + 1, 2 * reach + 1))
            self.ground *= 1.0 + parameters.touch_slowness * cv2.dilate(grid.touched[window], disc_cells)
        self.clearance_m = _clearance_m(grid.occupied(window), grid.resolution_m)
        self.slowness = self._slowness(self.clearance_m, self.ground, parameters.hard_m)

    def _slowness(self, clearance_m: NDArray[np.floating], ground: Floats, hard_m: float | Floats) -> Floats:
        p = self.parameters
        nearness = np.clip((p.comfort_m - clearance_m) / (p.comfort_m - p.tight_m), 0.0, 1.0)
        slowness = (1.0 + (p.tight_slowness - 1.0) * nearness) * ground
        return np.where(clearance_m < hard_m, np.inf, slowness).astype(np.float64)

    def clearance_at(self, x_m: Floats, y_m: Floats) -> Floats:
        """Clearance at points, interpolated; inf off the grid, where nothing is known."""
        return bilinear(self.clearance_m, *self.in_cells(x_m, y_m))

    def slowness_from(self, x_m: float, y_m: float, x: Floats, y: Floats) -> Floats:
        """Slowness at points on a path that starts at (``x_m``, ``y_m``).

        If the start is nearer to an obstacle than ``hard_m``, the limit close to it is the start's own clearance, so
        that the robot can leave.
        """
        here_m = float(self.clearance_at(np.array([x_m]), np.array([y_m]))[0])
        hard_m: float | Floats = self.parameters.hard_m
        if here_m < self.parameters.hard_m:
            close = np.hypot(x - x_m, y - y_m) < 2 * self.parameters.hard_m
            hard_m = np.where(close, here_m - 0.1 * self.resolution_m, self.parameters.hard_m)
        ground = nearest(self.ground, *self.in_cells(x, y), outside=self.parameters.unknown_slowness)
        return self._slowness(self.clearance_at(x, y), ground, hard_m)


def _clearance_m(occupied: Bools, resolution_m: float) -> NDArray[np.float32]:
    """Distance from each cell's center to the center of the nearest occupied one; inf if there is none."""
    if not occupied.any():
        return np.full(occupied.shape, np.inf, np.float32)
    cells = cv2.distanceTransform((~occupied).astype(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_PRECISE)
    return np.asarray(cells * np.float32(resolution_m), np.float32)


@dataclass(frozen=True, eq=False)
class Field:
    """Cost to go to the nearest source, in meters weighted by slowness.

    Attributes:
        costs: the map that it was computed on.
        to_go_m: float64, per cell of the map; inf where no path leads.
    """

    costs: CostMap
    to_go_m: Floats

    def at(self, x_m: Floats, y_m: Floats) -> Floats:
        """Cost to go at points, interpolated; inf off the window."""
        return bilinear(self.to_go_m, *self.costs.in_cells(x_m, y_m))


def march(costs: CostMap, sources: Bools) -> Field:
    """Fast marching from the source cells that the robot may stand in."""
    from robot_runtime.scenes import fast_marching

    to_go_m = np.full(costs.slowness.shape, np.inf)
    free = np.isfinite(costs.slowness)
    inside = sources & free
    to_go_m[inside] = 0.0
    if (free & ~inside & ndimage.binary_dilation(inside)).any():  # else there is no front to march
        level = np.where(inside, -1.0, 1.0)
        slowness = np.where(free, costs.slowness, 1.0)
        marched_m = fast_marching.march(level, free, costs.resolution_m, order=1, slowness=slowness)
        to_go_m[~inside] = marched_m[~inside]
    return Field(costs, to_go_m)


def disc(costs: CostMap, x_m: float, y_m: float, radius_m: float) -> Bools:
    """The cells whose center lies within a circle; bool of the window's shape."""
    rows, columns = costs.slowness.shape
    column, row = costs.in_cells(np.array(x_m), np.array(y_m))
    r, c = np.ogrid[:rows, :columns]
    return np.asarray((r + 0.5 - row) ** 2 + (c + 0.5 - column) ** 2 <= (radius_m / costs.resolution_m) ** 2)
