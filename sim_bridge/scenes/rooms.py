"""Rooms from free space: split where it narrows to a door.

Watershed of the distance to the walls, as in Bormann et al. 2016 (Room segmentation: survey, ICRA; "distance
transform-based"). Furniture would be taken for walls, so the distance is measured on a slice above it.
"""

from __future__ import annotations

import cv2
import numpy as np
import shapely
from numpy.typing import NDArray
from scipy import ndimage

from robot_runtime.maps import Cell, OccupancyMap
from robot_runtime.scene import Room

DOOR_HALF_WIDTH_M = 0.65
"""A passage narrower than 1.3 m parts two rooms: doors are 0.7 to 1.0 m wide, corridors at least 1.1 m long ways."""

MIN_SEED_M2 = 0.3
MIN_ROOM_M2 = 2.0


def find_rooms(occupancy: OccupancyMap, walls: NDArray[np.bool_]) -> tuple[Room, ...]:
    """Rooms of category ``room`` named ``room_0`` ... from the largest to the smallest.

    Args:
        occupancy: the scene's map; rooms lie where it is not unknown.
        walls: cells of the same grid that something covers above furniture and below lintels.
    """
    resolution_m = occupancy.resolution_m
    inside = ndimage.binary_fill_holes(occupancy.cells != Cell.UNKNOWN)
    open_space = inside & ~walls
    distance = ndimage.distance_transform_edt(np.pad(open_space, 1))[1:-1, 1:-1] * resolution_m
    seeds, count = ndimage.label(distance > DOOR_HALF_WIDTH_M)
    sizes = np.bincount(seeds.ravel(), minlength=count + 1)
    seeds[(sizes < MIN_SEED_M2 / resolution_m**2)[seeds]] = 0
    if not seeds.any():
        return ()
    labels = _grow(seeds, open_space, distance)
    polygons = [_outline(labels == label, occupancy) for label in np.unique(labels[labels > 0])]
    found = sorted((p for p in polygons if p is not None and p.area >= MIN_ROOM_M2), key=lambda p: -p.area)
    return tuple(
        Room(f"room_{i}", "room", tuple((round(x, 3), round(y, 3)) for x, y in _counter_clockwise(polygon)))
        for i, polygon in enumerate(found)
    )


def room_of(x_m: float, y_m: float, rooms: tuple[Room, ...], reach_m: float = 0.5) -> str | None:
    """The id of the room that a point lies in, else of the nearest within ``reach_m``, else None."""
    distances = [(shapely.distance(shapely.Polygon(room.polygon), shapely.Point(x_m, y_m)), room.id) for room in rooms]
    nearest = min(distances, default=(float("inf"), ""))
    return nearest[1] if nearest[0] <= reach_m else None


def _grow(seeds: NDArray[np.int32], space: NDArray[np.bool_], distance: NDArray[np.float64]) -> NDArray[np.int32]:
    """Flood from the seeds downhill in distance, so that fronts meet in the doors."""
    height = np.zeros(space.shape, np.uint8)
    height[space] = 254 - np.minimum(distance[space] / DOOR_HALF_WIDTH_M, 1.0) * 253
    markers = seeds.astype(np.int32)
    markers[~space] = -1
    grown = ndimage.watershed_ift(height, markers, structure=np.ones((3, 3)))
    return np.where(space, grown, 0)


def _outline(mask: NDArray[np.bool_], occupancy: OccupancyMap) -> shapely.Polygon | None:
    """The outer contour of a room, straightened to within two cells."""
    # Twice the size, so that the contour runs along the cells' edges rather than through their centres.
    doubled = np.repeat(np.repeat(mask.astype(np.uint8), 2, axis=0), 2, axis=1)
    contours, _ = cv2.findContours(doubled, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    if not contours:
        return None
    largest = max(contours, key=cv2.contourArea).reshape(-1, 2).astype(float)
    if len(largest) < 3:
        return None
    origin = np.array([occupancy.origin_x_m, occupancy.origin_y_m])
    polygon = shapely.Polygon(origin + (largest + 0.5) * occupancy.resolution_m / 2)
    straight = polygon.simplify(2 * occupancy.resolution_m).buffer(0)
    parts = [part for part in shapely.get_parts(straight) if part.geom_type == "Polygon"]
    return max(parts, key=lambda part: part.area) if parts else None


def _counter_clockwise(polygon: shapely.Polygon) -> list[tuple[float, float]]:
    ring = shapely.geometry.polygon.orient(polygon).exterior.coords
    return [(x, y) for x, y in ring][:-1]
