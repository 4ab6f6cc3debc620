"""Importing meshes and small worlds end to end: textures, frames, floor, objects, rooms, broken files."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path

import numpy as np
import pytest
import trimesh
from PIL import Image
from raising import raises_naming
from trimesh.visual.material import PBRMaterial

from robot_runtime.cli.main import run_command
from robot_runtime.errors import SceneError
from robot_runtime.scenes.occupancy_map import Cell
from robot_runtime.scenes.scene import load_scene
from sim_bridge.physics.scene_model import build_model
from sim_bridge.scenes.assets import category_of, identifier
from sim_bridge.scenes.importer import ImportOptions, floor_height, import_scene
from sim_bridge.scenes.mesh_files import load_mesh

QUICK = ImportOptions(view_points=False)


def textured(mesh: trimesh.Trimesh, color: tuple[int, int, int], size: int = 8) -> trimesh.Trimesh:
    image = Image.new("RGB", (size, size), color)
    uv = np.asarray(mesh.vertices)[:, :2]
    mesh.visual = trimesh.visual.TextureVisuals(uv=uv, material=PBRMaterial(name="paint", baseColorTexture=image))
    return mesh


def flat(up: str = "y", floor_z: float = 0.0) -> trimesh.Scene:
    """Two rooms of 3 x 4 m with a 0.9 m door between them, a chair, a sofa and a lamp at the ceiling."""
    scene = trimesh.Scene()

    def add(name: str, center: tuple[float, float, float], size: tuple[float, float, float]) -> None:
        mesh = textured(trimesh.creation.box(size), (200, 80, 40))
        mesh.apply_translation((center[0], center[1], center[2] + floor_z))
        if up == "y":
            mesh.apply_transform(trimesh.transformations.rotation_matrix(-math.pi / 2, (1, 0, 0)))
        scene.add_geometry(mesh, node_name=name, geom_name=name)

    add("Floor_1", (3.05, 2, -0.05), (6.3, 4.2, 0.1))
    add("Wall_south", (3.05, -0.05, 1.2), (6.3, 0.1, 2.4))
    add("Wall_north", (3.05, 4.05, 1.2), (6.3, 0.1, 2.4))
    add("Wall_west", (-0.05, 2, 1.2), (0.1, 4, 2.4))
    add("Wall_east", (6.15, 2, 1.2), (0.1, 4, 2.4))
    add("Wall_mid_a", (3.05, 0.775, 1.2), (0.1, 1.55, 2.4))
    add("Wall_mid_b", (3.05, 3.225, 1.2), (0.1, 1.55, 2.4))
    add("Lintel_wall", (3.05, 2, 2.25), (0.1, 0.9, 0.3))
    add("Armchair_03", (1.0, 1.0, 0.4), (0.6, 0.5, 0.8))
    add("Sofa.001", (5.0, 3.0, 0.4), (0.8, 1.6, 0.8))
    add("CeilingLamp", (1.5, 2.0, 2.2), (0.3, 0.3, 0.2))
    return scene


@pytest.mark.parametrize(("name", "up"), [("flat.glb", "y"), ("flat.glb", "z"), ("flat.gltf", "y")])
def test_gltf_becomes_a_scene_with_rooms_objects_and_textures(tmp_path: Path, name: str, up: str) -> None:
    source = tmp_path / name
    flat(up).export(source)
    options = ImportOptions(up="z") if up == "z" else ImportOptions()
    assert import_scene(source, tmp_path / "scene", options) == []
    scene = load_scene(tmp_path / "scene")
    assert [room.id for room in scene.rooms] == ["room_0", "room_1"]
    chair = next(item for item in scene.objects if item.category == "armchair")
    assert chair.center == pytest.approx((1.0, 1.0, 0.4), abs=1e-3)
    assert sorted(chair.size) == pytest.approx([0.5, 0.6, 0.8], abs=1e-3)
    assert {item.category for item in scene.objects} == {"armchair", "sofa", "lamp"}
    sofa = scene.instances("sofa")[0]
    assert chair.room != sofa.room
    assert len(scene.file.materials) == 1  # one paint, however many meshes it is on
    lamp = next(asset for asset in scene.file.assets if asset.name == "CeilingLamp")
    assert lamp.visual
    assert not lamp.collision
    assert scene.map.cells[scene.map.to_cell(1.5, 2.0)] == Cell.FREE
    assert scene.map.cells[scene.map.to_cell(1.0, 1.0)] == Cell.OCCUPIED
    assert scene.map.cells[scene.map.to_cell(3.05, 2.0)] == Cell.FREE
    assert scene.map.cells[scene.map.to_cell(6.3, 2.0)] == Cell.UNKNOWN
    assert {chair.id, sofa.id} <= set(scene.view_points)
    model = build_model(scene)
    assert model.model.ngeom >= len(scene.file.assets)


def test_obj_with_material_file_keeps_its_texture_and_scale(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    Image.new("RGB", (1500, 30), (10, 200, 30)).save(tmp_path / "src" / "paint.png")
    (tmp_path / "src" / "room.mtl").write_text("newmtl m\nmap_Kd paint.png\n", encoding="utf-8")
    box = trimesh.creation.box((400, 300, 240))
    lines = [f"v {x} {y} {z + 120}" for x, y, z in box.vertices.tolist()] + ["vt 0 0", "vt 1 0", "vt 1 1"]
    faces = [f"f {a + 1}/1 {c + 1}/3 {b + 1}/2" for a, b, c in box.faces.tolist()]  # seen from inside
    text = "\n".join(["mtllib room.mtl", *lines, "usemtl m", *faces]) + "\n"
    (tmp_path / "src" / "room.obj").write_text(text, encoding="utf-8")
    import_scene(tmp_path / "src" / "room.obj", tmp_path / "scene", ImportOptions(scale=0.01, view_points=False))
    scene = load_scene(tmp_path / "scene")
    texture = next(iter(scene.file.materials.values())).texture
    assert texture is not None
    with Image.open(scene.folder / texture) as image:
        assert image.size == (512, 10)
        assert image.getpixel((100, 5)) == (10, 200, 30)
    free_m2 = float((scene.map.cells == Cell.FREE).sum()) * scene.map.resolution_m**2
    assert free_m2 == pytest.approx(4 * 3, rel=0.03)


@pytest.mark.parametrize("keyword", ["o", "g"])
def test_things_of_an_obj_file_keep_their_names_however_many_materials_they_have(tmp_path: Path, keyword: str) -> None:
    (tmp_path / "two.mtl").write_text("newmtl red\nKd 1 0 0\nnewmtl blue\nKd 0 0 1\n", encoding="utf-8")
    lines = ["mtllib two.mtl", "v 0 0 0", "v 1 0 0", "v 0 1 0", "v 0 0 1"]
    lines += [f"{keyword} Chair_1", "usemtl red", "f 1 2 3", "usemtl blue", "f 1 2 4", "f 1 3 4"]
    lines += [f"{keyword} Sofa", "usemtl red", "f 2 3 4"]
    (tmp_path / "two.obj").write_text("\n".join(lines) + "\n", encoding="utf-8")
    parts = load_mesh(tmp_path / "two.obj", [])
    assert sorted((part.name, len(part.corners), part.appearance.rgba[:3]) for part in parts) == [
        ("Chair_1", 1, (1.0, 0.0, 0.0)),
        ("Chair_1", 2, (0.0, 0.0, 1.0)),
        ("Sofa", 1, (1.0, 0.0, 0.0)),
    ]


def collada(texture: str = "paint.png", unit: float = 0.01, up: str = "Z_UP") -> str:
    """A textured square of 100 x 100 units in the plane z = 0."""
    return f"""<?xml version="1.0"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset><unit meter="{unit}" name="u"/><up_axis>{up}</up_axis></asset>
