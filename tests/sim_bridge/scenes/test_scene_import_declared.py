"""What a foreign file declares is read, refused, or listed; native code that runs long is ended."""

from __future__ import annotations

import json
import os
import signal
import struct
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from raising import raises_naming
from test_scene_import_sdf import link, model_sdf, read, write_model

from robot_runtime.errors import SceneError
from sim_bridge.scenes import decomposition_worker
from sim_bridge.scenes.decompose import DecompositionSettings, box_parts, convex_parts
from sim_bridge.scenes.decomposition_worker import DecompositionWorker
from sim_bridge.scenes.mesh_checks import check_collada, check_gltf
from sim_bridge.scenes.mesh_files import load_mesh
from sim_bridge.scenes.pieces import read_pieces

BOX = link("<box><size>1 1 1</size></box>")


def world(folder: Path, inside: str, version: str = "1.9") -> Path:
    path = folder / "worlds" / "lab.world"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"<sdf version='{version}'><world name='lab'>{inside}</world></sdf>")
    return path


def model(name: str, pose: str = "0 0 0 0 0 0", inside: str = BOX) -> str:
    return f"<model name='{name}'><static>1</static><pose>{pose}</pose>{inside}</model>"


def places(path: Path) -> dict[str, list[float]]:
    """Where the first shape of each model is."""
    return {item.name: (item.matrix @ item.shapes[0].matrix)[:3, 3].round(6).tolist() for item in read(path)}


def listed(path: Path) -> list[str]:
    notes: list[str] = []
    read_pieces(path, notes=notes)
    return notes


def test_the_saved_state_replaces_adds_and_removes(tmp_path: Path) -> None:
    state = (
        "<state world_name='lab'><sim_time>1 0</sim_time>"
        "<model name='table'><pose>2 1.5 0 0 0 1.5707963267948966</pose>"
        "<link name='l'><pose>2 2 0 0 0 0</pose></link></model>"
        "<insertions><model name='new'><pose>7 0 0 0 0 0</pose>" + BOX + "</model></insertions>"
        "<deletions><name>old</name></deletions></state>"
    )
    found = places(world(tmp_path, model("table") + model("old") + model("stays", "3 0 0 0 0 0") + state))
    assert found == {"table": [2.0, 2.0, 0.0], "stays": [3.0, 0.0, 0.0], "new": [7.0, 0.0, 0.0]}


def test_a_state_of_a_nested_model_or_a_scale_is_listed(tmp_path: Path) -> None:
    state = "<state><model name='table'><pose>0 0 0 0 0 0</pose><scale>2 1 1</scale><model name='leg'/></model></state>"
    notes = " ".join(listed(world(tmp_path, model("table") + state)))
    assert "<scale>" in notes
    assert "'leg'" in notes


@pytest.mark.parametrize("where", ["include", "model"])
def test_a_placement_frame_is_what_the_pose_places(tmp_path: Path, where: str) -> None:
    frame = "<frame name='seat'><pose>0 0 0.5 0 0 0</pose></frame>"
    text = model_sdf("stool", frame + BOX)
    text = text.replace("name='stool'", "name='stool' placement_frame='seat'") if where == "model" else text
    write_model(tmp_path, "stool", text)
    asked = "<placement_frame>seat</placement_frame>" if where == "include" else ""
    path = world(tmp_path, f"<include><uri>model://stool</uri>{asked}<pose>1 1 0.5 0 0 0</pose></include>")
    assert places(path) == {"stool": [1.0, 1.0, 0.0]}


def test_poses_may_be_relative_to_frames_links_and_models(tmp_path: Path) -> None:
    inner = (
        "<link name='base'><pose>1 0 0 0 0 0</pose></link>"
        "<frame name='top' attached_to='base'><pose>0 0 2 0 0 0</pose></frame>"
        "<link name='l'><pose relative_to='top'>0 3 0 0 0 0</pose>"
        "<visual name='v'><geometry><box><size>1 1 1</size></box></geometry></visual></link>"
    )
    beside = "<model name='beside'><pose relative_to='tower::top'>0 0 1 0 0 0</pose>" + BOX + "</model>"
    found = places(world(tmp_path, model("tower", "10 0 0 0 0 0", inner) + beside))
    assert found == {"tower": [11.0, 3.0, 2.0], "beside": [11.0, 0.0, 3.0]}


