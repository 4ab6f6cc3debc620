"""Houses in MuJoCo's own format (MJCF), such as those of MolmoSpaces: ``FloorPlan1_physics.xml``, ``train_7.xml``.

MuJoCo compiles the file, with its includes, defaults, meshes and textures. The pieces are the bodies of the world and
the objects of ``NAME_metadata.json``, as they are placed (``qpos0``), each with what hangs on it. That file gives the
objects their categories; where it does not, the name of a body does, without digest and counters.
``NAME_ceiling.xml``, if it is there, is read in place of ``NAME.xml``: it is the same house with its ceiling.

Format: https://mujoco.readthedocs.io/en/stable/XMLreference.html. Layout of the houses: allenai/molmospaces 1320b26.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import shapely
from numpy.typing import NDArray
from PIL import Image
from scipy.spatial import ConvexHull, QhullError

from robot_runtime.common.config import unique_keys
from robot_runtime.errors import SceneError
from robot_runtime.scenes.scene import Collision, Room
from sim_bridge.scenes.mesh_checks import MAX_TRIANGLES
from sim_bridge.scenes.mesh_files import Appearance, MeshPart
from sim_bridge.scenes.pieces import Piece, all_triangles

Array = NDArray[np.float64]

MAX_ELEMENTS = 200_000
"""Bodies and geoms of a house and its includes: more compile for minutes."""

LARGEST_M = 300.0
"""Width of the largest house. One in millimeters is a thousand times as wide."""

_VISIBLE_GROUPS = 3
"""MuJoCo's viewers show the geoms of groups 0 to 2; contact shapes are usually in a higher one."""

_SUFFIX = re.compile(r"_[0-9a-f]{16,}.*$|(_\d+)+$")
_ROOM = re.compile(r"^room_\w+$")
_FLOOR = re.compile(r"floor|ground|^room_", re.IGNORECASE)
_WALL = re.compile(r"wall", re.IGNORECASE)
_DOOR = re.compile(r"door", re.IGNORECASE)

_DOOR_RIM_M, _DOOR_REACH_M = 0.1, 0.15
"""A frame may cover the rim of a door; walls are looked for this far in front of it and behind it."""


def is_mjcf(path: Path) -> bool:
    """Whether an XML file is MuJoCo's, by its outermost element."""
    try:
        with path.open("rb") as stream:
            return str(next(ElementTree.iterparse(stream, ("start",)))[1].tag) == "mujoco"
    except (ElementTree.ParseError, StopIteration, OSError, ValueError):
        return False


