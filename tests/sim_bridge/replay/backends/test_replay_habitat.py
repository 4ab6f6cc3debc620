"""The habitat-sim backend against habitat-sim's documented interface: axes, actions, images, unsupported tasks."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import synthetic
from habitat_double import World, habitat_sim
from raising import raises_naming
from same_view import VIEWS, assert_same_view

from robot_runtime.actions import timed
from robot_runtime.actions.discrete import Action
from robot_runtime.actions.timed import Control, VelocityControl
from robot_runtime.cli.main import run_command
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.errors import ConfigError, DriverMissing, InvalidStart, RuntimeFault, SceneError
from robot_runtime.hal.lens import Lens
from robot_runtime.policy import PolicySource
from robot_runtime.recording.writer import Recorder
from robot_runtime.records import EpisodeHeader, Outcome
from robot_runtime.scenes.scene import find_scene, load_scene
from sim_bridge.replay.backends.base import UnsupportedBySimulator
from sim_bridge.replay.backends.habitat import HabitatBackend, make_backend
from sim_bridge.replay.camera_pose import logged_camera
from sim_bridge.replay.results import read_replay
from sim_bridge.replay.text import scene_sentence

F, L, R, U, D = synthetic.FORWARD, synthetic.LEFT, synthetic.RIGHT, synthetic.UP, synthetic.DOWN
Make = Callable[..., HabitatBackend]


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def make(world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Make]:
    """Factory of backends for the flat's log, or for another."""
    monkeypatch.setitem(sys.modules, "habitat_sim", habitat_sim(world))
    (tmp_path / "flat.glb").touch()
    (tmp_path / "broken.glb").touch()
    made: list[HabitatBackend] = []

    def make(header: EpisodeHeader | None = None, images: bool = False, **options: Any) -> HabitatBackend:
        chosen = {"scene": str(tmp_path / "flat.glb"), **options}
        simulator = make_backend(header or synthetic.header(), None, images, chosen, "--into habitat")
        made.append(simulator)
        return simulator

    yield make
    for simulator in made:
        simulator.close()
        simulator.close()
    assert world.closed == len(world.made)


@VIEWS
@pytest.mark.parametrize("placing", [(0.0, 0.0, 0.0), (2.0, -3.0, 40.0)])
def test_it_sees_what_the_logs_camera_would(make: Make, world: World, pose: SE2, tilt_deg: float, placing: Any):
    x_m, y_m, yaw_deg = placing
    scene_in_map = SE2(x_m, y_m, math.radians(yaw_deg))
    map_in_scene = scene_in_map.inverse()
    world.x_m, world.y_m, world.yaw_rad = map_in_scene.x_m, map_in_scene.y_m, map_in_scene.yaw_rad
    world.floor_m = 1.3
    header = synthetic.header()
    simulator = make(header, x_m=x_m, y_m=y_m, yaw_deg=yaw_deg, floor_m=1.3)
    camera = logged_camera(header).pose_from(pose, 0.0, math.radians(tilt_deg))
    assert_same_view(simulator.render(Lens.of(header.intrinsics), camera), pose, math.radians(tilt_deg))


def test_a_lens_off_the_middle_sees_the_same_points(make: Make):
    header = synthetic.header()
    camera = logged_camera(header).pose_from(SE2(1.0, 1.9, 0.4), 0.0, 0.0)
    middle = Lens.of(header.intrinsics)
    simulator = make(header)
    _, depth_m = simulator.render(middle, camera)
    _, shifted_m = simulator.render(replace(middle, cx=middle.cx - 5, cy=middle.cy + 3), camera)
    np.testing.assert_allclose(shifted_m[3:, :-5], depth_m[:-3, 5:], atol=1e-4)


@pytest.mark.parametrize(
    ("lens", "named"),
    [
        (Lens(64, 48, 40, 40, 31.5, 23.5, "brown_conrady", (0.1, 0.0, 0.0, 0.0)), "brown_conrady"),
        (Lens(64, 48, 40, 44, 31.5, 23.5), "fy 44"),
    ],
)
def test_lenses_that_it_cannot_draw_are_named(make: Make, lens: Lens, named: str):
    with raises_naming(UnsupportedBySimulator, named):
        make().render(lens, np.eye(4))


