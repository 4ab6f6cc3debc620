"""habitat-lab's published configurations on our simulator, unchanged but for robot, scene and episodes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import habitat  # importable since conftest.py
import habitat_double
import numpy as np
import pytest
import synthetic
from habitat.tasks.nav.nav import DistanceToGoal, Success

from robot_runtime.common.geometry import SE2, ros_to_habitat_position, yaw_to_habitat_quaternion
from robot_runtime.datasets.files import save_episodes
from robot_runtime.datasets.formats import generate_episodes
from robot_runtime.datasets.io import write_json
from robot_runtime.recording.reader import LogReader
from robot_runtime.scenes.scene import find_scene, load_scene
from robot_runtime.task_kinds.vln.kind import Route
from robot_runtime.tasks.episode import Goal
from robot_runtime.tasks.task import load_task
from sim_bridge.habitat import simulator as bridge  # noqa: F401  # registers the robot
from sim_bridge.habitat.config import task_of
from sim_bridge.scenes.habitat_export import at_height, navmesh_height_m

SCENE = load_scene(find_scene("apartment"))
PUBLISHED = {
    "pointnav/pointnav_gibson": "pointnav_habitat_lab",
    "objectnav/objectnav_hm3d": "objectnav_hm3d2022",
    "vln_r2r": "vln_r2r_habitat_lab",
}
"""Configurations below ``benchmark/nav``, and the presets of the same constants."""

SEEDS = {"pointnav": 6, "objectnav": 5}
"""Seeds of episodes that begin with free floor ahead after a turn."""

INSTRUCTION = "Leave the kitchen and stop in the bedroom."


def write_route(path: Path) -> None:
    """An episode with an instruction, as docs/tasks/vln.md has it; the tokens are padded."""
    episode = {
        "episode_id": "1",
        "trajectory_id": 7,
        "scene_id": "apartment",
        "start_position": [-1.065, 0.0, -4.42],
        "start_rotation": [0.0, -0.99656, 0.0, 0.08293],
        "info": {"geodesic_distance": 3.35},
        "goals": [{"position": [-1.95, 0.0, -1.48], "radius": 3.0}],
        "instruction": {"instruction_text": INSTRUCTION, "instruction_tokens": [4, 8, 2, 0, 0]},
        "reference_path": [[-1.065, 0.0, -4.42], [-0.84, 0.0, -3.06], [-1.95, 0.0, -1.48]],
    }
    write_json(path, {"instruction_vocab": {"word_list": []}, "episodes": [episode]})


@pytest.fixture
def configured(tmp_path: Path) -> Callable[..., Any]:
    """The configuration ``name``, with our simulator, scene and episodes."""

    def get(name: str, *overrides: str) -> Any:
        task = load_task(PUBLISHED[name])
        episodes = tmp_path / "val.json.gz"
        if task.kind == "vln":
            write_route(episodes)
        else:
            wide = replace(task, robot_radius_m=0.18)
            save_episodes(episodes, generate_episodes(SCENE, wide, 1, SEEDS[task.kind]), task)
        own = {
            "simulator.robot_task": task.name,
            "simulator.logs": str(tmp_path / "logs"),
            "dataset.data_path": str(episodes),
            "dataset.scenes_dir": "scenes",
        }
        changes = [f"habitat.{key}={value}" for key, value in own.items()]
        return habitat.get_config(
            f"benchmark/nav/{name}.yaml", ["+habitat/simulator=robot_runtime", *changes, *overrides]
        ).habitat

    return get


@pytest.mark.parametrize("name", PUBLISHED)
def test_it_is_a_preset_to_the_last_constant(configured: Callable[..., Any], name: str) -> None:
    """Nothing of it is replaced by a default of ours, such as its turns of 15 and 30 degrees by habitat-lab's 10."""
    original = habitat.get_config(f"benchmark/nav/{name}.yaml").habitat
    config, preset = configured(name), load_task(PUBLISHED[name])
    for key in ("forward_step_size", "turn_angle", "agents", "seed", "habitat_sim_v0"):
        assert config.simulator[key] == original.simulator[key], key
    task = task_of(config.simulator)
    assert task.name == preset.name, "another name would say that it differs"
    assert (task.magnitudes, task.camera, task.max_steps) == (preset.magnitudes, preset.camera, preset.max_steps)
    assert config.task.measurements.success.success_distance == preset.success.distance_m
    assert config.simulator.agents.main_agent.radius == preset.robot_radius_m
    assert [action.value for action in preset.actions] == list(config.task.actions)


