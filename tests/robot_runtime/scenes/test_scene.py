"""A scene folder is read whole and checked, or refused with one message."""

from __future__ import annotations

import copy
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from raising import raises_naming

from robot_runtime.common.geometry import SE2
from robot_runtime.errors import ConfigError, RuntimeFault, SceneError
from robot_runtime.scenes.occupancy_map import OccupancyMap
from robot_runtime.scenes.scene import find_scene, load_scene

DOCUMENT: dict[str, Any] = {
    "schema": 1,
    "name": "one room",
    "rooms": [{"id": "kitchen", "category": "kitchen", "polygon": [[0, 0], [4, 0], [4, 3], [0, 3]]}],
    "objects": [
        {"id": "mug_1", "category": "mug", "center": [1, 1, 0.9], "size": [0.1, 0.1, 0.1], "room": "kitchen"},
        {"id": "mug_2", "category": "mug", "center": [2, 1, 0.9], "size": [0.1, 0.1, 0.1], "yaw_deg": 30},
        {"id": "sofa", "category": "sofa", "center": [3, 2, 0.4], "size": [2, 0.9, 0.8], "movable": True},
    ],
    "frames": {"named": {"tags": [1.0, 2.0, 90.0]}},
    "materials": {"wood": {"texture": "assets/wood.png"}, "plain": {"rgba": [1, 0, 0, 1]}},
    "assets": [
        {
            "name": "sofa",
            "object": "sofa",
            "visual": [{"mesh": "assets/sofa.obj", "material": "wood"}],
            "collision": [{"shape": "mesh", "mesh": "assets/sofa_hull.obj"}, {"shape": "box", "size": [1, 1, 1]}],
        }
    ],
    "source": {"generator": "by hand"},
}
FILES = ("assets/wood.png", "assets/sofa.obj", "assets/sofa_hull.obj")


@pytest.fixture
def document() -> dict[str, Any]:
    return copy.deepcopy(DOCUMENT)


@pytest.fixture
def folder(tmp_path: Path, document: dict[str, Any]) -> Path:
    (tmp_path / "assets").mkdir()
    for name in FILES:
        (tmp_path / name).write_bytes(b"-")
    OccupancyMap(np.zeros((120, 160), np.uint8), 0.025, 0.0, 0.0).save(tmp_path / "map.yaml")
    (tmp_path / "view_points.json").write_text(json.dumps({"mug_1": [[1.0, 0.5, 1.57], [0.5, 1.0, 0.0]]}))
    return write(tmp_path, document)


def write(folder: Path, document: dict[str, Any]) -> Path:
    (folder / "scene.yaml").write_text(yaml.safe_dump(document))
    return folder


def refusal(folder: Path, error: type[RuntimeFault] = SceneError) -> RuntimeFault:
    with pytest.raises(error) as caught:
        load_scene(folder)
    assert caught.value.remedy
    assert str(folder) in caught.value.message
    return caught.value


def test_a_whole_folder_is_read(folder: Path) -> None:
    scene = load_scene(folder)
    assert scene.name == "one room"
    assert [room.id for room in scene.rooms] == ["kitchen"]
    assert scene.object("mug_2").yaw_deg == 30
    assert [item.id for item in scene.instances("mug")] == ["mug_1", "mug_2"]
    assert scene.instances("unicorn") == ()
    assert scene.map.size_m == (4.0, 3.0)
    assert scene.view_points == {"mug_1": (SE2(1.0, 0.5, 1.57), SE2(0.5, 1.0, 0.0))}
    assert scene.file.frames.pose("tags") == SE2(1.0, 2.0, math.pi / 2)


def test_the_digest_changes_with_scene_map_and_view_points(folder: Path, document: dict[str, Any]) -> None:
    digests = [load_scene(folder).digest, load_scene(folder).digest]
    assert digests[0] == digests[1]
    (folder / "view_points.json").unlink()
    digests.append(load_scene(folder).digest)
    OccupancyMap(np.ones((120, 160), np.uint8), 0.025, 0.0, 0.0).save(folder / "map.yaml")
    digests.append(load_scene(folder).digest)
    document["name"] = "another"
    digests.append(load_scene(write(folder, document)).digest)
    assert len(set(digests)) == 4


def test_view_points_and_meshes_are_optional(folder: Path, document: dict[str, Any]) -> None:
    (folder / "view_points.json").unlink()
    del document["assets"], document["materials"]
    assert load_scene(write(folder, document)).view_points == {}


def test_no_folder_and_no_scene_file(tmp_path: Path) -> None:
    assert "no such scene folder" in refusal(tmp_path / "nowhere").message
    assert "has no scene.yaml" in refusal(tmp_path).message