@pytest.mark.parametrize(
    ("inside", "named"),
    [
        ("<model name='a'><pose relative_to='nowhere'>0 0 0 0 0 0</pose>" + BOX + "</model>", "nowhere"),
        (
            "<frame name='a'><pose relative_to='b'/></frame><frame name='b'><pose relative_to='a'/></frame>"
            "<model name='m'><pose relative_to='a'>0 0 0 0 0 0</pose>" + BOX + "</model>",
            "circle",
        ),
        ("<model name='a'><pose rotation_format='quat_xyzw'>0 0 0 0 0 0</pose>" + BOX + "</model>", "7 numbers"),
        ("<model name='a'><pose rotation_format='quat_xyzw'>0 0 0 0 0 0 0</pose>" + BOX + "</model>", "quaternion"),
        ("<model name='a'><pose rotation_format='axis_angle'>0 0 0 0 0 0</pose>" + BOX + "</model>", "axis_angle"),
    ],
)
def test_what_cannot_be_placed_is_named(tmp_path: Path, inside: str, named: str) -> None:
    with raises_naming(SceneError, "lab.world", named):
        read(world(tmp_path, inside))


def test_a_quaternion_turns_as_its_angles_do(tmp_path: Path) -> None:
    turned = "<model name='a'><pose rotation_format='quat_xyzw'>1 2 3 0 0 0.7071068 0.7071068</pose>" + BOX + "</model>"
    degrees = "<model name='b'><pose degrees='true'>1 2 3 0 0 90</pose>" + BOX + "</model>"
    first, second = read(world(tmp_path, turned + degrees))
    np.testing.assert_allclose(first.matrix, second.matrix, atol=1e-6)


def test_everything_else_is_listed_once_with_its_number_and_place(tmp_path: Path) -> None:
    others = "<light name='sun'/><light name='lamp'/><actor name='walker'/><population name='boxes'/><plugin name='p'/>"
    notes = listed(world(tmp_path, model("a", inside=BOX + "<joint name='j'/>") + others, version="1.12"))
    for tag, count, place in (
        ("light", 2, "'sun'"),
        ("actor", 1, "'walker'"),
        ("population", 1, "'boxes'"),
        ("plugin", 1, "'p'"),
        ("joint", 1, "'j'"),
        ("1.12", 1, "1.11"),
    ):
        (line,) = [note for note in notes if tag in note]
        assert f"({count}" in line
        assert place in line


@pytest.mark.parametrize("version", ["", "/2", "/tip"])
def test_models_of_fuel_are_found_in_gazebos_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    cache = tmp_path / "cache"
    for number, height in (("2", 2), ("10", 10)):
        folder = cache / "fuel.gazebosim.org" / "openrobotics" / "models" / "big table" / number
        folder.mkdir(parents=True)
        (folder / "model.sdf").write_text(model_sdf("Table", BOX, f"0 0 {height} 0 0 0"))
    monkeypatch.setenv("GZ_FUEL_CACHE_PATH", str(cache))
    uri = f"https://fuel.gazebosim.org/1.0/OpenRobotics/models/Big%20Table{version}"
    (found,) = read(world(tmp_path, f"<include><uri>{uri}</uri></include>"))
    assert found.matrix[2, 3] == (2 if version == "/2" else 10)


def test_the_variables_of_new_gazebo_are_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = tmp_path / "elsewhere"
    write_model(elsewhere, "stool", model_sdf("stool", BOX))
    monkeypatch.setenv("GZ_SIM_RESOURCE_PATH", f"/nowhere{os.pathsep}{elsewhere / 'models'}")
    assert [item.name for item in read(world(tmp_path, "<include><uri>model://stool</uri></include>"))] == ["stool"]


def test_a_submesh_is_the_part_of_that_name(tmp_path: Path) -> None:
    write_model(tmp_path, "m", model_sdf("m", BOX))
    mesh = tmp_path / "models" / "m" / "two.obj"
    triangle = "v {0} 0 0\nv {1} 0 0\nv {0} 1 0\n"
    mesh.write_text("o one\n" + triangle.format(0, 1) + "f 1 2 3\no other\n" + triangle.format(4, 6) + "f 4 5 6\n")
    shape = "<mesh><uri>model://m/two.obj</uri><submesh><name>{}</name><center>{}</center></submesh></mesh>"
    path = world(tmp_path, model("a", inside=link(shape.format("other", "true"))))
    (piece,) = read_pieces(path)
    assert piece.world_points()[:, 0].min() == -1
    assert piece.world_points()[:, 0].max() == 1
    with raises_naming(SceneError, "submesh 'third'", "other"):
        read_pieces(world(tmp_path, model("a", inside=link(shape.format("third", "false")))))


def glb(path: Path, document: dict[str, Any]) -> Path:
    content = json.dumps({"asset": {"version": "2.0"}, **document}).encode()
    content += b" " * (-len(content) % 4)
    head = struct.pack("<4sIIII", b"glTF", 2, 20 + len(content), len(content), 0x4E4F534A)
    path.write_bytes(head + content)
    return path


