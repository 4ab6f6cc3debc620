"""Pieces of a scene from a fused surface and its map: floor, structure in tiles, and known objects."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage

from robot_runtime.errors import SceneError
from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap
from robot_runtime.scenes.scene import Collision, SceneObject
from sim_bridge.reconstruction.floor_texture import FloorTexture
from sim_bridge.reconstruction.occupancy_mapping import MappingOptions
from sim_bridge.reconstruction.tsdf import Surface
from sim_bridge.scenes.columns import boxes, rectangles
from sim_bridge.scenes.mesh_files import Appearance, MeshPart, palette, palette_uv
from sim_bridge.scenes.pieces import Piece

Array = NDArray[np.float64]

LEAST_M = 3.0
"""Least length of a border; a shorter one fits nearly everywhere."""

_SMOOTH_CELLS = 2.0


@dataclass(frozen=True, eq=False)
class Outline:
    """The border of a map's free space.

    Attributes:
        points: float64 (N, 2), midpoints of the cell edges between free and occupied, in ``map``.
        normals: float64 (N, 2), unit, into free space.
        spacing_m: length of border that a point stands for.
        free_m: float32 (rows, columns) of the map: distance of a free cell from the rest; 0 elsewhere.
    """

    points: Array
    normals: Array
    spacing_m: float
    free_m: NDArray[np.float32]
    occupancy: OccupancyMap

    def thinned(self, stride: int) -> Outline:
        """Every ``stride``-th point of it."""
        return replace(self, points=self.points[::stride], normals=self.normals[::stride])


def outline_of(occupancy: OccupancyMap, where: str) -> Outline:
    """The border of a map's free space. Raises ``SceneError`` if the border is too short to recognize a place by."""
    free, occupied = occupancy.cells == Cell.FREE, occupancy.cells == Cell.OCCUPIED
    res = occupancy.resolution_m
    points = []
    for axis in (0, 1):
        for one, other in ((free, occupied), (occupied, free)):
            count = free.shape[axis]
            rows, columns = np.nonzero(np.take(one, range(count - 1), axis) & np.take(other, range(1, count), axis))
            middle = np.array([0.5, 1.0]) if axis == 0 else np.array([1.0, 0.5])  # of the edge, x then y, in cells
            points.append(np.column_stack([columns, rows]) + middle)
    cells = np.concatenate(points)
    if len(cells) * res < LEAST_M:
        raise SceneError(
            f"{where}: only {len(cells) * res:.1f} m of border between free and occupied, too little to find a place",
            "drive farther while mapping",
        )
    smooth = ndimage.gaussian_filter(free.astype(float) - occupied.astype(float), _SMOOTH_CELLS)
    slope = np.stack([ndimage.sobel(smooth, axis=1), ndimage.sobel(smooth, axis=0)], axis=-1)
    at = [cells[:, 1] - 0.5, cells[:, 0] - 0.5]
    normals = np.stack([ndimage.map_coordinates(slope[..., i], at, order=1, mode="nearest") for i in (0, 1)], axis=1)
    length = np.linalg.norm(normals, axis=1)
    keep = length > 1e-9
    points_m = cells[keep] * res + (occupancy.origin_x_m, occupancy.origin_y_m)
    depth_m = (ndimage.distance_transform_edt(free) * res).astype(np.float32)
    return Outline(points_m, normals[keep] / length[keep, None], res, depth_m, occupancy)


TILE_M = 2.0
"""Edge of a tile of structure; a renderer culls piece by piece."""

BOX_MARGIN_M = 0.03
SEEN_SHARE = 0.03
"""An object is present if its box holds this share of its surface; a robot often sees one side of it only."""

_FLUSH_M = 0.04
_SEAM_M, _SLAB_M = 0.002, 0.1
_LOOK = Appearance(palette(), "palette", exact=True, photographed=True)