<library_images><image id="i"><init_from>{texture}</init_from></image></library_images>
<library_effects><effect id="e"><profile_COMMON>
<newparam sid="s"><surface type="2D"><init_from>i</init_from></surface></newparam>
<newparam sid="p"><sampler2D><source>s</source></sampler2D></newparam>
<technique sid="t"><lambert><diffuse><texture texture="p" texcoord="UV"/></diffuse></lambert></technique>
</profile_COMMON></effect></library_effects>
<library_materials><material id="m"><instance_effect url="#e"/></material></library_materials>
<library_geometries><geometry id="g" name="square"><mesh>
<source id="v"><float_array id="va" count="12">0 0 0 100 0 0 100 100 0 0 100 0</float_array><technique_common>
<accessor source="#va" count="4" stride="3"><param name="X" type="float"/><param name="Y" type="float"/>
<param name="Z" type="float"/></accessor></technique_common></source>
<source id="u"><float_array id="ua" count="8">0 0 1 0 1 1 0 1</float_array><technique_common>
<accessor source="#ua" count="4" stride="2"><param name="S" type="float"/><param name="T" type="float"/></accessor>
</technique_common></source>
<vertices id="vv"><input semantic="POSITION" source="#v"/></vertices>
<polylist count="1" material="mm"><input semantic="VERTEX" source="#vv" offset="0"/>
<input semantic="TEXCOORD" source="#u" offset="1" set="0"/><vcount>4</vcount><p>0 0 1 1 2 2 3 3</p></polylist>
</mesh></geometry></library_geometries>
<library_visual_scenes><visual_scene id="vs"><node id="n"><translate>0 0 50</translate>
<instance_geometry url="#g"><bind_material><technique_common><instance_material symbol="mm" target="#m"/>
</technique_common></bind_material></instance_geometry></node></visual_scene></library_visual_scenes>
<scene><instance_visual_scene url="#vs"/></scene></COLLADA>"""


def test_collada_unit_axis_node_and_texture_beside_the_folder(tmp_path: Path) -> None:
    (tmp_path / "meshes").mkdir()
    (tmp_path / "materials" / "textures").mkdir(parents=True)
    Image.new("RGB", (4, 4), (1, 2, 3)).save(tmp_path / "materials" / "textures" / "paint.png")
    notes: list[str] = []
    path = tmp_path / "meshes" / "square.dae"
    path.write_text(collada("C:\\art\\paint.png"), encoding="utf-8")
    (part,) = load_mesh(path, notes)
    assert notes == []
    assert part.appearance.image is not None
    assert part.appearance.image.getpixel((0, 0)) == (1, 2, 3)
    assert part.corners.reshape(-1, 3).max(axis=0).tolist() == pytest.approx([1, 1, 0.5])
    assert part.uv is not None
    assert part.uv.max() == 1.0
    path.write_text(collada("paint.png", up="Y_UP"), encoding="utf-8")
    (turned,) = load_mesh(path, notes)
    assert turned.corners.reshape(-1, 3).min(axis=0).tolist() == pytest.approx([0, -0.5, 0])
    path.write_text(collada("absent.png"), encoding="utf-8")
    load_mesh(path, notes)
    assert notes == ["square.dae: texture 'absent.png' is not there; the surface is left gray"]


def test_comments_in_a_collada_geometry_are_no_geometry(tmp_path: Path) -> None:
    path = tmp_path / "square.dae"
    path.write_text(collada().replace("<polylist", "<!-- two\nlines -->\n<polylist"), encoding="utf-8")
    (part,) = load_mesh(path, [])
    assert len(part.corners) == 2


def glb_bytes() -> bytes:
    return bytes(trimesh.Scene(trimesh.creation.box((1, 1, 1))).export(file_type="glb"))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("cut.dae", collada().encode()[:900]),
        ("empty.dae", b""),
        ("none.dae", b"<?xml version='1.0'?><html/>"),
        ("cut.glb", glb_bytes()[:200]),
        ("noise.glb", b"\x00\x01\x02" * 50),
        ("cut.gltf", b'{"asset": {"version"'),
        ("points.obj", b"v 0 0 0\nv 1 0 0\nv 0 1 0\n"),
        ("nan.obj", b"v nan 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n"),
        ("scene.blend", b""),
    ],
)
def test_broken_meshes_name_the_file_and_the_remedy(tmp_path: Path, name: str, content: bytes) -> None:
    source = tmp_path / name
    source.write_bytes(content)
    with raises_naming(SceneError, source):
        import_scene(source, tmp_path / "out", QUICK)
    assert not (tmp_path / "out").exists()
    assert list(tmp_path.iterdir()) == [source]


def test_floor_at_another_height_is_shifted_and_told(tmp_path: Path) -> None:
    source = tmp_path / "cellar.glb"
    flat("y", floor_z=-2.71).export(source)
    (note,) = import_scene(source, tmp_path / "scene", QUICK)
    assert "-2.710" in note
    scene = load_scene(tmp_path / "scene")
    assert scene.file.source["floor_shift_m"] == pytest.approx(2.71, abs=1e-3)
    assert scene.instances("sofa")[0].center[2] == pytest.approx(0.4, abs=1e-3)
    assert scene.map.cells[scene.map.to_cell(1.5, 2.0)] == Cell.FREE


def test_floor_is_the_lowest_large_level_and_not_a_table_or_a_roof() -> None:
    def level(z: float, size: float) -> np.ndarray:
        return np.array([[[0, 0, z], [size, 0, z], [0, size, z]]])

    levels = np.concatenate([level(2.5, 10), level(0.7, 3), level(0.049, 8), level(-3, 1)])
    assert floor_height(levels) == pytest.approx(0.049)


def test_an_earlier_scene_is_replaced_but_nothing_else_is(tmp_path: Path) -> None:
    source = tmp_path / "flat.glb"
    flat().export(source)
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "thesis.tex").write_text("years of work", encoding="utf-8")
    with raises_naming(SceneError, tmp_path):
        import_scene(source, tmp_path / "papers", QUICK)
    assert (tmp_path / "papers" / "thesis.tex").is_file()
    import_scene(source, tmp_path / "scene", QUICK)
    (tmp_path / "scene" / "stale.txt").write_text("", encoding="utf-8")
    import_scene(source, tmp_path / "scene", QUICK)
    assert not (tmp_path / "scene" / "stale.txt").exists()


def test_equal_sources_give_equal_scenes(tmp_path: Path) -> None:
    source = tmp_path / "flat.glb"
    flat().export(source)
    for name in ("one", "two"):
        import_scene(source, tmp_path / name / "scene")
    assert load_scene(tmp_path / "one" / "scene").digest == load_scene(tmp_path / "two" / "scene").digest


def test_licence_near_the_source_is_recorded(tmp_path: Path) -> None:
    source = tmp_path / "worlds" / "flat.glb"
    source.parent.mkdir()
    flat().export(source)
    (tmp_path / "LICENSE").write_text("MIT No Attribution\n\nCopyright somebody\n", encoding="utf-8")
    import_scene(source, tmp_path / "scene", QUICK)
    assert load_scene(tmp_path / "scene").file.source["licence"] == "LICENSE: MIT No Attribution Copyright somebody"


def test_a_scan_gets_columns_for_contact(tmp_path: Path) -> None:
    room = trimesh.creation.box((6, 5, 2.4))
    room.apply_translation((3, 2.5, 1.2))
    room.invert()
    pillar = trimesh.creation.box((0.4, 0.4, 2.4))
    pillar.apply_translation((4, 3, 1.2))
    scan = trimesh.util.concatenate([room, pillar])
    while len(scan.faces) < 20_000:
        scan = scan.subdivide()
    source = tmp_path / "scan.ply"
    scan.export(source)
    import_scene(source, tmp_path / "scene", QUICK)
    scene = load_scene(tmp_path / "scene")
    assert scene.objects == ()
    assert {shape.shape for shape in scene.file.assets[0].collision} == {"box"}
    assert scene.map.cells[scene.map.to_cell(4.19, 3)] == Cell.OCCUPIED
    assert scene.map.cells[scene.map.to_cell(4, 3)] != Cell.FREE
    assert scene.map.cells[scene.map.to_cell(2, 2)] == Cell.FREE


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("aws_robomaker_residential_ChairA_01", "chair"),
        ("aws_robomaker_residential_DeskPortraitD_02", "picture"),
        ("aws_robomaker_residential_TVCabinet_01", "tv_stand"),
        ("aws_robomaker_residential_TV_02", "Television"),
        ("aws_robomaker_residential_KitchenTable_01", "dining_table"),
        ("aws_robomaker_residential_Trash_01", "GarbageCan"),
        ("aws_robomaker_residential_HouseWallB_01", None),
        ("aws_robomaker_residential_FoldingDoor_02", None),
        ("Espresso Machine.002", "espresso_machine"),
        ("HousePlant_7", "HousePlant"),
        ("12", None),
    ],
)
def test_names_tell_categories(name: str, category: str | None) -> None:
    assert category_of(name) == category


def test_identifiers_are_unique_and_plain() -> None:
    taken: set[str] = set()
    assert [identifier(name, taken) for name in ("Stuhl é", "Stuhl é", "", "a/b")] == [
        "Stuhl",
        "Stuhl_2",
        "unnamed",
        "a_b",
    ]


@pytest.mark.parametrize(
    ("name", "options", "named"),
    [
        ("house.xml", ImportOptions(scale=0.001), "--scale"),
        ("house.xml", ImportOptions(models=(Path("models"),)), "--models"),
        ("house.world", ImportOptions(up="y"), "--up"),
        ("house.glb", ImportOptions(skip_missing=True), "--skip-missing"),
    ],
)
def test_an_option_that_the_source_does_not_read_is_refused(
    tmp_path: Path, name: str, options: ImportOptions, named: str
) -> None:
    (tmp_path / name).write_text("<mujoco/>")
    with raises_naming(SceneError, name, named):
        import_scene(tmp_path / name, tmp_path / "scene", options)
    assert not (tmp_path / "scene").exists()


def test_command_imports_and_computes_view_points_again(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "flat.glb"
    flat().export(source)
    scene = tmp_path / "scene"
    assert run_command(["scene", "import", str(source), "--out", str(scene), "--no-view-points"]) == 0
    assert not (scene / "view_points.json").exists()
    assert run_command(["scene", "view-points", str(scene)]) == 0
    assert set(json.loads((scene / "view_points.json").read_text(encoding="utf-8"))) >= {"Armchair_03", "Sofa_001"}
    assert run_command(["scene", "import", str(tmp_path / "absent.glb"), "--out", str(scene)]) == SceneError.exit_code
    assert run_command(["scene", "import", str(source), "--out", str(scene), "--up", "w"]) == 2
    assert load_scene(scene).view_points  # what was there is still there
    captured = capfd.readouterr()
    assert "absent.glb" in captured.err
    assert "Traceback" not in captured.err


@pytest.mark.slow
@pytest.mark.parametrize("name", ["flat.glb", "flat.gltf", "flat.obj"])
def test_what_a_command_imported_another_runs_in(tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str) -> None:
    flat("z" if name.endswith("obj") else "y").export(tmp_path / name)
    scene, logs, scores = tmp_path / "scene", tmp_path / "logs", tmp_path / "scores.json"
    assert run_command(["scene", "import", str(tmp_path / name), "--out", str(scene)]) == 0
    assert load_scene(scene).map.resolution_m == 0.025
    for task in ("pointnav_gps_compass", "objectnav_habitat2020"):
        arguments = ["--scene", str(scene), "--task", task, "--agent", "oracle", "--count", "1", "--seed", "2"]
        assert run_command(["run", *arguments, "--out", str(logs / task)]) == 0
    assert run_command(["score", str(logs), "--json", str(scores)]) == 0
    episodes = json.loads(scores.read_text(encoding="utf-8"))["episodes"]
    assert [episode["metrics"]["success"] for episode in episodes] == [True, True], capfd.readouterr().err


def test_broken_texture_is_named(tmp_path: Path) -> None:
    (tmp_path / "square.dae").write_text(collada("paint.png"), encoding="utf-8")
    buffer = io.BytesIO()
    Image.new("RGB", (64, 64)).save(buffer, "PNG")
    (tmp_path / "paint.png").write_bytes(buffer.getvalue()[:60])
    with raises_naming(SceneError, "paint.png"):
        load_mesh(tmp_path / "square.dae", [])
