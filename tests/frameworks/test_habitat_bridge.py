"""habitat-lab's Env, measures, agents and Benchmark on our robots, through its own code."""

from __future__ import annotations

import importlib.util
import math
import sys
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import habitat  # importable since conftest.py
import numpy as np
import pytest
import yaml
from habitat.core.benchmark import Benchmark
from habitat_baselines.agents import ppo_agents, simple_agents

from robot_runtime.actions.discrete import Action
from robot_runtime.datasets.files import load_episodes, save_episodes
from robot_runtime.datasets.formats import generate_episodes
from robot_runtime.env import Env
from robot_runtime.errors import ConfigError
from robot_runtime.metrics.episode_metrics import EpisodeScorer
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import EndReason
from robot_runtime.robots.loader import RobotContext, load_robot
from robot_runtime.scenes.scene import find_scene, load_scene
from robot_runtime.tasks.task import load_task
from sim_bridge.habitat import import_shim
from sim_bridge.habitat import simulator as bridge
from sim_bridge.habitat.config import task_of
from tests.benchmarks.sim import habitat as habitat_benchmark

SCENE = load_scene(find_scene("apartment"))
TASKS = {"pointnav": load_task("pointnav_gps_compass"), "objectnav": load_task("objectnav_habitat2020")}
DATASETS = {"pointnav": "PointNav-v1", "objectnav": "ObjectNav-v1"}

MakeConfig = Callable[..., Path]