@pytest.mark.parametrize("name", PUBLISHED)
def test_it_runs_on_the_simulated_robot(configured: Callable[..., Any], name: str, tmp_path: Path) -> None:
    config = configured(name, "habitat.simulator.robot=sim")
    with habitat.Env(config) as env:
        seen = env.reset()
        sensors = config.simulator.agents.main_agent.sim_sensors
        assert seen["rgb"].shape == (sensors.rgb_sensor.height, sensors.rgb_sensor.width, 3)
        assert seen["depth"].min() >= 0
        assert 0 < seen["depth"].max() <= 1
        before = env.sim.env.record.referee.pose
        for action in ("turn_left", "move_forward"):
            seen = env.step(action)
        metrics, own = env.get_metrics(), env.sim.env.get_metrics()
        assert metrics["distance_to_goal"] == pytest.approx(own["distance_to_goal"], abs=1e-3)
        after = env.sim.env.record.referee.pose
        assert math.degrees(after.yaw_rad - before.yaw_rad) % 360 == pytest.approx(config.simulator.turn_angle, abs=0.5)
        assert after.distance_to(before) == pytest.approx(0.25, abs=0.01)
        env.step("stop")
        assert env.episode_over
        reached = own["distance_to_goal"] < load_task(PUBLISHED[name]).success.distance_m
        assert env.get_metrics()["success"] == float(reached)
    with LogReader(next((tmp_path / "logs").glob("*.mcap"))) as log:
        assert log.header.task.name == PUBLISHED[name]
        route = Route.of(log.header.episode)
        if name == "vln_r2r":
            assert route.instruction is not None
            assert (route.instruction.text, route.instruction.tokens) == (INSTRUCTION, (4, 8, 2))
            assert len(route.reference_path) == 3
            assert seen["instruction"]["text"] == INSTRUCTION


@pytest.mark.parametrize("exported", [True, False])
def test_habitat_labs_measures_see_exported_episodes_in_the_plane(
    exported: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On habitat-sim's mesh with its own cells: a goal 0.184 m ahead counts within 0.2 m, as in the plane.

    At the height of the floor it is 0.272 m away, once the first step has lifted the agent to the mesh.
    """
    start = SE2(1.0, 1.9, 0.0)
    episode = replace(synthetic.pointnav_episode(), start=start, goals=(Goal(1.0 + 0.25 + 0.184, 1.9),))
    if exported:
        (episode,) = at_height([episode], navmesh_height_m(SCENE), "flat.glb")
    (tmp_path / "flat.glb").touch()
    library: Any = habitat_double.habitat_sim(habitat_double.World())
    config = library.SimulatorConfiguration()
    config.scene_id = str(tmp_path / "flat.glb")
    forward = library.ActionSpec("move_forward", library.ActuationSpec(0.25))
    agent = library.AgentConfiguration(
        sensor_specifications=[library.CameraSensorSpec()], action_space={"move_forward": forward}
    )
    simulator = library.Simulator(library.Configuration(config, [agent]))
    settings = library.NavMeshSettings()
    settings.set_defaults()
    simulator.recompute_navmesh(simulator.pathfinder, settings)
    body = simulator.get_agent(0)

    def geodesic(position: Any, goals: Any, _: Any = None) -> float:
        path = library.ShortestPath()
        path.requested_start, path.requested_end = position, goals[0]
        simulator.pathfinder.find_path(path)
        return float(path.geodesic_distance)

    sim = SimpleNamespace(get_agent_state=body.get_state, geodesic_distance=geodesic)
    goal = ros_to_habitat_position(episode.goals[0].x_m, episode.goals[0].y_m, episode.goals[0].z_m)
    asked = SimpleNamespace(goals=[SimpleNamespace(position=goal)])
    distance = DistanceToGoal(sim, SimpleNamespace(distance_to="POINT"))
    success = Success(sim, SimpleNamespace(success_distance=0.2))
    measures = {"distance_to_goal": distance}
    needed = SimpleNamespace(measures=measures, check_measure_dependencies=lambda *_: None)
    task = SimpleNamespace(measurements=needed, is_stop_called=True)
    place = np.array(ros_to_habitat_position(start.x_m, start.y_m, episode.start_z_m))
    body.set_state(library.AgentState(place, list(yaw_to_habitat_quaternion(start.yaw_rad))))
    distance.reset_metric(episode=asked)
    assert distance.get_metric() == pytest.approx(0.434, abs=1e-6), "without motion"
    body.act("move_forward")
    distance.update_metric(episode=asked)
    success.update_metric(episode=asked, task=task)
    assert distance.get_metric() == pytest.approx(0.184 if exported else 0.272, abs=1e-3), "after one step"
    assert success.get_metric() == float(exported)
    simulator.close()
