"""Scene: a folder with ``scene.yaml``, a ROS map, and optionally meshes.

A real test site has a map, rooms and an object list; meshes are for its simulation. The same folder scores the real run
and builds the simulation. All coordinates are in the ROS frame ``map`` (x, y in the floor plane, z up, floor at z = 0),
meters.

::

    my_flat/
      scene.yaml        this module's Scene
      map.yaml map.pgm  ROS map_server format, 2.5 cm per cell
      view_points.json  {object id: [[x, y, yaw], ...]} poses from which the object is visible within 1 m
      assets/           OBJ meshes and PNG textures, named relative to the folder
"""

import difflib
import hashlib
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from os.path import isfile  # which also answers for names that no file can have
from pathlib import Path
from typing import Literal

from robot_runtime.common import config
from robot_runtime.common.geometry import SE2
from robot_runtime.common.plugins import Registry
from robot_runtime.common.quantities import CeilingHeight
from robot_runtime.errors import SceneError
from robot_runtime.scenes.objects import ObjectPose
from robot_runtime.scenes.occupancy_map import OccupancyMap

VIEW_POINTS = "view_points.json"

BELOW_FLOOR_M = 0.5
"""Depth below the floor at which a thing belongs to the floor below; less is a threshold or an error of an import."""

Point2 = tuple[float, float]
Point3 = tuple[float, float, float]


@dataclass(frozen=True)
class Room(config.Strict):
    """A room: its polygon on the floor, counter-clockwise, not closed."""

    id: str
    category: str
    polygon: tuple[Point2, ...]

    def __post_init__(self) -> None:
        if len(self.polygon) < 3:
            raise ValueError(f"room {self.id!r}: a polygon needs at least 3 corners, got {len(self.polygon)}")

    def contains(self, x_m: float, y_m: float) -> bool:
        """Whether a point lies in the polygon (even-odd rule)."""
        inside = False
        for (x0, y0), (x1, y1) in zip(self.polygon, (*self.polygon[1:], self.polygon[0]), strict=True):
            if (y0 > y_m) != (y1 > y_m) and x_m < x0 + (y_m - y0) * (x1 - x0) / (y1 - y0):
                inside = not inside
        return inside

    @property
    def box(self) -> "Room":
        """The bounding box of the room along the axes of ``map``, as a room."""
        x, y = zip(*self.polygon, strict=True)
        corners = ((min(x), min(y)), (max(x), min(y)), (max(x), max(y)), (min(x), max(y)))
        return Room(self.id, self.category, corners)


@dataclass(frozen=True)
class SceneObject(config.Strict):
    """An object and its oriented box (rotated about z only).

    Attributes:
        center: center of the box.
        size: full edge lengths along the box's own axes.
        yaw_deg: heading of its x axis in ``map``.
    """

    id: str
    category: str
    center: Point3
    size: Point3
    yaw_deg: float = 0.0
    room: str | None = None
    color: str | None = None
    movable: bool = False

    def __post_init__(self) -> None:
        if min(self.size) < 0:
            raise ValueError(f"object {self.id!r}: sizes cannot be negative, got {list(self.size)}")

    def is_on_floor(self, ceiling_m: float) -> bool:
        """Whether the box is, at least in part, between the floor at z = 0 (or little below) and a ceiling."""
        half_m = self.size[2] / 2
        return self.center[2] - half_m < ceiling_m and self.center[2] + half_m > -BELOW_FLOOR_M

    @property
    def pose(self) -> ObjectPose:
        """Pose of the box."""
        return ObjectPose.upright(self.center, math.radians(self.yaw_deg))

    def distance_m(self, x_m: float, y_m: float) -> float:
        """Distance in the plane from a point to the object's box; 0 inside."""
        box = SE2(self.center[0], self.center[1], math.radians(self.yaw_deg))
        local = SE2(x_m, y_m).relative_to(box)
        beyond = (abs(local.x_m) - self.size[0] / 2, abs(local.y_m) - self.size[1] / 2)
        return math.hypot(max(beyond[0], 0.0), max(beyond[1], 0.0))


