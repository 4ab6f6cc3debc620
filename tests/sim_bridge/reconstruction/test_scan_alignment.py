"""Alignment of scans in a robot's map: found from any pose, to the centimeter, or refused."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import trimesh
from raising import raises_naming
from scipy.spatial.transform import Rotation

from robot_runtime.cli.main import run_command
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.errors import ConfigError, SceneError
from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap
from robot_runtime.scenes.scene import Scene, find_scene, load_scene
from sim_bridge.reconstruction.scan_import import AlignmentFailed, Registration, align_scan
from sim_bridge.scenes.pieces import UPRIGHT, Up
from sim_bridge.scenes.shapes import visual_triangles

SCAN_IN_MAP = SE2(4.31, -2.87, math.radians(137.3))
"""Pose of the scanner's origin in the map."""


@pytest.fixture(scope="module")
def flat() -> Scene:
    return load_scene(find_scene("apartment"))


def scan_of(
    scene: Scene,
    path: Path,
    up: Up = "y",
    without: Collection[str] = (),
    noise_m: float = 0.0,
    tilt_deg: float = 0.0,
    mirrored: bool = False,
) -> Path:
    """A file with a scene's surfaces in a scanner's axes."""
    visible = replace(scene.file, assets=tuple(asset for asset in scene.file.assets if asset.object not in without))
    triangles = np.concatenate(list(visual_triangles(scene.folder, visible)))
    map_from_scan = np.eye(4)
    map_from_scan[:3, :3] = Rotation.from_euler("z", SCAN_IN_MAP.yaw_rad).as_matrix()
    map_from_scan[:3, 3] = SCAN_IN_MAP.x_m, SCAN_IN_MAP.y_m, -0.4
    tilt = np.eye(4)
    tilt[:3, :3] = Rotation.from_euler("x", tilt_deg, degrees=True).as_matrix()
    matrix = np.linalg.inv(map_from_scan @ UPRIGHT[up] @ tilt)
    points = triangles.reshape(-1, 3) * (-1 if mirrored else 1, 1, 1) @ matrix[:3, :3].T + matrix[:3, 3]
    points += np.random.default_rng(0).normal(0, noise_m, points.shape) if noise_m else 0.0
    faces = np.arange(len(points)).reshape(-1, 3)
    faces = faces[:, ::-1] if mirrored else faces
    trimesh.Trimesh(points, faces, process=False).export(path)
    return path


def check(result: Registration, cm: float = 1.0, deg: float = 0.2) -> None:
    """Assert that the scan is aligned, at its far corners, too."""
    found = result.best.map_from_scan
    for x_m, y_m in ((0.0, 0.0), (5.0, 4.0), (-5.0, 4.0)):
        off_m = math.dist(found.apply(x_m, y_m), SCAN_IN_MAP.apply(x_m, y_m))
        assert off_m < cm / 100 + 6.4 * math.radians(deg)
    middle = result.scan.plan.mean(axis=0).tolist()
    assert math.dist(found.apply(*middle), SCAN_IN_MAP.apply(*middle)) < cm / 100
    assert math.degrees(abs(wrap_angle(found.yaw_rad - SCAN_IN_MAP.yaw_rad))) < deg


@pytest.mark.slow
@pytest.mark.parametrize("up", ["y", "-x"])
def test_a_scan_is_found_whichever_way_it_lies(up: Up, flat: Scene, tmp_path: Path) -> None:
    result = align_scan(scan_of(flat, tmp_path / "scan.glb", up), flat.map, "flat")
    assert result.scan.up == up
    check(result)
    assert result.best.inlier_share > 0.9
    assert result.ambiguity < 0.7


@pytest.mark.slow
def test_noise_missing_furniture_and_a_floor_out_of_level(flat: Scene, tmp_path: Path) -> None:
    categories = {"chair", "table", "sofa", "bed", "GarbageCan", "HousePlant"}
    without = {item.id for item in flat.objects if item.category in categories}
    path = scan_of(flat, tmp_path / "scan.ply", "z", without, noise_m=0.01, tilt_deg=0.8)
    result = align_scan(path, flat.map, "flat")
    assert result.scan.tilt_deg == pytest.approx(0.8, abs=0.3)
    check(result, cm=2.0)
    assert result.best.inlier_share < 0.8


