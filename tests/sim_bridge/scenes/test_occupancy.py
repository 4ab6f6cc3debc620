"""The occupancy map of a scene's geometry: exact outlines, the height band, inside and outside."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from raising import raises_naming

from robot_runtime.errors import SceneError
from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap
from robot_runtime.scenes.scene import Asset, Collision, Room, SceneFile, Visual
from sim_bridge.scenes.occupancy import occupancy_from_assets
from sim_bridge.scenes.raster import Grid, mark_outline, mark_triangles, slice_hull


def scene(*assets: Asset, rooms: tuple[Room, ...] = ()) -> SceneFile:
    return SceneFile(schema=1, name="test", rooms=rooms, objects=(), assets=assets)


def box(x: float, y: float, z: float, dx: float, dy: float, dz: float, **pose: Any) -> Asset:
    return Asset("box", position=(x, y, z), collision=(Collision("box", size=(dx, dy, dz)),), **pose)


def walls(size_x: float, size_y: float, height: float = 2.4, thick: float = 0.1) -> list[Asset]:
    """Four walls whose inner faces span [0, size_x] x [0, size_y]."""
    half = height / 2
    return [
        box(-thick / 2, size_y / 2, half, thick, size_y + 2 * thick, height),
        box(size_x + thick / 2, size_y / 2, half, thick, size_y + 2 * thick, height),
        box(size_x / 2, -thick / 2, half, size_x, thick, height),
        box(size_x / 2, size_y + thick / 2, half, size_x, thick, height),
    ]


def state(grid: OccupancyMap, x: float, y: float) -> Cell:
    return Cell(int(grid.cells[grid.to_cell(x, y)]))


def write_quad(path: Path, corners: list[tuple[float, float, float]]) -> None:
    text = "".join(f"v {x} {y} {z}\n" for x, y, z in corners)
    path.write_text(text + "f " + " ".join(str(i + 1) for i in range(len(corners))) + "\n", encoding="utf-8")


def test_room_is_free_walls_are_occupied_and_outside_is_unknown(tmp_path: Path) -> None:
    result = occupancy_from_assets(tmp_path, scene(*walls(4.0, 3.0)))
    assert state(result, 2.0, 1.5) is Cell.FREE
    assert state(result, -0.05, 1.5) is Cell.OCCUPIED
    assert state(result, -0.2, 1.5) is Cell.UNKNOWN
    # The walls lie on grid lines: exactly the cells between their faces are marked.
    assert int((result.cells == Cell.FREE).sum()) == 160 * 120
    assert int((result.cells == Cell.OCCUPIED).sum()) == 168 * 128 - 160 * 120


@pytest.mark.parametrize(
    ("bottom", "top", "expected"),
    [
        (0.0, 0.02, Cell.FREE),  # a carpet
        (0.0, 0.1, Cell.OCCUPIED),
        (0.7, 0.75, Cell.OCCUPIED),  # a table's top, at the height of the mast
        (0.95, 1.5, Cell.FREE),  # a shelf above the robot
        (0.02, 2.0, Cell.OCCUPIED),
    ],
)
def test_only_what_reaches_into_the_height_band_is_occupied(
    tmp_path: Path, bottom: float, top: float, expected: Cell
) -> None:
    thing = box(2.0, 1.5, (bottom + top) / 2, 0.4, 0.4, top - bottom)
    assert state(occupancy_from_assets(tmp_path, scene(*walls(4, 3), thing)), 2.0, 1.5) is expected


def test_a_doorway_with_a_lintel_does_not_let_the_outside_in(tmp_path: Path) -> None:
    left, right, _, back = walls(4.0, 3.0)
    split = [box(0.75, -0.05, 1.2, 1.5, 0.1, 2.4), box(3.25, -0.05, 1.2, 1.5, 0.1, 2.4)]
    lintel = box(2.0, -0.05, 2.2, 1.0, 0.1, 0.4)
    closed = occupancy_from_assets(tmp_path, scene(left, right, back, *split, lintel))
    assert state(closed, 2.0, 1.5) is Cell.FREE
    assert state(closed, 2.0, -0.05) is Cell.FREE
    assert state(closed, 2.0, -0.2) is Cell.UNKNOWN
    gaping = occupancy_from_assets(tmp_path, scene(left, right, back, *split))
    assert state(gaping, 2.0, 1.5) is Cell.UNKNOWN
    room = Room("r", "room", ((0, 0), (4, 0), (4, 3), (0, 3)))
    assert state(occupancy_from_assets(tmp_path, scene(left, right, back, *split, rooms=(room,))), 2, 1.5) is Cell.FREE


def test_pose_of_asset_and_of_shape_are_both_applied(tmp_path: Path) -> None:
    yaw = math.radians(30)
    asset = Asset(
        "plank",
        position=(2.0, 1.5, 0.0),
        quaternion=(math.cos(yaw / 2), 0.0, 0.0, math.sin(yaw / 2)),
        collision=(Collision("box", center=(0.5, 0.0, 0.3), size=(1.0, 0.2, 0.6), yaw_deg=15.0),),
    )
    result = occupancy_from_assets(tmp_path, scene(*walls(4, 3), asset))
    center = np.array([2.0, 1.5]) + 0.5 * np.array([math.cos(yaw), math.sin(yaw)])
    along = np.array([math.cos(math.radians(45)), math.sin(math.radians(45))])
    across = np.array([-along[1], along[0]])
    assert state(result, *(center + 0.49 * along)) is Cell.OCCUPIED
    assert state(result, *(center + 0.54 * along)) is Cell.FREE
    assert state(result, *(center + 0.09 * across)) is Cell.OCCUPIED
    assert state(result, *(center + 0.14 * across)) is Cell.FREE


def test_cylinder_and_hull_of_a_mesh(tmp_path: Path) -> None:
    write_quad(tmp_path / "roof.obj", [(0, 0, 0.1), (0.6, 0, 0.1), (0, 0.6, 0.1), (0.1, 0.1, 0.5)])
    post = Asset("post", position=(1.0, 1.0, 0.5), collision=(Collision("cylinder", size=(0.6, 0.6, 1.0)),))
    wedge = Asset("wedge", position=(2.0, 1.0, 0.0), collision=(Collision("mesh", mesh="roof.obj"),))
    result = occupancy_from_assets(tmp_path, scene(*walls(4, 3), post, wedge))
    area = 0.025**2 * int((result.cells[:, : result.to_cell(1.7, 0)[1]] == Cell.OCCUPIED)[14:-14, 14:].sum())
    assert area == pytest.approx(math.pi * 0.3**2, rel=0.12)
    assert state(result, 2.25, 1.25) is Cell.OCCUPIED
    assert state(result, 2.4, 1.4) is Cell.FREE


def test_visual_triangles_give_the_map_of_a_shell(tmp_path: Path) -> None:
    write_quad(tmp_path / "sheet.obj", [(1.0, 0.0, 0.0), (1.0, 3.0, 0.0), (1.0, 3.0, 2.0), (1.0, 0.0, 2.0)])
    write_quad(tmp_path / "top.obj", [(2, 1, 0.5), (3, 1, 0.5), (3, 2, 0.5), (2, 2, 0.5)])
    room = Room("r", "room", ((0, 0), (4, 0), (4, 3), (0, 3)))
    sheets = Asset("sheets", visual=(Visual("sheet.obj", "m"), Visual("top.obj", "m")))
    result = occupancy_from_assets(tmp_path, scene(sheets, rooms=(room,)), source="visual")
    assert int((result.cells == Cell.OCCUPIED).sum()) == 120 + 40 * 40
    assert state(result, 2.5, 1.5) is Cell.OCCUPIED


def test_hollow_of_a_cupboard_is_unknown(tmp_path: Path) -> None:
    cupboard = [
        Asset(side.name, position=(side.position[0] + 1, side.position[1] + 1, 1.2), collision=side.collision)
        for side in walls(1.0, 0.6, thick=0.05)
    ]
    assert state(occupancy_from_assets(tmp_path, scene(*walls(4, 3), *cupboard)), 1.5, 1.3) is Cell.UNKNOWN


@pytest.mark.parametrize(
    ("assets", "name"),
    [((), "rooms"), ((box(0, 0, 2.0, 1, 1, 0.1),), "collision"), ((box(0, 0, 1, 900, 900, 2),), "cells")],
)
def test_scenes_without_a_usable_floor_plan_are_refused(tmp_path: Path, assets: tuple[Asset, ...], name: str) -> None:
    with raises_naming(SceneError, tmp_path / "scene.yaml", name) as caught:
        occupancy_from_assets(tmp_path, scene(*assets))
    assert "scale" in caught.value.remedy


def test_unreadable_mesh_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "bad.obj").write_text("v 0 0 zero\n", encoding="utf-8")
    with raises_naming(SceneError, "bad.obj"):
        occupancy_from_assets(tmp_path, scene(Asset("a", collision=(Collision("mesh", mesh="bad.obj"),))))


coordinates = st.integers(0, 10**6).map(lambda micrometers: micrometers * 1e-6)
"""A micrometer apart at least: GEOS, the judge here, errs on outlines that differ by less than rounding."""
points3 = st.tuples(coordinates, coordinates, coordinates)


@settings(max_examples=40, deadline=None)
@given(st.lists(points3, min_size=4, max_size=9), st.floats(0.0, 0.5), st.floats(0.01, 0.5))
def test_slice_of_a_hull_equals_the_clipped_solid(
    points: list[tuple[float, float, float]], low: float, thickness: float
) -> None:
    """Against sampling: any convex combination that lies in the band lies in the slice."""
    corners = np.array(points)
    shadow = slice_hull(corners, low, low + thickness)
    weights = np.random.default_rng(0).dirichlet(np.full(len(corners), 0.5), 400)
    samples = weights @ corners
    samples = samples[(samples[:, 2] >= low) & (samples[:, 2] <= low + thickness)]
    if len(samples):
        hull = shapely.MultiPoint(shadow).convex_hull.buffer(1e-6)
        assert shapely.contains_xy(hull, samples[:, 0], samples[:, 1]).all()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(coordinates, coordinates), min_size=3, max_size=8))
def test_outline_marks_exactly_the_cells_it_covers(points: list[tuple[float, float]]) -> None:
    """Against shapely's area of intersection, but for slivers thinner than rounding."""
    hull = shapely.MultiPoint(points).convex_hull
    if hull.geom_type != "Polygon" or hull.area < 1e-4:
        return
    grid = Grid(-0.1, -0.1, 12, 12, 0.1)
    cells = np.zeros((12, 12), bool)
    mark_outline(cells, grid, shapely.get_coordinates(hull))
    x, y = grid.centers()
    area = shapely.area(shapely.intersection(hull, shapely.box(x - 0.05, y - 0.05, x + 0.05, y + 0.05)))
    assert not (cells & (area == 0) & (shapely.distance(hull, shapely.points(x, y)) > 0.0708)).any()
    assert cells[area > 1e-6].all()