def floor_piece(occupancy: OccupancyMap, drops: NDArray[np.bool_], floor: FloorTexture) -> Piece:
    """A slab at z = 0 under the entire map except for drops.

    Fused floors have holes wherever a table hid them, and a hole is a cliff to a simulated robot. Unknown cells have a
    floor, too, so that an agent may explore beyond what the logs show.
    """
    res, supported = occupancy.resolution_m, ~drops
    pixels = floor.texture(occupancy)
    rows, columns = supported.shape
    corners, uv, contacts = [], [], []
    for row, column, depth, width in rectangles(supported):
        x0, x1, y0, y1 = (v * res for v in (column, column + width, row, row + depth))
        u0, u1, v0, v1 = column / columns, (column + width) / columns, row / rows, (row + depth) / rows
        corners += [[(x0, y0, 0), (x1, y0, 0), (x1, y1, 0)], [(x0, y0, 0), (x1, y1, 0), (x0, y1, 0)]]
        uv += [[(u0, v0), (u1, v0), (u1, v1)], [(u0, v0), (u1, v1), (u0, v1)]]
        # Slightly larger, so that no ray passes between two of them.
        size = (x1 - x0 + _SEAM_M, y1 - y0 + _SEAM_M, _SLAB_M)
        contacts.append(Collision("box", ((x0 + x1) / 2, (y0 + y1) / 2, -_SLAB_M / 2), size))
    pose = np.eye(4)
    pose[:2, 3] = occupancy.origin_x_m, occupancy.origin_y_m
    appearance = Appearance(Image.fromarray(pixels[::-1].copy()), "floor", photographed=True)
    part = MeshPart("floor", np.array(corners, float), None, np.array(uv, float), appearance)
    return Piece("floor", "floor", pose, (part,), tuple(contacts))


def structure_pieces(
    surface: Surface, occupancy: OccupancyMap, drops: NDArray[np.bool_], options: MappingOptions
) -> list[Piece]:
    """The surface in tiles, without the floor (the slab replaces it), and contact wherever the map is occupied."""
    corners, colors = surface.corners, surface.colors
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    level = np.abs(normal[:, 2]) > 0.7 * np.maximum(np.linalg.norm(normal, axis=1), 1e-12)
    above = ~(level & (np.abs(corners[..., 2]).max(axis=1) < _FLUSH_M))
    corners, colors = corners[above], colors[above]
    tile = np.floor(corners[..., :2].mean(axis=1) / TILE_M).astype(int)
    pieces: list[Piece] = []
    for column, row in np.unique(tile, axis=0).tolist():
        inside = (tile == (column, row)).all(axis=1)
        pieces.append(_piece("wall", f"wall_{len(pieces)}", corners[inside], colors[inside]))
    pieces.append(Piece("wall_contact", "wall", np.eye(4), (), tuple(_contacts(occupancy, drops, options))))
    return pieces


def object_parts(surface: Surface, objects: Sequence[SceneObject]) -> tuple[Surface, list[tuple[SceneObject, Piece]]]:
    """The parts of a surface in the objects' boxes, smallest box first, and the rest of the surface."""
    middle, areas = surface.corners.mean(axis=1), surface.areas_m2
    owner = np.full(len(middle), -1)
    order = sorted(range(len(objects)), key=lambda i: (math.prod(objects[i].size), objects[i].id))
    for i in order:
        inside = (owner < 0) & in_box(middle, objects[i], BOX_MARGIN_M) & (middle[:, 2] > _FLUSH_M)
        x, y, z = objects[i].size
        if areas[inside].sum() >= SEEN_SHARE * 2 * (x * y + y * z + z * x):
            owner[inside] = i
    found = []
    for i, item in enumerate(objects):
        own = owner == i
        if own.any():
            found.append((item, _piece("thing", item.id, surface.corners[own], surface.colors[own])))
    return surface.subset(owner < 0), found


def in_box(points: NDArray[np.float64], item: SceneObject, margin_m: float) -> NDArray[np.bool_]:
    """Mask (N,) of the points (N, 3) that lie in an object's box, grown by a margin."""
    yaw = math.radians(item.yaw_deg)
    c, s = math.cos(yaw), math.sin(yaw)
    local = (points - np.array(item.center)) @ np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    return np.asarray((np.abs(local) <= np.array(item.size) / 2 + margin_m).all(axis=1))


def _contacts(occupancy: OccupancyMap, drops: NDArray[np.bool_], options: MappingOptions) -> list[Collision]:
    """Boxes as high as the robot over the occupied cells, so that contact agrees with the map."""
    solid, origin_m = (occupancy.cells == Cell.OCCUPIED) & ~drops, (occupancy.origin_x_m, occupancy.origin_y_m)
    return boxes(solid, origin_m, occupancy.resolution_m, options.min_z_m, options.max_z_m)


def _piece(kind: str, name: str, corners: NDArray[np.float64], colors: NDArray[np.uint8]) -> Piece:
    part = MeshPart(name, corners, None, palette_uv(colors), _LOOK)
    return Piece(name, kind, np.eye(4), (part,), (), upright=True)
