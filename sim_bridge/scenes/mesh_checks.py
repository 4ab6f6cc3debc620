"""Checks of mesh files of unknown origin, before a library builds what they state: sizes, nodes, what is not read.

A few lines of glTF or COLLADA can state billions of vertices, or nodes that place each other twice, thirty levels deep.
"""

import json
import re
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from robot_runtime.errors import SceneError

MAX_TRIANGLES = 2_000_000
"""More than this neither renders at a usable rate nor fits the memory budget of a run."""

MAX_NUMBERS = 16 * 3 * MAX_TRIANGLES
"""Of all accessors of a glTF file: the corners of the triangles, with normals, coordinates and colors."""

MAX_NODES = 100_000
_GLB_HEADER = struct.Struct("<4sIIII")

_READ_EXTENSIONS = frozenset(
    {
        "KHR_materials_unlit",
        "KHR_materials_pbrSpecularGlossiness",
        "KHR_materials_emissive_strength",
        "EXT_texture_webp",
    }
)
"""Extensions of glTF 2.0 that are read, or change nothing that a scene has."""

_CONVERSIONS = {
    "KHR_draco_mesh_compression": "decode it, as `gltf-pipeline -i FILE -o OUT.glb` does",
    "KHR_texture_basisu": "use the file with PNG or JPEG textures: HM3D has NAME.glb next to NAME.basis.glb",
}
_EXPORT_AGAIN = "export it again without this extension, for instance from Blender"


def check_gltf(path: Path) -> list[str]:
    """Check the sizes, the nodes and the extensions that a glTF or GLB file states.

    Returns:
        What the file uses and can do without, and what is not read.

    Raises:
        SceneError: it requires an extension that is not read (glTF 2.0, section 3.12); names the tool that converts it.
        ValueError: it is damaged or beyond a limit.
    """
    data = path.read_bytes()
    if path.suffix.lower() == ".glb":
        magic, _, _, length, _ = _GLB_HEADER.unpack_from(data)
        if magic != b"glTF":
            raise ValueError("it does not begin like a GLB file")
        data = data[_GLB_HEADER.size : _GLB_HEADER.size + length]
    document = json.loads(data)
    numbers = sum(_count(accessor) for accessor in _items(document, "accessors"))
    if numbers > MAX_NUMBERS:
        raise ValueError(f"its accessors hold {numbers} vectors, at most {MAX_NUMBERS} are read")
    nodes = _items(document, "nodes")
    children = {str(index): [str(child) for child in node.get("children", ())] for index, node in enumerate(nodes)}
    check_tree(children)
    used, required = (_names(document, field) for field in ("extensionsUsed", "extensionsRequired"))
    for name in required:
        if name not in _READ_EXTENSIONS:
            raise SceneError(
                f"{path}: requires the glTF extension {name}, which is not read", _CONVERSIONS.get(name, _EXPORT_AGAIN)
            )
    unread = [f"the glTF extension {name}" for name in used if name not in _READ_EXTENSIONS]
    other = {name: len(_items(document, name)) for name in ("animations", "skins", "cameras")}
    primitives = [part for mesh in _items(document, "meshes") for part in _items(mesh, "primitives")]
    other["lines and points"] = sum(part.get("mode") in _LINES_AND_POINTS for part in primitives)
    return unread + [f"{name} ({count})" for name, count in other.items() if count]


_READ_COLLADA = frozenset(
    {
        *("asset", "library_images", "library_materials", "library_effects", "library_geometries", "library_nodes"),
        *("library_visual_scenes", "scene", "extra", "source", "vertices", "triangles", "polylist", "polygons"),
    }
)
"""Elements of a COLLADA file and of its meshes that are read, or change nothing."""


def check_collada(data: bytes) -> list[str]:
    """Check the entities and the nodes of a COLLADA file.

    Returns:
        What the file and its meshes have besides, and what is not read.

    Raises:
        ValueError: it defines entities, or its nodes are too many.
        ElementTree.ParseError: it is not XML.
    """
    if b"<!ENTITY" in data:
        raise ValueError("it defines entities; no exporter does")
    children: dict[str, list[str]] = {}
    root = ElementTree.fromstring(data)
    unread: Counter[str] = Counter()
    for node in root.iter():
        if node is root or node.tag.endswith("}mesh"):
            unread.update(name for child in node if (name := child.tag.rpartition("}")[2]) not in _READ_COLLADA)
        if node.tag.endswith("}node"):
            placed = [inner.get("url", "").lstrip("#") for inner in node.iter() if inner.tag.endswith("}instance_node")]
            children.setdefault(node.get("id") or str(len(children)), []).extend(placed)
    check_tree(children)
    return [f"<{name}> ({count})" for name, count in unread.items()]


_OBJ_UNREAD = re.compile(rb"^(?!(?:v|vt|vn|f|o|g|s|usemtl|mtllib)\s|#|\s)([^\s]+)", re.MULTILINE)
_PLY_ELEMENT = re.compile(rb"^element\s+(\S+)\s+(\d+)", re.MULTILINE)
_LINES_AND_POINTS = (0, 1, 2, 3)


def unread_statements(path: Path) -> list[str]:
    """What an OBJ or PLY file has besides triangles and their appearance, and what is not read."""
    if path.suffix.lower() == ".obj":
        words = Counter(word.decode(errors="replace") for word in _OBJ_UNREAD.findall(path.read_bytes()))
        return [f"the statement {word!r:.40} ({count})" for word, count in words.items()]
    if path.suffix.lower() == ".ply":
        head = path.read_bytes().partition(b"end_header")[0]
        elements = [(name.decode(errors="replace"), int(count)) for name, count in _PLY_ELEMENT.findall(head)]
        return [f"the element {name!r} ({count})" for name, count in elements if name not in ("vertex", "face")]
    return []


def check_tree(children: Mapping[str, Sequence[str]]) -> None:
    """Count the nodes that a scene has when each is placed by all its parents.

    Raises:
        ValueError: a node holds itself, or there are more than ``MAX_NODES``.
    """
    sizes: dict[str, int] = {}
    for root in children:
        path = [root]
        while path:
            node = path[-1]
            waiting = [child for child in children.get(node, ()) if child not in sizes]
            if waiting:
                if waiting[0] in path:
                    raise ValueError(f"node {waiting[0]!r:.80} holds itself")
                path.append(waiting[0])
                continue
            sizes[path.pop()] = size = 1 + sum(sizes[child] for child in children.get(node, ()))
            if size > MAX_NODES:
                raise ValueError(f"it places more than {MAX_NODES} nodes")


def _items(document: Any, name: str) -> list[dict[str, Any]]:
    items = document.get(name, []) if isinstance(document, dict) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise ValueError(f"{name!r} is not a list of objects")
    return items


def _names(document: Mapping[str, Any], field: str) -> list[str]:
    names = document.get(field, [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{field!r} is not a list of names")
    return names


def _count(accessor: Mapping[str, Any]) -> int:
    count = accessor.get("count")
    if type(count) is not int or count < 0:
        raise ValueError(f"an accessor holds {count!r:.80} vectors")
    return count
