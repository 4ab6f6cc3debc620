"""Rooms of polygons, and where the center of a disc may be in them.

The robot's centre may be wherever the room, shrunk by the radius, is not covered by obstacles grown by it. Growing a
corner makes an arc; it becomes a polygon of ``ARC_SEGMENTS`` chords per quarter circle, which shortens the way round a
corner of radius 0.18 m by less than 0.5 mm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import shapely
from shapely.geometry import Polygon, box
from shapely.geometry.base import BaseGeometry

from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap

ARC_SEGMENTS = 8


@dataclass(frozen=True)
class PolygonRoom:
    """A room (its inside) and the obstacles in it."""

    inside: Polygon
    obstacles: BaseGeometry

    def occupancy(self, resolution_m: float, cell_rule: str) -> OccupancyMap:
        """The room as a map. ``cell_rule``: a cell is occupied if an obstacle has its ``centre`` or ``any`` of it."""
        x0, y0, x1, y1 = self.inside.bounds
        columns = round((x1 - x0) / resolution_m) + 2
        rows = round((y1 - y0) / resolution_m) + 2
        origin = np.array([x0 - resolution_m, y0 - resolution_m])
        column, row = np.meshgrid(np.arange(columns), np.arange(rows))
        low_x, low_y = origin[0] + column * resolution_m, origin[1] + row * resolution_m
        solid = shapely.difference(box(x0 - 1, y0 - 1, x1 + 1, y1 + 1), self.inside).union(self.obstacles)
        shapely.prepare(solid)
        if cell_rule == "center":
            occupied = shapely.contains_xy(solid, low_x + resolution_m / 2, low_y + resolution_m / 2)
        else:
            margin = 1e-6
            cells = shapely.box(
                low_x + margin, low_y + margin, low_x + resolution_m - margin, low_y + resolution_m - margin
            )
            occupied = shapely.intersects(solid, cells)
        return OccupancyMap(np.where(occupied, Cell.OCCUPIED, Cell.FREE).astype(np.uint8), resolution_m, *origin)


def room_of_disc(room: PolygonRoom, radius_m: float) -> BaseGeometry:
    """Where the center of a disc may be in a room."""
    grown = room.obstacles.buffer(radius_m, quad_segs=ARC_SEGMENTS)
    return room.inside.buffer(-radius_m, quad_segs=ARC_SEGMENTS).difference(grown)