class House:
    """A compiled house.

    Raises:
        SceneError: the file, or one that it includes, is missing, malformed, too large, or refused by MuJoCo.
    """

    def __init__(self, path: Path, notes: list[str]) -> None:
        import mujoco

        ceiling = path.with_name(f"{path.stem}_ceiling{path.suffix}")
        self.path = ceiling if ceiling.is_file() else path
        self._notes = notes
        _check_files(self.path)
        try:
            self._model = mujoco.MjModel.from_xml_path(str(self.path))
        except ValueError as error:
            raise SceneError(
                f"{self.path}: MuJoCo {mujoco.__version__} refuses it: {' '.join(str(error).split()):.500}",
                "correct the element that it names, or restore the file that is missing",
            ) from error
        self._data = mujoco.MjData(self._model)
        mujoco.mj_kinematics(self._model, self._data)
        self._types = mujoco.mjtGeom
        self._objects = _metadata(path)
        self._images: dict[int, Image.Image] = {}

    def pieces(self) -> list[Piece]:
        """The bodies of the world, each with what hangs on it. Raises ``SceneError``."""
        model = self._model
        owner = self._owners()
        geoms: dict[int, list[int]] = {body: [] for body in owner}
        for geom in range(model.ngeom):
            geoms[owner[model.geom_bodyid[geom]]].append(geom)
        found = [self._piece(body, members) for body, members in sorted(geoms.items()) if body and members]
        found += [self._fixed(geom) for geom in geoms.get(0, ())]
        pieces = [piece for piece in found if piece.visuals or piece.contacts]
        self._check(pieces)
        self._notes += [
            f"{self.path.name}: {door} stands in {wall}, which has no opening there"
            for door, wall in _walled_up(pieces)
        ]
        self._list_unread(geoms)
        return pieces

    def _owners(self) -> list[int]:
        """By body, the one whose piece it belongs to: the nearest that the metadata name, else the one in the world."""
        owners = [0]
        for body in range(1, self._model.nbody):
            parent = int(self._model.body_parentid[body])
            own = parent == 0 or self._model.body(body).name in self._objects
            owners.append(body if own else owners[parent])
        return owners

    def rooms(self) -> tuple[Room, ...]:
        """The outlines of the bodies ``room_N``, seen from above; none if the house does not have them."""
        rooms = []
        for body in range(1, self._model.nbody):
            name = self._model.body(body).name
            members = np.flatnonzero(self._model.geom_bodyid == body)
            if not _ROOM.match(name) or not len(members):
                continue
            flat = np.concatenate([self._triangles(int(geom)) for geom in members])[..., :2]
            area = shapely.union_all(shapely.polygons(flat), grid_size=1e-3)
            outline = max(shapely.get_parts(area), key=lambda part: float(part.area), default=None)
            if outline is not None and outline.geom_type == "Polygon":
                ring = shapely.geometry.polygon.orient(outline.simplify(0.01)).exterior.coords[:-1]
                rooms.append(Room(name, "room", tuple((round(x, 3), round(y, 3)) for x, y in ring)))
        return tuple(rooms)

    # --- pieces -----------------------------------------------------------------------------------------------------

    def _piece(self, root: int, members: list[int]) -> Piece:
        name = self._model.body(root).name or f"body_{root}"
        info = self._objects.get(name, {})
        kind = "floor" if _ROOM.match(name) else str(info.get("category") or _SUFFIX.sub("", name))
        matrix = np.eye(4)
        matrix[:3, :3] = self._data.xmat[root].reshape(3, 3)
        matrix[:3, 3] = self._data.xpos[root]
        has_joint = bool(self._model.body_jntnum[root])
        movable = has_joint if info.get("is_static") is None else not info["is_static"]
        return self._made(name, kind, matrix, members, movable)

    def _fixed(self, geom: int) -> Piece:
        """A geom that stands in the world itself."""
        name = self._model.geom(geom).name or f"geom_{geom}"
        return self._made(name, _SUFFIX.sub("", name), np.eye(4), [geom], movable=False)

    def _made(self, name: str, kind: str, matrix: Array, members: list[int], movable: bool) -> Piece:
        visuals: list[MeshPart] = []
        contacts: list[Array | Collision] = []
        inverse = np.linalg.inv(matrix).astype(np.float64)
        for geom in members:
            if self._is_shown(geom):
                visuals.append(self._surface(geom).moved(inverse))
            if self._model.geom_contype[geom] or self._model.geom_conaffinity[geom]:
                contacts += self._contact(geom, inverse)
        return Piece(name, kind, matrix, tuple(visuals), tuple(contacts), movable)

    def _is_shown(self, geom: int) -> bool:
        return bool(self._model.geom_group[geom] < _VISIBLE_GROUPS and self._rgba(geom)[3] > 0)

    def _contact(self, geom: int, inverse: Array) -> list[Array | Collision]:
        """The contact shape of a geom in the piece's frame; MuJoCo hulls every mesh. A plane is the floor: none."""
        kind, size = self._types(int(self._model.geom_type[geom])), self._model.geom_size[geom].tolist()
        if kind == self._types.mjGEOM_PLANE:
            return []
        place = inverse @ self._place(geom)
        if abs(place[2, 2]) > 1 - 1e-9 and kind in (self._types.mjGEOM_BOX, self._types.mjGEOM_CYLINDER):
            x, y, z = place[:3, 3].tolist()
            yaw_deg = float(np.degrees(np.arctan2(place[1, 0], place[0, 0])))
            if kind == self._types.mjGEOM_BOX:
                return [Collision("box", (x, y, z), (2 * size[0], 2 * size[1], 2 * size[2]), yaw_deg)]
            return [Collision("cylinder", (x, y, z), (2 * size[0], 2 * size[0], 2 * size[1]))]
        triangles = self._triangles(geom) @ inverse[:3, :3].T + inverse[:3, 3]
        if kind == self._types.mjGEOM_MESH:
            points = np.unique(triangles.reshape(-1, 3), axis=0)
            try:
                hull = ConvexHull(points)
            except QhullError:  # flat
                return [triangles]
            triangles = points[hull.simplices]
            outward = np.einsum("nd,nd->n", np.cross(*_edges(triangles)), hull.equations[:, :3]) > 0
            triangles = np.where(outward[:, None, None], triangles, triangles[:, ::-1])
        return [triangles]

    # --- surfaces ---------------------------------------------------------------------------------------------------

    def _place(self, geom: int) -> Array:
        matrix = np.eye(4)
        matrix[:3, :3] = self._data.geom_xmat[geom].reshape(3, 3)
        matrix[:3, 3] = self._data.geom_xpos[geom]
        return matrix

    def _triangles(self, geom: int) -> Array:
        """Triangles (M, 3, 3) of a geom in the world."""
        place = self._place(geom)
        return np.asarray(self._own_triangles(geom) @ place[:3, :3].T + place[:3, 3])

    def _own_triangles(self, geom: int) -> Array:
        import trimesh

        model, types = self._model, self._types
        kind, size = types(int(model.geom_type[geom])), model.geom_size[geom]
        mesh: Any
        if kind == types.mjGEOM_MESH:
            number = model.geom_dataid[geom]
            start, count = model.mesh_faceadr[number], model.mesh_facenum[number]
            vertices = model.mesh_vert[model.mesh_vertadr[number] :][: model.mesh_vertnum[number]]
            return np.asarray(vertices[model.mesh_face[start : start + count]], np.float64)
        if kind == types.mjGEOM_PLANE:
            x, y = (float(half) or self._half_width() for half in size[:2])
            return np.array([[[-x, -y, 0.0], [x, -y, 0], [x, y, 0]], [[-x, -y, 0], [x, y, 0], [-x, y, 0]]])
        if kind == types.mjGEOM_BOX:
            mesh = trimesh.creation.box(2 * size)
        elif kind == types.mjGEOM_CYLINDER:
            mesh = trimesh.creation.cylinder(size[0], 2 * size[1], sections=32)
        elif kind == types.mjGEOM_CAPSULE:
            mesh = trimesh.creation.capsule(2 * size[1], size[0], count=(16, 16))
            mesh.apply_translation(-mesh.bounds.mean(axis=0))
        elif kind in (types.mjGEOM_SPHERE, types.mjGEOM_ELLIPSOID):
            mesh = trimesh.creation.icosphere(subdivisions=2)
            mesh.apply_scale(size if kind == types.mjGEOM_ELLIPSOID else size[0])
        else:
            return np.zeros((0, 3, 3))
        return np.asarray(mesh.triangles, np.float64)

    def _half_width(self) -> float:
        """Half of the extent of a plane without an end: as far as anything else."""
        placed = self._data.geom_xpos[self._model.geom_type != self._types.mjGEOM_PLANE]
        return 2.0 + (float(np.abs(placed[:, :2]).max()) if len(placed) else 3.0)

    def _surface(self, geom: int) -> MeshPart:
        model = self._model
        number = model.geom_dataid[geom] if model.geom_type[geom] == self._types.mjGEOM_MESH else -1
        uv = None
        image, image_name = self._texture(geom)
        if image is not None and number >= 0 and model.mesh_texcoordnum[number]:
            start, count = model.mesh_faceadr[number], model.mesh_facenum[number]
            coordinates = model.mesh_texcoord[model.mesh_texcoordadr[number] :][: model.mesh_texcoordnum[number]]
            uv = np.asarray(coordinates[model.mesh_facetexcoord[start : start + count]], np.float64)
            uv = uv * model.mat_texrepeat[model.geom_matid[geom]]
            uv[..., 1] = 1 - uv[..., 1]  # MuJoCo counts from the first row
        rgba = self._rgba(geom)
        if image is not None and uv is None:
            r, g, b = (np.asarray(image.convert("RGB"), np.float64).mean(axis=(0, 1)) / 255 * rgba[:3]).tolist()
            image, rgba = None, (r, g, b, rgba[3])
        return MeshPart("", self._triangles(geom), None, uv, Appearance(image, image_name, rgba))

    def _rgba(self, geom: int) -> tuple[float, float, float, float]:
        material = self._model.geom_matid[geom]
        r, g, b, a = (self._model.mat_rgba[material] if material >= 0 else self._model.geom_rgba[geom]).tolist()
        return r, g, b, a

    def _texture(self, geom: int) -> tuple[Image.Image | None, str]:
        """The image of a geom's material and its name; none for a cube map."""
        import mujoco

        model, material = self._model, self._model.geom_matid[geom]
        number = -1 if material < 0 else int(model.mat_texid[material, mujoco.mjtTextureRole.mjTEXROLE_RGB])
        if number < 0 or model.tex_type[number] != mujoco.mjtTexture.mjTEXTURE_2D:
            return None, ""
        if number not in self._images:
            height, width, channels = (
                int(values[number]) for values in (model.tex_height, model.tex_width, model.tex_nchannel)
            )
            data = model.tex_data[model.tex_adr[number] :][: height * width * channels].reshape(height, width, channels)
            self._images[number] = Image.fromarray(np.ascontiguousarray(data[..., :3]))
        return self._images[number], model.tex(number).name

    # --- what is not as it should be ----------------------------------------------------------------------------------

    def _check(self, pieces: list[Piece]) -> None:
        if not pieces:
            raise SceneError(f"{self.path}: has no geoms", "give a house with its assets")
        count = sum(len(part.corners) for piece in pieces for part in piece.visuals)
        if count > MAX_TRIANGLES:
            raise SceneError(
                f"{self.path}: {count:,} triangles, at most {MAX_TRIANGLES:,} can be simulated", "decimate it"
            )
        for piece in pieces:
            points = piece.world_points()
            if len(points) and float(np.ptp(points, axis=0).max()) > LARGEST_M:
                raise SceneError(
                    f"{self.path}: {piece.name} is {float(np.ptp(points, axis=0).max()):,.0f} m wide",
                    "give its mesh scale='0.001 0.001 0.001' if it is in millimeters",
                )
        if not any(_FLOOR.search(piece.name) or _FLOOR.search(piece.kind) for piece in pieces):
            raise SceneError(
                f"{self.path}: has no floor: no plane, body or geom named floor, ground or room_N",
                "add <geom name='floor' type='plane' size='0 0 1'/> to its worldbody",
            )

    def _list_unread(self, geoms: Mapping[int, list[int]]) -> None:
        """Note everything of the file that does not become part of the scene."""
        model = self._model
        numbers = {
            "joints: everything stands as it is placed": model.njnt,
            "lights": model.nlight,
            "cameras": model.ncam,
            "sites": model.nsite,
            "tendons": model.ntendon,
            "equality constraints": model.neq,
            "actuators": model.nu,
            "sensors": model.nsensor,
            "skins": model.nskin,
            "flexible bodies": model.nflex,
        }
        known = {int(getattr(self._types, f"mjGEOM_{name}")) for name in _GEOMS}
        others = Counter(self._types(int(kind)).name for kind in model.geom_type if int(kind) not in known)
        numbers |= {f"geoms of type {name.removeprefix('mjGEOM_').lower()}": count for name, count in others.items()}
        self._notes += [f"{self.path.name}: not read: {what} ({count})" for what, count in numbers.items() if count]
        names = [model.body(body).name for body in range(model.nbody)]
        for body in sorted(set(self._owners()) - {0}):
            if not geoms[body]:
                self._notes.append(f"{self.path.name}: body {names[body]!r} has no geoms; left out")
        for name in sorted(self._objects.keys() - set(names)):
            self._notes.append(f"{self.path.name}: the metadata names {name!r}, which is not in the house")
        named: dict[str, list[str]] = {}
        for name, item in self._objects.items():
            named.setdefault(str(item.get("object_id") or name), []).append(name)
        for identifier, bodies in named.items():
            if len(bodies) > 1:
                self._notes.append(f"{self.path.name}: {', '.join(bodies)} have one object_id, {identifier!r}")


