"""A scene's occupancy map, from its geometry at the robot's height.

A cell is occupied when a shape covers any of its area somewhere between ``min_z_m`` (what the wheels roll over) and
``max_z_m`` (the robot's top): tables are obstacles to the mast, lamps at the ceiling are not. Free is what lies inside
the building and is not occupied; everything else is unknown, as on a map that a robot made.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import numpy as np
import shapely
from numpy.typing import NDArray
from scipy import ndimage

from robot_runtime.errors import SceneError
from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap
from robot_runtime.scenes.scene import SceneFile
from sim_bridge.scenes.raster import Grid, Points, mark_outline, mark_triangles, slice_hull
from sim_bridge.scenes.shapes import contact_shapes, visual_triangles

MIN_ROOM_M2 = 1.5
MIN_ROOM_WIDTH_M = 0.6
"""A smaller or narrower closed-in free area is the hollow of a cupboard or of a wall, not a place: it is unknown."""

_LEVEL_M = 1e-6
"""Tolerance of the band's ends: a shape that ends at the robot's bottom or top touches it in physics."""

_MAX_CELLS = 64_000_000


def occupancy_from_assets(
    folder: Path,
    file: SceneFile,
    resolution_m: float = 0.025,
    min_z_m: float = 0.03,
    max_z_m: float = 0.9,
    source: Literal["collision", "visual"] = "collision",
    margin_m: float = 0.25,
) -> OccupancyMap:
    """Rasterize a scene's assets.

    Inside the building is: within a room's polygon of ``file.rooms``, or closed in on all sides by shapes of any
    height above the floor (a door's lintel and a window's frame close a wall).

    Args:
        folder: folder that the mesh names in ``file`` are relative to.
        file: the scene.
        resolution_m: edge of a cell.
        min_z_m: lower end of the robot's height band.
        max_z_m: upper end of the robot's height band.
        source: ``collision`` fills the convex contact shapes, so the map is what the simulated base bumps into;
            ``visual`` draws the triangles of the visual meshes, for scenes whose contact shapes are coarse.
        margin_m: unknown border around the outermost shape.

    Raises:
        SceneError: no shape reaches into the height band, an unreadable mesh, or a scene too large for a grid.
    """
    if source == "collision":
        shapes = list(contact_shapes(folder, file))
    else:
        shapes = list(visual_triangles(folder, file))
    standing = [shape for shape in shapes if shape[..., 2].max() >= min_z_m - _LEVEL_M]
    rooms = [shapely.Polygon(room.polygon) for room in file.rooms]
    grid = _cover(folder, file, standing, rooms, resolution_m, margin_m)
    draw = _draw_hulls if source == "collision" else _draw_triangles
    occupied = draw(grid, standing, min_z_m - _LEVEL_M, max_z_m + _LEVEL_M)
    if not occupied.any() and not rooms:
        raise SceneError(
            f"{folder / 'scene.yaml'}: no {source} shape between {min_z_m} and {max_z_m} m above the floor",
            "check the scale, the up axis and the height of the floor",
        )
    top_m = max((shape[..., 2].max() for shape in standing), default=max_z_m)
    inside = _closed_in(draw(grid, standing, min_z_m, top_m))
    center_x, center_y = grid.centers()
    for polygon in rooms:
        inside |= shapely.contains_xy(polygon, center_x, center_y)
    cells = np.full(occupied.shape, Cell.UNKNOWN, np.uint8)
    cells[inside] = Cell.FREE
    cells[occupied] = Cell.OCCUPIED
    cells[_pockets(cells == Cell.FREE, resolution_m)] = Cell.UNKNOWN
    return OccupancyMap(cells, resolution_m, grid.origin_x_m, grid.origin_y_m)


def _cover(
    folder: Path,
    file: SceneFile,
    shapes: list[Points],
    rooms: list[shapely.Polygon],
    resolution_m: float,
    margin_m: float,
) -> Grid:
    corners = [shape.reshape(-1, 3)[:, :2] for shape in shapes]
    corners += [np.array(room.exterior.coords) for room in rooms]
    if not corners:
        raise SceneError(
            f"{folder / 'scene.yaml'}: scene {file.name!r} has neither rooms nor anything that stands on the floor",
            "import a scene with walls, or check the scale and the up axis",
        )
    points = np.concatenate(corners)
    grid = Grid.around(points.min(axis=0), points.max(axis=0), resolution_m, margin_m)
    if grid.rows * grid.columns > _MAX_CELLS:
        raise SceneError(
            f"{folder / 'scene.yaml'}: {grid.columns * resolution_m:.0f} x {grid.rows * resolution_m:.0f} m at "
            f"{resolution_m} m is a map of {grid.rows * grid.columns / 1e6:.0f} million cells",
            "check the scale (is the mesh in centimeters?) or use a coarser resolution",
        )
    return grid


def _draw_hulls(grid: Grid, shapes: Iterable[Points], low_z_m: float, high_z_m: float) -> NDArray[np.bool_]:
    cells = np.zeros((grid.rows, grid.columns), bool)
    for shape in shapes:
        shadow = slice_hull(shape, low_z_m, high_z_m)
        if len(shadow):
            hull = shapely.MultiPoint(shadow).convex_hull
            mark_outline(cells, grid, shapely.get_coordinates(hull))
    return cells


def _draw_triangles(grid: Grid, shapes: Iterable[Points], low_z_m: float, high_z_m: float) -> NDArray[np.bool_]:
    cells = np.zeros((grid.rows, grid.columns), bool)
    for shape in shapes:
        mark_triangles(cells, grid, shape, low_z_m, high_z_m)
    return cells


def _closed_in(blocked: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Cells that a flood from beyond the border does not reach."""
    labels, _ = ndimage.label(np.pad(~blocked, 1, constant_values=True))
    return np.asarray(labels != labels[0, 0])[1:-1, 1:-1]


def _pockets(free: NDArray[np.bool_], resolution_m: float) -> NDArray[np.bool_]:
    """Free cells in connected areas that are too small or too narrow to be a room."""
    labels, count = ndimage.label(free)
    area_m2 = np.bincount(labels.ravel(), minlength=count + 1) * resolution_m**2
    half_width = ndimage.distance_transform_edt(np.pad(free, 1))[1:-1, 1:-1]
    width_m = 2 * resolution_m * ndimage.maximum(half_width, labels, np.arange(count + 1))
    return np.asarray(free & ((area_m2 < MIN_ROOM_M2) | (width_m < MIN_ROOM_WIDTH_M))[labels])
