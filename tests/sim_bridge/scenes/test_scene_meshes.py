"""Procedural meshes, textures and furniture models."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
import trimesh

from sim_bridge.scenes import meshes
from sim_bridge.scenes.furniture import decor, seating, small, storage, wet_rooms
from sim_bridge.scenes.furniture.kit import Model, Surface
from sim_bridge.scenes.meshes import Mesh
from sim_bridge.scenes.scene_writer import to_obj
from sim_bridge.scenes.shapes import corners, read_obj
from sim_bridge.scenes.textures import TEXTURES, draw_png

FABRIC, WOOD, PLAIN = Surface("blue", "fabric"), Surface("oak", "wood"), Surface("red")

CLOSED = {
    "box": (meshes.box((0.4, 0.6, 0.8), (1, 2, 3)), 0.4 * 0.6 * 0.8),
    "beveled box": (meshes.box((0.4, 0.6, 0.8), bevel_m=0.02), 0.19),
    "cylinder": (meshes.cylinder(0.2, 1.0, 64), np.pi * 0.04),
    "sphere": (meshes.sphere(0.5, 48, 24), 4 / 3 * np.pi * 0.125),
    "cushion": (meshes.cushion((0.4, 0.4, 0.15)), 0.015),
    "tube": (meshes.tube([(0, 0, 0), (0, 0, 1)], 0.1, 32), np.pi * 0.01),
    "prism": (meshes.prism([(0, 0), (1, 0), (1, 1)], 2.0), 1.0),
}

MODELS: list[Model] = [
    seating.sofa(2.1, FABRIC, WOOD),
    seating.armchair(FABRIC, WOOD),
    *(seating.chair(style, WOOD, FABRIC) for style in range(3)),
    seating.office_chair(FABRIC),
    seating.stool(WOOD, PLAIN),
    seating.bench(WOOD, FABRIC),
    seating.bed(1.6, WOOD, FABRIC, FABRIC),
    storage.dining_table(0.9, 0.9, True, WOOD),
    storage.dining_table(1.4, 0.8, False, WOOD),
    storage.coffee_table(1.0, 0.5, WOOD, PLAIN),
    storage.tv_stand(1.4, WOOD, PLAIN),
    storage.wardrobe(1.6, WOOD, PLAIN),
    storage.nightstand(WOOD, PLAIN),
    storage.desk(1.3, WOOD, PLAIN),
    storage.bookshelf(0.9, 1.84, WOOD),
    storage.fireplace(Surface("white", "brick")),
    wet_rooms.counter(1.2, PLAIN, WOOD),
    wet_rooms.kitchen_sink(PLAIN, WOOD),
    wet_rooms.stove(PLAIN),
    wet_rooms.refrigerator(PLAIN),
    wet_rooms.toilet(),
    wet_rooms.washbasin(PLAIN),
    wet_rooms.bathtub(),
    wet_rooms.shower(),
    wet_rooms.towel(FABRIC),
    wet_rooms.laundry_basket(Surface("beige", "wicker")),
    small.alarm_clock(PLAIN),
    small.apple(PLAIN),
    small.baseball_bat(WOOD, True),
    small.baseball_bat(WOOD, False),
    small.basketball(),
    small.bowl(PLAIN),
    small.garbage_can(PLAIN, True),
    small.garbage_can(PLAIN, False),
    *(small.house_plant(PLAIN, height, style) for style in range(3) for height in (0.34, 1.2)),
    small.laptop(PLAIN),
    small.mug(PLAIN),
    small.spray_bottle(PLAIN),
    small.television(1.1, True),
    small.television(1.1, False),
    *(small.vase(PLAIN, style) for style in range(3)),
    decor.floor_lamp(FABRIC),
    decor.table_lamp(PLAIN, FABRIC),
    decor.picture(0.9, 0.6, "landscape", WOOD),
    decor.rug(2.0, 1.4, "rug"),
    decor.coat_rack(WOOD, (FABRIC, FABRIC)),
    decor.dumbbell_rack(),
]


def solid(mesh: Mesh) -> trimesh.Trimesh:
    """The mesh with vertices joined where only normals or texture coordinates part them."""
    joined = trimesh.Trimesh(mesh.vertices.round(9), mesh.faces, process=False)
    joined.merge_vertices(merge_tex=True, merge_norm=True)
    return joined


@pytest.mark.parametrize("name", CLOSED)
def test_primitives_are_closed_and_face_outwards(name: str) -> None:
    mesh, volume = CLOSED[name]
    shape = solid(mesh)
    assert shape.is_watertight
    assert shape.volume == pytest.approx(volume, rel=0.05)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.kind)
def test_models_have_unit_normals_on_the_outer_side_and_sane_coordinates(model: Model) -> None:
    for mesh in model.by_surface.values():
        np.testing.assert_allclose(np.linalg.norm(mesh.normals, axis=1), 1.0, atol=1e-6)
        a, b, c = (mesh.vertices[mesh.faces[:, k]] for k in range(3))
        flat = np.cross(b - a, c - a)
        agreement = np.einsum("ij,ij->i", flat, mesh.normals[mesh.faces].sum(axis=1))
        assert (agreement > -1e-9).all()
        assert np.isfinite(mesh.uv_m).all()
    assert sum(len(mesh.faces) for mesh in model.by_surface.values()) < 1000


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.kind)
def test_models_supports_and_contact_shapes_lie_in_their_bounds(model: Model) -> None:
    low, high = model.bounds
    for support in model.supports:
        assert low[0] <= support.x0 < support.x1 <= high[0]
        assert low[1] <= support.y0 < support.y1 <= high[1]
        assert low[2] < support.z <= high[2] + 1e-6
    for shape in model.collision:
        points = corners(Path(), shape)
        assert (points >= low - 0.045).all(), shape
        assert (points <= high + 0.045).all(), shape
    assert bool(model.collision) == (model.category != "rug")


def test_obj_text_reads_back(tmp_path: Path) -> None:
    mesh = meshes.box((1.0, 2.0, 3.0), bevel_m=0.1)
    path = tmp_path / "box.obj"
    path.write_text(to_obj(mesh, tile_m=0.5))
    vertices, faces = read_obj(path)
    np.testing.assert_allclose(vertices.min(axis=0), [-0.5, -1.0, 0.0])
    np.testing.assert_allclose(vertices.max(axis=0), [0.5, 1.0, 3.0])
    assert len(faces) == len(mesh.faces)


@pytest.mark.parametrize("name", TEXTURES)
def test_textures_are_small_and_follow_their_seed(name: str) -> None:
    data = draw_png(name, seed=3)
    assert draw_png(name, seed=3) == data
    assert len(data) < 40_000
    image = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
    assert image.ndim == (2 if TEXTURES[name].tinted else 3)
    assert max(image.shape[:2]) <= 256
    assert image.std() > 0.5


@pytest.mark.parametrize("name", [name for name, texture in TEXTURES.items() if texture.tinted])
def test_tinted_textures_repeat_without_a_seam(name: str) -> None:
    image = cv2.imdecode(np.frombuffer(draw_png(name, seed=3), np.uint8), cv2.IMREAD_GRAYSCALE).astype(float)
    for axis in (0, 1):
        steps = np.abs(np.diff(image, axis=axis)).mean(axis=1 - axis)
        seam = np.abs(np.take(image, 0, axis=axis) - np.take(image, -1, axis=axis)).mean()
        assert seam <= 1.5 * steps.max() + 4.0
