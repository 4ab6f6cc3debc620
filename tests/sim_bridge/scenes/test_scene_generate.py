"""Generated flats: the same for the same seed, complete, plausible, and passable for the robot."""

from __future__ import annotations

import functools
import json
import math
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import shapely
from raising import raises_naming
from scipy import ndimage

from robot_runtime.cli.main import run_command
from robot_runtime.errors import SceneError
from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap
from robot_runtime.scenes.scene import SCENES, Scene, SceneFile, SceneObject, load_scene
from sim_bridge.physics.scene_model import build_model
from sim_bridge.scenes.collider_excess import LIMIT_M, collider_excess_m
from sim_bridge.scenes.furniture import catalog
from sim_bridge.scenes.generate import flats, generate_scene
from sim_bridge.scenes.layout import SIZES
from sim_bridge.scenes.occupancy import occupancy_from_assets
from sim_bridge.scenes.shapes import place, read_obj

BUNDLE = Path(__file__).parents[3] / "sim_bridge" / "scenes" / "apartment"
FLATS = [("robothor", 1), ("robothor", 2), ("medium", 3), ("large", 4)]
ROBOTHOR = {
    "AlarmClock", "Apple", "BaseballBat", "BasketBall", "Bowl", "GarbageCan", "HousePlant", "Laptop", "Mug",
    "SprayBottle", "Television", "Vase",
}  # fmt: skip
HABITAT = {"chair", "table", "picture", "cabinet", "sofa", "bed", "sink", "toilet", "towel"}
MESH_STEP_M = 1.5e-3  # rounding of positions and vertices


@dataclass(frozen=True)
class Generated:
    scene: Scene
    points: dict[str, np.ndarray]  # object id -> vertices of its visual meshes in map

    @property
    def file(self) -> SceneFile:
        return self.scene.file


@functools.cache
def generated(size: str, seed: int) -> Generated:
    flat = next(flats(seed, size))
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "flat"
        flat.write(folder)
        scene = load_scene(folder)
        points = {
            asset.object: np.concatenate([place(asset, read_obj(folder / v.mesh)[0]) for v in asset.visual])
            for asset in scene.file.assets
            if asset.object is not None
        }
    return Generated(scene, points)


every_flat = pytest.mark.parametrize(("size", "seed"), FLATS)


