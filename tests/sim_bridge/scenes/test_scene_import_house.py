"""A real third-party house (AWS RoboMaker small house, MIT-0): it imports, and its map is what a robot made there."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from raising import raises_naming
from scipy import ndimage

from robot_runtime.common.geometry import SE2
from robot_runtime.errors import SceneError
from robot_runtime.hal import Intrinsics
from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap
from robot_runtime.scenes.scene import Scene
from sim_bridge.physics.scene_model import build_model
from sim_bridge.physics.world import World
from sim_bridge.rendering.renderer import SceneRenderer, camera_rotation
from sim_bridge.scenes.mesh_files import load_mesh
from sim_bridge.scenes.occupancy import occupancy_from_assets

LIDAR_BAND_M = (0.1, 0.25)
"""Heights around the laser of the robot that made the house's map (TurtleBot3 Waffle Pi)."""

pytestmark = [pytest.mark.timeout(300), pytest.mark.slow]


@pytest.fixture(scope="session")
def ros_map(small_house: Path) -> OccupancyMap:
    """The map that came with the house, 5 cm, made by laser SLAM in Gazebo."""
    return OccupancyMap.load(small_house / "maps" / "turtlebot3_waffle_pi" / "map.yaml")


def on_grid_of(ours: OccupancyMap, theirs: OccupancyMap) -> NDArray[np.uint8]:
    """Our cells on their grid (both are in the world's frame): occupied if any part is, else what most are."""
    rows, columns = np.indices(ours.cells.shape)
    x = ours.origin_x_m + (columns + 0.5) * ours.resolution_m
    y = ours.origin_y_m + (rows + 0.5) * ours.resolution_m
    row = np.floor((y - theirs.origin_y_m) / theirs.resolution_m).astype(int)
    column = np.floor((x - theirs.origin_x_m) / theirs.resolution_m).astype(int)
    counts = np.zeros((3, *theirs.cells.shape), int)
    np.add.at(counts, (ours.cells, row, column), 1)
    result = np.where(counts[Cell.FREE] > counts[Cell.UNKNOWN], Cell.FREE, Cell.UNKNOWN).astype(np.uint8)
    result[counts[Cell.OCCUPIED] > 0] = Cell.OCCUPIED
    return result


def share_near(cells: NDArray[np.bool_], others: NDArray[np.bool_], reach_cells: float) -> float:
    """Share of the set ``cells`` that have one of the ``others`` within reach."""
    distance = ndimage.distance_transform_edt(~others)
    return float((distance[cells] <= reach_cells).mean())


def free_iou(ours: NDArray[np.uint8], theirs: OccupancyMap) -> float:
    """Intersection over union of free space, where the robot's map knows anything."""
    known = theirs.cells != Cell.UNKNOWN
    a, b = (ours == Cell.FREE) & known, theirs.cells == Cell.FREE
    return float((a & b).sum() / (a | b).sum())


def test_everything_is_there(imported_house: Scene) -> None:
    assert len(imported_house.file.assets) == 87
    assert len(imported_house.instances("chair")) == 8
    assert len(imported_house.instances("Television")) == 2
    assert {"sofa", "bed", "dining_table", "refrigerator", "GarbageCan", "Vase"} <= {
        o.category for o in imported_house.objects
    }
    bed = imported_house.instances("bed")[0]
    assert bed.center[:2] == pytest.approx((-6.17, 2.03), abs=0.02)
    assert bed.size == pytest.approx((2.04, 2.0, 1.26), abs=0.01)
    assert str(imported_house.file.source["licence"]).startswith("LICENSE: Copyright 2019 Amazon")
    textured = sum(material.texture is not None for material in imported_house.file.materials.values())
    assert textured >= 60
    chandelier = [asset for asset in imported_house.file.assets if asset.name.startswith("Chandelier")]
    assert chandelier
    assert not any(asset.collision for asset in chandelier)
    assert all(imported_house.view_points.get(item.id) for item in imported_house.objects)


