"""Meshes from files: COLLADA, OBJ, STL, PLY, glTF and GLB as triangles with their appearance.

COLLADA is read here on top of pycollada, because Gazebo's models keep their textures next to the mesh's folder
(``../materials/textures``) where other readers do not search, and because a broken file must be an error.
"""

from __future__ import annotations

import io
import os
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from robot_runtime.common.image_files import MAX_IMAGE_PIXELS
from robot_runtime.errors import SceneError
from sim_bridge.scenes.mesh_checks import MAX_NODES, MAX_TRIANGLES, check_collada, check_gltf, unread_statements

SIZE_PX = 256
_BITS = (5, 6, 5)  # red, green, blue: the eye tells greens apart best


@cache
def palette() -> Image.Image:
    """All colors of 16 bits, RGB, 256 x 256: a renderer that knows textures only shows surfaces colored by corner.

    A triangle of a color has its three corners in the middle of that pixel, so that no filtering mixes two colors.
    """
    index = np.arange(SIZE_PX * SIZE_PX)
    red, green, blue = index >> 11, (index >> 5) & 63, index & 31
    levels = [np.rint(part * (255 / (2**bits - 1))) for part, bits in zip((red, green, blue), _BITS, strict=True)]
    return Image.fromarray(np.stack(levels, axis=1).astype(np.uint8).reshape(SIZE_PX, SIZE_PX, 3))


