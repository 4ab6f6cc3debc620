"""Rooms from free space: split where it narrows.

Watershed of the distance to the walls ("distance transform-based" in Bormann et al. 2016, Room segmentation, ICRA).
Furniture would be taken for walls, so the distance is measured on a slice above it. Two basins are two rooms when the
passage between them is much narrower than the smaller of them, whatever it measures: a door in a flat, an archway in
a hall.
"""

import cv2
import numpy as np
import shapely
from numpy.typing import NDArray
from scipy import ndimage

from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap
from robot_runtime.scenes.scene import Room

PASSAGE_SHARE = 0.8
"""A passage parts two rooms when it is narrower than this share of the smaller room's width."""

MIN_ROOM_WIDTH_M = 1.0
MIN_ROOM_M2 = 2.0

_COARSE_M = 0.1  # grid on which the basins are found


def find_rooms(occupancy: OccupancyMap, walls: NDArray[np.bool_]) -> tuple[Room, ...]:
    """Rooms of category ``room`` named ``room_0`` ... from the largest to the smallest.

    Args:
        occupancy: the scene's map; rooms lie where it is not unknown.
        walls: cells of the same grid that something covers above furniture and below lintels.
    """
    space = (occupancy.cells != Cell.UNKNOWN) & ~walls
    distance = ndimage.distance_transform_edt(np.pad(space, 1))[1:-1, 1:-1] * occupancy.resolution_m
    step = max(1, round(_COARSE_M / occupancy.resolution_m))
    coarse = _basins(distance[step // 2 :: step, step // 2 :: step])
    seeds = np.zeros(space.shape, np.int32)
    seeds[step // 2 :: step, step // 2 :: step] = coarse
    labels = _spread(seeds, space)
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


def _basins(distance: NDArray[np.float64]) -> NDArray[np.int32]:
    """Label (from 1) of the room of every cell that is not a wall: basins of the distance, merged by the passage rule.

    Cells are taken from the most open to the narrowest; a cell that joins two basins is the widest passage there.
    """
    columns = distance.shape[1]
    flat = distance.ravel()
    order = np.argsort(-flat, kind="stable")
    order = order[flat[order] > 0]
    home = np.full(flat.size, -1, np.int64)  # union-find over cells; -1 is not visited
    basin = np.full(flat.size, -1, np.int64)  # the cell's own basin, named by its most open cell

    def root(cell: int) -> int:
        while home[cell] != cell:
            home[cell] = home[home[cell]]
            cell = int(home[cell])
        return cell

    for cell in order.tolist():
        around = [cell - columns, cell + columns]
        around += [cell - 1] * (cell % columns > 0) + [cell + 1] * (cell % columns < columns - 1)
        near = {root(int(basin[n])) for n in around if 0 <= n < flat.size and basin[n] >= 0}
        if not near:
            home[cell] = basin[cell] = cell
            continue
        ranked = sorted(near, key=lambda peak: (-flat[peak], peak))
        basin[cell] = ranked[0]
        for smaller in ranked[1:]:
            parted = flat[cell] < PASSAGE_SHARE * flat[smaller] and 2 * flat[smaller] >= MIN_ROOM_WIDTH_M
            if not parted:
                home[smaller] = ranked[0]
    labels = np.zeros(flat.size, np.int32)
    inside = np.flatnonzero(basin >= 0)
    roots = np.array([root(int(basin[cell])) for cell in inside], np.int64)
    labels[inside] = np.unique(roots, return_inverse=True)[1].ravel() + 1 if len(roots) else 0
    return labels.reshape(distance.shape)


def _spread(seeds: NDArray[np.int32], space: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Every cell of ``space`` gets the label of the nearest seed within the coarse grid's reach."""
    _, (rows, columns) = ndimage.distance_transform_edt(seeds == 0, return_indices=True)
    return np.where(space, seeds[rows, columns], 0).astype(np.int32)


def _outline(mask: NDArray[np.bool_], occupancy: OccupancyMap) -> shapely.Polygon | None:
    """The outer contour of a room's largest part, straightened to within two cells."""
    # Twice the size, so that the contour runs along the cells' edges rather than through their centers.
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
