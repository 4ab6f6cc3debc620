"""What habitat-sim does otherwise than one would believe: each difference, by the double alone.

The double follows the original's source (``tests/support/habitat_double.py``); each test here failed while code and
double were of one belief.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import habitat_double
import numpy as np
import pytest
import synthetic
import trimesh
from habitat_double import Stage, World, habitat_sim
from PIL import Image
from raising import raises_naming
from same_view import assert_same_view

from robot_runtime.actions import timed
from robot_runtime.actions.timed import Control, VelocityControl
from robot_runtime.cli.main import run_command
from robot_runtime.common.geometry import SE2, ros_to_habitat_position, yaw_to_habitat_quaternion
from robot_runtime.datasets.files import load_episodes, save_episodes
from robot_runtime.datasets.formats import generate_episodes
from robot_runtime.datasets.io import read_json, write_json
from robot_runtime.errors import EpisodeError, InvalidStart, SceneError
from robot_runtime.hal.lens import Lens
from robot_runtime.records import Outcome
from robot_runtime.scenes.scene import Scene, find_scene, load_scene
from robot_runtime.tasks.task import load_task
from sim_bridge.replay.backends.base import SimulatorFailed
from sim_bridge.replay.backends.habitat import HabitatBackend, make_backend
from sim_bridge.replay.camera_pose import logged_camera
from sim_bridge.scenes.habitat_export import at_height, navmesh_height_m
from sim_bridge.scenes.habitat_navmesh import LARGEST_CELL_HEIGHT_M, LARGEST_CELL_M, Effective, ask
from sim_bridge.scenes.habitat_stage import stated, write_config

Make = Callable[..., HabitatBackend]
POSE = SE2(1.0, 1.9, 0.3)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def make(world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Make]:
    """Factory of backends in the meshes of a scene, or in a file."""
    monkeypatch.setitem(sys.modules, "habitat_sim", habitat_sim(world, "0.2.2"))
    made: list[HabitatBackend] = []

    def make(meshes: Scene | None = None, **options: Any) -> HabitatBackend:
        made.append(make_backend(synthetic.header(), meshes, False, options, "--into habitat"))
        return made[-1]

    yield make
    for simulator in made:
        simulator.close()


@pytest.fixture
def apartment() -> Scene:
    return load_scene(find_scene("apartment"))


@pytest.fixture
def small(apartment: Scene) -> Scene:
    """The apartment's shower, toilet and stool: glass, and few meshes."""
    kept = tuple(asset for asset in apartment.file.assets if asset.name in ("shower_1", "toilet_1", "desk_1"))
    return replace(apartment, file=replace(apartment.file, assets=kept))


def view(simulator: HabitatBackend) -> tuple[np.ndarray, np.ndarray]:
    header = synthetic.header()
    return simulator.render(Lens.of(header.intrinsics), logged_camera(header).pose_from(POSE, 0.0, 0.0))


# --- scenes ---------------------------------------------------------------------------------------------------------


def test_a_scenes_meshes_stand_upright_in_color_and_glass_is_seen_through(make: Make, small: Scene):
    assert_same_view(view(make(small)), POSE, 0.0)


def test_glass_holds_the_agent_though_it_is_not_drawn(make: Make, world: World, small: Scene):
    simulator = make(small)
    opened = [Path(config.sim_cfg.scene_id).name for config in world.made]
    assert opened == ["apartment_solid.stage_config.json", "apartment.stage_config.json"]
    view(simulator)
    assert len(world.navmesh_settings) == 1, "the floor is that of the file with glass"
    assert [Stage(world, config.sim_cfg.scene_id).has_glass for config in world.made] == [True, False, False]


def test_gray_textures_are_written_in_color(make: Make, world: World, small: Scene, tmp_path: Path):
    Image.fromarray(np.full((4, 4), 128, np.uint8)).save(tmp_path / "gray.png")
    gray = {name: replace(item, texture=str(tmp_path / "gray.png")) for name, item in small.file.materials.items()}
    make(replace(small, file=replace(small.file, materials=gray)))
    stage = Stage(world, world.made[-1].sim_cfg.scene_id)
    images = habitat_double.gltf(stage.file)["images"]
    assert images
    assert not stage.is_red


def mesh_file(path: Path, up: str) -> Path:
    """A flat of 8 by 6 m, 2.5 m high, as a file."""
    size = (8.0, 2.5, 6.0) if up == "y" else (8.0, 6.0, 2.5)
    trimesh.creation.box(size).export(path)
    return path


