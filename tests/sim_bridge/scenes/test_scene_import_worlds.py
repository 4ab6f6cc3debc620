"""Importing Gazebo worlds end to end: what they leave out, lose or make too fine; and two that others published."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
import trimesh

from robot_runtime.cli.main import INTERRUPTED_EXIT_CODE, run_command
from robot_runtime.common.signals import interrupted_by_signals
from robot_runtime.scenes.occupancy_map import Cell
from robot_runtime.scenes.scene import Scene, load_scene
from sim_bridge.scenes import importer
from sim_bridge.scenes.decompose import DecompositionSettings
from sim_bridge.scenes.importer import ImportOptions, import_scene
from sim_bridge.scenes.pieces import read_pieces

QUICK = ImportOptions(view_points=False)


def model(name: str, inside: str, pose: str = "0 0 0 0 0 0") -> str:
    parts = "".join(f"<{tag} name='x'><geometry>{inside}</geometry></{tag}>" for tag in ("visual", "collision"))
    link = f"<link name='l'>{parts}</link>"
    return f"<model name='{name}'><static>true</static><pose>{pose}</pose>{link}</model>"


def write_world(folder: Path, *models: str) -> Path:
    path = folder / "test.world"
    path.write_text(f"<sdf version='1.6'><world name='w'>{''.join(models)}</world></sdf>", encoding="utf-8")
    return path


def box(x: float, y: float, z: float) -> str:
    return f"<box><size>{x} {y} {z}</size></box>"


def room(folder: Path) -> Path:
    floor = model("floor", box(4, 3, 0.1), "0 0 -0.05 0 0 0")
    return write_world(folder, floor, model("crate", box(0.5, 0.5, 1), "1 0 0.5 0 0 0"))


def test_a_world_does_not_turn_what_it_names_by_its_up_axis(tmp_path: Path) -> None:
    trimesh.creation.box((4, 3, 0.1)).export(tmp_path / "floor.dae")
    assert "<up_axis>Y_UP</up_axis>" in (tmp_path / "floor.dae").read_text(encoding="utf-8")
    world = write_world(tmp_path, model("floor", "<mesh><uri>floor.dae</uri></mesh>"))
    (piece,) = read_pieces(world)
    assert np.ptp(piece.world_points(), axis=0).tolist() == pytest.approx([4, 3, 0.1])
    parts = read_pieces(tmp_path / "floor.dae")  # by itself the file says what is up
    assert np.ptp(parts[0].world_points(), axis=0).tolist() == pytest.approx([4, 0.1, 3])


def test_what_a_physics_engine_lost_is_left_out(tmp_path: Path) -> None:
    floor, crate = (
        model("floor", box(4, 3, 0.1), "0 0 -0.05 0 0 0"),
        model("crate", box(0.5, 0.5, 2.2), "1 0 1.1 0 0 0"),
    )
    lost = model("book", box(0.2, 0.1, 0.1), "1 0 343582.7 0 0 0")
    sunk = model("scrubs", box(0.2, 0.1, 0.1), "1 0 -757769000 0 0 0")
    notes = import_scene(write_world(tmp_path, floor, lost, sunk, crate), tmp_path / "scene", QUICK)
    scene = load_scene(tmp_path / "scene")
    assert scene.file.ceiling_m == 2.2
    assert [asset.name for asset in scene.file.assets] == ["floor", "crate"]
    assert [next(name for name in ("book", "scrubs") if name in note) for note in notes] == ["scrubs", "book"]


def test_the_height_of_the_floor_can_be_given(tmp_path: Path) -> None:
    levels = [model(f"floor_{z}", box(4, 3, 0.1), f"0 0 {z - 0.05} 0 0 0") for z in (-3, 0)]
    crates = [model(f"crate_{z}", box(0.5, 0.5, 1), f"{1 + z} 0 {z + 0.5} 0 0 0") for z in (-3, 0)]
    world = write_world(tmp_path, *levels, *crates)
    (question,) = import_scene(world, tmp_path / "scene", QUICK)
    assert "-3.000" in question
    assert "--floor-z-m" in question
    assert (
        run_command(
            ["scene", "import", str(world), "--out", str(tmp_path / "up"), "--floor-z-m", "0", "--no-view-points"]
        )
        == 0
    )
    scene = load_scene(tmp_path / "up")
    assert "floor_shift_m" not in scene.file.source
    assert scene.map.cells[scene.map.to_cell(1.0, 0.0)] == Cell.OCCUPIED


def test_a_floor_with_holes_is_not_decomposed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It lies below everything that the robot touches; its 28 triangles once took a minute."""
    monkeypatch.setitem(sys.modules, "coacd", None)
    floor = trimesh.creation.annulus(r_min=0.5, r_max=4, height=0.1, sections=8)
    floor.apply_translation((0, 0, -0.05))
    floor.export(tmp_path / "floor.stl")
    crate = model("crate", box(0.5, 0.5, 1), "1 0 0.5 0 0 0")
    world = write_world(tmp_path, model("floor", "<mesh><uri>floor.stl</uri></mesh>"), crate)
    import_scene(world, tmp_path / "scene", QUICK)
    assert load_scene(tmp_path / "scene").file.assets[0].collision == ()


