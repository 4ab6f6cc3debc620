"""Gazebo worlds: SDF 1.4 to 1.7 with ``model://`` and ``file://`` names, as a flat list of placed models.

Read: models and includes at any depth, poses, links, visuals and collisions with mesh, box, cylinder, sphere and plane
geometry, scales, diffuse colors. Left out: lights, physics, plugins, joints (everything stands where it is placed).
Format: http://sdformat.org/spec.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from robot_runtime.errors import SceneError

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Geometry:
    """One shape of a link.

    Attributes:
        kind: ``mesh`` (``file``, ``scale``), ``box`` (``size`` = edges), ``cylinder`` (radius, radius, length),
            ``sphere`` (radius three times), ``plane`` (x, y, 0; facing its own +z).
        matrix: 4x4, of the shape in its model's frame.
        rgba: color that replaces the mesh's own, None for none.
    """

    role: Literal["visual", "collision"]
    kind: Literal["mesh", "box", "cylinder", "sphere", "plane"]
    matrix: Matrix
    file: Path | None = None
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)
    size: tuple[float, float, float] = (0.0, 0.0, 0.0)
    rgba: tuple[float, float, float, float] | None = None


@dataclass(frozen=True)
class PlacedModel:
    """A model in the world.

    Attributes:
        name: name of the instance.
        kind: name of the model folder that it comes from, else ``name``.
        matrix: 4x4, of the model's frame in the world.
    """

    name: str
    kind: str
    matrix: Matrix
    shapes: tuple[Geometry, ...]
    static: bool


_BUILT_IN = ("model://sun", "model://ground_plane")
"""Models that come with Gazebo: a light, and a plane below everything. A scene needs neither."""


@dataclass
class ModelPath:
    """Folders in which Gazebo's names are looked for.

    Attributes:
        models: folders of ``model://NAME``: those given, those near the world file, ``GAZEBO_MODEL_PATH``.
        resources: folders that a relative ``file://PATH`` starts from: those given, those that hold a folder of
            ``models``, ``GAZEBO_RESOURCE_PATH``.
        missing: names that were asked for and not found.
        parsed: files read so far, each once.
        parts: models and shapes placed so far.
    """

    models: list[Path]
    resources: list[Path]
    missing: dict[str, None] = field(default_factory=dict)
    parsed: dict[Path, Element] = field(default_factory=dict)
    parts: int = 0

    @classmethod
    def near(cls, world: Path, given: Sequence[Path]) -> ModelPath:
        """The folders that a world file is read with.

        Args:
            world: the file.
            given: folders to look in first: of models, or one that holds a folder ``models``.

        Raises:
            SceneError: a given folder does not exist.
        """
        for folder in given:
            if not folder.is_dir():
                raise SceneError(f"{folder}: no such folder of models", "correct --models")
        root = world.parent.parent
        models = [
            *itertools.chain.from_iterable((folder, folder / "models") for folder in given),
            *(world.parent, world.parent / "models", root / "models", root),
            *_environment("GAZEBO_MODEL_PATH"),
        ]
        resources = [*given, *(folder.parent for folder in models), *_environment("GAZEBO_RESOURCE_PATH")]
        return cls(_existing(models), _existing(resources))

    def find(self, uri: str, beside: Path) -> Path | None:
        """The file or folder that a URI names; None, noted in ``missing``, without one."""
        scheme, separator, rest = uri.partition("://")
        if not separator:
            candidates = [beside / uri]
        elif scheme == "file":
            candidates = [folder / rest for folder in (*self.resources, beside)]  # an absolute path stays as it is
        else:
            candidates = [folder / rest for folder in self.models]
        for candidate in candidates:
            if os.path.exists(candidate):  # also answers for names that no file can have
                return candidate
        if uri in _BUILT_IN:
            return None
        self.missing[rest.split("/")[0] if scheme == "model" else uri] = None
        return None


def _existing(folders: Iterable[Path]) -> list[Path]:
    return [folder for folder in dict.fromkeys(folders) if folder.is_dir()]


def _environment(variable: str) -> list[Path]:
    return [Path(entry) for entry in os.environ.get(variable, "").split(os.pathsep) if entry]


def read_world(path: Path, model_path: ModelPath) -> list[PlacedModel]:
    """All models of a world file (or the one of a model file), in document order.

    Names that cannot be found are left in ``model_path.missing``, and their models out.

    Raises:
        SceneError: not XML, not SDF, a pose or size that is not numbers, or frames that this reader does not know.
    """
    root = _parse(path, model_path)
    world = root.find("world")
    top = root if world is None else world
    models: list[PlacedModel] = []
    for element in top:
        if element.tag == "include":
            included = _include(path, element, np.eye(4), model_path, depth=0)
            if included is not None:
                models.append(included)
        elif element.tag == "model":
            models.append(_model(path, element, np.eye(4), model_path, depth=0))
    return models


_BARE_AMPERSAND = re.compile(rb"&(?!#?\w+;)")


def _read_xml(path: Path) -> Element:
    """The outermost element; an ampersand that starts no entity stands for itself, as for Gazebo's own reader."""
    if not path.is_file():  # nor a device without an end
        raise SceneError(f"{path}: no such file", "check the path of the world")
    try:
        data = path.read_bytes()
        if b"<!ENTITY" in data:
            raise SceneError(f"{path}: defines entities; they can expand without end", "write their text out")
        return ElementTree.fromstring(_BARE_AMPERSAND.sub(b"&amp;", data))
    except (ElementTree.ParseError, LookupError, ValueError, OSError) as error:
        raise SceneError(f"{path}: is not valid XML: {error}", "repair the file at that place") from error


