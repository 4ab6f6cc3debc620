"""A scene folder becomes a MuJoCo model: what is drawn, what is touched, what is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from raising import raises_naming

from robot_runtime.errors import ConfigError, SceneError
from robot_runtime.hal import Robot
from robot_runtime.scenes.scene import Scene
from sim_bridge.physics.scene_model import Body, Group, build_model


def test_visuals_are_drawn_and_touch_nothing_and_shapes_the_other_way_round(room: Scene) -> None:
    compiled = build_model(room)
    model = compiled.model
    for geom, owner in enumerate(compiled.geom_owner):
        if owner and model.geom_group[geom] == Group.VISUAL:
            assert model.geom_contype[geom] == model.geom_conaffinity[geom] == 0
        elif owner:
            assert model.geom_group[geom] == Group.COLLISION
            assert model.geom_contype[geom] == 1


def test_every_geom_knows_its_object(room: Scene) -> None:
    compiled = build_model(room)
    found = {(owner, int(index)) for owner, index in zip(compiled.geom_owner, compiled.geom_object, strict=True)}
    ids = [item.id for item in room.objects]
    assert found >= {("crate", ids.index("crate")), ("vase", ids.index("vase")), ("wall_east", -1), ("floor", -1)}


def test_the_ground_is_drawn_only_where_the_scene_has_no_floor(room: Scene, make_room: Callable[..., Scene]) -> None:
    assert Group.GROUND in build_model(room).model.geom_group
    assert Group.GROUND not in build_model(make_room(floor=False)).model.geom_group


def test_the_robot_is_as_wide_as_the_task_says(room: Scene) -> None:
    compiled = build_model(room, body=Body())
    geom = compiled.model.geom("robot")
    assert geom.size[0] + Body().bumper_travel_m == pytest.approx(0.18)


def test_a_scene_without_meshes_says_how_to_get_some(room: Scene) -> None:
    bare = replace(room, file=replace(room.file, assets=()))
    with raises_naming(SceneError, "scene.yaml", "'assets'") as raised:
        build_model(bare)
    assert "scene import" in raised.value.remedy


def test_a_run_without_a_scene_says_so(sim: Callable[..., Robot]) -> None:
    with raises_naming(SceneError, "--scene"):
        sim(scene=None)


def test_a_broken_mesh_is_named(make_room: Callable[..., Scene]) -> None:
    scene = make_room()
    (scene.folder / "assets" / "crate.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    with raises_naming(SceneError, "crate.obj"):
        build_model(scene)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"camera": {"rate_hz": 0}}, "camera.rate_hz"),
        ({"localizer": {"noise_m": -1}}, "localizer.noise_m"),
        ({"battery": {"start_fraction": 2}}, "battery.start_fraction"),
        ({"odometry": {"drift": 1}}, "odometry.drift"),
        ({"step_s": 0.02}, "step_s"),
        ({"base": {"rate_hz": 5}}, "base.rate_hz"),
        ({"body": {"radius_m": -1}}, "body.radius_m"),
        ({"body": {"bumper_travel_m": 0.2}}, "bumper_travel_m"),
        ({"body": {"top_m": 0.01}}, "top_m"),
        ({"head": {"min_tilt_deg": 10.0}}, "min_tilt_deg"),
        ({"camera": {"depth_min_m": 5.0, "depth_max_m": 2.0}}, "depth_min_m"),
    ],
)
def test_bad_options_name_the_field(sim: Callable[..., Robot], options: dict, field: str) -> None:
    with raises_naming(ConfigError, "test options", field):
        sim(options)