@dataclass(frozen=True)
class Material(config.Strict):
    """Appearance of a surface: a texture times rgba, or rgba alone.

    Attributes:
        texture: PNG file, relative to the folder.
        emission: fraction of the color that needs no light, because photographed surfaces contain their lighting.
    """

    texture: str | None = None
    rgba: tuple[float, float, float, float] = (1.0, 1.0, 1.0, 1.0)
    specular: float = 0.1
    emission: float = 0.0


@dataclass(frozen=True)
class Visual(config.Strict):
    """A mesh in the asset's own frame, and its material.

    Attributes:
        mesh: OBJ file with texture coordinates, relative to the folder.
    """

    mesh: str
    material: str


@dataclass(frozen=True)
class Collision(config.Strict):
    """A convex contact shape in the asset's own frame.

    Attributes:
        shape: ``box`` (size = full edges), ``cylinder`` (size = diameter, diameter, height; axis z), ``mesh`` (hull).
        mesh: OBJ file of the hull, relative to the folder.
    """

    shape: Literal["box", "cylinder", "mesh"]
    center: Point3 = (0.0, 0.0, 0.0)
    size: Point3 = (0.0, 0.0, 0.0)
    yaw_deg: float = 0.0
    mesh: str | None = None

    def __post_init__(self) -> None:
        if (self.shape == "mesh") != (self.mesh is not None):
            raise ValueError(f"'mesh' names the file of a shape 'mesh' and of no other, got {self.mesh!r}")
        if self.shape != "mesh" and min(self.size) <= 0:
            raise ValueError(f"a {self.shape} needs a positive size, got {list(self.size)}")


@dataclass(frozen=True)
class Asset(config.Strict):
    """A rigid body for rendering and collision.

    Attributes:
        object: id of its SceneObject; None for structure (walls, floor).
        position: position of the asset's frame in ``map``.
        quaternion: its rotation, w, x, y, z.
    """

    name: str
    object: str | None = None
    position: Point3 = (0.0, 0.0, 0.0)
    quaternion: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)
    visual: tuple[Visual, ...] = ()
    collision: tuple[Collision, ...] = ()


@dataclass(frozen=True)
class Frames(config.Strict):
    """Named planar frames of the scene: name -> [x, y, yaw_deg] in map."""

    named: dict[str, tuple[float, float, float]] = field(default_factory=dict)

    def pose(self, name: str) -> SE2:
        """The origin of a named frame in ``map``. Raises ``SceneError`` naming the known frames."""
        if name not in self.named:
            known = ", ".join(sorted(self.named)) or "none"
            raise SceneError(f"the scene has no frame {name!r}", f"add it to 'frames' in scene.yaml; it has: {known}")
        x_m, y_m, yaw_deg = self.named[name]
        return SE2(x_m, y_m, math.radians(yaw_deg))


@dataclass(frozen=True)
class SceneFile(config.Strict):
    """The content of ``scene.yaml``.

    Attributes:
        schema: version of this format, 1.
        map: file of the occupancy map.
        source: origin: generator and seed, or imported file, tool version and license. Free form.
        ceiling_m: height of the ceiling, for the simulator's light and walls.
    """

    schema: Literal[1]
    name: str
    rooms: tuple[Room, ...]
    objects: tuple[SceneObject, ...]
    map: str = "map.yaml"
    ceiling_m: CeilingHeight = 2.5
    frames: Frames = field(default_factory=Frames)
    materials: dict[str, Material] = field(default_factory=dict)
    assets: tuple[Asset, ...] = ()
    source: dict[str, str | int | float] = field(default_factory=dict)


