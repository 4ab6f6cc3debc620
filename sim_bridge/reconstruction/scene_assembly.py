"""From a fused surface and its map to the pieces of a scene: floor, structure in tiles, and known objects."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap
from robot_runtime.scenes.scene import Collision, SceneObject
from sim_bridge.reconstruction.floor_texture import FloorLook
from sim_bridge.reconstruction.occupancy_mapping import Band
from sim_bridge.reconstruction.tsdf import Surface
from sim_bridge.scenes.columns import rectangles
from sim_bridge.scenes.mesh_files import Appearance, MeshPart
from sim_bridge.scenes.palette import palette, palette_uv
from sim_bridge.scenes.pieces import Piece

TILE_M = 2.0
"""A renderer leaves out what is out of view piece by piece."""

BOX_MARGIN_M = 0.03
SEEN_SHARE = 0.03
"""Of the surface of an object's box that must be there for the object to be; a robot often sees one side of a thing."""

_FLUSH_M = 0.04
_SEAM_M, _SLAB_M = 0.002, 0.1
_LOOK = Appearance(palette(), "palette", exact=True, photographed=True)


def floor_piece(occupancy: OccupancyMap, drops: NDArray[np.bool_], floor: FloorLook) -> Piece:
    """A slab at z = 0 under the whole map but for drops that were seen.

    Fused floors have holes wherever a table hid them, and a simulated robot takes a hole for a cliff. What is unknown
    is carried, too, or an agent that explores would end its episode where the robot that made the logs stopped looking.
    """
    res, carried = occupancy.resolution_m, ~drops
    pixels = floor.texture(occupancy)
    rows, columns = carried.shape
    corners, uv, contacts = [], [], []
    for row, column, depth, width in rectangles(carried):
        x0, x1, y0, y1 = (v * res for v in (column, column + width, row, row + depth))
        u0, u1, v0, v1 = column / columns, (column + width) / columns, row / rows, (row + depth) / rows
        corners += [[(x0, y0, 0), (x1, y0, 0), (x1, y1, 0)], [(x0, y0, 0), (x1, y1, 0), (x0, y1, 0)]]
        uv += [[(u0, v0), (u1, v0), (u1, v1)], [(u0, v0), (u1, v1), (u0, v1)]]
        # A little larger, so that no ray falls through where two meet.
        size = (x1 - x0 + _SEAM_M, y1 - y0 + _SEAM_M, _SLAB_M)
        contacts.append(Collision("box", ((x0 + x1) / 2, (y0 + y1) / 2, -_SLAB_M / 2), size))
    appearance = Appearance(Image.fromarray(pixels[::-1].copy()), "floor", photographed=True)
    part = MeshPart("floor", np.array(corners, float), None, np.array(uv, float), appearance)
    return Piece("floor", "floor", _at(occupancy.origin_x_m, occupancy.origin_y_m), (part,), tuple(contacts))


def structure_pieces(surface: Surface, occupancy: OccupancyMap, drops: NDArray[np.bool_], band: Band) -> list[Piece]:
    """The surface in tiles, without what the floor slab replaces, and contact wherever the map is occupied."""
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
    pieces.append(Piece("wall_contact", "wall", np.eye(4), (), tuple(_contacts(occupancy, drops, band))))
    return pieces


def object_parts(surface: Surface, objects: Sequence[SceneObject]) -> tuple[Surface, list[tuple[SceneObject, Piece]]]:
    """What of a surface belongs to which object, by their boxes, the smallest first; and the rest of it."""
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
        mine = owner == i
        if mine.any():
            found.append((item, _piece("thing", item.id, surface.corners[mine], surface.colors[mine])))
    return surface.chosen(owner < 0), found


def in_box(points: NDArray[np.float64], item: SceneObject, margin_m: float) -> NDArray[np.bool_]:
    """Which points (N, 3) lie in an object's box, grown by a margin."""
    yaw = math.radians(item.yaw_deg)
    c, s = math.cos(yaw), math.sin(yaw)
    local = (points - np.array(item.center)) @ np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    return np.asarray((np.abs(local) <= np.array(item.size) / 2 + margin_m).all(axis=1))


def _contacts(occupancy: OccupancyMap, drops: NDArray[np.bool_], band: Band) -> list[Collision]:
    """Boxes as high as the robot over what the map calls occupied: map and contact are the same."""
    res = occupancy.resolution_m
    middle, height = (band.min_z_m + band.max_z_m) / 2, band.max_z_m - band.min_z_m
    standing = (occupancy.cells == Cell.OCCUPIED) & ~drops
    return [
        Collision(
            "box",
            (
                occupancy.origin_x_m + (column + width / 2) * res,
                occupancy.origin_y_m + (row + depth / 2) * res,
                middle,
            ),
            (width * res, depth * res, height),
        )
        for row, column, depth, width in rectangles(standing)
    ]


def _piece(kind: str, name: str, corners: NDArray[np.float64], colors: NDArray[np.uint8]) -> Piece:
    part = MeshPart(name, corners, None, palette_uv(colors), _LOOK)
    return Piece(name, kind, np.eye(4), (part,), (), upright=True)


def _at(x_m: float, y_m: float) -> NDArray[np.float64]:
    matrix = np.eye(4)
    matrix[:2, 3] = x_m, y_m
    return matrix
