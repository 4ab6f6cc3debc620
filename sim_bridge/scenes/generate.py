"""Furnished flats as scene folders.

A seed stands for one flat: plan, style, furniture, textures; the same seed writes the same bytes. A flat that a robot
cannot drive through, in which a room lacks what is indispensable for it, or that has no place for one of RoboTHOR's
object categories, is discarded and the seed's next attempt is taken.
"""

import math
import random
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy import ndimage

from robot_runtime.errors import SceneError, writing
from robot_runtime.scenes.occupancy_map import OccupancyMap
from robot_runtime.scenes.scene import Asset, Collision, Point3, Room, SceneFile, SceneObject
from sim_bridge.scenes.assets import AssetWriter
from sim_bridge.scenes.decompose import DecompositionSettings
from sim_bridge.scenes.furnish import Furnisher
from sim_bridge.scenes.furniture import Array, block, catalog, draw_style, flat_normals, unit_shape
from sim_bridge.scenes.layout import DOOR_HEIGHT_M, SIDES, FloorPlan, Opening, PlanRoom, Rect, Side, draw_plan
from sim_bridge.scenes.mesh_files import MeshPart
from sim_bridge.scenes.occupancy import occupancy_from_assets
from sim_bridge.scenes.pieces import Piece
from sim_bridge.scenes.placement import ROBOT_RADIUS_M, Placed, RoomPlanner
from sim_bridge.scenes.progress import Progress, silent
from sim_bridge.scenes.scene_files import save_scene_file
from sim_bridge.scenes.textures import Surface, surface_mesh
from sim_bridge.scenes.view_points import write_view_points

CEILING_M = 2.5
_DOOR_LANE_M = 0.22
_ATTEMPTS = 60
_TEXTURE_PX = 256


