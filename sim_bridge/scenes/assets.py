"""From pieces to the assets, materials and objects of a scene, and their files."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
import shapely
from numpy.typing import NDArray
from PIL import Image
from scipy.spatial import ConvexHull, QhullError
from scipy.spatial.transform import Rotation

from robot_runtime.common import config
from robot_runtime.scenes.scene import Asset, Collision, Material, SceneFile, SceneObject, Visual
from sim_bridge.scenes import decompose
from sim_bridge.scenes.columns import columns
from sim_bridge.scenes.mesh_files import Appearance, MeshPart
from sim_bridge.scenes.pieces import Piece
from sim_bridge.scenes.progress import Progress
from sim_bridge.scenes.scene_files import digest, save_obj, shrink

Array = NDArray[np.float64]

SCAN_TRIANGLES = 20_000
SCAN_EXTENT_M = 4.0
"""A contact mesh with more triangles than the one and wider than the other is a scan of a place, not a thing."""

PHOTOGRAPHED_SHARE, PHOTOGRAPHED_EMISSION = 0.5, 1.25
"""Half of the color lit by 0.5 to 1.0, as the simulator's lights do, and 1.25 times that half without light."""

_COLUMN_M = 0.025
_MIN_PART_M = 1e-3  # a thinner hull has no inside for a physics engine


