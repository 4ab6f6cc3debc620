"""Reading Gazebo worlds: includes, nested poses, inline shapes, and what is wrong with them."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from raising import raises_naming

from robot_runtime.errors import SceneError
from sim_bridge.scenes.pieces import read_pieces
from sim_bridge.scenes.sdf import ModelPath, PlacedModel, read_world

CUBE = "\n".join(
    [f"v {x} {y} {z}" for x in (0, 1) for y in (0, 1) for z in (0, 1)]
    + ["f 1 2 4 3", "f 5 7 8 6", "f 1 5 6 2", "f 3 4 8 7", "f 1 3 7 5", "f 2 6 8 4"]
)


def model_sdf(name: str, inside: str, pose: str = "0 0 0 0 0 0") -> str:
    return f"<sdf version='1.6'><model name='{name}'><pose>{pose}</pose>{inside}</model></sdf>"


def link(geometry: str, pose: str = "0 0 0 0 0 0", part_pose: str = "0 0 0 0 0 0", extra: str = "") -> str:
    return (
        f"<link name='l'><pose>{pose}</pose>"
        f"<visual name='v'><pose>{part_pose}</pose><geometry>{geometry}</geometry>{extra}</visual>"
        f"<collision name='c'><pose>{part_pose}</pose><geometry>{geometry}</geometry></collision></link>"
    )


def write_model(root: Path, name: str, sdf: str, config: str | None = None, file: str = "model.sdf") -> None:
    folder = root / "models" / name
    (folder / "meshes").mkdir(parents=True)
    (folder / "meshes" / "cube.obj").write_text(CUBE, encoding="utf-8")
    (folder / file).write_text(sdf, encoding="utf-8")
    if config:
        (folder / "model.config").write_text(config, encoding="utf-8")


def write_world(root: Path, inside: str) -> Path:
    path = root / "worlds" / "test.world"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"<sdf version='1.6'><world name='w'>{inside}</world></sdf>", encoding="utf-8")
    return path


def read(path: Path) -> list[PlacedModel]:
    return read_world(path, ModelPath.near(path, ()))


def test_poses_of_model_include_link_and_visual_are_chained(tmp_path: Path) -> None:
    box = "<box><size>1 2 3</size></box>"
    write_model(tmp_path, "thing", model_sdf("thing", link(box, "1 0 0 0 0 1.5707963267948966", "1 0 0 0 0 0")))
    world = write_world(
        tmp_path,
        "<model name='outer'><pose>10 0 0 0 0 0</pose><static>true</static>"
        "<include><uri>model://thing</uri><pose>0 5 0 0 0 3.141592653589793</pose></include></model>",
    )
    (model,) = read(world)
    assert (model.name, model.kind, model.static) == ("outer", "thing", True)
    visual = next(shape for shape in model.shapes if shape.role == "visual")
    place = model.matrix @ visual.matrix
    # Link at (1, 0), turned 90 degrees; visual 1 m along the link's x: (1, 1); turned by 180: (-1, -1); at (10, 5).
    np.testing.assert_allclose(place[:3, 3], [9, 4, 0], atol=1e-12)
    assert math.atan2(place[1, 0], place[0, 0]) == pytest.approx(-math.pi / 2)


def test_pose_of_an_include_replaces_the_models_own(tmp_path: Path) -> None:
    write_model(tmp_path, "thing", model_sdf("thing", link("<box><size>1 1 1</size></box>"), "0 0 7 0 0 0"))
    include = "<include><uri>model://thing</uri><name>{}</name>{}</include>"
    placed = read(write_world(tmp_path, include.format("a", "<pose>1 2 3 0 0 0</pose>") + include.format("b", "")))
    assert [model.name for model in placed] == ["a", "b"]
    assert placed[0].matrix[:3, 3].tolist() == [1, 2, 3]
    assert placed[1].matrix[:3, 3].tolist() == [0, 0, 7]


def test_model_config_chooses_the_file_and_mesh_is_scaled(tmp_path: Path) -> None:
    mesh = "<mesh><uri>model://cube/meshes/cube.obj</uri><scale>2 1 0.5</scale></mesh>"
    config = "<model><sdf version='1.4'>old.sdf</sdf><sdf version='1.6'>new.sdf</sdf></model>"
    write_model(tmp_path, "cube", model_sdf("cube", link(mesh)), config, file="new.sdf")
    world = write_world(tmp_path, "<include><uri>model://cube</uri><pose>0 0 1 0 0 0</pose></include>")
    (piece,) = read_pieces(world)
    points = piece.world_points()
    assert points.min(axis=0).tolist() == [0, 0, 1]
    assert points.max(axis=0).tolist() == [2, 1, 1.5]


@pytest.mark.parametrize(
    ("geometry", "size"),
    [
        ("<box><size>1 2 3</size></box>", (1, 2, 3)),
        ("<cylinder><radius>0.5</radius><length>2</length></cylinder>", (1, 1, 2)),
        ("<sphere><radius>0.25</radius></sphere>", (0.5, 0.5, 0.5)),
        ("<plane><normal>0 0 1</normal><size>4 2</size></plane>", (4, 2, 0)),
    ],
)
def test_inline_shapes_have_their_size_and_color(
    tmp_path: Path, geometry: str, size: tuple[float, float, float]
) -> None:
    color = "<material><diffuse>0.1 0.2 0.3 1</diffuse></material>"
    inside = f"<model name='m'>{link(geometry, extra=color)}</model>"
    (piece,) = read_pieces(write_world(tmp_path, inside))
    np.testing.assert_allclose(np.ptp(piece.world_points(), axis=0), size, atol=0.02)
    assert piece.visuals[0].appearance.rgba == (0.1, 0.2, 0.3, 1.0)


def test_absent_models_are_all_named_and_can_be_left_out(tmp_path: Path) -> None:
    box = f"<model name='m'>{link('<box><size>1 1 1</size></box>')}</model>"
    absent = "<include><uri>model://sofa_7</uri></include><include><uri>model://lamp_3</uri></include>"
    world = write_world(tmp_path, box + absent)
    with raises_naming(SceneError, "sofa_7", "lamp_3") as caught:
        read_pieces(world)
    assert "--models" in caught.value.remedy
    assert str(world) in caught.value.message
    notes: list[str] = []
    assert len(read_pieces(world, skip_missing=True, notes=notes)) == 1
    assert "sofa_7, lamp_3" in notes[0]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("<sdf><world>", "XML"),
        ("hello", "XML"),
        ("<robot name='r'/>", "<robot>"),
        ("<sdf><world name='w'/></sdf>", "model"),
        ("<sdf><world name='w'><include/></world></sdf>", "<uri>"),
        ("<sdf><world name='w'><model name='m'><pose>1 2</pose></model></world></sdf>", "1 2"),
        ("<sdf><world name='w'><model name='m'><pose>a b c d e f</pose></model></world></sdf>", "a b c d e f"),
        ("<sdf><world name='w'><model name='m'><pose>nan 0 0 0 0 0</pose></model></world></sdf>", "nan"),
        (
            "<sdf><world name='w'><model name='m'><pose relative_to='x'>0 0 0 0 0 0</pose></model></world></sdf>",
            "frame",
        ),
        (
            "<sdf><world name='w'><model name='m'><link name='l'><visual name='v'><geometry><heightmap/></geometry>"
            "</visual></link></model></world></sdf>",
            "<heightmap>",
        ),
    ],
)
def test_broken_worlds_name_the_file_and_the_place(tmp_path: Path, text: str, name: str) -> None:
    world = tmp_path / "bad.world"
    world.write_text(text, encoding="utf-8")
    with raises_naming(SceneError, world, name):
        read_pieces(world)


def test_models_that_include_each_other_are_refused(tmp_path: Path) -> None:
    write_model(tmp_path, "a", model_sdf("a", "<include><uri>model://b</uri></include>"))
    write_model(tmp_path, "b", model_sdf("b", "<include><uri>model://a</uri></include>"))
    with raises_naming(SceneError, "a", "b"):
        read(write_world(tmp_path, "<include><uri>model://a</uri></include>"))


MESH = "<mesh><uri>file://models/cube/meshes/cube.obj</uri></mesh>"


@pytest.mark.parametrize("given", ["beside the world", "models", "root", "environment"])
def test_file_names_start_from_the_folders_that_hold_the_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    root = tmp_path if given == "beside the world" else tmp_path / "elsewhere"
    write_model(root, "cube", model_sdf("cube", link(MESH)))
    world = write_world(tmp_path, "<include><uri>model://cube</uri></include>")
    folders = {"models": (root / "models",), "root": (root,)}.get(given, ())
    if given == "environment":
        monkeypatch.setenv("GAZEBO_MODEL_PATH", str(root / "models"))
        monkeypatch.setenv("GAZEBO_RESOURCE_PATH", str(root))
    (piece,) = read_pieces(world, models=folders)
    assert piece.world_points().max(axis=0).tolist() == [1, 1, 1]


def test_a_folder_of_models_that_does_not_exist_is_named(tmp_path: Path) -> None:
    world = write_world(tmp_path, f"<model name='m'>{link('<box><size>1 1 1</size></box>')}</model>")
    with raises_naming(SceneError, tmp_path / "modles") as caught:
        read_pieces(world, models=(tmp_path / "modles",))
    assert "--models" in caught.value.remedy


def test_an_ampersand_that_starts_no_entity_stands_for_itself(tmp_path: Path) -> None:
    config = "<model><sdf>new.sdf</sdf><description>portal, door & car; R&#38;D &amp; more</description></model>"
    write_model(tmp_path, "cube", model_sdf("a & b &lt; c", link(MESH)), config, file="new.sdf")
    (model,) = read(write_world(tmp_path, "<include><uri>model://cube</uri></include>"))
    assert model.name == "a & b < c"


def test_models_that_come_with_gazebo_need_not_be_there(tmp_path: Path) -> None:
    box = f"<model name='m'>{link('<box><size>1 1 1</size></box>')}</model>"
    own = "<include><uri>model://sun</uri></include><include><uri>model://ground_plane</uri></include>"
    notes: list[str] = []
    assert [piece.name for piece in read_pieces(write_world(tmp_path, box + own), notes=notes)] == ["m"]
    assert notes == []