_GEOMS = ("MESH", "PLANE", "BOX", "CYLINDER", "CAPSULE", "SPHERE", "ELLIPSOID")


def _walled_up(pieces: Sequence[Piece]) -> Iterator[tuple[str, str]]:
    """Yield the names of each door and a wall that covers more than half of its face."""
    walls = [(piece.name, all_triangles([piece])) for piece in pieces if _WALL.search(piece.kind) and piece.visuals]
    for door in pieces:
        if not (_DOOR.search(door.kind) and door.visuals):
            continue
        corners = np.concatenate([part.corners.reshape(-1, 3) for part in door.visuals])
        low, high = corners.min(axis=0), corners.max(axis=0)
        thin = int(np.argmin((high - low)[:2]))
        face = [1 - thin, 2]
        inner_low, inner_high = low[face] + _DOOR_RIM_M, high[face] - _DOOR_RIM_M
        if (inner_low >= inner_high).any():
            continue
        panel = shapely.box(*inner_low, *inner_high)
        to_door = np.linalg.inv(door.matrix)
        for wall, in_world in walls:
            triangles = in_world @ to_door[:3, :3].T + to_door[:3, 3]
            depth = triangles[..., thin]
            near = (depth.max(axis=1) > low[thin] - _DOOR_REACH_M) & (depth.min(axis=1) < high[thin] + _DOOR_REACH_M)
            covering = shapely.union_all(shapely.polygons(triangles[near][..., face]), grid_size=1e-3)
            if covering.intersection(panel).area > panel.area / 2:
                yield door.name, wall


