"""Whether a robot can still go everywhere in a room while it is being furnished."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import shapely
from numpy.typing import NDArray
from scipy import ndimage

from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap
from sim_bridge.scenes.layout import Opening
from sim_bridge.scenes.raster import Grid, mark_outline, slice_hull
from sim_bridge.scenes.rect import Rect
from sim_bridge.scenes.shapes import Points

ROBOT_RADIUS_M = 0.18
LANE_RADIUS_M = 0.27
"""Half of a lane that a policy finds comfortable."""

_ROBOT_BAND_M = (0.03, 0.9)
_LANE_SHARE = 0.85
_GRID_M = 0.025
_DOORWAY_M = 0.3


class Passage:
    """A room's free floor with stubs of its doorways, on the same grid lines as the scene's map, so that what is
    passable here is passable there.

    Args:
        must_reach: parts of the floor, such as those before the doors, that lanes of comfortable width must lead to.
    """

    def __init__(self, floor: Rect, doors: Iterable[Opening], must_reach: Sequence[Rect]) -> None:
        low, high = np.array([floor.x0, floor.y0]), np.array([floor.x1, floor.y1])
        self._grid = Grid.around(low, high, _GRID_M, _DOORWAY_M)
        self._must_reach = must_reach
        self._empty = np.ones((self._grid.rows, self._grid.columns), bool)
        self._empty[self._cells(floor)] = False
        for door in doors:
            self._empty[self._cells(floor.strip(door.side, door.start, door.end, -_DOORWAY_M))] = False
            self._empty[self._cells(_seam(floor, door))] = False
        self._blocked = self._empty.copy()

    def clear(self) -> None:
        """Take everything out again."""
        self._blocked = self._empty.copy()

    def block(self, shapes: Iterable[Points]) -> None:
        """Put in convex contact shapes, each the corner points (N, 3) of its hull."""
        self._mark(self._blocked, shapes)

    def stays_open(self, shapes: Iterable[Points]) -> bool:
        """Whether, with these shapes added, the robot's free space is one piece, and most of the space in which a
        comfortable lane fits is one piece that reaches every place it must."""
        blocked = self._blocked.copy()
        self._mark(blocked, shapes)
        cells = np.where(blocked, np.uint8(Cell.OCCUPIED), np.uint8(Cell.FREE))
        clearance = OccupancyMap(cells, _GRID_M, self._grid.origin_x_m, self._grid.origin_y_m).clearance_m()
        if ndimage.label(clearance >= ROBOT_RADIUS_M)[1] != 1:
            return False
        lanes, count = ndimage.label(clearance >= LANE_RADIUS_M)
        sizes = np.bincount(lanes.ravel(), minlength=count + 1)[1:]
        if not count or sizes.max() < _LANE_SHARE * sizes.sum():
            return False
        main = lanes == 1 + sizes.argmax()
        return all(bool(main[self._cells(zone)].any()) for zone in self._must_reach)

    def _mark(self, cells: NDArray[np.bool_], shapes: Iterable[Points]) -> None:
        for points in shapes:
            shadow = slice_hull(points, *_ROBOT_BAND_M)
            if len(shadow):
                hull = shapely.MultiPoint(shadow).convex_hull
                mark_outline(cells, self._grid, shapely.get_coordinates(hull))

    def _cells(self, rect: Rect) -> tuple[slice, slice]:
        """The cells that lie wholly in a rectangle."""
        grid = self._grid
        x0, x1 = ((x - grid.origin_x_m) / _GRID_M for x in (rect.x0, rect.x1))
        y0, y1 = ((y - grid.origin_y_m) / _GRID_M for y in (rect.y0, rect.y1))
        return (
            slice(max(0, math.ceil(y0 - 1e-6)), max(0, math.floor(y1 + 1e-6))),
            slice(max(0, math.ceil(x0 - 1e-6)), max(0, math.floor(x1 + 1e-6))),
        )


def _seam(floor: Rect, door: Opening) -> Rect:
    """The floor on both sides of the line between a room and its doorway."""
    inside, outside = (floor.strip(door.side, door.start, door.end, sign * 2 * _GRID_M) for sign in (1, -1))
    return Rect(
        min(inside.x0, outside.x0), min(inside.y0, outside.y0), max(inside.x1, outside.x1), max(inside.y1, outside.y1)
    )