def generate_scene(folder: Path, seed: int, size: str = "robothor", report: Progress = silent) -> None:
    """Write a furnished flat as a scene folder (see :mod:`robot_runtime.scenes.scene`).

    Args:
        folder: Made if absent; must be empty; the scene is named after it.
        seed: Of everything random.
        size: Footprint of ``layout.SIZES``: ``robothor`` (8.8 x 3.9 m), ``medium`` (10 x 6.4), ``large`` (12 x 9).
        report: Receives the progress.

    Raises:
        SceneError: unknown size, a folder that is not empty, or no valid flat within the attempts.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise SceneError(f"{folder}: exists already", "name a new folder, or delete this one first")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with writing(folder), tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as scratch:
        report("plan and furniture", 0, 1)
        for number, flat in enumerate(flats(seed, size)):
            report("plan and furniture", 1, 1)
            draft = Path(scratch) / str(number)
            report("meshes and textures", 0, 1)
            replace(flat, file=replace(flat.file, name=folder.name)).write(draft)
            report("meshes and textures", 1, 1)
            view_points = write_view_points(draft, report)
            if {item.category for item in flat.file.objects if item.id in view_points}.issuperset(catalog().goals):
                # Only complete scenes appear under the folder's own name.
                draft.replace(folder)
                return
    raise SceneError(f"{folder}: seed {seed} gives no valid flat of size {size!r}", "use another seed")


@dataclass(frozen=True)
class Flat:
    """A flat before it is written."""

    file: SceneFile
    pieces: list[Piece]
    map: OccupancyMap

    def write(self, folder: Path) -> None:
        """Write everything but the view points into a new folder."""
        (folder / "assets").mkdir(parents=True)
        writer = AssetWriter(folder, DecompositionSettings(), _TEXTURE_PX, 0.0, CEILING_M)
        drawn = writer.write(self.pieces, silent)
        ids = {item.id for item in self.file.objects}
        assets = tuple(replace(asset, object=asset.name if asset.name in ids else None) for asset in drawn.assets)
        self.map.save(folder / "map.yaml")
        save_scene_file(folder / "scene.yaml", replace(self.file, materials=drawn.materials, assets=assets))


def flats(seed: int, size: str) -> Iterator[Flat]:
    """A seed's completely furnished flats that a robot can drive through; the first is the seed's flat.

    Raises:
        SceneError: unknown size.
    """
    for attempt in range(_ATTEMPTS):
        flat = _draw_flat(seed, size, random.Random(f"{size}:{seed}:{attempt}"))
        if flat is not None and everywhere_reachable(flat.map, flat.file):
            yield flat


def _draw_flat(seed: int, size: str, rng: random.Random) -> Flat | None:
    """A flat with everything in it; None if a piece that it needs found no place."""
    plan, style = draw_plan(size, rng), draw_style(rng)
    furnisher = Furnisher(style, rng)
    categories = [room.category for room in plan.rooms]
    desk_in = "study" if "study" in categories else rng.choice(("bedroom", "living_room"))
    rooms = [RoomPlanner(room, rng) for room in plan.rooms]
    if not all(furnisher.furnish(room, room.room.category == desk_in, CEILING_M) for room in rooms):
        return None
    if not furnisher.add_goals(rooms):
        return None
    pieces, objects, counts = list(building(plan, CEILING_M, style, rng, seed)), [], Counter[str]()
    planned = list(pieces)
    for room in rooms:
        for item in room.placed:
            name = item.model.category.lower()
            counts[name] += 1
            objects.append(_scene_object(item, f"{name}_{counts[name]}", room.room.id))
            design = item.model.design
            piece = Piece(objects[-1].id, item.model.name, item.matrix(), item.model.visuals(seed), design.contacts)
            pieces.append(piece)
            planned.append(replace(piece, contacts=design.collision))
    polygons = ((r, r.floor) for r in plan.rooms)
    file = SceneFile(
        schema=1,
        name=f"{size}_{seed}",
        rooms=tuple(
            Room(r.id, r.category, ((f.x0, f.y0), (f.x1, f.y0), (f.x1, f.y1), (f.x0, f.y1))) for r, f in polygons
        ),
        objects=tuple(objects),
        ceiling_m=CEILING_M,
        assets=tuple(map(_contact_asset, planned)),
        source={"generator": "sim_bridge.scenes.generate", "seed": seed, "size": size},
    )
    # The planned contact shapes are boxes, up to some centimeters wider than those that are written: no mesh is read.
    return Flat(file, pieces, occupancy_from_assets(Path(file.name), file))


def _contact_asset(piece: Piece) -> Asset:
    x, y, z = piece.matrix[:3, 3].tolist()
    half = math.atan2(piece.matrix[1, 0], piece.matrix[0, 0]) / 2
    shapes = tuple(shape for shape in piece.contacts if isinstance(shape, Collision))
    return Asset(piece.name, None, (x, y, z), (math.cos(half), 0.0, 0.0, math.sin(half)), (), shapes)


def _scene_object(item: Placed, object_id: str, room_id: str) -> SceneObject:
    """The object's entry with the tight box round its meshes."""
    low, high = item.model.design.bounds
    x, y = item.point(float(low[0] + high[0]) / 2, float(low[1] + high[1]) / 2)
    width, depth, height = (round(float(extent), 4) for extent in high - low)
    return SceneObject(
        object_id,
        item.model.category,
        (round(x, 4), round(y, 4), round(item.z + float(low[2] + high[2]) / 2, 4)),
        (width, depth, height),
        item.yaw_deg,
        room_id,
        item.model.color,
        item.model.design.movable,
    )


def everywhere_reachable(occupancy: OccupancyMap, file: SceneFile) -> bool:
    """Whether the robot's free space is one piece, and lanes of comfortable width lead into every room."""
    _, pieces = ndimage.label(occupancy.navigable(ROBOT_RADIUS_M))
    if pieces != 1:
        return False
    lanes, count = ndimage.label(occupancy.navigable(_DOOR_LANE_M))
    sizes = ndimage.sum_labels(lanes > 0, lanes, range(1, count + 1))
    main = lanes == 1 + int(sizes.argmax())
    for room in file.rooms:
        (x0, y0), (x1, y1) = room.polygon[0], room.polygon[2]
        low, high = occupancy.to_cell(x0, y0), occupancy.to_cell(x1, y1)
        if not main[low[0] : high[0], low[1] : high[1]].any():
            return False
    return True


# --- walls, doors and floors ----------------------------------------------------------------------------------------


_WALL_COLORS = ("white", "cream", "sand", "sage", "sky", "rose", "mist", "beige")
_FACE_M = 0.002  # distance of a room's wall face from the wall


def building(
    plan: FloorPlan, ceiling_m: float, style: Mapping[str, str], rng: random.Random, seed: int
) -> Iterator[Piece]:
    """The walls with their contact boxes, and each room's floor, ceiling, baseboards and windows, as pieces."""
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