def _edges(triangles: Array) -> tuple[Array, Array]:
    return triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0]


def _metadata(path: Path) -> dict[str, dict[str, Any]]:
    """The objects of ``NAME_metadata.json`` by the name of their body; none without the file. Raises ``SceneError``."""
    parts = path.stem.split("_")
    names = ["_".join(parts[:count]) for count in range(len(parts), 0, -1)]
    file = next((found for name in names if (found := path.with_name(f"{name}_metadata.json")).is_file()), None)
    if file is None:
        return {}
    try:
        objects = json.loads(file.read_bytes(), object_pairs_hook=unique_keys).get("objects", {})
        if not isinstance(objects, dict) or not all(isinstance(item, dict) for item in objects.values()):
            raise ValueError("'objects' is not an object of objects")
    except (ValueError, AttributeError, RecursionError, OSError) as error:
        raise SceneError(f"{file}: is not the metadata of a house: {error}", "restore it, or take it away") from error
    return objects


def _check_files(path: Path) -> None:
    """Check what MuJoCo would follow without an end. Raises ``SceneError``."""
    left = MAX_ELEMENTS
    folder = path.parent.resolve()
    waiting: list[tuple[Path, tuple[Path, ...]]] = [(path, ())]
    while waiting:
        file, around = waiting.pop()
        real = file.resolve()
        if real in around:
            raise SceneError(f"{file}: includes itself, by {around[-1].name}", "break the circle")
        if not real.is_relative_to(folder):
            raise SceneError(f"{path}: includes {file}, outside its folder", f"copy it to {folder}")
        if not file.is_file():
            raise SceneError(f"{path}: there is no file {file}", "restore it, or correct the <include>")
        for element in _elements(file):
            left -= element.tag in ("body", "geom")
            if left < 0:
                raise SceneError(f"{path}: has more than {MAX_ELEMENTS:,} bodies and geoms", "divide the house")
            if element.tag == "include" and (name := element.get("file")):
                near = file.parent / name
                waiting.append((near if near.exists() else path.parent / name, (*around, real)))


def _elements(path: Path) -> Iterator[ElementTree.Element]:
    try:
        if b"<!ENTITY" in path.read_bytes():
            raise SceneError(f"{path}: defines entities; they can expand without end", "write their text out")
        for _, element in ElementTree.iterparse(path, ("start",)):
            yield element
    except (ElementTree.ParseError, OSError, ValueError) as error:
        raise SceneError(f"{path}: is not valid XML: {error}", "repair the file at that place") from error
