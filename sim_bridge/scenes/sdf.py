"""Gazebo worlds: SDF 1.4 to 1.11 with ``model://``, ``file://`` and Fuel names, as a flat list of placed models.

Read: models and includes at any depth, poses and frames, the saved state, links, visuals and collisions with mesh, box,
cylinder, sphere and plane geometry, scales, diffuse colors. What else a file declares is listed
(:class:`~sim_bridge.scenes.sdf_elements.Unread`): lights, physics, plugins, joints (all stands where it is placed).
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit
from xml.etree.ElementTree import Element

import numpy as np
from scipy.spatial.transform import Rotation

from robot_runtime.errors import SceneError
from sim_bridge.scenes.sdf_elements import NEWEST_VERSION, Frames, Matrix, Unread, numbers, pose, read_xml


@dataclass(frozen=True)
class Geometry:
    """One shape of a link.

    Attributes:
        kind: ``mesh`` (``file``, ``scale``), ``box`` (``size`` = edges), ``cylinder`` (radius, radius, length),
            ``sphere`` (radius three times), ``plane`` (x, y, 0; facing its own +z).
        submesh: name of the part of a mesh that is meant; empty for all.
        centered: whether that part is moved to the origin.
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
    submesh: str = ""
    centered: bool = False


@dataclass(frozen=True)
class PlacedModel:
    """A model in the world.

    Attributes:
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
        models: folders of ``model://NAME``: those given, those near the world file, those of Gazebo's variables.
        resources: folders that a relative ``file://PATH`` starts from: those given, those that hold a folder of
            ``models``, those of Gazebo's variables.
        caches: folders in which Gazebo keeps what it has loaded from Fuel.
        missing: names that were asked for and not found.
        parsed: files read so far, each once.
        parts: models and shapes placed so far.
        unread: account of what is not read.
    """

    models: list[Path]
    resources: list[Path]
    caches: list[Path] = field(default_factory=list)
    missing: dict[str, None] = field(default_factory=dict)
    parsed: dict[Path, Element] = field(default_factory=dict)
    parts: int = 0
    unread: Unread = field(default_factory=Unread)

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
            *_environment("GAZEBO_MODEL_PATH", *_NEW_GAZEBO),
        ]
        resources = [*given, *(folder.parent for folder in models)]
        resources += _environment("GAZEBO_RESOURCE_PATH", *_NEW_GAZEBO)
        caches = [*_environment("GZ_FUEL_CACHE_PATH", "IGN_FUEL_CACHE_PATH"), *_FUEL_CACHES]
        return cls(_existing(models), _existing(resources), _existing(folder.expanduser() for folder in caches))

    def find(self, uri: str, beside: Path) -> Path | None:
        """The file or folder that a URI names; None, noted in ``missing``, without one."""
        scheme, separator, rest = uri.partition("://")
        if not separator:
            candidates = [beside / uri]
        elif scheme == "file":
            candidates = [folder / rest for folder in (*self.resources, beside)]  # an absolute path stays as it is
        elif scheme in ("http", "https", "fuel"):
            candidates = [path for cache in self.caches for path in _in_fuel_cache(cache, uri)]
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


_NEW_GAZEBO = ("GZ_SIM_RESOURCE_PATH", "IGN_GAZEBO_RESOURCE_PATH", "SDF_PATH")
_FUEL_CACHES = (Path("~/.gz/fuel"), Path("~/.ignition/fuel"))


def _environment(*variables: str) -> list[Path]:
    entries = [entry for name in variables for entry in os.environ.get(name, "").split(os.pathsep)]
    return [Path(entry) for entry in entries if entry]