def test_our_map_at_the_lasers_height_is_the_robots_map(imported_house: Scene, ros_map: OccupancyMap) -> None:
    """Measured: IoU of free space 0.97; 97 % of what we call occupied was seen, 90 % of what was seen we have."""
    ours = on_grid_of(occupancy_from_assets(imported_house.folder, imported_house.file, 0.025, *LIDAR_BAND_M), ros_map)
    known = ros_map.cells != Cell.UNKNOWN
    assert free_iou(ours, ros_map) > 0.95
    assert share_near((ours == Cell.OCCUPIED) & known, ros_map.cells == Cell.OCCUPIED, 2.5) > 0.93


def test_our_map_for_the_whole_robot_contains_all_that_the_laser_saw(
    imported_house: Scene, ros_map: OccupancyMap
) -> None:
    """The laser sees table legs, the robot's mast meets table tops: ours has more obstacles, and misses almost none."""
    ours = on_grid_of(imported_house.map, ros_map)
    assert share_near(ros_map.cells == Cell.OCCUPIED, ours == Cell.OCCUPIED, 1.5) > 0.95
    theirs_where_we_are_free = ros_map.cells[(ours == Cell.FREE) & (ros_map.cells != Cell.UNKNOWN)]
    assert (theirs_where_we_are_free == Cell.FREE).mean() > 0.985
    assert free_iou(ours, ros_map) > 0.9


def test_no_small_shift_or_turn_fits_better(imported_house: Scene, ros_map: OccupancyMap) -> None:
    """The frames agree: the world's frame is the map's frame, to within one cell of the robot's map."""
    ours = on_grid_of(imported_house.map, ros_map)

    def agreement(rows: int, columns: int) -> float:
        moved = np.roll(ours, (rows, columns), axis=(0, 1))
        return share_near(ros_map.cells == Cell.OCCUPIED, moved == Cell.OCCUPIED, 0.5)

    scores = {(r, c): agreement(r, c) for r in range(-3, 4) for c in range(-3, 4)}
    best = max(scores, key=lambda shift: scores[shift])
    assert max(abs(best[0]), abs(best[1])) <= 1


def test_where_the_map_has_room_the_simulated_robot_touches_nothing(imported_house: Scene) -> None:
    world = World(build_model(imported_house))
    tight = imported_house.map.navigable(0.18) & (imported_house.map.clearance_m() < 0.2)
    cells = np.argwhere(tight)
    for row, column in cells[np.random.default_rng(0).choice(len(cells), 500)]:
        world.place(SE2(*imported_house.map.to_point(row, column)))  # raises InvalidStart on contact


def test_its_pictures_show_the_house(imported_house: Scene) -> None:
    """Every object with view points is seen from one of them, colored, and the depth ends at walls, not in the sky."""
    built = build_model(imported_house)
    renderer = SceneRenderer(built, Intrinsics.from_hfov(160, 120, 79.0))
    try:
        seen = 0
        large = [(i, item) for i, item in enumerate(imported_house.objects) if max(item.size) > 0.4]
        for index, item in large:
            x, y, yaw = (lambda p: (p.x_m, p.y_m, p.yaw_rad))(imported_house.view_points[item.id][0])
            height = item.center[2] - 0.88
            distance = max(0.3, math.hypot(item.center[0] - x, item.center[1] - y))
            rotation = camera_rotation(yaw, math.atan2(height, distance))
            seen += bool((renderer.segment(np.array([x, y, 0.88]), rotation) == index).any())
        assert seen >= 0.95 * len(large)
        color, depth = renderer.render(np.array([0.0, 0.0, 0.88]), camera_rotation(0.0, -0.2))
        assert len(np.unique(color.reshape(-1, 3), axis=0)) > 500
        assert np.median(depth) < 10.0
    finally:
        renderer.close()


def test_truncated_model_of_the_house_is_named(small_house: Path, tmp_path: Path) -> None:
    mesh = next((small_house / "models" / "aws_robomaker_residential_Sofa_01" / "meshes").glob("*visual*"))
    cut = tmp_path / "sofa.dae"
    cut.write_bytes(mesh.read_bytes()[: mesh.stat().st_size // 2])
    with raises_naming(SceneError, "sofa.dae", "COLLADA"):
        load_mesh(cut, [])
