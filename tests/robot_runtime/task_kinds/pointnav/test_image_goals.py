"""Goals shown as images: taken in simulation, stated by episodes elsewhere; of the task's camera, and in the log."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from open_room import Witness, fake_robot, make_episode, make_scene, make_task
from raising import raises_naming

from robot_runtime.actions.discrete import Action
from robot_runtime.datasets.files import load_episodes, save_episodes
from robot_runtime.env import Env
from robot_runtime.errors import EpisodeError
from robot_runtime.recording.reader import LogReader
from robot_runtime.recording.writer import Recorder
from robot_runtime.task_kinds.pointnav.task import GoalImage
from robot_runtime.tasks.episode import Episode

TASK = make_task(sensors=("rgb", "imagegoal"))
YAML = (
    "schema: 1\nscene: open_room\nepisodes: [{id: a, start: [0, 0, 0], goals: [{position: [1, 0]}], goal_image: FILE}]"
)


def begin(episode: Episode, *subscribers: Any, way: str = "teleport") -> tuple[Env, np.ndarray[Any, Any]]:
    with fake_robot(TASK) as robot:
        robot.placer.way = way
        env = Env(robot, TASK, make_scene(), subscribers)
        seen = env.reset(episode)
        env.step(Action.STOP)
        return env, seen["imagegoal"]


def written(folder: Path, image: np.ndarray[Any, Any]) -> Path:
    cv2.imwrite(str(folder / "goal.png"), image)
    path = folder / "episodes.yaml"
    path.write_text(YAML.replace("FILE", "goal.png"))
    return path


def test_a_simulated_robot_looks_from_the_goal_and_the_log_keeps_the_image(tmp_path: Path) -> None:
    recorder, episode = Recorder(tmp_path), make_episode()
    env, image = begin(episode, recorder)
    assert env.episode.key == episode.key, "the image is not part of what the episode is"
    assert not np.array_equal(image, env.record.observation["rgb"])
    with LogReader(next(tmp_path.glob("*.mcap"))) as log:
        steps = list(log.steps())
        again = log.header.episode
    assert all(np.array_equal(step.observation["imagegoal"], image) for step in steps)
    np.testing.assert_array_equal(begin(again)[1], image)


def test_other_episodes_and_other_goals_show_other_images() -> None:
    first, other = begin(make_episode())[1], begin(make_episode(goal=(-1.0, 1.0)))[1]
    assert not np.array_equal(first, other)


def test_a_robot_elsewhere_needs_the_image_in_the_episodes_file(tmp_path: Path) -> None:
    witness = Witness()
    with raises_naming(EpisodeError, "episode '1'", "goal_image: FILE"):
        begin(make_episode(), witness, way="operator")
    assert not witness.headers
    shown = np.random.default_rng(0).integers(0, 256, (TASK.camera.height, TASK.camera.width, 3), np.uint8)
    (episode,) = load_episodes(written(tmp_path, shown[:, :, ::-1]))
    np.testing.assert_array_equal(begin(episode, way="operator")[1], shown)
    save_episodes(tmp_path / "again.yaml", [episode], TASK)
    assert load_episodes(tmp_path / "again.yaml")[0].details == episode.details


def test_a_goal_image_of_another_camera_is_refused_before_the_start(tmp_path: Path) -> None:
    witness, camera = Witness(), TASK.camera
    other = np.zeros((camera.height, camera.width + 8, 3), np.uint8)
    (episode,) = load_episodes(written(tmp_path, other))
    with raises_naming(EpisodeError, f"{camera.width + 8}x{camera.height}", f"{camera.width}x{camera.height}"):
        begin(episode, witness)
    assert not witness.headers
    begin(load_episodes(written(tmp_path, other[:, :-8]))[0])  # the remedy: one of this camera


def test_what_is_no_image_is_said(tmp_path: Path) -> None:
    path = tmp_path / "e.yaml"
    path.write_text(YAML.replace("FILE", "absent.png"))
    with raises_naming(EpisodeError, "absent.png", "goal_image"):
        load_episodes(path)
    with raises_naming(EpisodeError, "not a PNG or JPEG"):
        begin(replace(make_episode(), details=GoalImage("data:image/png;base64,AAAA")))
    path.write_text(YAML.replace("FILE", "7"))
    with pytest.raises(EpisodeError, match="goal_image"):
        load_episodes(path)
