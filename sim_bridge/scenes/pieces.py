"""Pieces: rigid things with surfaces and contact geometry, of which scenes are made.

One Gazebo model instance is one piece; so is one node of a mesh file.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from robot_runtime.errors import SceneError
from robot_runtime.scenes.scene import Collision
from sim_bridge.scenes.mesh_files import FORMATS, Appearance, MeshPart, load_mesh
from sim_bridge.scenes.sdf import Geometry, ModelPath, PlacedModel, read_world

Array = NDArray[np.float64]

WORLD_FORMATS = (".world", ".sdf", ".xml")

_GRAY = (0.7, 0.7, 0.7, 1.0)
Up = Literal["x", "y", "z", "-x", "-y", "-z"]

UPRIGHT: dict[Up, Array] = {
    "x": np.array([[0.0, 0, -1, 0], [0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1]]),
    "y": np.array([[1.0, 0, 0, 0], [0, 0, -1, 0], [0, 1, 0, 0], [0, 0, 0, 1]]),
    "z": np.eye(4),
    "-x": np.array([[0.0, 0, 1, 0], [0, 1, 0, 0], [-1, 0, 0, 0], [0, 0, 0, 1]]),
    "-y": np.array([[1.0, 0, 0, 0], [0, 0, 1, 0], [0, -1, 0, 0], [0, 0, 0, 1]]),
    "-z": np.diag([1.0, -1, -1, 1]),
}
"""Rotations, float64 (4, 4), that turn the axis which points up in a file onto z."""


@dataclass(frozen=True)
class Piece:
    """A rigid thing.

    Attributes:
        kind: name of the kind that it is an instance of; gives the category.
        matrix: 4x4 rigid, of the piece's frame in the world.
        visuals: surfaces in the piece's frame.
        contacts: contact geometry in the piece's frame: triangles (M, 3, 3) to be decomposed, or a finished shape.
        upright: whether the piece's own x axis says how it is turned (else its outline must).
    """

    name: str
    kind: str
    matrix: Array
    visuals: tuple[MeshPart, ...]
    contacts: tuple[Array | Collision, ...]
    movable: bool = False
    upright: bool = True

    def world_points(self) -> Array:
        """Corners (N, 3) of all surfaces, or of the contacts where there is none, in the world."""
        found = [part.corners.reshape(-1, 3) for part in self.visuals]
        found = found or [contact.reshape(-1, 3) for contact in self.contacts if not isinstance(contact, Collision)]
        if not found:
            return np.zeros((0, 3))
        return np.asarray(np.concatenate(found) @ self.matrix[:3, :3].T + self.matrix[:3, 3])

    def shifted(self, z_m: float) -> Piece:
        """The piece raised by ``z_m``."""
        lift = np.eye(4)
        lift[2, 3] = z_m
        return replace(self, matrix=lift @ self.matrix)


def read_pieces(
    source: Path,
    models: Sequence[Path] = (),
    skip_missing: bool = False,
    up: Up | None = None,
    scale: float = 1.0,
    notes: list[str] | None = None,
    placement: Array | None = None,
) -> list[Piece]:
    """The pieces of a Gazebo world or a mesh file, z up, meters.

    Args:
        source: the file.
        models: folders in which a world's ``model://`` names are looked for first.
        skip_missing: leave absent models out with a note instead of refusing the world.
        up: the mesh file's upward axis; None is the format's own: y for glTF, z for the others. COLLADA says itself.
        scale: meters per unit of the mesh file.
        placement: float64 (4, 4), the rigid motion from the upright source in meters to where the pieces shall be.
        notes: receives a line for everything that was left out.

    Raises:
        SceneError: names the file and the remedy.
    """
    notes = [] if notes is None else notes
    if not source.is_file():
        raise SceneError(f"{source}: no such file", "give a Gazebo world, a MuJoCo house or a mesh file")
    suffix = source.suffix.lower()
    if suffix in FORMATS:
        return _mesh_pieces(source, up or own_up(source), scale, notes, np.eye(4) if placement is None else placement)
    if suffix in WORLD_FORMATS:
        found = _world_pieces(source, models, skip_missing, notes)
        return found if placement is None else [replace(piece, matrix=placement @ piece.matrix) for piece in found]
    known = ", ".join((*WORLD_FORMATS, *FORMATS))
    raise SceneError(f"{source}: unknown kind of scene {suffix!r}", f"give one of {known}")


def own_up(source: Path) -> Up:
    """The axis that points up by the rules of a mesh file's format."""
    return "y" if source.suffix.lower() in (".glb", ".gltf") else "z"


# --- mesh files -----------------------------------------------------------------------------------------------------


def _mesh_pieces(source: Path, up: Up, scale: float, notes: list[str], placement: Array) -> list[Piece]:
    if not scale > 0:
        raise SceneError(f"{source}: scale {scale} is not positive", "give meters per unit, such as 0.01")
    matrix = placement @ np.diag([scale, scale, scale, 1.0]) @ UPRIGHT[up]
    parts = [part.moved(matrix) for part in load_mesh(source, notes)]
    by_name: dict[str, list[MeshPart]] = {}
    for part in parts:
        by_name.setdefault(part.name, []).append(part)
    pieces = []
    for name, members in by_name.items():
        corners = np.concatenate([part.corners for part in members])
        center = (corners.reshape(-1, 3).min(axis=0) + corners.reshape(-1, 3).max(axis=0)) / 2
        place = np.eye(4)
        place[:3, 3] = center
        back = np.eye(4)
        back[:3, 3] = -center
        visuals = tuple(part.moved(back) for part in members)
        pieces.append(Piece(name, name, place, visuals, (corners - center,), upright=False))
    return pieces