def outline(item: SceneObject) -> shapely.Polygon:
    c, s = math.cos(math.radians(item.yaw_deg)), math.sin(math.radians(item.yaw_deg))
    x, y = item.size[0] / 2, item.size[1] / 2
    corners = [(i * x, j * y) for i, j in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
    return shapely.Polygon([(item.center[0] + c * u - s * v, item.center[1] + s * u + c * v) for u, v in corners])


def bottom(item: SceneObject) -> float:
    return item.center[2] - item.size[2] / 2


def top(item: SceneObject) -> float:
    return item.center[2] + item.size[2] / 2


def wall_boxes(file: SceneFile) -> list[tuple[shapely.Polygon, float]]:
    """Footprint and lower edge of every piece of wall."""
    walls = next(asset for asset in file.assets if asset.name == "walls")
    result = []
    for shape in walls.collision:
        (x, y, z), (w, d, h) = shape.center, shape.size
        result.append((shapely.box(x - w / 2, y - d / 2, x + w / 2, y + d / 2), z - h / 2))
    return result


# --- the bundled flat ---------------------------------------------------------------------------------------------


def test_the_bundled_apartment_is_a_whole_scene() -> None:
    """Every file that it names exists and is used, its map is that of its contact shapes, its objects are in rooms."""
    scene = load_scene(BUNDLE)
    file = scene.file
    named = {visual.mesh for asset in file.assets for visual in asset.visual}
    named |= {shape.mesh for asset in file.assets for shape in asset.collision if shape.mesh is not None}
    named |= {material.texture for material in file.materials.values() if material.texture is not None}
    assert named == {str(path.relative_to(BUNDLE)) for path in (BUNDLE / "assets").iterdir()}
    assert {visual.material for asset in file.assets for visual in asset.visual} <= file.materials.keys()
    assert {asset.object for asset in file.assets} - {None} == {item.id for item in file.objects}
    assert {item.room for item in file.objects} == {room.id for room in file.rooms}
    assert scene.view_points.keys() <= {item.id for item in file.objects}
    occupancy = occupancy_from_assets(BUNDLE, file)
    assert (occupancy.origin_x_m, occupancy.origin_y_m) == (scene.map.origin_x_m, scene.map.origin_y_m)
    # The map is that of the boxes with which the flat was planned; contact shapes have become tighter since.
    occupied, touched = scene.map.cells == Cell.OCCUPIED, occupancy.cells == Cell.OCCUPIED
    assert not (touched & ~ndimage.binary_dilation(occupied)).any()
    assert (occupied & ~touched).sum() < 0.03 * occupied.sum()


@pytest.mark.parametrize("name", sorted(SCENES))
def test_contact_shapes_of_bundled_scenes_stand_out_at_most_a_centimeter(name: str) -> None:
    excess_m = collider_excess_m(load_scene(name))
    assert len(excess_m) >= 10
    assert max(excess_m.values()) <= LIMIT_M, excess_m


def test_the_bundled_apartment_is_small_and_every_goal_is_seen_from_somewhere() -> None:
    scene = load_scene(BUNDLE)
    assert sum(path.stat().st_size for path in BUNDLE.rglob("*") if path.is_file()) < 3e6
    for category in ROBOTHOR:
        assert any(scene.view_points.get(item.id) for item in scene.instances(category)), category
    assert build_model(scene).model.nmeshface < 60_000


# --- any flat -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_same_seed_same_bytes_other_seed_another_flat(tmp_path: Path) -> None:
    for name, seed in (("a", 5), ("b", 5), ("c", 6)):
        next(flats(seed, "robothor")).write(tmp_path / name)
    first, second, other = (
        {str(p.relative_to(tmp_path / name)): p.read_bytes() for p in (tmp_path / name).rglob("*") if p.is_file()}
        for name in "abc"
    )
    assert first == second
    assert first["map.pgm"] != other["map.pgm"]
    assert load_scene(tmp_path / "a").rooms != load_scene(tmp_path / "c").rooms


@pytest.mark.slow
@every_flat
def test_rooms_tile_the_footprint(size: str, seed: int) -> None:
    file = generated(size, seed).file
    footprint = shapely.box(0, 0, SIZES[size].width_m, SIZES[size].depth_m)
    rooms = [shapely.Polygon(room.polygon) for room in file.rooms]
    assert all(footprint.buffer(1e-6).contains(room) and room.exterior.is_ccw for room in rooms)
    assert sum(room.area for room in rooms) == pytest.approx(shapely.union_all(rooms).area)
    assert sum(room.area for room in rooms) > 0.9 * footprint.area
    assert {room.category for room in file.rooms} >= {"living_room", "kitchen", "bedroom", "bathroom"}
    assert {room.category for room in file.rooms} <= catalog().rooms.keys()


@pytest.mark.slow
@every_flat
def test_holds_the_goal_categories_and_common_furniture(size: str, seed: int) -> None:
    scene = generated(size, seed).scene
    categories = {item.category for item in scene.objects}
    assert set(catalog().goals) == ROBOTHOR
    assert categories >= ROBOTHOR
    assert len(categories & HABITAT) >= 7
    assert all(item.color for item in scene.objects if item.category in ROBOTHOR | {"sofa", "chair", "bed"})
    assert all(item.movable for item in scene.objects if item.category in ROBOTHOR - {"Television"})
    assert not any(item.movable for item in scene.objects if item.category in {"sofa", "bed", "table", "sink"})


@pytest.mark.slow
@every_flat
def test_the_robot_gets_everywhere(size: str, seed: int) -> None:
    scene = generated(size, seed).scene
    free = scene.map.navigable(0.18)
    assert ndimage.label(free)[1] == 1
    lanes, _ = ndimage.label(scene.map.navigable(0.22))
    columns, rows = np.meshgrid(np.arange(free.shape[1]), np.arange(free.shape[0]))
    x, y = scene.map.to_point(rows, columns)
    main = np.bincount(lanes[lanes > 0]).argmax()
    for room in scene.rooms:
        inside = shapely.contains_xy(shapely.Polygon(room.polygon), x, y)
        assert (lanes[inside] == main).sum() * scene.map.resolution_m**2 > 0.3, room.id


@pytest.mark.slow
@every_flat
def test_doors_are_wide_and_free(size: str, seed: int) -> None:
    file = generated(size, seed).file
    lintels = [shape for shape, low in wall_boxes(file) if low > 1.9]
    assert len(lintels) >= len(file.rooms) - 1
    standing = [item for item in file.objects if bottom(item) < 1.0 and item.category != "rug"]
    for lintel in lintels:
        x0, y0, x1, y1 = lintel.bounds
        assert max(x1 - x0, y1 - y0) >= 0.8
        across = (0.0, 0.6) if x1 - x0 > y1 - y0 else (0.6, 0.0)
        way = shapely.box(x0 - across[0], y0 - across[1], x1 + across[0], y1 + across[1])
        assert not [item.id for item in standing if outline(item).intersection(way).area > 1e-4]


@pytest.mark.slow
@every_flat
def test_objects_stand_inside_their_rooms_and_clear_of_walls(size: str, seed: int) -> None:
    file = generated(size, seed).file
    rooms = {room.id: shapely.Polygon(room.polygon) for room in file.rooms}
    walls = shapely.union_all([shape for shape, _ in wall_boxes(file)])
    for item in file.objects:
        assert item.room is not None
        assert rooms[item.room].buffer(2e-3).covers(outline(item)), item.id
        assert outline(item).intersection(walls).area < 1e-3, item.id
        assert top(item) <= file.ceiling_m + 1e-3


@pytest.mark.slow
@every_flat
def test_boxes_fit_their_meshes(size: str, seed: int) -> None:
    flat = generated(size, seed)
    for item in flat.file.objects:
        c, s = math.cos(math.radians(item.yaw_deg)), math.sin(math.radians(item.yaw_deg))
        local = (flat.points[item.id] - np.array(item.center)) @ np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
        half = np.array(item.size) / 2
        np.testing.assert_allclose(local.min(axis=0), -half, atol=MESH_STEP_M, err_msg=item.id)
        np.testing.assert_allclose(local.max(axis=0), half, atol=MESH_STEP_M, err_msg=item.id)


@pytest.mark.slow
@every_flat
def test_nothing_floats(size: str, seed: int) -> None:
    flat = generated(size, seed)
    walls = shapely.union_all([shape for shape, low in wall_boxes(flat.file) if low == 0])
    for item in flat.file.objects:
        on_floor = abs(bottom(item)) < 4e-3
        at_wall = not item.movable and outline(item).distance(walls) < 0.03
        at_ceiling = abs(top(item) - flat.file.ceiling_m) < 2e-3
        hosts = [
            other.id
            for other in flat.file.objects
            if other is not item
            and outline(other).contains(shapely.Point(item.center[:2]))
            and np.abs(flat.points[other.id][:, 2] - bottom(item)).min() < 4e-3
        ]
        assert on_floor or at_wall or at_ceiling or hosts, item.id


@pytest.mark.slow
@every_flat
def test_furniture_does_not_interpenetrate(size: str, seed: int) -> None:
    file = generated(size, seed).file
    solid = [item for item in file.objects if item.category != "rug" and not item.movable]
    for k, a in enumerate(solid):
        for b in solid[:k]:
            if "chair" in (a.category, b.category) and {"table", "desk", "chair"} & {a.category, b.category}:
                continue  # pushed under, or the corners of two turned boxes round one table
            height = min(top(a), top(b)) - max(bottom(a), bottom(b))
            if height > 5e-3:
                assert outline(a).intersection(outline(b)).area < 2e-3, (a.id, b.id)


@pytest.mark.slow
@every_flat
def test_small_things_do_not_interpenetrate(size: str, seed: int) -> None:
    file = generated(size, seed).file
    small = [item for item in file.objects if item.category in ROBOTHOR]
    for k, a in enumerate(small):
        for b in small[:k]:
            apart = min(top(a), top(b)) - max(bottom(a), bottom(b)) < 5e-3
            assert apart or outline(a).intersection(outline(b)).area < 1e-4, (a.id, b.id)


@pytest.mark.slow
def test_sizes_are_the_footprints_that_the_challenges_use() -> None:
    robothor, large = SIZES["robothor"], SIZES["large"]
    assert (robothor.width_m, robothor.depth_m) == (8.8, 3.9)
    assert (large.width_m, large.depth_m) == (12.0, 9.0)
    assert 5 <= len(generated("large", 4).file.rooms) <= 7


@pytest.mark.slow
def test_the_doorways_are_free_on_the_map() -> None:
    flat = generated("robothor", 1)
    occupancy: OccupancyMap = flat.scene.map
    for shape, low in wall_boxes(flat.file):
        row, column = occupancy.to_cell(shape.centroid.x, shape.centroid.y)
        assert occupancy.cells[row, column] == (Cell.FREE if low > 0 else Cell.OCCUPIED)


# --- bad input ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "seed"),
    [("robothor", "1"), pytest.param("large", "5", marks=pytest.mark.exhaustive)],
    ids=["robothor", "large"],
)
def test_what_the_command_generates_another_runs_in(tmp_path: Path, size: str, seed: str) -> None:
    """The seeds are of short episodes."""
    folder, logs, scores = tmp_path / "flat", tmp_path / "logs", tmp_path / "scores.json"
    assert run_command(["scene", "generate", "--out", str(folder), "--seed", "3", "--size", size]) == 0
    assert load_scene(folder).map.resolution_m == 0.025
    for task in ("pointnav_gps_compass", "objectnav_robothor2021"):
        arguments = ["--scene", str(folder), "--task", task, "--agent", "oracle", "--count", "1", "--seed", seed]
        assert run_command(["run", *arguments, "--out", str(logs / task)]) == 0
    assert run_command(["score", str(logs), "--json", str(scores)]) == 0
    episodes = json.loads(scores.read_text(encoding="utf-8"))["episodes"]
    assert [episode["metrics"]["success"] for episode in episodes] == [True, True]


@pytest.mark.slow
def test_generating_says_how_far_it_has_come(tmp_path: Path) -> None:
    steps: list[tuple[str, int, int]] = []
    generate_scene(tmp_path / "flat", 11, "robothor", lambda *step: steps.append(step))
    assert list(dict.fromkeys(stage for stage, _, _ in steps)) == [
        "plan and furniture",
        "meshes and textures",
        "view points",
    ]
    assert all(0 <= done <= total for _, done, total in steps)
    assert steps[-1][1] == steps[-1][2] > 10


def test_unknown_size_names_the_sizes(tmp_path: Path) -> None:
    with raises_naming(SceneError, "castle") as caught:
        generate_scene(tmp_path / "flat", 0, "castle")
    assert "robothor" in caught.value.remedy
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_content_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with raises_naming(SceneError, str(tmp_path)):
        generate_scene(tmp_path, 0)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
