"""The Gymnasium environment on the fake robot: spaces, rewards, ends. Gymnasium's checker runs on the simulated one."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import yaml
from gymnasium.wrappers import RecordEpisodeStatistics, TimeLimit
from gymnasium.wrappers.vector import RecordEpisodeStatistics as RecordVectorEpisodeStatistics
from open_room import Witness, fake_robot, make_episode, make_object_episode, make_scene, make_task
from raising import raises_naming

from robot_runtime.common.geometry import SE2
from robot_runtime.env import Env
from robot_runtime.errors import ConfigError, EpisodeError, StaleData, UnknownAction
from robot_runtime.gym import NavigationEnv, Reward, observation_space
from robot_runtime.hal import Robot
from robot_runtime.records import EndReason
from robot_runtime.task_kinds.vln.kind import Instruction, Route
from robot_runtime.tasks.task import Success, Task

TASK = make_task()
STOP, FORWARD, LEFT, RIGHT = range(4)
EPISODES = (make_episode(), make_episode(SE2(-1.0, -1.0, 0.5)), make_episode(goal=(-2.0, 1.0)))


def make_env(robot: Robot, task: Task = TASK, episodes: Any = EPISODES, **settings: Any) -> NavigationEnv:
    return NavigationEnv(Env(robot, task, make_scene()), episodes, **settings)


@pytest.mark.parametrize("normalized", [True, False])
def test_spaces_are_those_of_the_task(normalized: bool):
    task = make_task(camera=replace(TASK.camera, depth_normalized=normalized))
    space = observation_space(task)
    assert set(space.spaces) == set(task.sensors)  # gymnasium sorts them by name
    depth = space["depth"]
    assert isinstance(depth, gymnasium.spaces.Box)
    assert (depth.shape, depth.dtype) == ((24, 32, 1), np.float32)
    assert (depth.low.min(), depth.high.max()) == ((0.0, 1.0) if normalized else (0.5, 5.0))
    with fake_robot(task) as robot:
        env = make_env(robot, task)
        observation, _ = env.reset(seed=0)
        assert env.action_space == gymnasium.spaces.Discrete(4)
        assert observation in space


def test_an_object_goal_is_observed_and_looking_is_possible():
    task = make_task("objectnav")
    with fake_robot(task) as robot:
        env = make_env(robot, task, (make_object_episode(), make_object_episode(start=SE2(1.0, 0, 2.0))))
        observation, _ = env.reset(seed=0)
        assert observation["objectgoal"].tolist() == [11]
        assert observation in env.observation_space
        assert env.action_space == gymnasium.spaces.Discrete(6)
        assert env.step(np.int64(4))[4]["outcome"] == "reached"


def test_a_seed_chooses_the_same_episodes_again():
    with fake_robot(TASK) as robot:
        env = make_env(robot)

        def draw(seed: int) -> list[str]:
            first = env.reset(seed=seed)[1]["episode_key"]
            return [first, *(env.reset()[1]["episode_key"] for _ in range(5))]

        assert draw(3) == draw(3)
        assert len(set(draw(4))) > 1


def test_an_episode_can_be_chosen():
    with fake_robot(TASK) as robot:
        env = make_env(robot)
        for index, episode in enumerate(EPISODES):
            assert env.reset(options={"episode": index})[1]["episode_key"] == episode.key
        with raises_naming(EpisodeError, "7"):
            env.reset(options={"episode": 7})


def test_rewards_are_progress_slack_and_success():
    with fake_robot(TASK) as robot:
        env = make_env(robot, reward=Reward(slack=-0.01, success=2.5))
        env.reset(options={"episode": 0})
        rewards = []
        for action in (FORWARD, LEFT, RIGHT, FORWARD, FORWARD, STOP):
            _, reward, terminated, truncated, info = env.step(np.int64(action))
            rewards.append(reward)
        assert (terminated, truncated) == (True, False)
        assert info["metrics"]["success"] is True
        assert (info["end"], info["outcome"]) == ("stop", "reached")
    assert rewards[0] == pytest.approx(0.25 - 0.01, abs=0.02)
    assert rewards[1] == pytest.approx(-0.01, abs=0.02)
    assert rewards[5] == pytest.approx(2.5 - 0.01, abs=0.02)
    assert sum(rewards) == pytest.approx(2.5 - 6 * 0.01 + 1.0 - info["metrics"]["distance_to_goal"], abs=0.02)


def test_the_gain_of_ndtw_is_a_reward_that_sums_to_the_last_value():
    """Magalhaes et al. 2019, 3.2."""
    task = make_task("vln", sensors=("rgb", "instruction"), success=Success("distance", 0.36), categories={})
    route = Route(
        instruction=Instruction("go ahead"), reference_path=((0.0, 0.0, 0.0), (0.5, 0.0, 0.0), (1.0, 0.0, 0.0))
    )
    with fake_robot(task) as robot:
        env = make_env(robot, task, [make_episode(details=route)], reward=Reward(slack=0.0, metric="ndtw", success=0.0))
        first = env.reset()[1]["metrics"]["ndtw"]
        steps = [env.step(np.int64(action)) for action in (FORWARD, FORWARD, LEFT, FORWARD, STOP)]
        assert steps[0][1] > 0.0, "towards the reference"
        assert sum(step[1] for step in steps) == pytest.approx(steps[-1][4]["metrics"]["ndtw"] - first)
        lost = make_env(robot, task, [make_episode(details=route)], reward=Reward(metric="nDTW"))
        with raises_naming(EpisodeError, "'nDTW'", "ndtw"):
            lost.reset()


def test_stopping_elsewhere_terminates_without_the_bonus():
    with fake_robot(TASK) as robot:
        env = make_env(robot)
        env.reset(options={"episode": 0})
        _, reward, terminated, truncated, _ = env.step(np.int64(STOP))
    assert (terminated, truncated) == (True, False)
    assert reward == pytest.approx(-0.01, abs=1e-3)


def test_the_step_limit_truncates():
    task = make_task(max_steps=2)
    with fake_robot(task) as robot:
        env = make_env(robot, task)
        env.reset(seed=0)
        assert env.step(np.int64(LEFT))[2:4] == (False, False)
        _, _, terminated, truncated, info = env.step(np.int64(LEFT))
    assert (terminated, truncated, info["end"]) == (False, True, "max_steps")


def test_a_robot_that_needs_a_person_truncates():
    with fake_robot(TASK, faults=[{"kind": "wheel_drop", "from_s": 2.0}]) as robot:
        env = make_env(robot)
        env.reset(seed=0)
        truncated = False
        while not truncated:
            _, _, terminated, truncated, info = env.step(np.int64(LEFT))
            assert not terminated
    assert (info["end"], info["outcome"]) == ("interrupted", "stopped")


def test_a_device_fault_is_raised():
    with fake_robot(TASK, faults=[{"kind": "lost_frames", "from_s": 2.0}]) as robot:
        env = make_env(robot)
        env.reset(seed=0)
        with pytest.raises(StaleData):
            [env.step(np.int64(LEFT)) for _ in range(10)]


@pytest.mark.parametrize("action", [-1, 4, 99])
def test_an_action_outside_the_space_is_unknown(action: int):
    witness = Witness()
    with fake_robot(TASK) as robot:
        env = NavigationEnv(Env(robot, TASK, make_scene(), (witness,)), EPISODES)
        env.reset(seed=0)
        with raises_naming(UnknownAction, str(action)):
            env.step(np.int64(action))
    assert [end.reason for end in witness.ends] == [EndReason.FAULT]


def test_rendering_gives_the_cameras_last_frame():
    with fake_robot(TASK) as robot:
        env = make_env(robot, render_mode="rgb_array")
        observation, _ = env.reset(seed=0)
        image = env.render()
        assert image is not None
        np.testing.assert_array_equal(image, observation["rgb"])
        assert make_env(robot).render() is None


@pytest.fixture
def scene_folder(tmp_path: Path) -> Path:
    """The open room as files."""
    scene = make_scene()
    scene.map.save(tmp_path / "map.yaml")
    room = {"id": "hall", "category": "hall", "polygon": [list(corner) for corner in scene.rooms[0].polygon]}
    document = {"schema": 1, "name": scene.name, "rooms": [room], "objects": []}
    (tmp_path / "scene.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    return tmp_path


def test_it_is_made_by_name(scene_folder: Path):
    env = gymnasium.make(
        "robot_runtime.gym:robot_runtime/Navigation-v0",
        robot="fake",
        scene=str(scene_folder),
        task="pointnav_habitat2019",
        count=2,
        render_mode="rgb_array",
    )
    observation, info = env.reset(seed=0)
    assert observation in env.observation_space
    assert info["episode_key"].startswith("open_room/")
    env.step(np.int64(LEFT))
    assert isinstance(env.render(), np.ndarray)
    env.close()


def test_what_is_wrong_with_a_name_is_said(scene_folder: Path):
    with raises_naming(ConfigError, "no_such_robot"):
        gymnasium.make("robot_runtime.gym:robot_runtime/Navigation-v0", robot="no_such_robot", scene=str(scene_folder))


def test_no_episodes_to_draw_from_is_an_error():
    with fake_robot(TASK) as robot, raises_naming(EpisodeError, "episodes"):
        make_env(robot, episodes=())


def test_closing_twice_ends_the_episode_once():
    witness = Witness()
    with fake_robot(TASK) as robot:
        env = NavigationEnv(Env(robot, TASK, make_scene(), (witness,)), EPISODES)
        env.reset(seed=0)
        env.close()
        env.close()
    assert [end.reason for end in witness.ends] == [EndReason.INTERRUPTED]


def test_words_are_text_in_a_text_space():
    task = make_task(
        "vln", sensors=("rgb", "instruction", "instruction_tokens"), success=Success("distance", 0.36), categories={}
    )
    episode = make_episode(details=Route(instruction=Instruction("दरवाज़े तक जाओ – “stop”.\n", (5, 6))))
    with fake_robot(task) as robot:
        env = make_env(robot, task, [episode])
        observation, _ = env.reset()
        assert observation["instruction"] == Route.of(episode).instruction.text
        assert env.observation_space.contains(observation)
        observation, *_ = env.step(np.int64(2))
        assert env.observation_space.contains(observation)


def test_gymnasiums_wrappers_keep_their_key_and_see_finite_numbers():
    """``info["episode"]`` belongs to ``RecordEpisodeStatistics``."""
    with fake_robot(TASK) as robot:
        env = RecordEpisodeStatistics(TimeLimit(make_env(robot), 3))
        _, info = env.reset(options={"episode": 0})
        assert info["episode_key"] == EPISODES[0].key
        rewards, truncated = [], False
        while not truncated:
            _, reward, _, truncated, info = env.step(np.int64(LEFT))
            rewards.append(float(reward))
        assert info["episode"]["l"] == 3
        assert info["episode"]["r"] == pytest.approx(sum(rewards))
        assert np.isfinite(rewards).all()


def test_vectors_of_environments_record_their_statistics(scene_folder: Path):
    make = partial(gymnasium.make, "robot_runtime.gym:robot_runtime/Navigation-v0")
    settings = {"robot": "fake", "scene": str(scene_folder), "count": 1, "task": "pointnav_quick"}
    vector = RecordVectorEpisodeStatistics(gymnasium.vector.SyncVectorEnv([partial(make, **settings)] * 2))
    vector.reset(seed=1)
    *_, terminated, _, info = vector.step(np.array([STOP, STOP]))
    assert terminated.all()
    assert info["episode"]["l"].tolist() == [1, 1]
    vector.close()


@pytest.mark.parametrize("missing", [math.inf, math.nan, None])
def test_an_undefined_distance_is_absent_and_costs_nothing(missing: float | None, monkeypatch: pytest.MonkeyPatch):
    distances = iter([missing, 2.0, missing, 1.5, missing])
    with fake_robot(TASK) as robot:
        env = make_env(robot)
        shown = Env.get_metrics

        def get_metrics(self: Env) -> Any:
            return {**shown(self), "distance_to_goal": next(distances), "spl": math.nan}

        monkeypatch.setattr(Env, "get_metrics", get_metrics)
        _, info = env.reset(options={"episode": 0})
        steps = [env.step(np.int64(LEFT)) for _ in range(4)]
    assert "distance_to_goal" not in info["metrics"]
    assert [step[1] for step in steps] == pytest.approx([-0.01, -0.01, 0.49, -0.01])
    assert ["distance_to_goal" in step[4]["metrics"] for step in steps] == [True, False, True, False]
    assert not any("spl" in step[4]["metrics"] for step in steps)
