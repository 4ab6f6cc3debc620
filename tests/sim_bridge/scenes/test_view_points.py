"""View points: within reach of the box, with room for the robot, and in sight."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import trimesh

from robot_runtime.common.geometry import wrap_angle
from robot_runtime.scenes.scene import Asset, Collision, Material, Scene, SceneFile, SceneObject, Visual, load_scene
from sim_bridge.scenes.occupancy import occupancy_from_assets
from sim_bridge.scenes.scene_files import save_obj, save_scene_file
from sim_bridge.scenes.view_points import ViewRule, compute_view_points, write_view_points

RULE = ViewRule()


def make_scene(
    folder: Path, boxes: Sequence[tuple[str, tuple[float, float, float], tuple[float, float, float], float]]
) -> Scene:
    """A 5 x 4 m room with boxes (id, center, size, yaw_deg); an id in capitals is structure."""
    (folder / "assets").mkdir(parents=True)
    walls = [
        ("WALL", (-0.05, 2.0, 1.2), (0.1, 4.2, 2.4), 0.0),
        ("WALL", (5.05, 2.0, 1.2), (0.1, 4.2, 2.4), 0.0),
        ("WALL", (2.5, -0.05, 1.2), (5.0, 0.1, 2.4), 0.0),
        ("WALL", (2.5, 4.05, 1.2), (5.0, 0.1, 2.4), 0.0),
    ]
    assets, objects = [], []
    for number, (name, center, size, yaw_deg) in enumerate([*walls, *boxes]):
        mesh = f"assets/box_{number}.obj"
        save_obj(folder / mesh, np.asarray(trimesh.creation.box(size).triangles))
        half = math.radians(yaw_deg) / 2
        object_id = None if name.isupper() else name
        if object_id is not None:
            objects.append(SceneObject(name, name, center, size, yaw_deg))
        assets.append(
            Asset(
                f"{name}_{number}",
                object_id,
                center,
                (math.cos(half), 0.0, 0.0, math.sin(half)),
                (Visual(mesh, "gray"),),
                (Collision("box", size=size),),
            )
        )
    file = SceneFile(1, "room", (), tuple(objects), materials={"gray": Material()}, assets=tuple(assets))
    occupancy_from_assets(folder, file).save(folder / "map.yaml")
    save_scene_file(folder / "scene.yaml", file)
    return load_scene(folder)


def planar_distance(item: SceneObject, x: float, y: float) -> float:
    c, s = math.cos(math.radians(item.yaw_deg)), math.sin(math.radians(item.yaw_deg))
    dx, dy = x - item.center[0], y - item.center[1]
    return math.hypot(
        max(0.0, abs(c * dx + s * dy) - item.size[0] / 2), max(0.0, abs(-s * dx + c * dy) - item.size[1] / 2)
    )


@pytest.mark.parametrize("yaw_deg", [0.0, 30.0])
def test_points_are_near_free_and_face_the_object(tmp_path: Path, yaw_deg: float) -> None:
    scene = make_scene(tmp_path / "s", [("crate", (2.5, 2.0, 0.3), (1.2, 0.4, 0.6), yaw_deg)])
    item = scene.object("crate")
    poses = compute_view_points(scene)["crate"]
    clearance = scene.map.clearance_m()
    assert len(poses) > 100
    for x, y, yaw in poses:
        assert planar_distance(item, x, y) <= RULE.reach_m + 1e-3
        assert clearance[scene.map.to_cell(x, y)] >= RULE.radius_m
        assert wrap_angle(math.atan2(item.center[1] - y, item.center[0] - x) - yaw) == pytest.approx(0, abs=1e-3)


def test_every_valid_place_is_within_the_success_distance_of_a_point(tmp_path: Path) -> None:
    scene = make_scene(tmp_path / "s", [("crate", (2.5, 2.0, 0.3), (0.5, 0.5, 0.6), 0.0)])
    item = scene.object("crate")
    points = np.array(compute_view_points(scene)["crate"])[:, :2]
    navigable = scene.map.navigable(RULE.radius_m)
    random = np.random.default_rng(0)
    checked = 0
    for x, y in random.uniform((0.3, 0.3), (4.7, 3.7), (400, 2)):
        if (
            planar_distance(item, x, y) < 0.85
            and navigable[scene.map.to_cell(x, y)]
            and planar_distance(item, x, y) > 0.32
        ):
            checked += 1
            assert np.hypot(*(points - (x, y)).T).min() < 0.1
    assert checked > 50


def test_what_hides_an_object_takes_its_points_away(tmp_path: Path) -> None:
    crate = ("crate", (2.5, 3.6, 0.3), (0.5, 0.5, 0.6), 0.0)
    screen = ("SCREEN", (2.5, 3.1, 1.0), (3.0, 0.1, 2.0), 0.0)
    open_points = compute_view_points(make_scene(tmp_path / "open", [crate]))["crate"]
    hidden = compute_view_points(make_scene(tmp_path / "hidden", [crate, screen]))
    assert any(y < 3.0 for _, y, _ in open_points)
    assert all(y > 3.1 for _, y, _ in hidden.get("crate", []))


def test_an_object_shut_in_a_cupboard_has_no_points(tmp_path: Path) -> None:
    cupboard = [
        ("CUPBOARD", (2.5, 1.7, 1.0), (1.0, 0.05, 2.0), 0.0),
        ("CUPBOARD", (2.5, 2.3, 1.0), (1.0, 0.05, 2.0), 0.0),
        ("CUPBOARD", (2.0, 2.0, 1.0), (0.05, 0.6, 2.0), 0.0),
        ("CUPBOARD", (3.0, 2.0, 1.0), (0.05, 0.6, 2.0), 0.0),
        ("CUPBOARD", (2.5, 2.0, 2.0), (1.0, 0.6, 0.05), 0.0),
    ]
    jar = ("jar", (2.5, 2.0, 0.5), (0.2, 0.2, 0.2), 0.0)
    scene = make_scene(tmp_path / "s", [*cupboard, jar])
    assert "jar" not in compute_view_points(scene)


def test_small_thing_on_a_table_is_seen_over_its_edge(tmp_path: Path) -> None:
    table = ("table", (2.5, 2.0, 0.35), (1.0, 0.6, 0.7), 0.0)
    mug = ("mug", (2.5, 2.0, 0.75), (0.08, 0.08, 0.1), 0.0)
    found = compute_view_points(make_scene(tmp_path / "s", [table, mug]))
    assert len(found["mug"]) > 20


def test_same_scene_same_points_and_the_file_holds_them(tmp_path: Path) -> None:
    crate = ("crate", (1.0, 1.0, 0.3), (0.5, 0.5, 0.6), 12.0)
    scene = make_scene(tmp_path / "s", [crate])
    steps: list[tuple[str, int, int]] = []
    written = write_view_points(scene.folder, lambda *step: steps.append(step))
    assert written == compute_view_points(scene)
    assert steps[0] == ("view points", 0, 1)
    assert steps[-1] == ("view points", 1, 1)
    loaded = load_scene(scene.folder)
    assert [[p.x_m, p.y_m, p.yaw_rad] for p in loaded.view_points["crate"]] == written["crate"]
    assert loaded.digest != scene.digest