def _in_fuel_cache(cache: Path, uri: str) -> list[Path]:
    """Where Gazebo keeps a model of Fuel, or a file of it: SERVER/OWNER/models/NAME/VERSION, in small letters."""
    parts = urlsplit(uri)
    names = [name for name in unquote(parts.path).split("/") if name and name not in (".", "..")]
    if names and names[0].replace(".", "").isdigit():  # the version of the server's interface
        names = names[1:]
    if len(names) < 3 or names[1] != "models":
        return []
    owner, _, model, *rest = names
    folder = cache / parts.netloc.lower() / owner.lower() / "models" / model.lower()
    version, inner = (rest[0], rest[1:]) if rest and (rest[0].isdigit() or rest[0] == "tip") else ("tip", rest)
    inner = inner[1:] if inner[:1] == ["files"] else inner
    found = [entry for entry in folder.iterdir() if entry.name.isdigit()] if folder.is_dir() else []
    newest = sorted(found, key=lambda entry: -int(entry.name))
    return [entry.joinpath(*inner) for entry in newest if version in ("tip", entry.name)]


def read_world(path: Path, model_path: ModelPath) -> list[PlacedModel]:
    """All models of a world file (or the one of a model file), in document order.

    Names that cannot be found are left in ``model_path.missing``, and their models out; what is not read is in
    ``model_path.unread``.

    Raises:
        SceneError: not XML, not SDF, a pose or size that is not numbers, or a frame that is not there.
    """
    root = _parse(path, model_path)
    worlds = root.findall("world")
    for further in worlds[1:]:
        model_path.unread.add("world", path, further, root)
    top = worlds[0] if worlds else root
    state = _State(path, top.find("state"), model_path.unread)
    if worlds:
        model_path.unread.check(path, top)
    elements = [element for element in (*top, *state.inserted) if element.get("name") not in state.deleted]
    return _contents(path, elements, Frames(path, f"world {top.get('name')!r}"), model_path, 0, state)


class _State:
    """The saved state of a world, which replaces the poses of models and links, and adds and removes models.

    Attributes:
        models: pose in the world, and those of the links, by the model's name.
        inserted: models that were added.
        deleted: names of models that were removed.
    """

    def __init__(self, path: Path, element: Element | None, unread: Unread) -> None:
        self.models: dict[str, tuple[Matrix, dict[str, Matrix]]] = {}
        self.inserted: list[Element] = []
        self.deleted: set[str] = set()
        if element is None:
            return
        unread.check(path, element)
        self.inserted = [*element.iterfind("insertions/model"), *element.iterfind("insertions/include")]
        self.deleted = {(name.text or "").strip() for name in element.iterfind("deletions/name")}
        for model in element.findall("model"):
            scale = model.find("scale")
            if scale is not None and set(numbers(path, scale, 3, (1.0,) * 3)) != {1.0}:
                unread.add("scale", path, scale, model)
            for inner in model.findall("model"):
                unread.add("model", path, inner, model)
            links = {link.get("name", ""): pose(path, link)[0] for link in model.findall("link") if _has_pose(link)}
            if _has_pose(model):
                self.models[model.get("name", "")] = pose(path, model)[0], links


_NO_STATE = _State(Path(), None, Unread())


def _has_pose(element: Element) -> bool:
    return element.find("pose") is not None


def _contents(
    path: Path, elements: Iterable[Element], frames: Frames, models: ModelPath, depth: int, state: _State = _NO_STATE
) -> list[PlacedModel]:
    """The models and includes among elements, placed in the frame of what holds them; adds them to its frames."""
    found: list[tuple[_Model, Matrix, str]] = []
    for element in elements:
        if element.tag == "frame":
            matrix, relative_to = pose(path, element)
            frames.add(element.get("name", ""), matrix, relative_to or element.get("attached_to", ""))
            continue
        if element.tag not in ("model", "include"):
            continue
        name = (element.get("name") or element.findtext("name") or "").strip()
        moved, links = state.models.get(name, (None, {}))
        inside = {} if moved is None else {link: np.linalg.inv(moved) @ matrix for link, matrix in links.items()}
        model = (
            _included(path, element, models, depth, inside)
            if element.tag == "include"
            else _model(path, element, models, depth, inside)
        )
        if model is None:
            continue
        matrix, relative_to = (model.matrix, model.relative_to) if moved is None else (moved, "")
        if moved is None and model.placement_frame:
            matrix = matrix @ np.linalg.inv(model.frames.resolve(model.placement_frame))
        frames.add(model.name, matrix, relative_to, model.frames.resolve)
        found.append((model, matrix, relative_to))
    return [
        PlacedModel(model.name, model.kind, frames.resolve(relative_to) @ matrix, model.shapes, model.static)
        for model, matrix, relative_to in found
    ]