class AssetWriter:
    """Writes ``assets/`` of a scene folder; equal meshes, textures and decompositions are made once.

    Args:
        texture_px: longest edge of a texture.
        search: search for the parts of solids, as for :func:`~sim_bridge.scenes.decompose.convex_parts`.
        min_z_m, max_z_m: contact shapes outside this height band are left out: nothing the robot has is there.

    Attributes:
        notes: a line for every contact mesh that was not followed closely.
    """

    def __init__(
        self,
        folder: Path,
        settings: decompose.DecompositionSettings,
        texture_px: int,
        min_z_m: float,
        max_z_m: float,
        search: decompose.Search | None = None,
    ) -> None:
        self._folder, self._settings, self._search = folder, settings, search
        self._texture_px = texture_px
        self._band = (min_z_m, max_z_m)
        self._files: dict[str, str] = {}
        self._names: set[str] = set()
        self._materials: dict[str, Material] = {}
        self._material_of: dict[tuple[object, ...], str] = {}
        self._images: dict[int, tuple[Image.Image, Image.Image]] = {}  # by id; holding the image keeps its id its own
        self._parts: dict[str, list[Array]] = {}
        self.notes: list[str] = []

    def write(self, pieces: Sequence[Piece], report: Progress) -> SceneFile:
        """The scene without rooms; ``report`` hears of every piece.

        Raises:
            SceneError: a texture that cannot be decoded.
        """
        assets, objects = [], []
        asset_names: set[str] = set()
        for done, piece in enumerate(pieces):
            report("meshes and contact shapes", done, len(pieces))
            name = identifier(piece.name, asset_names)
            category = category_of(piece.kind)
            points = piece.world_points()
            object_id = None
            if category is not None and len(points):
                object_id = name
                objects.append(oriented_object(name, category, piece, points))
            w_last = Rotation.from_matrix(piece.matrix[:3, :3]).as_quat()
            x, y, z, w = (float(value) for value in w_last)
            px, py, pz = (float(value) for value in piece.matrix[:3, 3])
            assets.append(
                Asset(name, object_id, (px, py, pz), (w, x, y, z), self._visuals(piece), self._collisions(piece))
            )
        report("meshes and contact shapes", len(pieces), len(pieces))
        tops = [piece.world_points()[:, 2].max() for piece in pieces if len(piece.world_points())]
        return SceneFile(
            schema=1,
            name=self._folder.name,
            rooms=(),
            objects=tuple(objects),
            ceiling_m=round(float(max(tops)), 2),
            materials=self._materials,
            assets=tuple(assets),
        )

    # --- surfaces ---------------------------------------------------------------------------------------------------

    def _visuals(self, piece: Piece) -> tuple[Visual, ...]:
        by_material: dict[str, list[MeshPart]] = {}
        for part in piece.visuals:
            by_material.setdefault(self._material(part.appearance), []).append(part)
        visuals = []
        for material, parts in by_material.items():
            corners = np.concatenate([part.corners for part in parts])
            normals = _joined([part.normals for part in parts])
            uv = _joined([part.uv for part in parts]) if self._materials[material].texture else None
            corners, normals, uv = _with_area(corners, normals, uv)
            if len(corners):
                visuals.append(Visual(self._mesh(piece.kind, corners, normals, uv), material))
        return tuple(visuals)

    def _mesh(self, name: str, corners: Array, normals: Array | None = None, uv: Array | None = None) -> str:
        key = digest(corners, normals, uv)
        if key not in self._files:
            file = f"assets/{identifier(name, self._names)}.obj"
            save_obj(self._folder / file, corners, normals, uv)
            self._files[key] = file
        return self._files[key]

    def _material(self, appearance: Appearance) -> str:
        # Parts of a mesh file share the image object, so most are shrunk once; equal content is written once anyway.
        image = appearance.image if appearance.image is None or appearance.exact else self._shrunk(appearance.image)
        key = (None if image is None else image.tobytes(), appearance.rgba, appearance.photographed)
        if key not in self._material_of:
            texture = None
            name = identifier(appearance.image_name or "color", set(self._materials))
            if image is not None:
                texture = f"assets/{identifier(appearance.image_name or 'texture', self._names)}.png"
                image.save(self._folder / texture)
            self._materials[name] = (
                _photographed(texture) if appearance.photographed else Material(texture, appearance.rgba)
            )
            self._material_of[key] = name
        return self._material_of[key]

    def _shrunk(self, image: Image.Image) -> Image.Image:
        known = self._images.get(id(image))
        if known is None:
            known = self._images[id(image)] = (image, shrink(image, self._texture_px))
        return known[1]

    # --- contact ----------------------------------------------------------------------------------------------------

    def _collisions(self, piece: Piece) -> tuple[Collision, ...]:
        found: list[Collision] = []
        for contact in piece.contacts:
            if isinstance(contact, Collision):
                found.append(contact)
                continue
            if _is_scan(piece, contact):
                low, high = (float(level - piece.matrix[2, 3]) for level in self._band)
                found.extend(columns(contact, low, high, _COLUMN_M))
                continue
            for component in decompose.components(contact):
                # A floor with holes takes a minute to decompose, for parts of which the robot touches none.
                if self._touchable(piece, component, self._settings.sheet_m):
                    parts = self._decomposed(component, piece.kind)
                    found.extend(self._shape(piece.kind, part) for part in parts if self._touchable(piece, part))
        return tuple(found)

    def _decomposed(self, component: Array, kind: str) -> list[Array]:
        key = digest(component)
        if key not in self._parts:
            parts = decompose.convex_parts(component, self._settings, partial(self._searched, kind))
            if len(component) > decompose.SEARCHED_TRIANGLES and len(parts) > 1:
                self.notes.append(
                    f"{kind}: its contact mesh has {len(component):,} triangles, so {len(parts):,} boxes stand for it; "
                    "a simpler collision mesh in the model is followed more closely"
                )
            self._parts[key] = [part for part in parts if _has_volume(part)]
        return self._parts[key]

    def _searched(
        self, kind: str, vertices: Array, faces: decompose.Faces, settings: decompose.DecompositionSettings
    ) -> list[Array] | None:
        found = (self._search or decompose.coacd_parts)(vertices, faces, settings)
        if found is None:
            self.notes.append(
                f"{kind}: the search for the convex parts of its contact mesh did not end; boxes stand for it"
            )
        return found

    def _touchable(self, piece: Piece, points: Array, slack_m: float = 0.0) -> bool:
        z = points @ piece.matrix[2, :3] + piece.matrix[2, 3]
        return bool(z.max() >= self._band[0] - slack_m and z.min() <= self._band[1] + slack_m)

    def _shape(self, name: str, part: Array) -> Collision:
        box = as_box(part)
        if box is not None:
            return box
        hull = ConvexHull(part)
        return Collision("mesh", mesh=self._mesh(f"{name}_hull", part[hull.simplices]))


def _photographed(texture: str | None) -> Material:
    """A surface that comes out about as bright as its texture, whichever way it faces the simulator's lights."""
    return Material(texture, (*(PHOTOGRAPHED_SHARE,) * 3, 1.0), specular=0.0, emission=PHOTOGRAPHED_EMISSION)


def as_box(points: Array, slack: float = 0.005) -> Collision | None:
    """The upright box that a convex part is, or None; ``slack``: share of the box's volume that may be missing."""
    outline = shapely.MultiPoint(points[:, :2]).minimum_rotated_rectangle
    if outline.geom_type != "Polygon":
        return None
    low, high = float(points[:, 2].min()), float(points[:, 2].max())
    volume = outline.area * (high - low)
    if volume <= 0 or ConvexHull(points).volume < (1 - slack) * volume:
        return None
    corners = np.asarray(outline.exterior.coords)
    along, across = corners[1] - corners[0], corners[2] - corners[1]
    yaw_deg = math.degrees(math.atan2(along[1], along[0]))
    # Of the four ways to say it, the one turned least: an axis-parallel box gets yaw 0.
    quarter = round(yaw_deg / 90)
    size = (float(np.linalg.norm(along)), float(np.linalg.norm(across)))
    if quarter % 2:
        size = (size[1], size[0])
    yaw_deg = round(yaw_deg - 90 * quarter, 4) + 0.0
    x, y = outline.centroid.x, outline.centroid.y
    return Collision("box", (x, y, (low + high) / 2), (*size, high - low), yaw_deg)


