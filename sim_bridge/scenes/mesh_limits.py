"""Limits of mesh files of unknown origin, checked before a library builds what they describe.

A few lines of glTF or COLLADA can state billions of vertices, or nodes that place each other twice, thirty levels deep.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

MAX_TRIANGLES = 2_000_000
"""More than this neither renders at a usable rate nor fits the memory budget of a run."""

MAX_NUMBERS = 16 * 3 * MAX_TRIANGLES
"""Of all accessors of a glTF file: the corners of the triangles, with normals, coordinates and colors."""

MAX_NODES = 100_000
_GLB_HEADER = struct.Struct("<4sIIII")


def check_gltf(path: Path) -> None:
    """Check the sizes and the nodes that a glTF or GLB file states.

    Raises:
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


def check_collada(data: bytes) -> None:
    """Check the entities and the nodes of a COLLADA file.

    Raises:
        ValueError: it defines entities, or its nodes are too many.
        ElementTree.ParseError: it is not XML.
    """
    if b"<!ENTITY" in data:
        raise ValueError("it defines entities, which no exporter does")
    children: dict[str, list[str]] = {}
    for node in ElementTree.fromstring(data).iter():
        if node.tag.endswith("}node"):
            placed = [inner.get("url", "").lstrip("#") for inner in node.iter() if inner.tag.endswith("}instance_node")]
            children.setdefault(node.get("id") or str(len(children)), []).extend(placed)
    check_tree(children)


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


def _count(accessor: Mapping[str, Any]) -> int:
    count = accessor.get("count")
    if type(count) is not int or count < 0:
        raise ValueError(f"an accessor holds {count!r:.80} vectors")
    return count