def _parse(path: Path, models: ModelPath) -> Element:
    if path not in models.parsed:
        root = models.parsed[path] = read_xml(path)
        if root.tag == "sdf":
            models.unread.check(path, root)
            version = root.get("version", "1.4").split(".")
            if all(part.isdigit() for part in version[:2]) and tuple(map(int, version[:2])) > NEWEST_VERSION:
                newest = ".".join(map(str, NEWEST_VERSION))
                models.unread.add(f"sdf version={root.get('version')!r}: newer than {newest}", path, root, root)
    root = models.parsed[path]
    if root.tag != "sdf":
        raise SceneError(
            f"{path}: the outermost element is <{root.tag}>, not <sdf>",
            "give a Gazebo world or model.sdf; convert a URDF with `gz sdf -p`",
        )
    return root


_MAX_DEPTH = 16
_MAX_PARTS = 100_000


@dataclass(frozen=True)
class _Model:
    """A model in its own frame, and its place: a pose, the frame of that pose, and its own frame that is meant."""

    name: str
    kind: str
    shapes: tuple[Geometry, ...]
    static: bool
    frames: Frames
    matrix: Matrix
    relative_to: str
    placement_frame: str


def _model(path: Path, element: Element, models: ModelPath, depth: int, links: Mapping[str, Matrix]) -> _Model:
    """A <model>, with nested models and includes as more of its shapes.

    Args:
        path: path of the file.
        element: the <model>.
        models: folders, and accounts of what was read.
        depth: number of models around it.
        links: poses of links in the model's frame that replace those in the file.
    """
    if depth > _MAX_DEPTH:
        raise SceneError(f"{path}: models include each other more than {_MAX_DEPTH} deep", "break the circle")
    models.unread.check(path, element)
    name = element.get("name", path.parent.name)
    frames = Frames(path, f"model {name!r}")
    for link in element.findall("link"):
        matrix, relative_to = pose(path, link)
        stated = links.get(link.get("name", ""))
        frames.add(link.get("name", ""), *((matrix, relative_to) if stated is None else (stated, "")))
    nested = _contents(path, element, frames, models, depth + 1)
    shapes = [shape for link in element.findall("link") for shape in _link(path, link, frames, models)]
    for inner in nested:
        shapes.extend(_moved(shape, inner.matrix) for shape in inner.shapes)
    models.parts += 1 + len(shapes)
    if models.parts > _MAX_PARTS:
        raise SceneError(f"{path}: places more than {_MAX_PARTS} models and shapes", "leave includes out")
    kind = nested[0].kind if len(nested) == 1 and len(shapes) == len(nested[0].shapes) else name
    static = _is_true(element.findtext("static"))
    return _Model(name, kind, tuple(shapes), static, frames, *pose(path, element), element.get("placement_frame", ""))


def _link(path: Path, link: Element, frames: Frames, models: ModelPath) -> list[Geometry]:
    models.unread.check(path, link)
    at = frames.resolve(link.get("name", ""))
    shapes = []
    for part in link:
        if part.tag in ("visual", "collision"):
            models.unread.check(path, part)
            matrix, relative_to = pose(path, part)
            shape = _geometry(path, part, (frames.resolve(relative_to) if relative_to else at) @ matrix, models)
            if shape is not None:
                shapes.append(shape)
    return shapes