@dataclass(frozen=True)
class Scene:
    """A loaded scene folder.

    Attributes:
        view_points: poses (map) from which an object is visible within 1 m of its box, by object id.
        digest: sha256 over scene.yaml, the map's cells and the view points; stored in logs.
    """

    folder: Path
    file: SceneFile
    map: OccupancyMap
    view_points: dict[str, tuple[SE2, ...]]
    digest: str

    @property
    def name(self) -> str:
        """Name of the scene."""
        return self.file.name

    @property
    def rooms(self) -> tuple[Room, ...]:
        """The rooms."""
        return self.file.rooms

    @property
    def floor_z_m(self) -> float:
        """Height of the floor in the frame of the file that the scene was imported from, which its episodes have."""
        return 0.0 - float(self.file.source.get("floor_shift_m", 0.0))

    @property
    def objects(self) -> tuple[SceneObject, ...]:
        """The objects."""
        return self.file.objects

    def object(self, object_id: str) -> SceneObject:
        """The object of that id. Raises ``SceneError`` naming the nearest ids."""
        for item in self.objects:
            if item.id == object_id:
                return item
        close = difflib.get_close_matches(object_id, [item.id for item in self.objects], n=3)
        raise SceneError(
            f"{self.folder}: there is no object {object_id!r}",
            f"did you mean one of: {', '.join(close)}?" if close else "list them with `robot-runtime scene info`",
        )

    def instances(self, category: str) -> tuple[SceneObject, ...]:
        """All objects of a category."""
        return tuple(item for item in self.objects if item.category == category)

    def room_of(self, item: SceneObject) -> Room | None:
        """The room that an object names, else the first by id that contains its center; None without one."""
        x_m, y_m, _ = item.center
        around = [r for r in self.rooms if (r.contains(x_m, y_m) if item.room is None else r.id == item.room)]
        return min(around, key=lambda room: room.id, default=None)


SCENES: Registry[Callable[[], Path]] = Registry("robot_runtime.scenes", "bundled scene")
"""Bundled scenes by name: functions that return the scene's folder."""


def find_scene(name_or_path: str) -> Path:
    """The folder of a scene, given its path or the name of a bundled one.

    Raises:
        SceneError: no such folder or bundled scene; names the bundled ones.
        PluginError: the package that offers the scene cannot be used.
    """
    path = Path(name_or_path)
    if path.is_dir():
        return path
    bundled = SCENES.find(name_or_path)
    if bundled is not None:
        return bundled()
    raise SceneError(
        f"{name_or_path}: no such scene folder",
        f"give a folder, or one of the bundled scenes: {', '.join(sorted(SCENES))}; "
        "`robot-runtime scene generate` and `scene import` make new ones",
    )


def load_scene(place: Path | str) -> Scene:
    """Read and check a scene.

    Args:
        place: its folder, or as text what :func:`find_scene` takes.

    Raises:
        SceneError: no folder, no scene.yaml, no map, dangling references; names the file and the remedy.
        ConfigError: malformed YAML; names file and field.
    """
    folder = find_scene(place) if isinstance(place, str) else place
    file_path = folder / "scene.yaml"
    if not folder.is_dir():
        raise SceneError(
            f"{folder}: no such scene folder", "make one with `robot-runtime scene generate` or `scene import`"
        )
    if not file_path.is_file():
        raise SceneError(
            f"{folder}: has no scene.yaml",
            "make a scene of a robot's map with `robot-runtime scene from-map map.yaml --out FOLDER`, or another with "
            "`scene generate` or `scene import`",
        )
    file = config.load(file_path, SceneFile)
    map_path = folder / file.map
    if not isfile(map_path):
        raise SceneError(
            f"{file_path}: field 'map' names {file.map!r}, a missing file",
            "save the robot's map there with map_saver, or import the scene's mesh again",
        )
    occupancy = OccupancyMap.load(map_path)
    _check_references(file_path, folder, file)
    _check_rooms(file_path, file, occupancy)
    view_points_path = folder / VIEW_POINTS
    view_points = _load_view_points(view_points_path, file) if view_points_path.is_file() else {}
    digest = hashlib.sha256(file_path.read_bytes())
    digest.update(occupancy.to_pgm())
    if view_points:
        digest.update(view_points_path.read_bytes())
    return Scene(folder, file, occupancy, view_points, digest.hexdigest())