# --- Gazebo worlds --------------------------------------------------------------------------------------------------


def _world_pieces(source: Path, models: Sequence[Path], skip_missing: bool, notes: list[str]) -> list[Piece]:
    model_path = ModelPath.near(source, models)
    placed = read_world(source, model_path)
    if model_path.missing:
        names = ", ".join(model_path.missing)
        looked = ", ".join(dict.fromkeys(map(str, (*model_path.models, *model_path.resources)))) or "no folder"
        if not skip_missing:
            raise SceneError(
                f"{source}: names models or meshes that are not there: {names} (looked in {looked})",
                "add their folder with --models, or leave them out with --skip-missing",
            )
        notes.append(f"{source.name}: left out, because they are not there: {names}")
    notes.extend(model_path.unread.notes(source))
    cache: dict[Path, list[MeshPart]] = {}
    pieces = [_piece(model, cache, notes) for model in placed]
    pieces = [piece for piece in pieces if piece.visuals or piece.contacts]
    if not pieces:
        raise SceneError(f"no model with geometry in {source}", "give the world that includes the models")
    return pieces


def _piece(model: PlacedModel, cache: dict[Path, list[MeshPart]], notes: list[str]) -> Piece:
    visuals: list[MeshPart] = []
    contacts: list[Array | Collision] = []
    for shape in model.shapes:
        if shape.role == "visual":
            visuals.extend(_surfaces(shape, cache, notes))
            continue
        cylinder = _upright_cylinder(shape)
        if cylinder is not None:
            contacts.append(cylinder)
        else:
            contacts.append(np.concatenate([part.corners for part in _surfaces(shape, cache, notes)]))
    return Piece(model.name, model.kind, model.matrix, tuple(visuals), tuple(contacts), movable=not model.static)


def _surfaces(shape: Geometry, cache: dict[Path, list[MeshPart]], notes: list[str]) -> list[MeshPart]:
    if shape.kind == "mesh" and shape.file is not None:
        if shape.file not in cache:
            cache[shape.file] = load_mesh(shape.file, notes, upright=False)  # Gazebo ignores <up_axis>
        parts = _submesh(shape, cache[shape.file]) if shape.submesh else cache[shape.file]
        matrix = shape.matrix @ np.diag([*shape.scale, 1.0])
        parts = [part.moved(matrix) for part in parts]
    else:
        parts = [MeshPart(shape.kind, _primitive(shape), None, None, Appearance(rgba=_GRAY)).moved(shape.matrix)]
    if shape.rgba is not None:
        # A visual's <material> replaces the mesh's own, as in Gazebo.
        parts = [replace(part, appearance=Appearance(rgba=shape.rgba), uv=None) for part in parts]
    return parts


def _submesh(shape: Geometry, parts: Sequence[MeshPart]) -> list[MeshPart]:
    """The parts of a mesh that a shape names. Raises ``SceneError``."""
    named = [part for part in parts if part.name == shape.submesh]
    if not named:
        known = ", ".join(dict.fromkeys(part.name for part in parts))
        raise SceneError(f"{shape.file}: has no submesh {shape.submesh!r}", f"name one of its parts: {known:.300}")
    if not shape.centered:
        return named
    corners = np.concatenate([part.corners.reshape(-1, 3) for part in named])
    back = np.eye(4)
    back[:3, 3] = -(corners.min(axis=0) + corners.max(axis=0)) / 2
    return [part.moved(back) for part in named]


def _primitive(shape: Geometry) -> Array:
    """Triangles (M, 3, 3) of a box, cylinder, sphere or plane about its own center."""
    import trimesh

    if shape.kind == "plane":
        x, y = shape.size[0] / 2, shape.size[1] / 2
        return np.array([[[-x, -y, 0.0], [x, -y, 0], [x, y, 0]], [[-x, -y, 0], [x, y, 0], [-x, y, 0]]])
    mesh: Any
    if shape.kind == "box":
        mesh = trimesh.creation.box(shape.size)
    elif shape.kind == "cylinder":
        mesh = trimesh.creation.cylinder(shape.size[0], shape.size[2], sections=32)
    else:
        mesh = trimesh.creation.icosphere(subdivisions=2, radius=shape.size[0])
    return np.asarray(mesh.triangles, np.float64)


def _upright_cylinder(shape: Geometry) -> Collision | None:
    """A cylinder that stands upright in its model as the contact shape of that kind."""
    if shape.kind != "cylinder" or abs(shape.matrix[2, 2]) < 1 - 1e-9:
        return None
    x, y, z = shape.matrix[:3, 3].tolist()
    radius, _, length = shape.size
    return Collision("cylinder", (x, y, z), (2 * radius, 2 * radius, length))


def all_triangles(pieces: Sequence[Piece]) -> Array:
    """Triangles (M, 3, 3) of all surfaces in the world."""
    found = [
        part.corners @ piece.matrix[:3, :3].T + piece.matrix[:3, 3]
        for piece, part in itertools.chain.from_iterable(((p, v) for v in p.visuals) for p in pieces)
    ]
    return np.concatenate(found) if found else np.zeros((0, 3, 3))