def oriented_object(name: str, category: str, piece: Piece, points: Array) -> SceneObject:
    """The object with the box around ``points`` (N, 3, in the world), turned as the piece is turned."""
    if piece.upright:
        yaw = math.atan2(piece.matrix[1, 0], piece.matrix[0, 0])
    else:
        box = as_box_outline(points[:, :2])
        yaw = 0.0 if box is None else box
    c, s = math.cos(yaw), math.sin(yaw)
    turn = np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])
    local = points @ turn.T
    low, high = local.min(axis=0), local.max(axis=0)
    cx, cy, cz = (float(v) for v in turn.T @ ((low + high) / 2))
    dx, dy, dz = (float(v) for v in high - low)
    return SceneObject(
        name,
        category,
        (round(cx, 4), round(cy, 4), round(cz, 4)),
        (round(dx, 4), round(dy, 4), round(dz, 4)),
        round(math.degrees(yaw), 3) + 0.0,
        movable=piece.movable,
    )


def as_box_outline(points: Array) -> float | None:
    """Yaw in radians, within 45 degrees of x, of the smallest rectangle around points (N, 2); None for a line."""
    outline = shapely.MultiPoint(points).minimum_rotated_rectangle
    if outline.geom_type != "Polygon":
        return None
    corners = np.asarray(outline.exterior.coords)
    along = corners[1] - corners[0]
    yaw = math.atan2(along[1], along[0])
    return yaw - math.pi / 2 * round(yaw / (math.pi / 2))


def _is_scan(piece: Piece, contact: Array) -> bool:
    extent_m = float(np.ptp(contact[..., :2].reshape(-1, 2), axis=0).max())
    level = piece.matrix[2, 2] > 1 - 1e-9  # columns stand upright in the piece's own frame
    return len(contact) > SCAN_TRIANGLES and extent_m > SCAN_EXTENT_M and level


def _joined(arrays: Sequence[Array | None]) -> Array | None:
    found = [array for array in arrays if array is not None]
    return np.concatenate(found) if len(found) == len(arrays) and found else None


def _with_area(corners: Array, normals: Array | None, uv: Array | None) -> tuple[Array, Array | None, Array | None]:
    """Without the triangles that have no area; a physics engine refuses them."""
    area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    keep = area > 1e-12
    return corners[keep], None if normals is None else normals[keep], None if uv is None else uv[keep]


def _has_volume(part: Array) -> bool:
    try:
        hull = ConvexHull(part)
    except QhullError:
        return False
    return bool(hull.volume > 1e-9 and hull.volume / hull.area > _MIN_PART_M / 4)


# --- categories by the names of models and mesh nodes ---------------------------------------------------------------


_VENDOR_PREFIX = re.compile(r"^aws_robomaker_[a-z]+_")
_COUNTER = re.compile(r"([_. -]*\d+)+$")


@dataclass(frozen=True)
class NameTable(config.Strict):
    """The content of ``categories.yaml``."""

    structure: tuple[str, ...]
    objects: dict[str, str]


@cache
def name_table() -> NameTable:
    """The table that ships with the importer."""
    return config.load(Path(__file__).parent / "categories.yaml", NameTable)


def category_of(name: str) -> str | None:
    """The category that a name tells, None for a part of the building; an unknown name is its own category."""
    plain = _COUNTER.sub("", _VENDOR_PREFIX.sub("", name))
    squeezed = re.sub(r"[^a-z]", "", plain.lower())
    table = name_table()
    known = next((category for word, category in table.objects.items() if word.replace("_", "") in squeezed), None)
    if known is not None:
        return known
    if not squeezed or any(word in squeezed for word in table.structure):
        return None
    return re.sub(r"[^a-z0-9]+", "_", plain.lower()).strip("_")


def identifier(name: str, taken: set[str]) -> str:
    """``name`` as letters, digits and underscores, with a counter if it is taken; adds it to ``taken``."""
    base = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_") or "unnamed"
    candidate, count = base, 2
    while candidate in taken:
        candidate, count = f"{base}_{count}", count + 1
    taken.add(candidate)
    return candidate
