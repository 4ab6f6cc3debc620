"""Elements of SDF files: XML, numbers, poses and frames, and an account of what is not read.

Format: http://sdformat.org/spec, versions 1.4 to 1.11.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from robot_runtime.errors import SceneError

Matrix = NDArray[np.float64]

NEWEST_VERSION = (1, 11)

READ: Mapping[str, frozenset[str]] = {
    "sdf": frozenset({"world", "model"}),
    "world": frozenset({"model", "include", "frame", "state"}),
    "state": frozenset({"model", "insertions", "deletions", "sim_time", "wall_time", "real_time", "iterations"}),
    "model": frozenset({"link", "model", "include", "frame", "pose", "static"}),
    "include": frozenset({"uri", "name", "pose", "placement_frame", "static"}),
    "link": frozenset({"visual", "collision", "pose"}),
    "visual": frozenset({"geometry", "pose", "material"}),
    "collision": frozenset({"geometry", "pose"}),
    "material": frozenset({"diffuse"}),
}
"""Elements that are read, by the element that holds them. Others are listed, so that nothing is skipped in silence."""

_MAX_NUMBER = 1e10
_BARE_AMPERSAND = re.compile(rb"&(?!#?\w+;)")


@dataclass
class Unread:
    """Account of the elements that are not read."""

    found: dict[str, tuple[int, str]] = field(default_factory=dict)

    def check(self, path: Path, element: Element) -> None:
        """Count the children of an element that are not read."""
        known = READ[element.tag]
        for child in element:
            if isinstance(child.tag, str) and child.tag not in known:
                self.add(child.tag, path, child, element)

    def add(self, tag: str, path: Path, element: Element, parent: Element) -> None:
        """Count one more element."""
        count, first = self.found.get(tag, (0, ""))
        holder = f"<{parent.tag} name={parent.get('name')!r}>" if parent.get("name") else f"<{parent.tag}>"
        name = f" {element.get('name')!r}" if element.get("name") else ""
        self.found[tag] = (count + 1, first or f"{path.name}:{name} in {holder}")

    def notes(self, source: Path) -> list[str]:
        """A line for each tag."""
        return [
            f"{source.name}: not read: <{tag}> ({count}, first {first})" for tag, (count, first) in self.found.items()
        ]


def read_xml(path: Path) -> Element:
    """The outermost element; an ampersand that starts no entity stands for itself, as for Gazebo's own reader.

    Raises:
        SceneError: no such file, not XML, or it defines entities.
    """
    if not path.is_file():  # nor a device without an end
        raise SceneError(f"{path}: no such file", "check the path of the world")
    try:
        data = path.read_bytes()
        if b"<!ENTITY" in data:
            raise SceneError(f"{path}: defines entities; they can expand without end", "write their text out")
        return ElementTree.fromstring(_BARE_AMPERSAND.sub(b"&amp;", data))
    except (ElementTree.ParseError, LookupError, ValueError, OSError) as error:
        raise SceneError(f"{path}: is not valid XML: {error}", "repair the file at that place") from error


def numbers(path: Path, element: Element | None, count: int | None, default: tuple[float, ...]) -> tuple[float, ...]:
    """The numbers in an element's text; ``default`` where there is no text. Raises ``SceneError``."""
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


def pose(path: Path, element: Element) -> tuple[Matrix, str]:
    """The 4x4 matrix of an element's <pose>, and the frame that it is relative to; empty for the default.

    The pose is x y z roll pitch yaw about fixed axes in radians, or by ``degrees`` and ``rotation_format`` otherwise.
    """
    found = element.find("pose")
    if found is None:
        return np.eye(4), ""
    matrix = np.eye(4)
    form = found.get("rotation_format", "euler_rpy")
    if form == "quat_xyzw":
        x, y, z, *quaternion = numbers(path, found, 7, (0.0,) * 6 + (1.0,))
        if not 0.9 < float(np.linalg.norm(quaternion)) < 1.1:
            raise SceneError(
                f"{path}: <pose>{found.text:.200}</pose> has no unit quaternion x y z w", "correct it there"
            )
        matrix[:3, :3] = Rotation.from_quat(quaternion).as_matrix()
    elif form == "euler_rpy":
        x, y, z, *angles = numbers(path, found, 6, (0.0,) * 6)
        degrees = (found.get("degrees") or "false").lower() in ("1", "true")
        matrix[:3, :3] = Rotation.from_euler("xyz", angles, degrees=degrees).as_matrix()
    else:
        raise SceneError(f"{path}: a <pose> has the rotation_format {form!r}", "use euler_rpy or quat_xyzw")
    matrix[:3, 3] = x, y, z
    relative_to = found.get("relative_to") or found.get("frame") or ""
    return matrix, "" if relative_to in ("__model__", "world") else relative_to


class Frames:
    """The frames of a model or a world, by name, resolved when they are asked for."""

    def __init__(self, path: Path, where: str) -> None:
        self._path, self._where = path, where
        self._stated: dict[str, tuple[Matrix, str]] = {}
        self._inner: dict[str, Callable[[str], Matrix]] = {}
        self._resolving: list[str] = []

    def add(self, name: str, matrix: Matrix, relative_to: str, inner: Callable[[str], Matrix] | None = None) -> None:
        """Add a frame by its pose in another; ``inner`` resolves the frames ``name::...`` that it holds."""
        self._stated[name] = matrix, relative_to
        if inner is not None:
            self._inner[name] = inner

    def resolve(self, name: str) -> Matrix:
        """The 4x4 matrix of a frame. Raises ``SceneError``: it is unknown, or relative to itself."""
        if not name or name == "__model__":
            return np.eye(4)
        outer, separator, rest = name.partition("::")
        if separator and outer in self._inner:
            return self.resolve(outer) @ self._inner[outer](rest)
        if name not in self._stated:
            known = ", ".join(self._stated) or "none"
            raise SceneError(
                f"{self._path}: {self._where}: there is no frame {name!r}", f"name one of its frames: {known:.300}"
            )
        if name in self._resolving:
            circle = " -> ".join((*self._resolving, name))
            raise SceneError(
                f"{self._path}: {self._where}: frames are relative to each other: {circle}", "break the circle"
            )
        matrix, relative_to = self._stated[name]
        self._resolving.append(name)
        try:
            return self.resolve(relative_to) @ matrix
        finally:
            self._resolving.pop()