def _included(
    path: Path, element: Element, models: ModelPath, depth: int, links: Mapping[str, Matrix]
) -> _Model | None:
    uri = (element.findtext("uri") or "").strip()
    if not uri:
        raise SceneError(f"{path}: an <include> has no <uri>", "name the model that it includes")
    models.unread.check(path, element)
    folder = models.find(uri, path.parent)
    if folder is None:
        return None
    file = _model_file(folder) if folder.is_dir() else folder
    inner = _parse(file, models).find("model")
    if inner is None:
        raise SceneError(f"no <model> in {file}", "include a model, not a world")
    model = _model(file, inner, models, depth + 1, links)
    # An include's own pose replaces the model's, as in Gazebo.
    placed = pose(path, element) if _has_pose(element) else (model.matrix, model.relative_to)
    static = element.findtext("static")
    return _Model(
        (element.findtext("name") or model.name).strip(),
        inner.get("name", folder.name) if uri.startswith("http") else folder.name if folder.is_dir() else model.name,
        model.shapes,
        model.static if static is None else _is_true(static),
        model.frames,
        *placed,
        (element.findtext("placement_frame") or model.placement_frame).strip(),
    )


def _is_true(text: str | None) -> bool:
    return (text or "").strip().lower() in ("1", "true")


def _model_file(folder: Path) -> Path:
    """The SDF that a model folder's model.config names; the last of several versions."""
    listing = folder / "model.config"
    if listing.is_file():
        names = [(entry.text or "").strip() for entry in read_xml(listing).iter("sdf")]
        found = [folder / name for name in names if name and os.path.isfile(folder / name)]
        if found:
            return found[-1]
    return folder / "model.sdf"


def _moved(shape: Geometry, matrix: Matrix) -> Geometry:
    return replace(shape, matrix=matrix @ shape.matrix)


def _geometry(path: Path, part: Element, matrix: Matrix, models: ModelPath) -> Geometry | None:
    """The shape of a <visual> or <collision>; None for an empty one, or a mesh that is not there."""
    role: Literal["visual", "collision"] = "visual" if part.tag == "visual" else "collision"
    rgba = _color(path, part, models) if role == "visual" else None
    for element in part.find("geometry") or ():
        if element.tag == "mesh":
            uri = (element.findtext("uri") or "").strip()
            file = models.find(uri, path.parent)
            if file is None:
                return None
            x, y, z = numbers(path, element.find("scale"), 3, (1.0, 1.0, 1.0))
            submesh = (element.findtext("submesh/name") or "").strip()
            centered = _is_true(element.findtext("submesh/center"))
            return Geometry(role, "mesh", matrix, file, (x, y, z), (0.0,) * 3, rgba, submesh, centered)
        if element.tag == "box":
            x, y, z = numbers(path, element.find("size"), 3, (1.0, 1.0, 1.0))
            return Geometry(role, "box", matrix, size=(x, y, z), rgba=rgba)
        if element.tag == "cylinder":
            (radius,) = numbers(path, element.find("radius"), 1, (0.5,))
            (length,) = numbers(path, element.find("length"), 1, (1.0,))
            return Geometry(role, "cylinder", matrix, size=(radius, radius, length), rgba=rgba)
        if element.tag == "sphere":
            (radius,) = numbers(path, element.find("radius"), 1, (0.5,))
            return Geometry(role, "sphere", matrix, size=(radius,) * 3, rgba=rgba)
        if element.tag == "plane":
            x, y = numbers(path, element.find("size"), 2, (1.0, 1.0))
            normal = np.array(numbers(path, element.find("normal"), 3, (0.0, 0.0, 1.0)))
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


def _color(path: Path, part: Element, models: ModelPath) -> tuple[float, float, float, float] | None:
    for material in part.findall("material"):
        models.unread.check(path, material)
    diffuse = part.find("material/diffuse")
    if diffuse is None:
        return None
    r, g, b, *alpha = numbers(path, diffuse, None, (1.0, 1.0, 1.0, 1.0))
    return r, g, b, alpha[0] if alpha else 1.0
