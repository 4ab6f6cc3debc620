"""Conditions that the generated episodes of several kinds of tasks fulfill."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from small_flat import flat

from robot_runtime.datasets.files import load_episodes, save_episodes
from robot_runtime.datasets.validate import validate
from robot_runtime.scenes.geodesic import GeodesicMap
from robot_runtime.scenes.scene import Scene
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.episode_check import check_episode
from robot_runtime.tasks.kind import kind_of
from robot_runtime.tasks.task import Task


def assert_runnable(task: Task, scene: Scene, episodes: list[Episode]) -> None:
    geodesic = GeodesicMap(scene.map, task.robot_radius_m)
    for episode in episodes:
        assert check_episode(task, scene, episode, geodesic) == episode
        targets = kind_of(task).targets(task, episode, scene)
        start = episode.start
        assert episode.shortest_path_m is not None
        assert episode.shortest_path_m == geodesic.distance(start.x_m, start.y_m, targets)
        assert 1 <= episode.shortest_path_m <= 30
        assert episode.shortest_path[0] == (start.x_m, start.y_m)
        assert any(math.dist(episode.shortest_path[-1], target) < 1e-9 for target in targets)
        assert sum(math.dist(a, b) for a, b in pairwise(episode.shortest_path)) == pytest.approx(
            episode.shortest_path_m
        )
    assert validate(episodes, task=task, scene=scene).findings == ()


def assert_room_for_a_robot(places: Iterable[tuple[float, float]]) -> None:
    scene = flat()
    occupied = np.argwhere(scene.map.cells) * scene.map.resolution_m + scene.map.resolution_m / 2
    for x_m, y_m in places:
        to_cells = np.maximum(np.abs(occupied - (y_m, x_m)) - scene.map.resolution_m / 2, 0)  # to each cell's square
        assert np.hypot(*to_cells.T).min() >= 0.18
        assert 0.18 <= x_m <= 6 - 0.18
        assert 0.18 <= y_m <= 4 - 0.18


def assert_saved_as_they_are(path: Path, task: Task, episodes: Sequence[Episode]) -> None:
    save_episodes(path, episodes, task)
    again = load_episodes(path)
    assert_runnable(task, flat(), [replace(episode, info={}) for episode in again])
    for found, made in zip(again, episodes, strict=True):
        assert (found.id, found.category, found.scene) == (made.id, made.category, made.scene)
        assert (found.start.x_m, found.start.y_m) == (made.start.x_m, made.start.y_m)
        assert found.start.yaw_rad == pytest.approx(made.start.yaw_rad)
        assert found.shortest_path_m == made.shortest_path_m
        assert found.shortest_path == made.shortest_path