def _check_references(path: Path, folder: Path, file: SceneFile) -> None:
    rooms = {room.id for room in file.rooms}
    objects = {item.id for item in file.objects}
    for item in file.objects:
        if item.room is not None and item.room not in rooms:
            raise SceneError(f"{path}: object {item.id!r}: room {item.room!r} is not in 'rooms'", "correct its 'room'")
    for kind, ids in (("room", [r.id for r in file.rooms]), ("object", [o.id for o in file.objects])):
        repeated = sorted({i for i in ids if ids.count(i) > 1})
        if repeated:
            raise SceneError(f"{path}: two {kind}s share the id {repeated[0]!r}", f"give every {kind} an id of its own")
    files: set[str] = {m.texture for m in file.materials.values() if m.texture}
    for asset in file.assets:
        if asset.object is not None and asset.object not in objects:
            raise SceneError(f"{path}: asset {asset.name!r}: object {asset.object!r} is not in 'objects'", "correct it")
        for visual in asset.visual:
            if visual.material not in file.materials:
                raise SceneError(
                    f"{path}: asset {asset.name!r}: material {visual.material!r} is not in 'materials'", "add it there"
                )
            files.add(visual.mesh)
        files.update(c.mesh for c in asset.collision if c.mesh is not None)
    for name in sorted(files):
        if not isfile(folder / name):
            raise SceneError(f"{path}: names {name!r}, a missing file", "restore the file or import the scene again")


def _check_rooms(path: Path, file: SceneFile, occupancy: OccupancyMap) -> None:
    (low_x, low_y), (width, depth) = (occupancy.origin_x_m, occupancy.origin_y_m), occupancy.size_m
    for room in file.rooms:
        where = f"{path}: room {room.id!r}"
        if crossing := next(_crossings(room.polygon), None):
            raise SceneError(
                f"{where}: its edges {crossing[0]} and {crossing[1]} cross each other",
                "list the corners in their order along the walls",
            )
        x, y = zip(*room.polygon, strict=True)
        if max(x) < low_x or min(x) > low_x + width or max(y) < low_y or min(y) > low_y + depth:
            raise SceneError(
                f"{where}: lies off the map, which spans x {low_x:.2f} to {low_x + width:.2f} m and "
                f"y {low_y:.2f} to {low_y + depth:.2f} m",
                "give its corners in meters in the frame of the map, whose origin is in map.yaml",
            )


def _load_view_points(path: Path, file: SceneFile) -> dict[str, tuple[SE2, ...]]:
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        points = {
            str(object_id): tuple(SE2(float(x), float(y), float(yaw)) for x, y, yaw in poses)
            for object_id, poses in raw.items()
        }
        if not all(math.isfinite(n) for poses in points.values() for p in poses for n in (p.x_m, p.y_m, p.yaw_rad)):
            raise ValueError("not every number is finite")
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise SceneError(
            f"{path}: is not {{object id: [[x, y, yaw], ...]}}: {error}",
            f"compute it again with `robot-runtime scene view-points {path.parent}`",
        ) from error
    unknown = points.keys() - {item.id for item in file.objects}
    if unknown:
        raise SceneError(
            f"{path}: names unknown objects: {', '.join(sorted(unknown))}",
            f"compute it again with `robot-runtime scene view-points {path.parent}`",
        )
    return points


def _crossings(polygon: Sequence[Point2]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of a polygon's edges that cross between their ends, as texts."""
    edges = list(zip(polygon, (*polygon[1:], polygon[0]), strict=True))
    for (a, b), (c, d) in combinations(edges, 2):
        if _side(a, b, c) * _side(a, b, d) < 0 and _side(c, d, a) * _side(c, d, b) < 0:
            yield f"{list(a)} to {list(b)}", f"{list(c)} to {list(d)}"


def _side(a: Point2, b: Point2, point: Point2) -> float:
    """Positive left of the line from a to b, negative right of it."""
    return (b[0] - a[0]) * (point[1] - a[1]) - (b[1] - a[1]) * (point[0] - a[0])
