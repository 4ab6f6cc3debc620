"""Contact shapes that stand out beyond what is drawn are found, listed, and replaced by tighter ones."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import trimesh

from robot_runtime.cli.main import run_command
from robot_runtime.scenes.scene import Collision, Scene, load_scene
from sim_bridge.scenes.collider_excess import LIMIT_M, collider_excess_m, excess_sentence, without_excess
from sim_bridge.scenes.furniture import catalog
from sim_bridge.scenes.generate import flats
from sim_bridge.scenes.shapes import corners

STOOL = 0.33


def seat(z_m: float = 0.42) -> np.ndarray:
    mesh = trimesh.creation.cylinder(STOOL / 2, 0.04, sections=32)
    return np.asarray(mesh.triangles) + np.array([0, 0, z_m + 0.02])


def with_box(room: Scene, **shape: object) -> dict[str, float]:
    """Excess in the room whose crate has another contact shape."""
    assets = [
        replace(asset, collision=(replace(asset.collision[0], **shape),)) if asset.name == "crate" else asset
        for asset in room.file.assets
    ]
    return collider_excess_m(replace(room, file=replace(room.file, assets=tuple(assets))))


@pytest.mark.parametrize(
    ("shape", "excess_m"),
    [
        ({}, 0.0),
        ({"size": (0.54, 0.4, 0.5)}, 0.02),
        ({"size": (0.5, 0.4, 0.5), "center": (0.0, -0.03, 0.0)}, 0.03),
        ({"size": (0.4, 0.3, 0.5)}, 0.0),
        ({"size": (0.9, 0.9, 0.5), "center": (0.0, 0.0, 1.0)}, None),
    ],
)
def test_the_excess_is_the_largest_distance_beyond_what_is_drawn(
    room: Scene, shape: dict[str, object], excess_m: float | None
) -> None:
    found = with_box(room, **shape)
    assert found.get("crate") == (None if excess_m is None else pytest.approx(excess_m, abs=0.002))
    assert found["wall_north"] == pytest.approx(0.0, abs=0.002)


def test_a_shape_of_which_nothing_is_drawn_is_named(room: Scene) -> None:
    assets = tuple(replace(asset, visual=()) if asset.name == "vase" else asset for asset in room.file.assets)
    found = collider_excess_m(replace(room, file=replace(room.file, assets=assets)))
    assert found["vase"] == math.inf
    assert excess_sentence(found).endswith(": vase (not drawn)")


def test_a_box_around_a_round_seat_becomes_the_seat() -> None:
    box = Collision("box", (0.0, 0.0, 0.23), (STOOL, STOOL, 0.46))
    leg = np.asarray(trimesh.creation.box((0.03, 0.03, 0.42)).triangles) + np.array([0.09, 0.09, 0.21])
    (tight,) = without_excess([box], [seat(), leg], 0.0)
    assert isinstance(tight, Collision)
    assert (tight.shape, tight.size) == ("cylinder", (pytest.approx(STOOL, abs=0.002),) * 2 + (0.46,))


def test_shapes_that_fit_and_flat_surfaces_are_left_as_they_are() -> None:
    fitting = [Collision("cylinder", (0.0, 0.0, 0.23), (STOOL, STOOL, 0.46))]
    assert without_excess(fitting, [seat()], 0.0) is fitting
    sheet = np.array([[[0.0, 0, 0.1], [0.5, 0, 0.1], [0.5, 0.5, 0.6]]])
    assert without_excess(fitting, [sheet], 0.0) is fitting
    assert without_excess([], [seat()], 0.0) == []


@pytest.mark.parametrize("name", [name for name, design in catalog().designs.items() if not design.movable])
def test_fixed_designs_stand_out_at_most_a_centimeter(name: str) -> None:
    design = catalog().designs[name]
    surfaces = [mesh for _, mesh, _ in design.meshes]
    assert bool(design.contacts) == bool(design.collision)
    boxes = [shape for shape in design.contacts if isinstance(shape, Collision)]
    assert without_excess(boxes, surfaces, 0.0) is boxes, f"more than {LIMIT_M} m"
    points = [corners(Path(), s) if isinstance(s, Collision) else s.reshape(-1, 3) for s in design.contacts]
    low, high = design.bounds
    assert all((point >= low - LIMIT_M).all() and (point <= high + LIMIT_M).all() for point in points)


@pytest.mark.slow
def test_things_on_the_floor_stand_out_no_further(tmp_path: Path) -> None:
    next(flats(5, "robothor")).write(tmp_path / "flat")
    excess_m = collider_excess_m(load_scene(tmp_path / "flat"))
    assert "baseballbat_1" in excess_m
    assert max(excess_m.values()) <= LIMIT_M, excess_m


def test_scene_info_lists_them(capsys: pytest.CaptureFixture[str], room_folder: Path) -> None:
    assert run_command(["scene", "info", "apartment"]) == 0
    assert "stand out at most" in capsys.readouterr().out
    assert excess_sentence({"a": 0.002, "b": 0.03, "c": 0.05}).endswith(": c 50 mm, b 30 mm")
    assert excess_sentence({}) == "none that a robot touches"
    assert max(collider_excess_m(load_scene(room_folder)).values()) < LIMIT_M
