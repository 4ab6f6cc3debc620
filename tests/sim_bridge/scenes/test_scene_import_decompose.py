"""Convex decomposition: every part convex, together covering the mesh, hollows kept."""

from __future__ import annotations

import numpy as np
import pytest
import shapely
import trimesh
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.spatial import ConvexHull

from sim_bridge.scenes.assets import as_box
from sim_bridge.scenes.columns import columns, rectangles
from sim_bridge.scenes.decompose import DecompositionSettings, convex_parts, convex_polygons, is_closed, split, weld

Array = NDArray[np.float64]


def soup(mesh: trimesh.Trimesh) -> Array:
    return np.asarray(mesh.triangles, np.float64)


def box_at(x: float, y: float, z: float, size: tuple[float, float, float]) -> Array:
    return soup(trimesh.creation.box(size)) + np.array([x, y, z])


def covers(parts: list[Array], point: tuple[float, float, float]) -> bool:
    for part in parts:
        equations = ConvexHull(part).equations
        if (equations[:, :3] @ np.array(point) + equations[:, 3]).max() <= 1e-6:
            return True
    return False


def test_a_table_of_five_boxes_becomes_five_boxes_with_room_below() -> None:
    legs = [box_at(x, y, 0.35, (0.05, 0.05, 0.7)) for x in (-0.5, 0.5) for y in (-0.3, 0.3)]
    parts = convex_parts(np.concatenate([box_at(0, 0, 0.72, (1.2, 0.8, 0.04)), *legs]), DecompositionSettings())
    assert len(parts) == 5
    assert all(as_box(part) is not None for part in parts)
    assert not covers(parts, (0, 0, 0.3))
    assert covers(parts, (0.5, 0.3, 0.3))


def test_inside_of_a_room_stays_open_and_its_walls_solid() -> None:
    room = soup(trimesh.creation.box((4, 3, 2.4)))[:, ::-1]  # seen from inside
    parts = convex_parts(room, DecompositionSettings(sheet_m=0.05))
    assert len(parts) == 6
    assert not covers(parts, (0, 0, 0))
    assert not covers(parts, (1.9, 1.4, 1.1))
    assert covers(parts, (2.02, 0, 0))
    assert covers(parts, (0, -1.52, 0))


def test_a_thing_with_its_faces_the_wrong_way_round_is_still_solid() -> None:
    (part,) = convex_parts(box_at(0, 0, 0, (0.6, 0.6, 0.6))[:, ::-1], DecompositionSettings())
    assert covers([part], (0, 0, 0))


def test_wall_with_a_door_keeps_the_door() -> None:
    outline = shapely.box(0, 0, 4, 2.5).difference(shapely.box(1.5, 0, 2.4, 2.1))
    triangles = shapely.get_parts(shapely.constrained_delaunay_triangles(outline))
    flat = np.array([np.asarray(t.exterior.coords)[:3] for t in triangles])
    wall = np.stack([flat[..., 0], np.zeros(flat.shape[:2]), flat[..., 1]], axis=-1)
    parts = convex_parts(wall, DecompositionSettings())
    thickness_y = np.concatenate(parts)[:, 1]
    middle = float(thickness_y.min() + thickness_y.max()) / 2
    assert np.ptp(thickness_y) == pytest.approx(0.02)
    assert covers(parts, (0.7, middle, 1.0))
    assert covers(parts, (2.0, middle, 2.3))
    assert not covers(parts, (2.0, middle, 1.0))
    assert len(parts) <= 4


@pytest.mark.slow
def test_closed_solid_with_a_hollow_is_decomposed_around_it() -> None:
    ring = trimesh.creation.annulus(r_min=0.3, r_max=0.4, height=0.3, sections=16)
    parts = convex_parts(soup(ring), DecompositionSettings(search=20))
    assert not covers(parts, (0, 0, 0))
    assert covers(parts, (0.35, 0, 0))
    assert all(len(part) <= DecompositionSettings().max_vertices for part in parts)


def test_ball_is_one_part_with_few_corners() -> None:
    (part,) = convex_parts(
        soup(trimesh.creation.icosphere(subdivisions=3, radius=0.3)), DecompositionSettings(max_vertices=32)
    )
    assert len(part) == 32
    assert ConvexHull(part).volume > 0.8 * 4 / 3 * np.pi * 0.3**3


def test_weld_and_split_tell_components_and_closedness() -> None:
    two = np.concatenate([box_at(0, 0, 0, (1, 1, 1)), box_at(3, 0, 0, (1, 1, 1))])
    vertices, faces = weld(two)
    assert len(vertices) == 16
    components = split(len(vertices), faces)
    assert [len(c) for c in components] == [12, 12]
    assert is_closed(faces[components[0]])
    assert not is_closed(faces[components[0]][1:])


@pytest.mark.parametrize("yaw_deg", [0.0, 30.0, -44.0, 90.0, 135.0])
def test_upright_boxes_are_recognized_at_any_yaw(yaw_deg: float) -> None:
    turn = trimesh.transformations.rotation_matrix(np.radians(yaw_deg), (0, 0, 1))
    points = np.asarray(trimesh.creation.box((1.0, 0.4, 0.6)).apply_transform(turn).vertices) + np.array([1, 2, 3])
    found = as_box(points)
    assert found is not None
    assert found.center == pytest.approx((1, 2, 3))
    assert abs(found.yaw_deg) <= 45.0001
    quarter = round((yaw_deg - found.yaw_deg) / 90)
    assert found.size == pytest.approx((0.4, 1.0, 0.6) if quarter % 2 else (1.0, 0.4, 0.6))


def test_tilted_boxes_and_wedges_are_no_upright_boxes() -> None:
    turn = trimesh.transformations.rotation_matrix(0.3, (1, 0, 0))
    assert as_box(np.asarray(trimesh.creation.box((1, 1, 1)).apply_transform(turn).vertices)) is None
    assert as_box(np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]])) is None


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(1, 4), st.integers(1, 4)), max_size=6))
def test_convex_polygons_tile_any_area(boxes: list[tuple[int, int, int, int]]) -> None:
    area = shapely.box(0, 0, 12, 12).difference(
        shapely.union_all([shapely.box(x, y, x + w, y + h) for x, y, w, h in boxes])
    )
    pieces = convex_polygons(area)
    assert sum(piece.area for piece in pieces) == pytest.approx(area.area)
    assert shapely.union_all(pieces).symmetric_difference(area).area == pytest.approx(0, abs=1e-6)
    assert all(piece.convex_hull.area == pytest.approx(piece.area, rel=1e-5) for piece in pieces)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_rectangles_tile_exactly_the_set_cells(seed: int) -> None:
    cells = np.random.default_rng(seed).random((9, 12)) < 0.6
    painted = np.zeros(cells.shape, int)
    for row, column, rows, columns_ in rectangles(cells):
        painted[row : row + rows, column : column + columns_] += 1
    assert (painted == cells).all()


def test_columns_stand_where_a_scan_has_surface_at_the_robots_height() -> None:
    scan = np.concatenate([box_at(1, 1, 0.5, (0.5, 0.5, 1.0)), box_at(3, 1, 2.0, (0.5, 0.5, 0.2))])
    found = columns(scan, 0.03, 0.9, 0.025)
    assert all(box.center[0] < 2 for box in found)
    assert all(box.center[2] - box.size[2] / 2 == pytest.approx(0.03) for box in found)
    assert min(box.center[0] - box.size[0] / 2 for box in found) == pytest.approx(0.75, abs=0.026)
    assert max(box.center[0] + box.size[0] / 2 for box in found) == pytest.approx(1.25, abs=0.026)
