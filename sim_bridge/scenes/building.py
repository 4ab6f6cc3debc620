"""The building of a generated flat: walls, floors, ceilings, baseboards and windows, as pieces of a scene."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping

import numpy as np

from robot_runtime.scenes.scene import Point3
from sim_bridge.scenes.furniture import Array, block, flat_normals, unit_shape
from sim_bridge.scenes.layout import DOOR_HEIGHT_M, SIDES, FloorPlan, Opening, PlanRoom, Rect, Side
from sim_bridge.scenes.mesh_files import MeshPart
from sim_bridge.scenes.pieces import Piece
from sim_bridge.scenes.textures import Surface, surface_mesh

_WALL_COLORS = ("white", "cream", "sand", "sage", "sky", "rose", "mist", "beige")
_FACE_M = 0.002  # distance of a room's wall face from the wall


def building(
    plan: FloorPlan, ceiling_m: float, style: Mapping[str, str], rng: random.Random, seed: int
) -> Iterator[Piece]:
    """The walls with their contact boxes, and the surfaces of each room."""
    boxes = [(rect, 0.0) for rect in plan.walls] + [(rect, DOOR_HEIGHT_M) for rect in plan.lintels]
    solid = [(_base(rect, low), (rect.width, rect.depth, ceiling_m - low)) for rect, low in boxes]
    mesh = surface_mesh(*_boxes(solid), Surface("white", "plaster"), seed)
    yield Piece("walls", "walls", np.eye(4), (mesh,), tuple(block(*box) for box in solid))
    for room in plan.rooms:
        yield Piece(room.id, room.id, np.eye(4), tuple(_surfaces(room, ceiling_m, style, rng, seed)), ())


def _surfaces(
    room: PlanRoom, ceiling_m: float, style: Mapping[str, str], rng: random.Random, seed: int
) -> Iterator[MeshPart]:
    f = room.floor
    floor, wall, accent = _finish(room.category, style, rng)
    doorways = [f.strip(door.side, door.start, door.end, -0.06) for door in room.doors]
    yield _mesh([_level(rect, 0.0) for rect in (f, *doorways)], floor, seed)
    yield _mesh([_level(f, ceiling_m)[::-1]], "plaster:white", seed)
    boards, panes = [], []
    for side, surface in zip(SIDES, rng.sample([accent, wall, wall, wall], 4), strict=True):
        openings = sorted((o for o in (*room.doors, *room.windows) if o.side == side), key=lambda o: o.start)
        yield _mesh(list(_face(f, side, openings, ceiling_m)), surface, seed)
        start, end = f.along(side)
        doors = [opening for opening in openings if opening.bottom == 0]
        edges = [start, *(x for door in doors for x in (door.start, door.end)), end]
        boards += [(f.strip(side, a, b, 0.012), 0.0, 0.08) for a, b in zip(edges[::2], edges[1::2], strict=True)]
        for window in (opening for opening in openings if opening.bottom > 0):
            panes.append(_quad(f, side, window.start, window.end, window.bottom, window.top, 0.006))
            boards += [(f.strip(side, *bar[:2], 0.016), *bar[2:]) for bar in _frame(window)]
    yield surface_mesh(
        *_boxes([(_base(rect, low), (rect.width, rect.depth, high - low)) for rect, low, high in boards]),
        Surface("white"),
        seed,
    )
    for pane in panes:
        mesh = _mesh([pane], "window", seed)
        yield MeshPart(mesh.name, mesh.corners, mesh.normals, np.array(_PANE_UV), mesh.appearance)


_PANE_UV = [[[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]], [[0.0, 0.0], [1.0, 1.0], [0.0, 1.0]]]


def _finish(category: str, style: Mapping[str, str], rng: random.Random) -> tuple[str, str, str]:
    """The surfaces of floor, walls and one wall in another finish."""
    wall = f"plaster:{rng.choice(_WALL_COLORS)}"
    if category == "bathroom":
        wall = f"tiles:{rng.choice(('white', 'sky', 'mist', 'sage'))}"
    if category in ("bathroom", "kitchen"):
        floor = f"{rng.choice(('tiles', 'checker'))}:{rng.choice(('beige', 'gray', 'terracotta', 'white'))}"
        return floor, wall, wall
    carpet = category in ("bedroom", "study") and rng.random() < 0.4
    floor = f"carpet:{rng.choice(('gray', 'beige', 'sage', 'blue'))}" if carpet else style["planks"]
    accents = ("brick:white", "brick:terracotta", "plaster:sage", "plaster:blue", "plaster:rose", wall)
    return floor, wall, rng.choice(accents)


def _frame(window: Opening) -> Iterator[tuple[float, float, float, float]]:
    """Bars round and across a window: start, end, bottom and top."""
    start, end, bottom, top = window.start, window.end, window.bottom, window.top
    middle = (start + end) / 2
    for edge in (start - 0.035, middle - 0.02, end - 0.035):
        yield edge, edge + (0.04 if edge == middle - 0.02 else 0.07), bottom, top
    for height in (bottom - 0.035, top - 0.035):
        yield start - 0.035, end + 0.035, height, height + 0.07


def _face(floor: Rect, side: Side, openings: list[Opening], ceiling_m: float) -> Iterator[Array]:
    """Rectangles of a wall's face around its openings."""
    at, end = floor.along(side)
    for hole in openings:
        yield _quad(floor, side, at, hole.start, 0.0, ceiling_m, _FACE_M)
        yield _quad(floor, side, hole.start, hole.end, hole.top, ceiling_m, _FACE_M)
        if hole.bottom > 0:
            yield _quad(floor, side, hole.start, hole.end, 0.0, hole.bottom, _FACE_M)
        at = hole.end
    yield _quad(floor, side, at, end, 0.0, ceiling_m, _FACE_M)


def _quad(floor: Rect, side: Side, start: float, end: float, bottom: float, top: float, inward: float) -> Array:
    """An upright rectangle (4, 3) parallel to a wall that faces into the room, from its lower left corner."""
    strip = floor.strip(side, start, end, inward)
    ends = {
        "south": ((strip.x1, strip.y1), (strip.x0, strip.y1)),
        "north": ((strip.x0, strip.y0), (strip.x1, strip.y0)),
        "west": ((strip.x1, strip.y0), (strip.x1, strip.y1)),
        "east": ((strip.x0, strip.y1), (strip.x0, strip.y0)),
    }
    left, right = ends[side]
    return np.array([(*left, bottom), (*right, bottom), (*right, top), (*left, top)])


def _level(rect: Rect, z: float) -> Array:
    return np.array([(rect.x0, rect.y0, z), (rect.x1, rect.y0, z), (rect.x1, rect.y1, z), (rect.x0, rect.y1, z)])


def _mesh(quads: list[Array], token: str, seed: int) -> MeshPart:
    corners = np.concatenate([quad[[[0, 1, 2], [0, 2, 3]]] for quad in quads])
    area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    corners = corners[area > 1e-6]
    return surface_mesh(corners, flat_normals(corners), Surface.parse(token), seed)


def _boxes(boxes: list[tuple[Point3, Point3]]) -> tuple[Array, Array]:
    """Corners and normals of boxes, each standing on a point."""
    corners, normals = unit_shape("box")
    places = [corners * np.array(size) + np.array(base) for base, size in boxes]
    return np.concatenate(places), np.tile(normals, (len(boxes), 1, 1))


def _base(rect: Rect, z: float) -> Point3:
    return (*rect.center, z)
