"""Meshes and worlds that state more than any scene has are refused before they take memory or time."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest
from raising import raises_naming

from robot_runtime.errors import SceneError
from sim_bridge.scenes import sdf
from sim_bridge.scenes.mesh_files import load_mesh, read_image
from sim_bridge.scenes.sdf import ModelPath, read_world

LAUGHS = (
    '<!DOCTYPE x [<!ENTITY a0 "ha">' + "".join(f'<!ENTITY a{i} "&a{i - 1};&a{i - 1};">' for i in range(1, 9)) + "]>"
)


def glb(path: Path, document: dict[str, Any]) -> Path:
    text = json.dumps({"asset": {"version": "2.0"}, **document}).encode()
    text += b" " * (-len(text) % 4)
    path.write_bytes(struct.pack("<4sIIII", b"glTF", 2, 20 + len(text), len(text), 0x4E4F534A) + text)
    return path


def test_an_accessor_of_two_billion_vectors(tmp_path: Path) -> None:
    accessor = {"componentType": 5126, "count": 2_000_000_000, "type": "VEC3"}
    document = {
        "accessors": [accessor],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}],
        "nodes": [{"mesh": 0}],
        "scenes": [{"nodes": [0]}],
    }
    with raises_naming(SceneError, "a.glb", 2_000_000_000):
        load_mesh(glb(tmp_path / "a.glb", document), [])


@pytest.mark.parametrize("children", [[[i + 1, i + 1] for i in range(40)] + [[]], [[1], [0]]])
def test_nodes_that_place_each_other(tmp_path: Path, children: list[list[int]]) -> None:
    document = {"nodes": [{"children": some} for some in children], "scenes": [{"nodes": [0]}]}
    with raises_naming(SceneError, "a.glb", "node"):
        load_mesh(glb(tmp_path / "a.glb", document), [])


def test_collada_with_entities_and_with_nodes_that_place_each_other(tmp_path: Path) -> None:
    path = tmp_path / "a.dae"
    path.write_text(f"{LAUGHS}<COLLADA><asset>&a8;</asset></COLLADA>")
    with raises_naming(SceneError, path, "entities"):
        load_mesh(path, [])
    nodes = "".join(
        f'<node id="n{i}">' + f'<instance_node url="#n{i + 1}"/>' * 2 * (i < 40) + "</node>" for i in range(41)
    )
    path.write_text(
        '<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1"><library_nodes>'
        f"{nodes}</library_nodes></COLLADA>"
    )
    with raises_naming(SceneError, path, "nodes"):
        load_mesh(path, [])


def test_a_texture_of_a_billion_pixels(tmp_path: Path) -> None:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    path = tmp_path / "bomb.png"
    header = struct.pack(">IIBBBBB", 9000, 9000, 8, 0, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(9001 * 9000))))
    with raises_naming(SceneError, path, "9000x9000"):
        read_image(path)


def world(folder: Path, content: str) -> Path:
    path = folder / "site.world"
    path.write_text(
        content if content.startswith("<!") else f"<sdf version='1.6'><world name='w'>{content}</world></sdf>"
    )
    return path


def test_includes_that_multiply(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten in each of seven levels: ten million models, of which no more are read than the limit."""
    monkeypatch.setattr(sdf, "_MAX_PARTS", 1000)
    for level in range(8):
        (tmp_path / f"m{level}").mkdir()
        inner = f"<include><uri>model://m{level + 1}</uri></include>" * 10 if level < 7 else ""
        (tmp_path / f"m{level}" / "model.sdf").write_text(f"<sdf version='1.6'><model name='m'>{inner}</model></sdf>")
    path = world(tmp_path, "<include><uri>model://m0</uri></include>")
    models = ModelPath.near(path, [])
    with raises_naming(SceneError, "places more than 1000"):
        read_world(path, models)
    assert models.parts == 1001


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (f"{LAUGHS}<sdf>&a8;</sdf>", "entities"),
        ("<include><uri>file:///dev/zero</uri></include>", "/dev/zero"),
        ("<model name='m'><pose>1e300 0 0 0 0 0</pose></model>", "1e300"),
    ],
)
def test_other_hostile_worlds(tmp_path: Path, content: str, named: str) -> None:
    path = world(tmp_path, content)
    with raises_naming(SceneError, named):
        read_world(path, ModelPath.near(path, []))


def test_a_name_that_no_file_can_have_is_of_a_missing_model(tmp_path: Path) -> None:
    path = world(tmp_path, f"<include><uri>{'m' * 5000}</uri></include>")
    models = ModelPath.near(path, [])
    assert read_world(path, models) == []
    assert len(models.missing) == 1