@settings(max_examples=60, deadline=None)
@given(st.lists(points3, min_size=3, max_size=3), st.floats(0.0, 0.5), st.floats(0.01, 0.5))
def test_triangles_mark_what_hulls_mark(points: list[tuple[float, float, float]], low: float, thickness: float) -> None:
    """A triangle is a flat hull: both ways of drawing agree but for cells that are only grazed."""
    grid = Grid(-0.1, -0.1, 12, 12, 0.1)
    drawn = np.zeros((12, 12), bool)
    mark_triangles(drawn, grid, np.array([points]), low, low + thickness)
    shadow = slice_hull(np.array(points), low, low + thickness)
    if not len(shadow):
        assert not drawn.any()
        return
    hull = shapely.MultiPoint(shadow).convex_hull
    x, y = grid.centers()
    inner = shapely.box(x - 0.0499, y - 0.0499, x + 0.0499, y + 0.0499)
    outer = shapely.box(x - 0.0501, y - 0.0501, x + 0.0501, y + 0.0501)
    assert drawn[shapely.intersects(hull, inner)].all()
    assert shapely.intersects(hull, outer)[drawn].all()


@given(yaw_rad=st.floats(-math.pi, math.pi))
@settings(max_examples=25)
def test_what_ends_at_the_robots_bottom_is_occupied_however_it_is_turned(
    tmp_path_factory: pytest.TempPathFactory, yaw_rad: float
) -> None:
    """In physics it touches: the foot of a lamp is 3 cm high, and so is the space below the robot."""
    turned = (math.cos(yaw_rad / 2), 0.0, 0.0, math.sin(yaw_rad / 2))
    foot = Collision("cylinder", size=(0.28, 0.28, 0.03), center=(0.0, 0.0, 0.015))
    lamp = Asset("lamp", position=(2.0, 1.5, 0.0), quaternion=turned, collision=(foot,))
    folder = tmp_path_factory.getbasetemp()
    assert state(occupancy_from_assets(folder, scene(*walls(4, 3), lamp)), 2.1, 1.5) is Cell.OCCUPIED
