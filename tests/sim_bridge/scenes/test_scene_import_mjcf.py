"""Houses of MuJoCo: everything in the file becomes part of the scene, or is listed, or refused by its name."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from mjcf_house import DIGEST, ROOM_M, write_house
from raising import raises_naming

from robot_runtime.cli.main import run_command
from robot_runtime.datasets.formats import generate_episodes
from robot_runtime.errors import SceneError
from robot_runtime.scenes.occupancy_map import Cell
from robot_runtime.scenes.scene import Collision, load_scene
from robot_runtime.tasks.task import load_task
from sim_bridge.scenes.bulk import Imported, causes, find_houses
from sim_bridge.scenes.importer import ImportOptions, import_scene
from sim_bridge.scenes.mjcf import House, is_mjcf
from sim_bridge.scenes.pieces import Piece

PLAIN = ImportOptions(view_points=False)


def pieces_of(world: str, folder: Path, more: str = "") -> tuple[dict[str, Piece], list[str]]:
    """The pieces of a small house by name, and the notes."""
    path = folder / "house.xml"
    floor = '<geom name="floor" type="plane" size="3 3 1"/>'
    path.write_text(f"<mujoco>{more}<worldbody>{floor}{world}</worldbody></mujoco>")
    notes: list[str] = []
    return {piece.name: piece for piece in House(path, notes).pieces()}, notes


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_house(tmp_path_factory.mktemp("procthor"), rooms=2, objects=8)


def test_a_house_becomes_a_scene_with_rooms_objects_and_a_map(house: Path, tmp_path: Path) -> None:
    notes = import_scene(house, tmp_path / "scene", PLAIN)
    scene = load_scene(tmp_path / "scene")
    assert {room.id for room in scene.rooms} == {"room_1", "room_2"}
    metadata = json.loads(house.with_name("train_7_metadata.json").read_text())["objects"]
    assert {item.id for item in scene.objects} == set(metadata)
    for item in scene.objects:
        facts = metadata[item.id]
        assert re.sub("[^a-z]", "", item.category.lower()) == facts["category"].lower()
        assert item.movable is not facts["is_static"]
        assert item.room in ("room_1", "room_2")
    for x_m in (0.0, ROOM_M / 2, ROOM_M):  # both rooms, and the doorway
        assert scene.map.cells[scene.map.to_cell(x_m, 0.9 if x_m != ROOM_M / 2 else 0.0)] in (Cell.FREE, Cell.OCCUPIED)
    assert scene.map.cells[scene.map.to_cell(ROOM_M / 2, 0.0)] == Cell.FREE, "one passes the doorway"
    assert scene.map.cells[scene.map.to_cell(ROOM_M / 2, 1.5)] == Cell.OCCUPIED
    assert scene.map.area_m2(Cell.UNKNOWN) > 0
    assert any("joints" in note and "(8)" in note for note in notes)
    assert scene.file.ceiling_m > 2.4, "the variant with a ceiling is read"


def test_without_its_variant_a_house_has_no_ceiling(house: Path, tmp_path: Path) -> None:
    own = write_house(tmp_path / "open", rooms=1, objects=1)
    own.with_name("train_7_ceiling.xml").unlink()
    assert not any("ceiling" in piece.name for piece in House(own, []).pieces())
    assert any("ceiling" in piece.name for piece in House(house, []).pieces())


def test_names_without_metadata_lose_their_digest_and_counters(tmp_path: Path) -> None:
    names = {f"coffee_table_{DIGEST}_3_0_1": "coffee_table", "chair_2": "chair", "desk": "desk"}
    world = "".join(f'<body name="{name}"><geom type="box" size=".2 .2 .2"/></body>' for name in names)
    found, _ = pieces_of(world, tmp_path)
    assert {name: found[name].kind for name in names} == names


def test_an_object_on_another_is_a_piece_of_its_own_if_the_metadata_name_it(tmp_path: Path) -> None:
    (tmp_path / "house_metadata.json").write_text(
        json.dumps({"objects": {"table": {"category": "DiningTable"}, "mug": {"category": "Mug"}, "gone": {}}})
    )
    inner = '<body name="mug" pos="0 0 1"><geom type="sphere" size=".05"/></body>'
    leg = '<body name="leg" pos="0 0 -.2"><geom type="box" size=".02 .02 .2"/></body>'
    world = f'<body name="table" pos="1 0 .4"><geom type="box" size=".5 .5 .02"/>{leg}{inner}</body><body name="bare"/>'
    found, notes = pieces_of(world, tmp_path)
    assert found["mug"].kind == "Mug"
    np.testing.assert_allclose(found["mug"].matrix[:3, 3], [1, 0, 1.4])
    assert len(found["table"].visuals) == 2
    assert any("'gone'" in note for note in notes)
    assert any("'bare'" in note for note in notes)


def test_what_is_shown_and_what_is_touched_are_told_apart(tmp_path: Path) -> None:
    world = (
        '<body name="a" pos="1 0 .5" euler="0 0 90">'
        '<geom type="sphere" size=".3" contype="0" conaffinity="0"/>'
        '<geom type="box" size=".1 .2 .3" group="3"/><geom type="cylinder" size=".1 .2" group="4"/></body>'
    )
    found, _ = pieces_of(world, tmp_path)
    piece = found["a"]
    assert len(piece.visuals) == 1
    box, cylinder = piece.contacts
    assert isinstance(box, Collision)
    assert (box.shape, box.size) == ("box", pytest.approx((0.2, 0.4, 0.6)))
    assert isinstance(cylinder, Collision)
    assert (cylinder.shape, cylinder.size) == ("cylinder", pytest.approx((0.2, 0.2, 0.4)))
    assert np.ptp(piece.world_points(), axis=0) == pytest.approx([0.6] * 3, abs=0.02)


@pytest.mark.parametrize("shape", ["capsule", "ellipsoid", "sphere"])
def test_round_shapes_have_the_size_that_mujoco_gives_them(tmp_path: Path, shape: str) -> None:
    size, extent = {
        "capsule": (".1 .3", [0.2, 0.2, 0.8]),
        "ellipsoid": (".1 .2 .3", [0.2, 0.4, 0.6]),
        "sphere": (".2", [0.4, 0.4, 0.4]),
    }[shape]
    found, _ = pieces_of(f'<body name="a" pos="0 0 1"><geom type="{shape}" size="{size}"/></body>', tmp_path)
    points = found["a"].world_points()
    assert np.ptp(points, axis=0) == pytest.approx(extent, abs=0.02)
    assert points.mean(axis=0) == pytest.approx([0, 0, 1], abs=0.02)


def test_textures_keep_their_place_on_a_mesh(house: Path) -> None:
    floor = next(piece for piece in House(house, []).pieces() if piece.name == "room_1")
    (part,) = floor.visuals
    image = part.appearance.image
    assert image is not None
    assert part.uv is not None
    corner = np.argmin(np.abs(part.uv - [0.0, 0.0]).sum(axis=2))
    assert part.uv.reshape(-1, 2)[corner].tolist() == [0, 0]
    assert image.getpixel((0, image.height - 1)) == (40, 40, 200), "v points up: (0, 0) is the last row's first pixel"


def test_what_is_not_read_is_listed_with_its_number(tmp_path: Path) -> None:
    world = (
        '<light name="lamp"/><camera name="cam"/><site name="here"/>'
        '<body name="door" pos="1 1 1"><joint name="hinge"/><geom type="box" size=".4 .02 1"/></body>'
    )
    more = '<actuator><motor joint="hinge"/></actuator>'
    _, notes = pieces_of(world, tmp_path, more)
    for what in ("lights", "cameras", "sites", "joints", "actuators"):
        assert any(what in note and "(1)" in note for note in notes), what


BOX = '<body name="a"><geom type="box" size=".2 .2 .2"/></body>'
MESH = '<asset><mesh name="m" file="m.obj" scale="{}"/></asset>'
PLACED = '<body name="thing"><geom type="mesh" mesh="m"/></body>'
CUBE = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


@pytest.mark.parametrize(
    ("world", "more", "named"),
    [
        (PLACED, '<asset><mesh name="m" file="gone.obj"/></asset>', "gone.obj"),
        (BOX + BOX, "", "a"),
        ('<body name="b"><geom type="mesh" mesh="nowhere"/></body>', "", "nowhere"),
        ('<include file="house.xml"/>', "", "itself"),
        ('<include file="../elsewhere.xml"/>', "", "elsewhere.xml"),
        ('<include file="gone.xml"/>', "", "gone.xml"),
        (PLACED, MESH.format("1000 1000 1000"), "thing"),
        (PLACED, MESH.format("0 0 0"), "m"),
        ("<geom/>" * 200_001, "", "200,000"),
    ],
)
def test_a_house_that_cannot_be_read_names_the_element(tmp_path: Path, world: str, more: str, named: str) -> None:
    folder = tmp_path / "house"
    folder.mkdir()
    (folder / "m.obj").write_text(CUBE)
    (tmp_path / "elsewhere.xml").write_text("<mujoco/>")
    with raises_naming(SceneError, "house.xml", named):
        pieces_of(world, folder, more)


def test_a_mirrored_mesh_keeps_its_outside_outside(tmp_path: Path) -> None:
    (tmp_path / "m.obj").write_text(CUBE)
    for number, scale in enumerate(("1 1 1", "-1 1 1", "1 1 -1")):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "m.obj").write_text(CUBE)
        found, _ = pieces_of(PLACED, folder, MESH.format(scale))
        (part,) = found["thing"].visuals
        middle = part.corners.reshape(-1, 3).mean(axis=0)
        normals = np.cross(part.corners[:, 1] - part.corners[:, 0], part.corners[:, 2] - part.corners[:, 0])
        assert (np.einsum("nd,nd->n", normals, part.corners.mean(axis=1) - middle) > 0).all(), scale


def test_a_house_without_a_floor_and_bad_metadata_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "house.xml"
    path.write_text(f"<mujoco><worldbody>{BOX}</worldbody></mujoco>")
    with raises_naming(SceneError, "house.xml", "no floor"):
        House(path, []).pieces()
    path.with_name("house_metadata.json").write_text('{"objects": [1]}')
    with raises_naming(SceneError, "house_metadata.json"):
        House(path, [])


def test_two_objects_of_one_id_are_named(tmp_path: Path) -> None:
    pair = BOX + BOX.replace('name="a"', 'name="b"')
    metadata = tmp_path / "house_metadata.json"
    metadata.write_text('{"objects": {"a": {"object_id": "Cup|1"}, "b": {"object_id": "Cup|1"}}}')
    found, notes = pieces_of(pair, tmp_path)
    assert {"a", "b"} <= found.keys()
    assert any("a, b" in note and "Cup|1" in note for note in notes)
    metadata.write_text('{"objects": {"a": {}, "a": {}}}')
    with raises_naming(SceneError, "house_metadata.json", "'a' is repeated"):
        pieces_of(pair, tmp_path)


def test_a_door_in_a_wall_without_an_opening_is_listed(tmp_path: Path) -> None:
    door = '<body name="door_1" pos="2 .3 1" euler="0 0 90"><geom type="box" size=".4 .02 1"/></body>'
    solid = '<body name="wall_1" pos="2 0 1.3"><geom type="box" size=".05 2 1.3"/></body>'
    parts = (("-1.05", ".95"), ("1.35", ".65"))  # what an opening of 0.8 m leaves
    left, right = (
        f'<body name="wall_{number}" pos="2 {y} 1.3"><geom type="box" size=".05 {half} 1.3"/></body>'
        for number, (y, half) in enumerate(parts)
    )
    ajar = door.replace('euler="0 0 90"', 'euler="0 0 20"').replace('pos="2 ', 'pos="2.4 ')
    for world, expected in ((door + solid, True), (door + left + right, False), (ajar + left + right, False)):
        _, notes = pieces_of(world, tmp_path)
        assert any("door_1" in note and "wall_1" in note for note in notes) is expected, world


def test_mjcf_is_told_from_other_xml_by_its_content(tmp_path: Path) -> None:
    for name, text, expected in (("a", "<mujoco/>", True), ("b", "<sdf/>", False), ("c", "no xml", False)):
        (tmp_path / f"{name}.xml").write_text(text)
        assert is_mjcf(tmp_path / f"{name}.xml") is expected


@pytest.mark.slow
def test_many_houses_are_imported_once_and_failures_are_grouped_by_cause(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = tmp_path / "houses", tmp_path / "scenes"
    for number in range(3):
        write_house(source / f"h{number}", rooms=1, objects=2, name=f"train_{number}", seed=number)
    lost = source / "h2" / "train_2_assets" / "tiles.png"
    content = lost.read_bytes()
    lost.unlink()
    command = ["scene", "import", "--bulk", str(source), "--out", str(out), "--no-view-points"]
    assert run_command(command) == SceneError.exit_code
    assert "2 of 3 houses" in capsys.readouterr().out
    before = (out / "h0" / "train_0" / "scene.yaml").stat().st_mtime_ns
    lost.write_bytes(content)
    assert run_command(command) == 0
    assert "3 of 3 houses" in capsys.readouterr().out
    assert (out / "h0" / "train_0" / "scene.yaml").stat().st_mtime_ns == before
    assert len(load_scene(out / "h2" / "train_2").objects) == 2


def test_houses_are_found_without_variants_and_assets(tmp_path: Path) -> None:
    house = write_house(tmp_path / "a", rooms=1, objects=1)
    (tmp_path / "a" / "train_7_assets" / "part.xml").write_text("<mujoco/>")
    assert find_houses(tmp_path) == [house]
    with raises_naming(SceneError, str(tmp_path / "a" / "train_7_assets")):
        find_houses(tmp_path / "a" / "train_7_assets" / "none")


def test_the_cause_of_a_failure_has_no_names_and_numbers() -> None:
    results = [
        Imported(f"/h/{n}.xml", "", problem=f"/h/{n}.xml: refuses '{n}.obj' at line {n}", remedy="x") for n in range(3)
    ]
    ((cause, count, first),) = causes([*results, Imported("ok", "ok")])
    assert (count, first) == (3, results[0])
    assert cause == "refuses '…' at line N"


@pytest.mark.slow
def test_from_mjcf_to_a_scored_episode_in_two_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    house = write_house(tmp_path / "procthor", rooms=3, objects=12)
    scene, logs = str(tmp_path / "scene"), str(tmp_path / "logs")
    assert run_command(["scene", "import", str(house), "--out", scene]) == 0
    run = ["run", "--task", "nav_to_obj", "--scene", scene, "--agent", "oracle", "--count", "1", "--out", logs]
    assert run_command(run) == 0
    assert "success" in capsys.readouterr().out
    task = load_task("nav_to_obj")
    for episode in generate_episodes(load_scene(tmp_path / "scene"), task, 5, seed=3):
        assert episode.shortest_path_m is not None
        assert 4 <= episode.shortest_path_m <= 20