@pytest.fixture
def make_config(tmp_path: Path) -> MakeConfig:
    """``make_config(kind, robot, count, setup, **simulator)`` writes episodes and habitat-lab's YAML for them."""

    def make(
        kind: str = "pointnav", robot: str = "fake", count: int = 2, setup: str = "depth", **simulator: Any
    ) -> Path:
        task = TASKS[kind]
        save_episodes(tmp_path / "val.json.gz", generate_episodes(SCENE, task, count, 5), task)
        camera = {"width": 64, "height": 48, "hfov": 79, "position": [0, 0.88, 0]}
        depth = {**camera, "min_depth": 0.5, "max_depth": 5.0}
        sensors = {"depth_sensor": depth} if setup == "depth" else {"depth_sensor": depth, "rgb_sensor": camera}
        measurements = ["soft_spl", "collisions"]
        document = {
            "defaults": [
                {"/habitat": "habitat_config_base"},
                {"/habitat/task": kind},
                {"/habitat/task/measurements": measurements},
                {"/habitat/simulator/sensor_setups@habitat.simulator.agents.main_agent": f"{setup}_agent"},
                {"/habitat/simulator": "robot_runtime"},
                "_self_",
            ],
            "habitat": {
                "environment": {"max_episode_steps": 80},
                "simulator": {
                    "robot": robot,
                    "robot_task": task.name,
                    "turn_angle": 30,
                    "logs": str(tmp_path / "logs"),
                    "agents": {"main_agent": {"sim_sensors": sensors}},
                    **simulator,
                },
                "task": {
                    "measurements": {"success": {"success_distance": task.success.distance_m}},
                    **({"actions": _looks(30)} if kind == "objectnav" else {}),
                },
                "dataset": {
                    "type": DATASETS[kind],
                    "split": "val",
                    "data_path": str(tmp_path / "val.json.gz"),
                    "scenes_dir": "scenes",
                },
            },
        }
        path = tmp_path / "config.yaml"
        path.write_text("# @package _global_\n" + yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
        return path

    return make


def _looks(angle_deg: int) -> dict[str, Any]:
    return {"look_up": {"tilt_angle": angle_deg}, "look_down": {"tilt_angle": angle_deg}}


def scores(folder: Path) -> list[Mapping[str, Any]]:
    """Our own, from the logs alone."""
    found = []
    for log in sorted(folder.glob("*.mcap")):
        with LogReader(log) as reader:
            assert reader.end is not None
            scorer = EpisodeScorer(reader.header)
            scorer.on_episode_start(reader.header)
            for step in reader.steps():
                scorer.on_step(step)
            scorer.on_episode_end(reader.end)
            found.append(scorer.metrics())
    return found


def test_an_episode_of_env_agrees_with_our_own_scores(make_config: MakeConfig, tmp_path: Path) -> None:
    with habitat.Env(habitat.get_config(str(make_config(setup="rgbd")))) as env:
        agent = simple_agents.GoalFollower(0.2, "pointgoal_with_gps_compass")
        for _ in range(2):
            seen = env.reset()
            assert env.observation_space.contains(seen)
            start = env.get_metrics()
            goal = env.current_episode.goals[0].position
            rho = math.dist(np.array(env.current_episode.start_position)[[0, 2]], np.array(goal)[[0, 2]])
            assert seen["pointgoal_with_gps_compass"][0] == pytest.approx(rho, abs=1e-3)
            agent.reset()
            while not env.episode_over:
                seen = env.step(agent.act(seen))
            final = env.get_metrics()
            assert final["success"] == 1.0
            own = env.sim.env.get_metrics()
            assert final["distance_to_goal"] == pytest.approx(own["distance_to_goal"], abs=1e-3)
            assert final["spl"] == pytest.approx(own["spl"], abs=0.01)
            assert final["soft_spl"] == pytest.approx(own["soft_spl"], abs=0.01)
            assert final["collisions"]["count"] == 0
            assert start["spl"] == 0.0
    assert [score["success"] for score in scores(tmp_path / "logs")] == [True, True]


def test_the_observation_is_the_one_of_our_own_environment(make_config: MakeConfig, tmp_path: Path) -> None:
    """On the simulated robot, bit for bit: the same actions, seen through habitat-lab and without it."""
    actions = ["turn_left", "move_forward", "turn_right", "stop"]
    path = make_config(robot="sim", count=1, setup="rgbd")
    config = habitat.get_config(str(path)).habitat
    with habitat.Env(config) as env:
        seen = [env.reset(), *(env.step(action) for action in actions)]
    task = task_of(config.simulator)
    episode = load_episodes(tmp_path / "val.json.gz")[0]
    context = RobotContext(SCENE, task.camera, int(config.simulator.seed))
    with load_robot("sim", context) as robot, Env(robot, task, SCENE) as own:
        expected = [own.reset(episode), *(own.step(action) for action in actions)]
    for ours, theirs in zip(expected, seen, strict=True):
        np.testing.assert_array_equal(theirs["depth"], ours["depth"])
        np.testing.assert_array_equal(theirs["rgb"], ours["rgb"])


def test_collisions_count_contacts_and_nothing_else(make_config: MakeConfig, tmp_path: Path) -> None:
    start = generate_episodes(SCENE, TASKS["pointnav"], 1, 5)[0].start
    robot = tmp_path / "walled.yaml"
    wall_x_m = float(start.x_m) + 0.5  # reached or not, depending on the heading: turned towards it first
    options = {"wall_x_m": wall_x_m}
    robot.write_text(yaml.safe_dump({"name": "walled", "driver": "drivers.fake.driver.make_robot", "options": options}))
    with habitat.Env(habitat.get_config(str(make_config(robot=str(robot), count=1)))) as env:
        env.reset()
        turns = round(-start.yaw_rad / math.radians(30)) % 12
        counts, own = [], []
        for action in ["turn_left"] * turns + ["move_forward"] * 5:
            env.step(action)
            counts.append(env.get_metrics()["collisions"]["is_collision"])
            result = env.sim.env.record.result
            own.append(result.collided)
        assert counts == own
        assert 0 < sum(counts) < 5
        assert env.get_metrics()["collisions"]["count"] == sum(counts)


def test_objectnav_with_looks(make_config: MakeConfig, tmp_path: Path) -> None:
    with habitat.Env(habitat.get_config(str(make_config("objectnav", count=1)))) as env:
        assert list(env.task.actions) == ["stop", "move_forward", "turn_left", "turn_right", "look_up", "look_down"]
        seen = env.reset()
        category = env.current_episode.object_category
        assert seen["objectgoal"] == [TASKS["objectnav"].categories[category].id]
        own = env.sim.env.get_metrics()
        assert env.get_metrics()["distance_to_goal"] == pytest.approx(own["distance_to_goal"], abs=1e-3)
        tilts = []
        for action in ("look_down", 4, "look_up"):
            env.step(action)
            tilts.append(math.degrees(env.sim.env.record.head.tilt_rad))
        assert tilts == pytest.approx([-30, 0, 30], abs=0.2)
        env.step("stop")
        assert env.episode_over
    with LogReader(next((tmp_path / "logs").glob("*.mcap"))) as reader:
        assert [step.action for step in reader.steps()][1:] == [
            Action.LOOK_DOWN,
            Action.LOOK_UP,
            Action.LOOK_UP,
            Action.STOP,
        ]
        assert reader.end is not None
        assert reader.end.reason is EndReason.STOP


def test_benchmark_evaluates_habitats_own_agents(make_config: MakeConfig, tmp_path: Path) -> None:
    path = make_config(count=2)
    benchmark = Benchmark(str(path))
    try:
        best = benchmark.evaluate(simple_agents.GoalFollower(0.2, "pointgoal_with_gps_compass"))
        assert best["success"] == 1.0
        assert best["spl"] > 0.9
        straight = benchmark.evaluate(simple_agents.ForwardOnlyAgent(0.2, "pointgoal_with_gps_compass"), 1)
        assert straight["success"] == 0.0
        assert straight["collisions/count"] == 0
    finally:
        benchmark._env.close()
    ends = []
    for log in sorted((tmp_path / "logs").glob("*.mcap")):
        with LogReader(log) as reader:
            assert reader.end is not None
            ends.append(reader.end.reason)
    assert ends == [EndReason.STOP, EndReason.STOP, EndReason.MAX_STEPS]


def test_ppo_agent_of_random_weights(make_config: MakeConfig) -> None:
    config = ppo_agents.get_default_config()
    config.INPUT_TYPE, config.MODEL_PATH = "depth", ""
    config.RESOLUTION = 64
    agent = ppo_agents.PPOAgent(config)
    path = make_config(count=1)
    with habitat.Env(habitat.get_config(str(path), ["habitat.environment.max_episode_steps=5"])) as env:
        seen = env.reset()
        agent.reset()
        steps = 0
        while not env.episode_over:
            seen = env.step(agent.act(seen))
            steps += 1
        assert 1 <= steps <= 5
        assert env.sim.env.end.steps == steps


def test_asking_for_nothing_looks_again_and_moves_nothing(make_config: MakeConfig) -> None:
    with habitat.Env(habitat.get_config(str(make_config(count=1)))) as env:
        seen = env.reset()
        again = env.sim.step(None)
        np.testing.assert_array_equal(seen["depth"], again["depth"])
        assert env.sim.env.record.index == 0


def test_distances_and_places_are_the_maps(make_config: MakeConfig) -> None:
    with habitat.Env(habitat.get_config(str(make_config(count=1)))) as env:
        env.reset()
        sim, episode = env.sim, env.current_episode
        goal = episode.goals[0].position
        corners = sim.get_straight_shortest_path_points(episode.start_position, goal)
        length = sum(float(np.linalg.norm(b - a)) for a, b in pairwise(corners))
        distance = sim.geodesic_distance(episode.start_position, [goal, goal], episode)
        assert length == pytest.approx(distance, rel=0.01)
        assert distance == pytest.approx(episode.info["geodesic_distance"], rel=1e-3)
        assert sim.geodesic_distance(episode.start_position, goal) == distance
        np.random.seed(0)
        point = sim.sample_navigable_point()
        assert sim.is_navigable(point)
        assert 0 <= sim.distance_to_closest_obstacle(point) <= 2.0
        assert not sim.is_navigable([1000.0, 0.0, 1000.0])
        assert sim.geodesic_distance(episode.start_position, [1000.0, 0.0, 1000.0]) == math.inf


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (["habitat.simulator.pose=guess"], "guess"),
        (["habitat.simulator.robot=nobody"], "nobody"),
        (["habitat.simulator.agents.main_agent.sim_sensors.depth_sensor.position=[0,0.88,0.1]"], "0.1"),
        (["habitat.simulator.agents.main_agent.sim_sensors.depth_sensor.sensor_subtype=FISHEYE"], "depth_sensor"),
        (["habitat.simulator.agents.main_agent.sim_sensors.depth_sensor.noise_model=RedwoodDepthNoiseModel"], "noise"),
    ],
)
def test_what_a_robot_does_not_have_is_refused(make_config: MakeConfig, overrides: list[str], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        habitat.Env(habitat.get_config(str(make_config(count=1)), overrides))


def test_looks_of_another_size_are_refused(make_config: MakeConfig) -> None:
    overrides = ["habitat.task.actions.look_up.tilt_angle=15"]
    with pytest.raises(ConfigError, match="15° in habitat-lab's"):
        habitat.Env(habitat.get_config(str(make_config("objectnav", count=1)), overrides))


def test_other_settings_get_another_name(make_config: MakeConfig) -> None:
    config = habitat.get_config(str(make_config(count=1, turn_angle=10))).habitat.simulator
    task = task_of(config)
    assert task.name == "pointnav_gps_compass@habitat-lab"
    assert (task.magnitudes.turn_deg, task.camera.width, task.max_steps) == (10, 64, 80)


def test_looks_of_other_simulators_stay_habitats(monkeypatch: pytest.MonkeyPatch) -> None:
    moved: list[float] = []
    monkeypatch.setattr(
        bridge.nav.NavigationMovementAgentAction, "_move_camera_vertical", lambda _, amount: moved.append(amount)
    )
    config = habitat.get_config("benchmark/nav/objectnav/objectnav_mp3d.yaml").habitat.task.actions.look_up
    bridge.LookUpAction(config=config, sim=object(), name="look_up").step()
    bridge.LookDownAction(config=config, sim=object(), name="look_down").step()
    assert moved == [config.tilt_angle, -config.tilt_angle]


def test_nothing_is_put_in_place_of_an_installed_habitat_sim(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec("json")
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: found)

    def imported() -> list[str]:
        return [name for name in sys.modules if name.split(".")[0] in ("habitat", "habitat_baselines", "habitat_sim")]

    for name in imported():
        monkeypatch.delitem(sys.modules, name)
    import_shim.make_baselines_importable()
    assert imported() == []


def test_the_row_of_the_benchmark() -> None:
    (row,) = habitat_benchmark.rows(5, 0)
    assert row.id == "habitat_step_overhead_ms"
    assert row.value is not None
    assert row.value > 0