@pytest.mark.parametrize(
    ("name", "up", "fits"), [("a.glb", "z", True), ("a.glb", "y", False), ("a.ply", "y", True), ("a.ply", "z", False)]
)
def test_files_are_taken_as_the_original_takes_them_or_refused(tmp_path: Path, name: str, up: str, fits: bool):
    file = mesh_file(tmp_path / name, up)
    if fits:
        assert stated(file, None, tmp_path) == file
        return
    with raises_naming(SceneError, name) as error:
        stated(file, None, tmp_path)
    assert f"up={up}" in error.value.remedy
    written = stated(file, up, tmp_path / "..")  # type: ignore[arg-type]
    document = json.loads(written.read_text())
    assert (document["render_asset"], document["up"][{"y": 1, "z": 2}[up]]) == (str(file.resolve()), 1)


def test_a_configuration_next_to_the_file_is_taken_as_it_is(tmp_path: Path):
    file = mesh_file(tmp_path / "a.glb", "y")
    config = write_config(tmp_path / "a.stage_config.json", file, "y")
    assert stated(file, None, tmp_path) == file
    assert stated(config, None, tmp_path) == config


@pytest.mark.parametrize(
    ("file_is_z_up", "up", "upright"), [(True, None, True), (False, "y", True), (False, None, False)]
)
def test_an_unstated_stage_lies_as_the_original_lays_it(
    make: Make, world: World, tmp_path: Path, file_is_z_up: bool, up: str | None, upright: bool
):
    (tmp_path / "flat.glb").touch()
    world.z_up = file_is_z_up
    options = {"scene": str(tmp_path / "flat.glb"), **({} if up is None else {"up": up})}
    if upright:
        assert_same_view(view(make(**options)), POSE, 0.0)
    else:
        with raises_naming(SceneError, "habitat-sim 0.2.2"):
            make(**options)


# --- the navigation mesh --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("radius_m", [0.1, 0.15, 0.175, 0.18, 0.2, 0.22, 0.345])
@pytest.mark.parametrize("climb_m", [0.0, 0.01, 0.03, 0.05, 0.2])
def test_radius_height_and_climb_are_what_was_asked(radius_m: float, climb_m: float):
    settings = habitat_double.NavMeshSettings()
    settings.set_defaults()
    ask(settings, radius_m, 0.88, climb_m)
    cells = settings.cells(settings.agent_radius, settings.cell_size, True)
    levels = settings.cells(settings.agent_max_climb, settings.cell_height, False)
    assert cells * settings.cell_size == pytest.approx(radius_m, abs=1e-4)
    assert levels * settings.cell_height == pytest.approx(climb_m, abs=1e-4)
    assert settings.cell_size <= 1.001 * LARGEST_CELL_M
    assert settings.cell_height <= LARGEST_CELL_HEIGHT_M
    effective = Effective.of(settings)
    assert (effective.radius_m, effective.climb_m) == pytest.approx((radius_m, climb_m), abs=1e-4)
    assert effective.height_m == pytest.approx(0.88, abs=LARGEST_CELL_HEIGHT_M)


def test_the_default_cells_are_habitats_own_and_the_report_says_what_they_come_to(make: Make, small: Scene):
    fine = make(small).facts(synthetic.header())
    coarse = make(small, navmesh_defaults=True).facts(synthetic.header())
    assert "radius in effect 180 mm, climb 30 mm" in fine[0]
    assert "cells of 50.0 mm, 200.0 mm high; radius in effect 200 mm, climb 200 mm" in coarse[0]
    assert fine[0].endswith(" m²")


def test_the_report_has_the_distance_by_mesh_and_by_map(make: Make, small: Scene):
    episode = synthetic.pointnav_episode()
    goal = episode.goals[0]
    straight_m = math.hypot(goal.x_m - episode.start.x_m, goal.y_m - episode.start.y_m)
    header = synthetic.header(episode=replace(episode, shortest_path_m=9.0))
    (_, distances) = make(small).facts(header)
    assert "9.000 m as recorded" in distances
    measured_m = float(distances.split(": ")[1].split(" m")[0])
    assert measured_m == pytest.approx(straight_m, abs=0.12), "in the plane, between snapped places"


def test_the_agent_stands_on_the_floor(make: Make, small: Scene):
    for options, height_m in (({}, 0.015), ({"navmesh_defaults": True}, 0.2)):
        simulator = make(small, **options)
        simulator.begin(synthetic.header(), POSE, 0.0)
        y_m = float(simulator._agent.get_state().position[1])
        assert y_m == pytest.approx(height_m, abs=1e-3)