def _parse(path: Path, models: ModelPath) -> Element:
    if path not in models.parsed:
        models.parsed[path] = _read_xml(path)
    root = models.parsed[path]
    if root.tag != "sdf":
        raise SceneError(
            f"{path}: the outermost element is <{root.tag}>, not <sdf>",
            "give a Gazebo world or model.sdf; convert a URDF with `gz sdf -p`",
        )
    return root


_MAX_DEPTH = 16
_MAX_PARTS = 100_000
_MAX_NUMBER = 1e10


def _model(path: Path, element: Element, parent: Matrix, models: ModelPath, depth: int) -> PlacedModel:
    """A <model>, with nested models and includes as more of its shapes."""
    if depth > _MAX_DEPTH:
        raise SceneError(f"{path}: models include each other more than {_MAX_DEPTH} deep", "break the circle")
    name = element.get("name", path.parent.name)
    matrix = parent @ _pose(path, element)
    shapes: list[Geometry] = []
    nested: list[PlacedModel] = []
    for child in element:
        if child.tag == "link":
            link = _pose(path, child)
            for part in child:
                if part.tag in ("visual", "collision"):
                    shape = _geometry(path, part, link @ _pose(path, part), models)
                    if shape is not None:
                        shapes.append(shape)
        elif child.tag == "include":
            included = _include(path, child, np.eye(4), models, depth + 1)
            if included is not None:
                nested.append(included)
        elif child.tag == "model":
            nested.append(_model(path, child, np.eye(4), models, depth + 1))
    for inner in nested:
        shapes.extend(_moved(shape, inner.matrix) for shape in inner.shapes)
    models.parts += 1 + len(shapes)
    if models.parts > _MAX_PARTS:
        raise SceneError(f"{path}: places more than {_MAX_PARTS} models and shapes", "leave includes out")
    static = (element.findtext("static") or "0").strip().lower() in ("1", "true")
    kind = nested[0].kind if len(nested) == 1 and len(shapes) == len(nested[0].shapes) else name
    return PlacedModel(name, kind, matrix, tuple(shapes), static)


def _include(path: Path, element: Element, parent: Matrix, models: ModelPath, depth: int) -> PlacedModel | None:
    uri = (element.findtext("uri") or "").strip()
    if not uri:
        raise SceneError(f"{path}: an <include> has no <uri>", "name the model that it includes")
    folder = models.find(uri, path.parent)
    if folder is None:
        return None
    file = _model_file(folder) if folder.is_dir() else folder
    inner = _parse(file, models).find("model")
    if inner is None:
        raise SceneError(f"no <model> in {file}", "include a model, not a world")
    model = _model(file, inner, np.eye(4), models, depth + 1)
    # An include's own pose replaces the model's, as in Gazebo.
    matrix = model.matrix if element.find("pose") is None else _pose(path, element)
    static = element.findtext("static")
    return PlacedModel(
        (element.findtext("name") or model.name).strip(),
        folder.name if folder.is_dir() else model.name,
        parent @ matrix,
        model.shapes,
        model.static if static is None else static.strip().lower() in ("1", "true"),
    )


def _model_file(folder: Path) -> Path:
    """The SDF that a model folder's model.config names; the last of several versions."""
    listing = folder / "model.config"
    if listing.is_file():
        names = [(entry.text or "").strip() for entry in _read_xml(listing).iter("sdf")]
        found = [folder / name for name in names if name and os.path.isfile(folder / name)]
        if found:
            return found[-1]
    return folder / "model.sdf"