@pytest.mark.parametrize(
    "name",
    [
        "KHR_draco_mesh_compression",
        "EXT_meshopt_compression",
        "KHR_texture_basisu",
        "KHR_mesh_quantization",
        "ACME_new",
    ],
)
def test_a_required_extension_is_read_or_refused_at_once(tmp_path: Path, name: str) -> None:
    for path in (tmp_path / "scan.glb", tmp_path / "scan.gltf"):
        document = {"extensionsUsed": [name], "extensionsRequired": [name]}
        if path.suffix == ".glb":
            glb(path, document)
        else:
            path.write_text(json.dumps({"asset": {"version": "2.0"}, **document}))
        with raises_naming(SceneError, path.name, name):
            load_mesh(path, [])


def test_what_a_gltf_file_can_do_without_is_listed(tmp_path: Path) -> None:
    path = glb(tmp_path / "a.glb", {"extensionsUsed": ["KHR_lights_punctual"], "animations": [{}], "cameras": [{}, {}]})
    assert check_gltf(path) == ["the glTF extension KHR_lights_punctual", "animations (1)", "cameras (2)"]


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\nl 1 2\nl 2 3\ncurv 0 1 1 2\n", {"'l' (2)", "'curv' (1)"}),
        (
            "a.ply",
            "ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\n"
            "element face 1\nproperty list uchar int vertex_indices\nelement edge 1\nproperty int vertex1\n"
            "end_header\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n0\n",
            {"'edge' (1)"},
        ),
    ],
)
def test_what_is_no_triangle_is_listed(tmp_path: Path, name: str, text: str, told: set[str]) -> None:
    (tmp_path / name).write_text(text)
    notes: list[str] = []
    assert len(load_mesh(tmp_path / name, notes)) == 1
    assert len(notes) == len(told)
    assert all(any(words in note for note in notes) for words in told)


def test_parts_of_collada_that_are_not_read_are_listed() -> None:
    mesh = "<geometry><mesh><source/><tristrips/><lines/><lines/></mesh></geometry>"
    content = f"<asset/><library_geometries>{mesh}</library_geometries><library_lights/>"
    data = f"<COLLADA xmlns='http://www.collada.org/2005/11/COLLADASchema'>{content}</COLLADA>"
    assert set(check_collada(data.encode())) == {"<tristrips> (1)", "<lines> (2)", "<library_lights> (1)"}


def ring() -> tuple[np.ndarray, np.ndarray]:
    """Vertices and faces of a square ring, which is closed and not convex."""
    import trimesh

    mesh: Any = trimesh.creation.annulus(0.3, 0.5, 0.2, sections=8)
    return np.asarray(mesh.vertices, float), np.asarray(mesh.faces, np.int64)


def _never(connection: Any) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    connection.recv()
    time.sleep(600)


def _crashes(connection: Any) -> None:
    connection.recv()
    os.kill(os.getpid(), signal.SIGSEGV)


@pytest.mark.slow
@pytest.mark.parametrize("target", [_never, _crashes])
def test_native_code_that_does_not_end_leaves_boxes_and_nothing_running(
    monkeypatch: pytest.MonkeyPatch, target: Any
) -> None:
    monkeypatch.setattr(decomposition_worker, "_serve", target)
    vertices, faces = ring()
    with DecompositionWorker(time_limit_s=0.5 if target is _never else 30) as worker:
        parts = convex_parts(vertices[faces], DecompositionSettings(), worker.search)
        assert worker._process is None
    assert len(parts) == len(box_parts(vertices[faces]))


@pytest.mark.slow
def test_a_worker_finds_what_this_process_would(tmp_path: Path) -> None:
    vertices, faces = ring()
    settings = DecompositionSettings(search=20)
    with DecompositionWorker() as worker:
        found = convex_parts(vertices[faces], settings, worker.search)
        again = convex_parts(vertices[faces], settings, worker.search)
    here = convex_parts(vertices[faces], settings)
    for parts in (found, again):
        assert len(parts) == len(here)
        for part, expected in zip(parts, here, strict=True):
            np.testing.assert_allclose(part, expected, atol=1e-9)


def test_an_interrupt_in_the_middle_of_a_search_ends_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decomposition_worker, "_serve", _never)
    vertices, faces = ring()
    previous = signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    try:
        with DecompositionWorker() as worker:
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            with pytest.raises(KeyboardInterrupt):
                worker.search(vertices, faces, DecompositionSettings())
            assert worker._process is None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