def test_an_agent_on_furniture_is_refused(make: Make, world: World, small: Scene):
    world.perch_m = 0.45
    simulator = make(small)
    with raises_naming(InvalidStart, "0.4", "habitat-sim 0.2.2"):
        simulator.begin(synthetic.header(), SE2(0.1, 0.1, 0.0), 0.0)


def test_a_mesh_without_floor_is_refused(make: Make, world: World, small: Scene):
    world.area_m2 = 0.0
    with raises_naming(SceneError, "no navigable floor", "habitat-sim 0.2.2", "Simulator.recompute_navmesh"):
        make(small)


@pytest.mark.parametrize(("name", "lowest_m", "height_m"), [("apartment", 0.0, 0.2), ("arena", 0.05, 0.15)])
def test_exported_episodes_are_measured_in_the_plane(
    name: str, lowest_m: float, height_m: float, world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """By habitat-lab's own mesh, standing at the start and after a step."""
    episode = synthetic.pointnav_episode()
    scene = load_scene(find_scene(name))
    assert navmesh_height_m(scene) == pytest.approx(height_m, abs=1e-3)
    (exported,) = at_height([episode], navmesh_height_m(scene), f"{name}.glb")
    (tmp_path / "flat.glb").touch()
    world.lowest_m = lowest_m
    library: Any = habitat_sim(world)
    config = library.SimulatorConfiguration()
    config.scene_id = str(tmp_path / "flat.glb")
    actions = {"move_forward": library.ActionSpec("move_forward", library.ActuationSpec(0.25))}
    agent = library.AgentConfiguration(sensor_specifications=[library.CameraSensorSpec()], action_space=actions)
    simulator = library.Simulator(library.Configuration(config, [agent]))
    settings = library.NavMeshSettings()
    settings.set_defaults()
    simulator.recompute_navmesh(simulator.pathfinder, settings)

    def distance_m() -> float:
        path = library.ShortestPath()
        path.requested_start = simulator.get_agent(0).get_state().position
        path.requested_end = ros_to_habitat_position(goal.x_m, goal.y_m, goal.z_m)
        simulator.pathfinder.find_path(path)
        return float(path.geodesic_distance)

    goal, start = exported.goals[0], exported.start
    place = np.array(ros_to_habitat_position(start.x_m, start.y_m, exported.start_z_m))
    rotation = list(yaw_to_habitat_quaternion(start.yaw_rad))
    simulator.get_agent(0).set_state(library.AgentState(place, rotation))
    planar_m = math.hypot(goal.x_m - start.x_m, goal.y_m - start.y_m)
    assert distance_m() == pytest.approx(planar_m, abs=1e-6)
    simulator.get_agent(0).act("move_forward")
    ahead = start @ SE2(0.25, 0.0, 0.0)
    planar_m = math.hypot(goal.x_m - ahead.x_m, goal.y_m - ahead.y_m)
    assert distance_m() == pytest.approx(planar_m, abs=1e-3)
    simulator.close()


def test_the_command_exports_scene_and_episodes(tmp_path: Path):
    episodes = tmp_path / "val.json.gz"
    assert run_command(["episodes", "generate", "--out", str(episodes), "--scene", "arena", "--count", "2"]) == 0
    command = ["scene", "export", "arena", "--out", str(tmp_path / "habitat"), "--episodes", str(episodes)]
    assert run_command(command) == 0
    assert sorted(file.name for file in (tmp_path / "habitat").iterdir()) == [
        "arena.glb", "arena.stage_config.json", "episodes.json.gz",
    ]  # fmt: skip
    for before, after in zip(
        load_episodes(episodes), load_episodes(tmp_path / "habitat" / "episodes.json.gz"), strict=True
    ):
        assert (after.start_z_m, after.goals[0].z_m) == pytest.approx((0.15, 0.15), abs=1e-6)
        assert (after.scene, after.start) == ("arena.glb", before.start)


def heights_m(record: object) -> set[float]:
    """The heights of all positions in a JSON value, but for those of objects."""
    if isinstance(record, list):
        return set().union(*map(heights_m, record))
    if not isinstance(record, dict):
        return set()
    found = set().union(*(heights_m(value) for value in record.values()))
    points = [record[name] for name in ("position", "start_position") if name in record and "object_id" not in record]
    points += [*(record.get("reference_path") or ()), *(record.get("locations") or ())]
    return found | {point[1] for point in points}


def test_view_points_and_paths_are_at_that_height_too(
    apartment: Scene, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """habitat-lab measures to view points, and VLN-CE to a path, in three dimensions: both would be 0.2 m off."""
    objects, routes = tmp_path / "objects.json.gz", tmp_path / "val.json.gz"
    task = load_task("objectnav_hm3d2022")
    save_episodes(objects, generate_episodes(apartment, task, 1, 0), task)
    route = [[-1.0, 0.0, -4.0], [-1.0, 0.0, -3.0]]
    turned = [0.0, 0.0, 0.0, 1.0]
    common = {"episode_id": "1", "scene_id": "apartment", "start_position": route[0], "start_rotation": turned}
    said = {"instruction": {"instruction_text": "Go."}, "reference_path": route, "goals": [{"position": route[1]}]}
    write_json(routes, {"instruction_vocab": {"word_list": []}, "episodes": [{**common, **said}]})
    write_json(tmp_path / "val_gt.json.gz", {"1": {"locations": route}})
    for file, chosen in ((objects, task), (routes, load_task("vln_r2r_ce"))):
        out = tmp_path / chosen.kind / "val.json.gz"
        out.parent.mkdir()
        save_episodes(out, at_height(load_episodes(file), 0.2, "apartment.glb"), chosen)
        written = [read_json(made) for made in out.parent.iterdir()]
        assert len(written) == (2 if file == routes else 1)
        assert heights_m(written) == {0.2}
    command = ["scene", "export", "arena", "--out", str(tmp_path / "habitat"), "--episodes", str(objects)]
    assert run_command(command) == EpisodeError.exit_code, "PointNav's file would have no categories"
    assert "has no category" in capsys.readouterr().err


# --- steps ----------------------------------------------------------------------------------------------------------


def test_a_sliding_agent_collides_on_every_shortened_step(make: Make, small: Scene):
    simulator = make(small, allow_sliding=True)
    simulator.begin(synthetic.header(), SE2(0.4, 1.9, math.radians(150)), 0.0)
    steps = [simulator.act(synthetic.FORWARD) for _ in range(2)]
    assert steps[1].outcome is Outcome.CONTACT
    assert steps[1].pose.y_m > steps[0].pose.y_m, "it slides"


@pytest.mark.parametrize(
    ("call", "named"),
    [
        ("act", "Agent.act"),
        ("step_filter", "Simulator.step_filter"),
        ("snap_point", "PathFinder.snap_point"),
        ("get_sensor_observations", "Simulator.get_sensor_observations"),
    ],
)
def test_exceptions_of_the_library_name_it_its_version_and_the_call(
    make: Make, world: World, small: Scene, call: str, named: str
):
    control = Control((-0.8, 0.8), VelocityControl((0.0, 0.5), (-2.0, 2.0), (-1.0, 1.0), time_step_s=1.0))
    header = synthetic.header(synthetic.pointnav_task(control=control))
    simulator = make(small)
    world.fails["snap_point" if call == "snap_point" else "nothing"] = AssertionError("bad")

    def episode() -> None:
        simulator.begin(header, POSE, 0.0)
        world.fails[call] = AssertionError("bad")
        view(simulator)
        simulator.act(timed.velocity(0.1, 0.0, 0.0, 1.0) if call == "step_filter" else synthetic.FORWARD)

    with raises_naming(SimulatorFailed, "habitat-sim 0.2.2", named, "AssertionError: bad"):
        episode()


def test_bad_input_names_library_version_and_call(make: Make, small: Scene, tmp_path: Path):
    (tmp_path / "broken.glb").touch()
    (tmp_path / "torn.nav").touch()
    with raises_naming(SceneError, "habitat-sim 0.2.2", "Simulator", "broken.glb"):
        make(scene=str(tmp_path / "broken.glb"))
    with raises_naming(SceneError, "habitat-sim 0.2.2", "PathFinder.load_nav_mesh", "torn.nav"):
        make(small, navmesh=str(tmp_path / "torn.nav"))
    for outside in (SE2(-3.0, 1.9, 0.0), SE2(1e4, 0.0, 0.0)):
        with raises_naming(InvalidStart, "habitat-sim 0.2.2", "PathFinder.snap_point"):
            make(small).begin(synthetic.header(), outside, 0.0)


def test_another_version_is_named(make: Make, small: Scene, monkeypatch: pytest.MonkeyPatch, world: World):
    other: Any = habitat_sim(world, "9.0.0")
    del other.NavMeshSettings
    monkeypatch.setitem(sys.modules, "habitat_sim", other)
    with raises_naming(SimulatorFailed, "habitat-sim 9.0.0", "NavMeshSettings"):
        make(small)