def _moved(shape: Geometry, matrix: Matrix) -> Geometry:
    return Geometry(shape.role, shape.kind, matrix @ shape.matrix, shape.file, shape.scale, shape.size, shape.rgba)


def _geometry(path: Path, part: Element, matrix: Matrix, models: ModelPath) -> Geometry | None:
    """The shape of a <visual> or <collision>; None for an empty one, or a mesh that is not there."""
    role: Literal["visual", "collision"] = "visual" if part.tag == "visual" else "collision"
    rgba = _color(path, part) if role == "visual" else None
    for element in part.find("geometry") or ():
        if element.tag == "mesh":
            uri = (element.findtext("uri") or "").strip()
            file = models.find(uri, path.parent)
            if file is None:
                return None
            x, y, z = _numbers(path, element.find("scale"), 3, (1.0, 1.0, 1.0))
            return Geometry(role, "mesh", matrix, file, (x, y, z), rgba=rgba)
        if element.tag == "box":
            x, y, z = _numbers(path, element.find("size"), 3, (1.0, 1.0, 1.0))
            return Geometry(role, "box", matrix, size=(x, y, z), rgba=rgba)
        if element.tag == "cylinder":
            (radius,) = _numbers(path, element.find("radius"), 1, (0.5,))
            (length,) = _numbers(path, element.find("length"), 1, (1.0,))
            return Geometry(role, "cylinder", matrix, size=(radius, radius, length), rgba=rgba)
        if element.tag == "sphere":
            (radius,) = _numbers(path, element.find("radius"), 1, (0.5,))
            return Geometry(role, "sphere", matrix, size=(radius,) * 3, rgba=rgba)
        if element.tag == "plane":
            x, y = _numbers(path, element.find("size"), 2, (1.0, 1.0))
            normal = np.array(_numbers(path, element.find("normal"), 3, (0.0, 0.0, 1.0)))
            if not normal.any():
                raise SceneError(f"{path}: a plane of {part.get('name')!r} has the normal 0 0 0", "give its direction")
            turn = np.eye(4)
            turn[:3, :3] = Rotation.align_vectors([normal], [[0.0, 0.0, 1.0]])[0].as_matrix()
            return Geometry(role, "plane", matrix @ turn, size=(x, y, 0.0), rgba=rgba)
        if element.tag != "empty":
            raise SceneError(
                f"{path}: geometry <{element.tag}> of {part.get('name')!r} is not supported",
                "replace it by a mesh, box, cylinder, sphere or plane",
            )
    return None


def _color(path: Path, part: Element) -> tuple[float, float, float, float] | None:
    diffuse = part.find("material/diffuse")
    if diffuse is None:
        return None
    r, g, b, *alpha = _numbers(path, diffuse, None, (1.0, 1.0, 1.0, 1.0))
    return r, g, b, alpha[0] if alpha else 1.0


def _pose(path: Path, element: Element) -> Matrix:
    """The 4x4 matrix of an element's <pose>: x y z roll pitch yaw, fixed axes, radians."""
    pose = element.find("pose")
    if pose is None:
        return np.eye(4)
    frame = pose.get("frame") or pose.get("relative_to")
    if frame and frame not in ("__model__", "world"):
        raise SceneError(
            f"{path}: the pose of {element.get('name')!r} is relative to frame {frame!r}",
            "resolve frames first: `gz sdf -p` writes poses relative to their parents",
        )
    x, y, z, roll, pitch, yaw = _numbers(path, pose, 6, (0.0,) * 6)
    degrees = (pose.get("degrees") or "false").lower() in ("1", "true")
    matrix = np.eye(4)
    matrix[:3, :3] = Rotation.from_euler("xyz", [roll, pitch, yaw], degrees=degrees).as_matrix()
    matrix[:3, 3] = x, y, z
    return matrix


def _numbers(path: Path, element: Element | None, count: int | None, default: tuple[float, ...]) -> tuple[float, ...]:
    if element is None or not (element.text or "").strip():
        return default
    try:
        values = tuple(float(word) for word in (element.text or "").split())
    except ValueError:
        values = ()
    if not values or (count is not None and len(values) != count) or not (np.abs(values) < _MAX_NUMBER).all():
        wanted = f"{count} numbers" if count else "numbers"
        raise SceneError(
            f"{path}: <{element.tag}>{element.text:.200}</{element.tag}> is not {wanted}", "correct it there"
        )
    return values