def test_the_logs_actions_lead_where_they_led(make: Make):
    header = synthetic.header()
    records = synthetic.drive(header, [F, F, L, F, R, R, U, F, D, D])
    simulator = make(header, images=True)
    step = simulator.begin(header, header.episode.start, 0.0)
    assert step.outcome is None
    for record in records[1:]:
        assert record.action is not None
        step = simulator.act(record.action)
        pose = record.referee.pose
        assert step.pose.distance_to(pose) < 1e-3
        assert wrap_angle(step.pose.yaw_rad - pose.yaw_rad) == pytest.approx(0, abs=1e-6)
        assert step.tilt_rad == pytest.approx(record.head.tilt_rad)
        assert (step.outcome, step.contact) == (Outcome.REACHED, False)
        assert step.frame is not None
        assert_same_view((step.frame.rgb, step.frame.depth_m), pose, record.head.tilt_rad)


def test_a_wall_is_a_contact_for_as_long_as_it_is_pushed(make: Make):
    simulator = make()
    simulator.begin(synthetic.header(), SE2(0.5, 1.9, math.pi), 0.0)
    steps = [simulator.act(F) for _ in range(3)]
    assert [step.outcome for step in steps[1:]] == [Outcome.CONTACT] * 2
    assert steps[2].pose.x_m == pytest.approx(synthetic.RADIUS_M, abs=0.06)
    assert simulator.act(L).outcome is Outcome.REACHED
    assert simulator.act(Action.STOP).outcome is Outcome.REACHED


def test_one_action_can_be_tried_from_a_recorded_step(make: Make):
    header = synthetic.header()
    records = synthetic.drive(header, [F, L])
    tried = make(header).act_from(records[1], L)
    assert tried is not None
    began, step = tried
    assert began.distance_to(records[1].referee.pose) < 1e-3
    assert step.pose.yaw_rad == pytest.approx(records[2].referee.pose.yaw_rad)
    outside = replace(records[1], referee=replace(records[1].referee, pose=SE2(-3.0, 0.0, 0.0)))
    assert make(header).act_from(outside, L) is None


def test_velocities_drive_arcs_as_far_as_they_go(make: Make):
    control = Control(
        (-math.pi / 4, math.pi / 4), VelocityControl((0.0, 0.5), (-2.0, 2.0), (-1.0, 1.0), time_step_s=1.0)
    )
    header = synthetic.header(synthetic.pointnav_task(control=control))
    simulator = make(header)
    simulator.begin(header, SE2(1.0, 1.9, 0.0), 0.0)
    quarter = simulator.act(timed.velocity(0.4, math.pi / 2, 1.0, 1.0))
    radius_m = 0.4 / (math.pi / 2)
    assert quarter.pose.distance_to(SE2(1.0 + radius_m, 1.9 + radius_m, 0)) < 1e-5
    assert quarter.pose.yaw_rad == pytest.approx(math.pi / 2)
    assert quarter.tilt_rad == pytest.approx(math.pi / 4)
    assert not quarter.contact
    assert [simulator.act(timed.velocity(0.5, 0.0, 0.0, 1.0)).contact for _ in range(4)][-1]


def test_it_takes_the_tasks_actions_robot_and_contact_rule(make: Make, world: World):
    make(allow_sliding=True, gpu=1)
    backend, (agent,) = world.made[0].sim_cfg, world.made[0].agents
    assert (backend.allow_sliding, backend.gpu_device_id) == (True, 1)
    assert agent.sensor_specifications, "0.2.2 finds no floor without a sensor"
    assert {name: spec.actuation.amount for name, spec in agent.action_space.items() if spec.actuation} == {
        "move_forward": 0.25,
        "turn_left": 30.0,
        "turn_right": 30.0,
    }
    (settings,) = world.navmesh_settings
    assert settings.agent_radius == agent.radius == synthetic.RADIUS_M


def test_looking_leaves_the_robot_where_it_stands(make: Make, world: World):
    header = synthetic.header()
    simulator = make(header)
    simulator.begin(header, SE2(1.0, 1.9, 0.3), 0.0)
    simulator.render(Lens.of(header.intrinsics), logged_camera(header).pose_from(SE2(4.0, 1.5, 2.0), 0.0, 0.0))
    assert len(world.made) == 2  # now with sensors
    assert simulator.act(Action.STOP).pose.distance_to(SE2(1.0, 1.9)) < 1e-6
    assert len(world.navmesh_settings) == 1, "computed once"


