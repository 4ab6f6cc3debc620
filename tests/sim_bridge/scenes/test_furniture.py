"""Shapes, textures and the designs of the furniture catalog."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
import trimesh

from sim_bridge.scenes.furniture import Model, catalog, draw_style, make_model, unit_shape
from sim_bridge.scenes.shapes import corners
from sim_bridge.scenes.textures import COLORS, PICTURES, TINTED, draw, surface_mesh

CLOSED = {("box", "z"): 1.0, ("cylinder", "z"): 0.77, ("cylinder", "x"): 0.77, ("ball", "z"): 0.5, ("soft", "z"): 0.78}
EVERY_DESIGN = pytest.mark.parametrize("name", catalog().designs)


def model(name: str) -> Model:
    return make_model(name, draw_style(random.Random(1)), random.Random(2))


@pytest.mark.parametrize(("shape", "axis"), CLOSED)
def test_shapes_are_closed_face_outwards_and_fill_the_unit_box(shape: str, axis: str) -> None:
    triangles, normals = unit_shape(shape, axis)
    mesh = trimesh.Trimesh(**trimesh.triangles.to_kwargs(triangles.round(9)))
    assert mesh.is_watertight
    assert mesh.volume == pytest.approx(CLOSED[shape, axis], rel=0.05)
    np.testing.assert_allclose(mesh.bounds, [[-0.5, -0.5, 0], [0.5, 0.5, 1]], atol=1e-9)
    assert (np.einsum("mkd,md->mk", normals, mesh.face_normals) > 0.5).all()


@EVERY_DESIGN
def test_designs_have_unit_normals_on_the_outer_side_and_few_triangles(name: str) -> None:
    visuals = model(name).visuals(seed=0)
    for part in visuals:
        assert part.normals is not None
        np.testing.assert_allclose(np.linalg.norm(part.normals, axis=2), 1.0, atol=1e-6)
        flat = np.cross(part.corners[:, 1] - part.corners[:, 0], part.corners[:, 2] - part.corners[:, 0])
        assert (np.einsum("md,mkd->m", flat, part.normals) > -1e-9).all()
        assert part.uv is None or np.isfinite(part.uv).all()
        assert (part.appearance.image is None) == (part.uv is None)
    assert sum(len(part.corners) for part in visuals) < 3500


@EVERY_DESIGN
def test_supports_and_contact_shapes_of_designs_lie_in_their_bounds(name: str) -> None:
    design = catalog().designs[name]
    low, high = design.bounds
    for x0, y0, x1, y1, z, *_ in design.supports:
        assert low[0] <= x0 < x1 <= high[0]
        assert low[1] <= y0 < y1 <= high[1]
        assert low[2] < z <= high[2] + 1e-6
        levels = np.concatenate([mesh.reshape(-1, 3) for _, mesh, _ in design.meshes])[:, 2]
        assert np.abs(levels - z).min() < 5e-3
    for shape in design.collision:
        points = corners(Path(), shape)
        assert (points >= low - 0.045).all(), shape
        assert (points <= high + 0.045).all(), shape
    assert bool(design.collision) == (model(name).category != "rug")


def test_the_catalog_names_its_own_designs() -> None:
    found = catalog()
    named = {step_name for steps in found.rooms.values() for step in steps for step_name in step.piece}
    named |= {item.piece for design in found.designs.values() for item in (*design.around, *design.carries)}
    named |= {name for goal in found.goals.values() for name in (goal.on_host, goal.on_floor, goal.on_wall) if name}
    assert named | {"ceiling_lamp"} == found.designs.keys()
    for category, goal in found.goals.items():
        for name in filter(None, (goal.on_host, goal.on_floor, goal.on_wall)):
            assert model(name).category == category


@pytest.mark.parametrize("name", [*TINTED, *PICTURES])
def test_textures_are_small_and_follow_their_seed(name: str) -> None:
    image = np.asarray(draw(name, 3))
    draw.cache_clear()
    np.testing.assert_array_equal(draw(name, 3), image)
    assert image.shape[2] == 3
    assert max(image.shape[:2]) <= 256
    assert image.std() > 0.5


@pytest.mark.parametrize("name", TINTED)
def test_tinted_textures_repeat_without_a_seam(name: str) -> None:
    image = np.asarray(draw(name, 3), float)[..., 0]
    for axis in (0, 1):
        steps = np.abs(np.diff(image, axis=axis)).mean(axis=1 - axis)
        seam = np.abs(np.take(image, 0, axis=axis) - np.take(image, -1, axis=axis)).mean()
        assert seam <= 1.5 * steps.max() + 4.0


def test_a_texture_repeats_in_meters_and_a_picture_covers_its_mesh() -> None:
    triangles, normals = unit_shape("box")
    wood = surface_mesh(2 * triangles, normals, model("dining_table").surfaces["wood"], 0)
    assert wood.uv is not None
    np.testing.assert_allclose(np.ptp(wood.uv, axis=1), 2 / TINTED["wood"][1])
    books = surface_mesh(2 * triangles, normals, model("bookshelf").surfaces["books"], 0)
    assert books.uv is not None
    np.testing.assert_allclose(np.ptp(books.uv, axis=(0, 1)), 1.0)
    assert all(0 <= value <= 1 for color in COLORS.values() for value in color)