def palette_uv(colors: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Texture coordinates (M, 3, 2), v upwards, that give triangles the colors (M, 3), to within 4 levels of 255."""
    red, green, blue = (
        np.rint(colors[:, i].astype(np.float64) / 255 * (2**bits - 1)).astype(np.int64) for i, bits in enumerate(_BITS)
    )
    index = red << 11 | green << 5 | blue
    point = np.stack([(index % SIZE_PX + 0.5) / SIZE_PX, 1 - (index // SIZE_PX + 0.5) / SIZE_PX], axis=1)
    return np.repeat(point[:, None], 3, axis=1)


Array = NDArray[np.float64]

FORMATS = (".dae", ".obj", ".stl", ".ply", ".glb", ".gltf")

_IMAGE_FORMATS = ("PNG", "JPEG", "TGA", "BMP", "TIFF", "GIF", "WEBP", "DDS", "PPM")
"""Pillow has decoders that start other programs."""

_TEXTURE_FOLDERS = (".", "textures", "materials/textures", "../materials/textures", "../textures")


@dataclass(frozen=True)
class Appearance:
    """Appearance of a surface: an image (any mode) tinted by rgba in [0, 1], or rgba alone.

    Attributes:
        exact: whether the image must keep its size.
        photographed: whether the colors have their light in them, and need no other.
    """

    image: Image.Image | None = None
    image_name: str = ""
    rgba: tuple[float, float, float, float] = (1.0, 1.0, 1.0, 1.0)
    exact: bool = False
    photographed: bool = False


@dataclass(frozen=True)
class MeshPart:
    """Triangles of an appearance.

    Attributes:
        corners: (M, 3, 3), meters.
        normals: (M, 3, 3), unit, or None.
        uv: (M, 3, 2), v upwards, or None.
    """

    name: str
    corners: Array
    normals: Array | None
    uv: Array | None = None
    appearance: Appearance = field(default_factory=Appearance)

    def moved(self, matrix: Array) -> MeshPart:
        """The part under a 4x4 affine transform; mirrored triangles keep their outside outside."""
        linear = matrix[:3, :3]
        corners = self.corners @ linear.T + matrix[:3, 3]
        normals, uv = self.normals, self.uv
        if normals is not None:
            normals = normals @ np.linalg.inv(linear)
            length = np.linalg.norm(normals, axis=2, keepdims=True)
            normals = normals / np.where(length > 0, length, 1.0)
        if np.linalg.det(linear) < 0:
            corners = corners[:, ::-1]
            normals = None if normals is None else normals[:, ::-1]
            uv = None if uv is None else uv[:, ::-1]
        return replace(self, corners=corners, normals=normals, uv=uv)


def load_mesh(path: Path, notes: list[str], upright: bool = True) -> list[MeshPart]:
    """The parts of a mesh file in its own axes, meters, one per appearance and node.

    Args:
        path: mesh file.
        notes: receives a line for everything that was left out, such as a missing texture.
        upright: whether the axis that a COLLADA file names in ``<up_axis>`` is turned onto z.

    Raises:
        SceneError: missing, truncated or unknown format, no face, not finite, or too many triangles.
    """
    if path.suffix.lower() not in FORMATS:
        raise SceneError(f"{path}: unknown mesh format {path.suffix!r}", f"use one of {', '.join(FORMATS)}")
    if not path.is_file():
        raise SceneError(f"{path}: no such mesh file", "restore the file, or correct the path that names it")
    parts = _load_collada(path, notes, upright) if path.suffix.lower() == ".dae" else _load_with_trimesh(path, notes)
    parts = [part for part in parts if len(part.corners)]
    if not parts:
        raise SceneError(f"no triangles in {path}", "export it again with its faces, triangulated")
    _check_count(path, parts)
    if not all(np.isfinite(part.corners).all() for part in parts):
        raise SceneError(f"{path}: has corners that are not finite numbers", "export it again")
    return parts


def _check_count(path: Path, parts: Sequence[MeshPart]) -> None:
    count = sum(len(part.corners) for part in parts)
    if count > MAX_TRIANGLES or len(parts) > MAX_NODES:
        raise SceneError(
            f"{path}: {count:,} triangles in {len(parts):,} parts; at most {MAX_TRIANGLES:,} can be simulated",
            "decimate the mesh first, for instance with Blender's Decimate modifier",
        )


def read_image(path: Path) -> Image.Image:
    """An image, fully decoded. Raises ``SceneError``."""
    try:
        image: Image.Image = Image.open(io.BytesIO(path.read_bytes()), formats=_IMAGE_FORMATS)
        _check_pixels(image)
        image.load()
        return image
    except Exception as error:  # Pillow's decoders raise many types for damaged files
        raise SceneError(f"{path}: is not a readable image: {error!s:.500}", "replace the texture file") from error


# --- COLLADA --------------------------------------------------------------------------------------------------------


_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)
"""pycollada takes a comment inside a geometry for one of its elements, and fails."""


def _load_collada(path: Path, notes: list[str], upright: bool) -> list[MeshPart]:
    import collada

    data = _COMMENT.sub(b"", path.read_bytes())
    ignorable = [collada.common.DaeUnsupportedError, collada.common.DaeBrokenRefError]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PendingDeprecationWarning)  # pycollada uses numpy.matrix
            notes.extend(f"{path.name}: not read: {what}" for what in check_collada(data))
            document = collada.Collada(io.BytesIO(data), ignore=ignorable)
            appearances = {id(effect): _collada_appearance(path, effect, notes) for effect in document.effects}
            parts: list[MeshPart] = []
            for geometry in document.scene.objects("geometry") if document.scene is not None else ():
                for primitive in geometry.primitives():
                    name = geometry.original.name or geometry.original.id
                    parts += _collada_part(primitive, name, appearances)
                _check_count(path, parts)
    except SceneError:
        raise
    except Exception as error:  # pycollada and lxml raise many types for damaged files
        raise SceneError(
            f"{path}: is not a complete COLLADA file: {error!s:.500}", "restore the file or export it again"
        ) from error
    scale = document.assetInfo.unitmeter or 1.0
    matrix = np.diag([scale, scale, scale, 1.0])
    if upright:
        matrix = matrix @ _UP_AXIS[document.assetInfo.upaxis or "Y_UP"]
    return [part.moved(matrix) for part in parts]


_UP_AXIS: dict[str, Array] = {
    "Z_UP": np.eye(4),
    "Y_UP": np.array([[1.0, 0, 0, 0], [0, 0, -1, 0], [0, 1, 0, 0], [0, 0, 0, 1]]),
    "X_UP": np.array([[0.0, -1, 0, 0], [0, 0, -1, 0], [1, 0, 0, 0], [0, 0, 0, 1]]),
}
"""COLLADA 1.4, table 5-2: the axis that points up, turned onto z."""


def _collada_appearance(path: Path, effect: Any, notes: list[str]) -> Appearance:
    import collada

    diffuse = effect.diffuse
    if isinstance(diffuse, collada.material.Map):
        name = diffuse.sampler.surface.image.path
        found = _find_texture(path, name)
        if found is None:
            notes.append(f"{path.name}: texture {name!r} is not there; the surface is left gray")
            return Appearance(rgba=(0.7, 0.7, 0.7, 1.0))
        return Appearance(read_image(found), found.stem)
    if diffuse is None:
        return Appearance(rgba=(0.7, 0.7, 0.7, 1.0))
    r, g, b = (float(value) for value in diffuse[:3])
    return Appearance(rgba=(r, g, b, 1.0))


def _find_texture(mesh: Path, name: str) -> Path | None:
    """Path that the file states, else the file of that name in the folders in which models keep textures."""
    stated = mesh.parent / name
    if os.path.isfile(stated):  # also answers for names that no file can have
        return stated
    base = name.replace("\\", "/").rpartition("/")[2]
    candidates = (mesh.parent / folder / base for folder in _TEXTURE_FOLDERS)
    return next((candidate for candidate in candidates if os.path.isfile(candidate)), None)


def _collada_part(primitive: Any, name: str, appearances: dict[int, Appearance]) -> list[MeshPart]:
    import collada

    if isinstance(primitive, (collada.polylist.BoundPolylist, collada.polygons.BoundPolygons)):
        primitive = primitive.triangleset()
    if not isinstance(primitive, collada.triangleset.BoundTriangleSet) or primitive.vertex is None:
        return []  # lines and points
    if not len(primitive.vertex_index):
        return []
    normals = None if primitive.normal is None else primitive.normal[primitive.normal_index].astype(np.float64)
    uv = None
    if primitive.texcoordset:
        uv = primitive.texcoordset[0][primitive.texcoord_indexset[0]][..., :2].astype(np.float64)
    effect = getattr(primitive.material, "effect", None)
    appearance = appearances.get(id(effect), Appearance(rgba=(0.7, 0.7, 0.7, 1.0)))
    corners = primitive.vertex[primitive.vertex_index].astype(np.float64)
    return [MeshPart(name, corners, normals, uv, appearance)]


# --- everything else ------------------------------------------------------------------------------------------------


def _load_with_trimesh(path: Path, notes: list[str]) -> list[MeshPart]:
    import trimesh

    class RegularFiles(trimesh.resolvers.FilePathResolver):
        """Of the files that a mesh names, those that have an end."""

        def get(self, name: str) -> bytes:
            if not os.path.isfile(os.path.join(self.parent, name)):
                raise FileNotFoundError(f"{name:.200}: no such file")
            return bytes(super().get(name))

    try:
        if path.suffix.lower() in (".glb", ".gltf"):
            unread = check_gltf(path)
        else:
            unread = unread_statements(path)
        notes.extend(f"{path.name}: not read: {what}" for what in unread)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about deprecated options inside the readers: not this program's user
            resolver = RegularFiles(str(path))
            scene = trimesh.load_scene(path, process=False, maintain_order=True, resolver=resolver, **_splitting(path))
        parts: list[MeshPart] = []
        for node in sorted(scene.graph.nodes_geometry):
            matrix, geometry_name = scene.graph[node]
            geometry = scene.geometry[geometry_name]
            if isinstance(geometry, trimesh.Trimesh) and len(geometry.faces):
                name = _obj_name(str(geometry_name), geometry) if path.suffix.lower() == ".obj" else str(node)
                parts.append(_trimesh_part(geometry, name).moved(np.asarray(matrix, np.float64)))
                _check_count(path, parts)
    except SceneError:
        raise
    except Exception as error:  # trimesh raises many types for damaged files
        raise SceneError(
            f"{path}: is not a complete {path.suffix[1:].upper()} file: {error!s:.500}",
            "restore the file or export it again",
        ) from error
    return parts


def _splitting(path: Path) -> dict[str, Any]:
    """Parts that trimesh makes of an OBJ file: its objects (``o``), or its groups (``g``) where it has none."""
    if path.suffix.lower() != ".obj":
        return {}
    has_objects = re.search(rb"^o\s", path.read_bytes(), re.MULTILINE) is not None
    return {"split_objects": has_objects, "split_groups": not has_objects}


def _obj_name(geometry_name: str, mesh: Any) -> str:
    """The thing's own name: trimesh makes a mesh of each of its materials, and appends the material's name."""
    material = getattr(getattr(mesh.visual, "material", None), "name", None)
    own = geometry_name.removesuffix(f"_{material}") if material else geometry_name
    return own or geometry_name


def _trimesh_part(mesh: Any, name: str) -> MeshPart:
    faces = np.asarray(mesh.faces)
    normals = None
    if "vertex_normals" in mesh._cache:
        normals = np.asarray(mesh.vertex_normals, np.float64)[faces]
    uv, appearance = None, Appearance(rgba=(0.7, 0.7, 0.7, 1.0))
    if mesh.visual.kind == "texture":
        material = mesh.visual.material
        image = getattr(material, "baseColorTexture", None) or getattr(material, "image", None)
        if image is not None:
            _check_pixels(image)
        color = getattr(material, "baseColorFactor", None)
        if color is None and image is None:
            color = getattr(material, "diffuse", None)
        rgba = (1.0, 1.0, 1.0, 1.0) if color is None else _unit_rgba(color)
        appearance = Appearance(image, str(getattr(material, "name", None) or name), rgba)
        if mesh.visual.uv is not None and image is not None:
            uv = np.asarray(mesh.visual.uv, np.float64)[faces]
        elif image is not None:
            appearance = Appearance(rgba=rgba)
    elif mesh.visual.kind in ("vertex", "face"):
        appearance, uv = _painted(mesh, faces)
    return MeshPart(name, np.asarray(mesh.vertices, np.float64)[faces], normals, uv, appearance)


def _painted(mesh: Any, faces: Array) -> tuple[Appearance, Array | None]:
    """The appearance of a mesh whose corners or faces have colors of their own, as most scans have."""
    by_face = mesh.visual.kind == "face"
    colors = mesh.visual.face_colors if by_face else np.asarray(mesh.visual.vertex_colors)[faces].mean(axis=1)
    colors = np.rint(np.asarray(colors)[:, :3]).astype(np.uint8)
    if (colors == colors[:1]).all():
        return Appearance(rgba=_unit_rgba(mesh.visual.main_color)), None
    return Appearance(palette(), "palette", exact=True), palette_uv(colors)


def _check_pixels(image: Image.Image) -> None:
    if image.width * image.height > MAX_IMAGE_PIXELS:
        raise ValueError(f"an image has {image.width}x{image.height} pixels, at most {MAX_IMAGE_PIXELS} are read")


def _unit_rgba(color: Any) -> tuple[float, float, float, float]:
    values = np.asarray(color, np.float64).ravel()
    if np.asarray(color).dtype.kind in "ui":
        values = values / 255.0
    r, g, b = values[:3].tolist()
    return r, g, b, float(values[3]) if len(values) > 3 else 1.0