def test_a_start_that_is_not_free_is_moved_a_little_or_refused(make: Make):
    simulator = make()
    near = simulator.begin(synthetic.header(), SE2(0.14, 1.9, 0.0), 0.0).pose
    assert 0 < near.distance_to(SE2(0.14, 1.9)) < 0.15
    for far in (SE2(-3.0, 1.9, 0.0), SE2(1e4, 0.0, 0.0)):
        with raises_naming(InvalidStart, "robot"):
            simulator.begin(synthetic.header(), far, 0.0)


def test_what_it_cannot_do_is_said(make: Make):
    simulator = make()
    with raises_naming(UnsupportedBySimulator, "begin()"):
        simulator.act(F)
    simulator.begin(synthetic.header(), SE2(1.0, 1.9, 0.0), 0.0)
    with raises_naming(UnsupportedBySimulator, "waypoint_control"):
        simulator.act(timed.waypoint(1.0, 0.0, 0.0, 0.0, 5.0))
    with raises_naming(UnsupportedBySimulator, "grab_release"):
        simulator.act(Action.GRAB_RELEASE)
    with raises_naming(UnsupportedBySimulator, "objects"):
        simulator.put_objects({}, ())


@pytest.mark.parametrize(
    ("options", "error", "named"),
    [
        ({"sliding": True}, ConfigError, "sliding"),
        ({"scene": "nowhere.glb"}, ConfigError, "nowhere.glb"),
        ({"navmesh": "nowhere.navmesh"}, ConfigError, "nowhere.navmesh"),
        ({"scene": "{folder}/broken.glb"}, SceneError, "broken.glb"),
        ({"navmesh": "{folder}/flat.glb"}, SceneError, "flat.glb"),
    ],
)
def test_bad_options_are_named(
    make: Make, tmp_path: Path, options: dict[str, Any], error: type[RuntimeFault], named: str
):
    formatted = {k: v.format(folder=tmp_path) if isinstance(v, str) else v for k, v in options.items()}
    with raises_naming(error, named):
        make(**formatted)


@pytest.mark.slow
def test_a_scene_folder_becomes_the_file_that_it_opens(make: Make, world: World):
    apartment = load_scene(find_scene("apartment"))
    header = synthetic.header(episode=synthetic.pointnav_episode(start_z_m=3.0))
    simulator = make_backend(header, apartment, False, {}, "--into habitat")
    opened = Path(world.made[-1].sim_cfg.scene_id)
    assert opened.name == "apartment.stage_config.json"
    assert opened.with_name("apartment.glb").stat().st_size > 100_000
    camera = logged_camera(header).pose_from(SE2(1.0, 1.9, 0.0), 0.0, 0.0)
    assert_same_view(simulator.render(Lens.of(header.intrinsics), camera), SE2(1.0, 1.9, 0.0), 0.0)  # its floor is at 0
    simulator.close()
    assert not opened.exists()


def test_an_episode_of_no_habitat_scene_asks_for_one(make: Make):
    with raises_naming(ConfigError, "two rooms") as error:
        make(scene=None)
    assert "--twin-arg scene=" in error.value.remedy


def test_without_habitat_sim_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "habitat_sim", None)
    with raises_naming(DriverMissing, "habitat_sim") as error:
        make_backend(synthetic.header(), None, False, {}, "--into habitat")
    assert "conda install habitat-sim" in error.value.remedy


@pytest.mark.slow
def test_a_log_is_replayed_into_it_from_the_command_line(make: Make, tmp_path: Path):
    header = synthetic.header(policy=PolicySource("forward-only"))
    recorder = Recorder(tmp_path / "logs")
    synthetic.play(recorder, header, synthetic.drive(header, [F, L, F, R, U, F]))
    recorder.close()
    command = ["replay", str(tmp_path / "logs"), "--into", "habitat", "--twin-arg", f"scene={tmp_path / 'flat.glb'}"]
    assert run_command([*command, "--out", str(tmp_path / "out"), "--no-pages", "--action-images"]) == 0
    replay = read_replay(min((tmp_path / "out").glob("*.json")))
    assert replay.twin == "habitat-sim 0.3.3"
    assert replay.pose is not None
    assert all(frame.depth.median_mm is not None and frame.depth.median_mm < 1 for frame in replay.pose.frames)
    assert replay.action is not None
    assert replay.action.largest_error_m == pytest.approx(0, abs=1e-3)
    assert (replay.action.divergence, replay.action.contact_agreement) == (None, 1.0)
    assert replay.closed_loop is None
    assert any(note.part == "closed" for note in replay.notes)
    assert scene_sentence(replay).endswith("was not found")
    assert scene_sentence(replace(replay, notes=())).startswith("recorded in scene two rooms")
