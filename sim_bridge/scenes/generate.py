"""Furnished flats as scene folders.

A seed stands for one flat: plan, style, furniture, textures; the same seed writes the same bytes. A flat that a robot
cannot drive through, in which a room lacks what is indispensable for it, or that has no place for one of RoboTHOR's
object categories, is discarded and the seed's next attempt is taken.
"""

from __future__ import annotations

import math
import random
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from scipy import ndimage

from robot_runtime.errors import SceneError
from robot_runtime.scenes.occupancy_map import OccupancyMap
from robot_runtime.scenes.scene import Asset, Collision, Room, SceneFile, SceneObject
from sim_bridge.scenes.assets import AssetWriter
from sim_bridge.scenes.building import building
from sim_bridge.scenes.decompose import DecompositionSettings
from sim_bridge.scenes.furnish import Furnisher
from sim_bridge.scenes.furniture import catalog, draw_style
from sim_bridge.scenes.layout import draw_plan
from sim_bridge.scenes.occupancy import occupancy_from_assets
from sim_bridge.scenes.pieces import Piece
from sim_bridge.scenes.placement import ROBOT_RADIUS_M, Placed, RoomPlanner
from sim_bridge.scenes.progress import Progress, silent
from sim_bridge.scenes.scene_files import save_scene_file
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
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as scratch:
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
    """A flat before it is written.

    Attributes:
        file: The scene; its assets have contact shapes only.
        pieces: Building and furniture with their surfaces.
        map: Its occupancy.
    """

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
    for room in rooms:
        for item in room.placed:
            name = item.model.category.lower()
            counts[name] += 1
            objects.append(_scene_object(item, f"{name}_{counts[name]}", room.room.id))
            pieces.append(
                Piece(
                    objects[-1].id,
                    item.model.name,
                    item.matrix(),
                    item.model.visuals(seed),
                    item.model.design.collision,
                )
            )
    polygons = ((r, r.floor) for r in plan.rooms)
    file = SceneFile(
        schema=1,
        name=f"{size}_{seed}",
        rooms=tuple(
            Room(r.id, r.category, ((f.x0, f.y0), (f.x1, f.y0), (f.x1, f.y1), (f.x0, f.y1))) for r, f in polygons
        ),
        objects=tuple(objects),
        ceiling_m=CEILING_M,
        assets=tuple(map(_contact_asset, pieces)),
        source={"generator": "sim_bridge.scenes.generate", "seed": seed, "size": size},
    )
    # The contact shapes are boxes: no mesh file is read.
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