@pytest.mark.slow
def test_the_mirror_image_of_the_flat_is_refused(flat: Scene, tmp_path: Path) -> None:
    """Its outer walls fit, and much of the furniture along them."""
    scan = scan_of(flat, tmp_path / "scan.ply", "z", mirrored=True)
    with raises_naming(AlignmentFailed, scan, "flat", "% of the map's border"):
        align_scan(scan, flat.map, "flat")


def box_room(path: Path) -> tuple[Path, OccupancyMap]:
    """A room that looks the same from either end, 5 x 3 m, and its map."""
    cells = np.full((80, 120), Cell.UNKNOWN, np.uint8)
    cells[9:71, 9:111] = Cell.OCCUPIED
    cells[10:70, 10:110] = Cell.FREE
    inside = trimesh.creation.box((5.0, 3.0, 2.4))
    inside.apply_translation((3.0, 2.0, 1.2))
    inside.invert()
    inside.export(path)
    return path, OccupancyMap(cells, 0.05, 0.0, 0.0)


def test_a_room_that_looks_the_same_from_the_other_end_needs_a_hint(tmp_path: Path) -> None:
    scan, occupancy = box_room(tmp_path / "box.ply")
    with raises_naming(AlignmentFailed, scan, "box", "two ways", "--initial"):
        align_scan(scan, occupancy, "box")
    result = align_scan(scan, occupancy, "box", initial=SE2(5.8, 4.2, math.radians(172)))
    assert math.dist(result.best.map_from_scan.apply(3.0, 2.0), (3.0, 2.0)) < 0.01
    assert abs(math.degrees(result.best.map_from_scan.yaw_rad)) == pytest.approx(180, abs=0.2)
    with raises_naming(AlignmentFailed, scan, "--initial"):
        align_scan(scan, occupancy, "box", initial=SE2(40.0, 0.0))


def test_the_command_imports_the_scan_into_the_map(
    room: Scene, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The room's two things stand at opposite ends, so that only their shapes determine the heading."""
    scan, out, picture = tmp_path / "scan.glb", tmp_path / "scene", tmp_path / "scan.png"
    scan_of(room, scan)
    initial = f"{SCAN_IN_MAP.x_m + 0.2},{SCAN_IN_MAP.y_m - 0.1},140"
    arguments = ["scene", "align", str(scan), "--map", str(room.folder), "--initial", initial, "--no-view-points"]
    assert run_command([*arguments, "--out", str(out), "--picture", str(picture)]) == 0
    output = capsys.readouterr().out
    assert "axis y up" in output
    assert "border explained" in output
    assert picture.read_bytes().startswith(b"\x89PNG")
    scene = load_scene(out)
    corners = np.concatenate([triangles.reshape(-1, 3) for triangles in visual_triangles(out, scene.file)])
    assert corners.min(axis=0) == pytest.approx((-3.1, -2.1, -0.05), abs=0.03)
    assert corners.max(axis=0) == pytest.approx((3.1, 2.1, 2.5), abs=0.03)
    assert [one.id for one in scene.rooms] == ["room"]
    assert scene.file.source["aligned_yaw_deg"] == pytest.approx(137.3, abs=0.2)


@pytest.mark.parametrize(("option", "value"), [("--initial", "1,2"), ("--up", "w"), ("--map", "nowhere")])
def test_senseless_options_are_refused(option: str, value: str, room: Scene, tmp_path: Path) -> None:
    scan = tmp_path / "scan.ply"
    trimesh.creation.box((5.0, 3.0, 2.4)).export(scan)
    arguments = ["scene", "align", str(scan), "--map", str(room.folder)]
    assert run_command([*arguments, option, value]) in (ConfigError.exit_code, SceneError.exit_code)


def test_a_scan_in_millimeters_is_refused_by_its_size(flat: Scene, tmp_path: Path) -> None:
    trimesh.creation.box((5000.0, 3000.0, 2400.0)).export(tmp_path / "scan.ply")
    with raises_naming(SceneError, tmp_path / "scan.ply", "5e+03 m", "--scale"):
        align_scan(tmp_path / "scan.ply", flat.map, "flat")


def test_a_map_without_obstacles_is_refused(tmp_path: Path) -> None:
    scan, _ = box_room(tmp_path / "box.ply")
    nothing = OccupancyMap(np.full((50, 50), Cell.FREE, np.uint8), 0.05, 0.0, 0.0)
    with raises_naming(SceneError, "empty", "0.0 m"):
        align_scan(scan, nothing, "empty")
