"""Generate furnished flats as scene folders.

``generate_scene(folder, seed, size)`` is the whole interface. A seed stands for one flat: plan, style, furniture,
textures; the same seed writes the same bytes. A flat that a robot cannot drive through, in which a room lacks what
makes it that room, or that has no place for one of RoboTHOR's object categories, is thrown away and the seed's next
attempt is taken.
"""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from scipy import ndimage

from robot_runtime.errors import SceneError
from robot_runtime.scenes.occupancy_map import OccupancyMap
from robot_runtime.scenes.scene import Asset, Room, SceneFile
from sim_bridge.scenes import shell
from sim_bridge.scenes.furnish import FURNISH
from sim_bridge.scenes.furniture import decor
from sim_bridge.scenes.furniture.kit import Surface
from sim_bridge.scenes.goals import GOALS, goal_objects
from sim_bridge.scenes.layout import FloorPlan, draw_plan
from sim_bridge.scenes.occupancy import occupancy_from_assets
from sim_bridge.scenes.passage import ROBOT_RADIUS_M
from sim_bridge.scenes.placement import RoomPlanner
from sim_bridge.scenes.progress import Progress, silent
from sim_bridge.scenes.rect import SIDES
from sim_bridge.scenes.scene_files import save_scene_file
from sim_bridge.scenes.scene_writer import AssetStore, object_asset, scene_object
from sim_bridge.scenes.style import Style, draw_style
from sim_bridge.scenes.view_points import write_view_points

CEILING_M = 2.5
_INDISPENSABLE = {
    "living_room": ("sofa",),
    "kitchen": ("sink", "stove", "refrigerator"),
    "bedroom": ("bed",),
    "bathroom": ("toilet", "sink"),
    "study": ("desk", "chair"),
}
_DOOR_LANE_M = 0.22
_ATTEMPTS = 60


@dataclass(frozen=True)
class _Furnished:
    """A floor plan with everything in its rooms."""

    plan: FloorPlan
    style: Style
    rooms: list[RoomPlanner]


def generate_scene(folder: Path, seed: int, size: str = "robothor", report: Progress = silent) -> None:
    """Write a furnished flat as a scene folder (see :mod:`robot_runtime.scenes.scene`).

    Args:
        folder: made if absent; must hold nothing yet; the scene is called like it. seed: of everything random.
        size: a footprint of ``layout.SIZES``: ``robothor`` (8.8 x 3.9 m), ``medium`` (10 x 6.4), ``large`` (12 x 9).

    Raises:
        SceneError: unknown size, a folder that is not empty, or no valid flat within the attempts.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise SceneError(f"{folder}: is there already", "name a new folder, or delete this one first")
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
            if {item.category for item in flat.file.objects if item.id in view_points}.issuperset(GOALS):
                # Only whole scenes appear under the folder's own name.
                draft.replace(folder)
                return
    raise SceneError(f"{folder}: seed {seed} gives no valid flat of size {size!r}", "use another seed")


@dataclass(frozen=True)
class Flat:
    """A flat before it is written.

    Attributes:
        store: its meshes and textures. map: its occupancy.
    """

    file: SceneFile
    store: AssetStore
    map: OccupancyMap
    seed: int

    def write(self, folder: Path) -> None:
        """Write everything but the view points into a new folder."""
        folder.mkdir()
        self.store.write(folder, self.seed)
        self.map.save(folder / "map.yaml")
        save_scene_file(folder / "scene.yaml", self.file)


def flats(seed: int, size: str) -> Iterator[Flat]:
    """A seed's flats that are furnished in full and that a robot can drive through, best taken the first.

    Raises:
        SceneError: unknown size.
    """
    for attempt in range(_ATTEMPTS):
        rng = random.Random(f"{size}:{seed}:{attempt}")
        furnished = _furnish(size, rng)
        if furnished is None:
            continue
        store = AssetStore()
        file = _scene_file(furnished, store, rng, seed, size)
        # The contact shapes are boxes and cylinders: no mesh file is read.
        occupancy = occupancy_from_assets(Path(file.name), file)
        if everywhere_reachable(occupancy, file):
            yield Flat(file, store, occupancy, seed)


def _furnish(size: str, rng: random.Random) -> _Furnished | None:
    """A flat with everything in it; None when an object category found no place."""
    plan = draw_plan(size, rng)
    style = draw_style(rng)
    rooms = []
    categories = [room.category for room in plan.rooms]
    desk_in = "study" if "study" in categories else rng.choice(("bedroom", "living_room"))
    for room in plan.rooms:
        planner = RoomPlanner(room, rng, CEILING_M, with_desk=room.category == desk_in)
        FURNISH[room.category](planner, style)
        planner.from_ceiling(decor.ceiling_lamp(Surface(rng.choice(("white", "cream")))))
        rooms.append(planner)
    whole = all(_indispensable(planner) for planner in rooms) and not goal_objects(rooms, style)
    return _Furnished(plan, style, rooms) if whole else None


def _indispensable(planner: RoomPlanner) -> bool:
    kinds = {item.model.category for item in planner.placed}
    return kinds.issuperset(_INDISPENSABLE.get(planner.room.category, ()))


def _scene_file(flat: _Furnished, store: AssetStore, rng: random.Random, seed: int, size: str) -> SceneFile:
    outside = store.visuals("outside", shell.outside_parts(flat.plan, CEILING_M))
    assets = [Asset("walls", visual=outside, collision=shell.wall_collision(flat.plan, CEILING_M))]
    objects, counts = [], Counter[str]()
    for planner in flat.rooms:
        room = planner.room
        finish = flat.style.finish(room.category, rng)
        doors = Counter(door.side for door in room.doors)
        accent_side = min(SIDES, key=lambda side: (doors[side], rng.random()))
        parts = shell.room_parts(room, finish, CEILING_M, accent_side)
        assets.append(Asset(room.id, visual=store.visuals(room.id, parts)))
        for item in planner.placed:
            category = item.model.category.lower()
            counts[category] += 1
            object_id = f"{category}_{counts[category]}"
            objects.append(scene_object(item, object_id))
            assets.append(object_asset(item, object_id, store))
    rooms = tuple(
        Room(r.id, r.category, ((f.x0, f.y0), (f.x1, f.y0), (f.x1, f.y1), (f.x0, f.y1)))
        for r, f in ((r, r.floor) for r in flat.plan.rooms)
    )
    return SceneFile(
        schema=1,
        name=f"{size}_{seed}",
        rooms=rooms,
        objects=tuple(objects),
        ceiling_m=CEILING_M,
        materials=store.materials,
        assets=tuple(assets),
        source={"generator": "sim_bridge.scenes.generate", "seed": seed, "size": size},
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