def test_a_scene_without_a_map_names_field_and_remedy(folder: Path) -> None:
    (folder / "map.yaml").unlink()
    error = refusal(folder)
    assert "field 'map' names 'map.yaml', a missing file" in error.message
    assert "map_saver" in error.remedy


def test_a_map_without_its_image(folder: Path) -> None:
    (folder / "map.pgm").unlink()
    assert "field 'image': cannot read map.pgm" in refusal(folder).message


@pytest.mark.parametrize("name", FILES)
def test_a_missing_mesh_or_texture_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    assert f"names {name!r}, a missing file" in refusal(folder).message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d["objects"][0].update(room="attic"), "object 'mug_1': room 'attic' is not in 'rooms'"),
        (lambda d: d["objects"][1].update(id="mug_1"), "two objects share the id 'mug_1'"),
        (lambda d: d["rooms"].append(d["rooms"][0]), "two rooms share the id 'kitchen'"),
        (lambda d: d["assets"][0].update(object="bed"), "asset 'sofa': object 'bed' is not in 'objects'"),
        (lambda d: d["materials"].pop("wood"), "asset 'sofa': material 'wood' is not in 'materials'"),
    ],
)
def test_dangling_references_are_named(folder: Path, document: dict[str, Any], change: Any, message: str) -> None:
    change(document)
    assert message in refusal(write(folder, document)).message


@pytest.mark.parametrize(
    ("change", "field", "message"),
    [
        (lambda d: d.update(schema=2), "schema", "1 (found 2)"),
        (lambda d: d.pop("name"), "name", "Field required"),
        (lambda d: d["rooms"][0].update(polygon=[[0, 0], [1, 0]]), "rooms.0", "at least 3 corners, got 2"),
        (lambda d: d["objects"][0].update(size=[1, -1, 1]), "objects.0", "sizes cannot be negative"),
        (lambda d: d["objects"][0].update(size=[1, 1]), "objects.0.size", ""),
        (lambda d: d["objects"][0].update(center=[math.nan, 0, 0]), "objects.0.center.0", "finite"),
        (lambda d: d["objects"][0].update(colour="red"), "objects.0.colour", "there is no such field"),
        (lambda d: d["assets"][0]["collision"][0].pop("mesh"), "assets.0.collision.0", "'mesh' names the file"),
        (lambda d: d["assets"][0]["collision"][1].update(mesh="a"), "assets.0.collision.1", "'mesh' names the file"),
        (lambda d: d["assets"][0]["collision"][1].pop("size"), "assets.0.collision.1", "a box needs a positive size"),
        (lambda d: d["assets"][0]["collision"][1].update(shape="cone"), "assets.0.collision.1.shape", "found 'cone'"),
    ],
)
def test_malformed_fields_are_named(
    folder: Path, document: dict[str, Any], change: Any, field: str, message: str
) -> None:
    change(document)
    error = refusal(write(folder, document), ConfigError)
    assert f"field '{field}" in error.message
    assert message in error.message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not {object id: [[x, y, yaw], ...]}"),
        ("[1]", "is not {object id"),
        ('{"mug_1": [[1, 2]]}', "is not {object id"),
        ('{"mug_1": 3}', "is not {object id"),
        ('{"mug_1": [["a", 0, 0]]}', "is not {object id"),
        ('{"mug_1": [[NaN, 0, 0]]}', "is not {object id"),
        ('{"cup": []}', "names unknown objects: cup"),
    ],
)
def test_view_points_that_make_no_sense_are_named(folder: Path, text: str, message: str) -> None:
    (folder / "view_points.json").write_text(text)
    error = refusal(folder)
    assert "view_points.json" in error.message
    assert message in error.message


def test_unknown_objects_and_frames_are_named_with_what_there_is(folder: Path) -> None:
    scene = load_scene(folder)
    with raises_naming(SceneError, "'mug'") as caught:
        scene.object("mug")
    assert "mug_1" in caught.value.remedy
    with raises_naming(SceneError, "'zebra'") as caught:
        scene.object("zebra")
    assert "scene info" in caught.value.remedy
    with raises_naming(SceneError, "'gps'") as caught:
        scene.file.frames.pose("gps")
    assert "tags" in caught.value.remedy


def test_a_scene_is_found_by_folder_or_refused_by_name(folder: Path) -> None:
    assert find_scene(str(folder)) == folder
    with raises_naming(SceneError, "castle") as caught:
        find_scene("castle")
    assert "scene generate" in caught.value.remedy