@pytest.mark.slow
def test_a_contact_mesh_of_many_triangles_gets_boxes_and_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "coacd", None)
    torus = trimesh.creation.torus(0.4, 0.12, major_sections=80, minor_sections=30)
    torus.apply_translation((0, 0, 0.12))
    torus.export(tmp_path / "torus.stl")
    floor = model("floor", box(4, 3, 0.1), "0 0 -0.05 0 0 0")
    world = write_world(tmp_path, floor, model("ring", "<mesh><uri>torus.stl</uri></mesh>"))
    (note,) = import_scene(world, tmp_path / "scene", QUICK)
    assert "ring" in note
    assert "4,800" in note
    scene = load_scene(tmp_path / "scene")
    assert {shape.shape for shape in scene.file.assets[1].collision} == {"box"}
    assert scene.map.cells[scene.map.to_cell(0.51, 0)] == Cell.OCCUPIED
    assert scene.map.cells[scene.map.to_cell(0.56, 0)] != Cell.OCCUPIED
    assert scene.map.cells[scene.map.to_cell(0.24, 0)] != Cell.OCCUPIED


def test_an_import_that_is_ended_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = room(tmp_path)
    monkeypatch.setattr(importer, "write_view_points", lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    with interrupted_by_signals():
        code = run_command(["scene", "import", str(world), "--out", str(tmp_path / "scene")])
    assert code == INTERRUPTED_EXIT_CODE
    assert [path.name for path in tmp_path.iterdir()] == ["test.world"]


def published(shared_data: Path, name: str, into: Path) -> tuple[Scene, list[str]]:
    """The scene of a world by AWS RoboMaker (MIT), and the notes of its import."""
    world = shared_data / name / "worlds" / f"{name}.world"
    if not world.is_file():
        pytest.skip(f"the world is not at {world}")
    settings = DecompositionSettings(tolerance_m=0.12, search=20)
    options = ImportOptions(skip_missing=True, texture_px=32, settings=settings, view_points=False)
    notes = import_scene(world, into, options)
    return load_scene(into), notes


@pytest.mark.slow
def test_the_bookstore_is_a_shop(shared_data: Path, tmp_path: Path) -> None:
    scene, notes = published(shared_data, "bookstore", tmp_path / "bookstore")
    assert any("BookE_01_009" in note for note in notes)  # at z = 343 km
    assert len(scene.file.assets) >= 135
    assert scene.file.ceiling_m < 10
    free_m2 = float((scene.map.cells == Cell.FREE).sum()) * scene.map.resolution_m**2
    assert free_m2 == pytest.approx(152, rel=0.05)


@pytest.mark.slow
def test_the_hospital_has_its_rooms(shared_data: Path, tmp_path: Path) -> None:
    scene, _ = published(shared_data, "hospital", tmp_path / "hospital")
    size_m = np.array(scene.map.cells.shape[::-1]) * scene.map.resolution_m
    assert size_m.tolist() == pytest.approx([25.6, 57.6], abs=0.1)
    assert len(scene.rooms) == pytest.approx(51, abs=5)
