"""Generated episodes: drawn as the papers say, runnable, the same for the same seed, refused where impossible."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from raising import raises_naming
from small_flat import flat, objectnav_task, occupancy, pointnav_task

from robot_runtime.datasets import load_episodes, save_episodes
from robot_runtime.datasets.generate import (
    generate_episodes,
    generate_objectnav,
    generate_pointnav,
    keep_probability,
)
from robot_runtime.errors import EpisodeError
from robot_runtime.scenes.geodesic import GeodesicMap
from robot_runtime.scenes.scene import Scene
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.registry import check_episode, kind_of
from robot_runtime.tasks.task import Task

COUNT = 40


@pytest.fixture(scope="module")
def pointnav_episodes() -> list[Episode]:
    return generate_pointnav(flat(), pointnav_task(), COUNT, seed=3)


@pytest.fixture(scope="module")
def objectnav_episodes() -> list[Episode]:
    return generate_objectnav(flat(), objectnav_task(), COUNT, seed=3)


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


def test_pointnav_episodes_can_be_run(pointnav_episodes: list[Episode]) -> None:
    assert len(pointnav_episodes) == COUNT
    assert [episode.id for episode in pointnav_episodes] == [str(index) for index in range(COUNT)]
    assert len({episode.key for episode in pointnav_episodes}) == COUNT
    assert_runnable(pointnav_task(), flat(), pointnav_episodes)


def test_objectnav_episodes_can_be_run(objectnav_episodes: list[Episode]) -> None:
    assert len(objectnav_episodes) == COUNT
    assert {episode.category for episode in objectnav_episodes} == {"chair", "plant"}
    assert_runnable(objectnav_task(), flat(), objectnav_episodes)
    chair = next(episode for episode in objectnav_episodes if episode.category == "chair")
    assert [goal.object_id for goal in chair.goals] == ["chair_west", "chair_east"]


def test_objectnav_starts_are_no_straight_line_from_success(objectnav_episodes: list[Episode]) -> None:
    for episode in objectnav_episodes:
        euclidean_m = episode.info["info"]["euclidean_distance"]
        assert euclidean_m == pytest.approx(math.dist(episode.shortest_path[0], episode.shortest_path[-1]))
        assert episode.shortest_path_m is not None
        assert episode.shortest_path_m / euclidean_m >= 1.05


def test_the_robot_fits_at_every_start_and_pointnav_goal(
    pointnav_episodes: list[Episode], objectnav_episodes: list[Episode]
) -> None:
    scene = flat()
    occupied = np.argwhere(scene.map.cells) * scene.map.resolution_m + scene.map.resolution_m / 2
    places = [(e.start.x_m, e.start.y_m) for e in (*pointnav_episodes, *objectnav_episodes)]
    places += [(e.goals[0].x_m, e.goals[0].y_m) for e in pointnav_episodes]
    for x_m, y_m in places:
        to_cells = np.maximum(np.abs(occupied - (y_m, x_m)) - scene.map.resolution_m / 2, 0)  # to each cell's square
        assert np.hypot(*to_cells.T).min() >= 0.18
        assert 0.18 <= x_m <= 6 - 0.18
        assert 0.18 <= y_m <= 4 - 0.18


def test_tasks_of_thin_agents_start_where_a_robot_can_stand() -> None:
    thin = replace(pointnav_task(), robot_radius_m=0.1)
    stands = flat().map.navigable(0.18)
    for episode in generate_pointnav(flat(), thin, COUNT, seed=3):
        for place in (episode.start, episode.goals[0]):
            assert stands[flat().map.to_cell(place.x_m, place.y_m)]


def test_straight_episodes_are_kept_as_rarely_as_habitat_lab_keeps_them() -> None:
    assert keep_probability(1.0) == pytest.approx(0.008)
    assert keep_probability(1.05) == pytest.approx(0.098)
    assert keep_probability(1.0999) == pytest.approx(0.288, abs=1e-3)
    assert keep_probability(1.1) == 1
    assert keep_probability(3.0) == 1


def test_few_pointnav_episodes_are_straight(pointnav_episodes: list[Episode]) -> None:
    ratios = [
        episode.shortest_path_m / math.dist(episode.shortest_path[0], episode.shortest_path[-1])
        for episode in pointnav_episodes
        if episode.shortest_path_m is not None
    ]
    # The paper: from 37 % straight ones to 10 %. Here most pairs in one room would be straight.
    assert np.mean(np.array(ratios) < 1.1) < 0.25


def test_headings_point_everywhere(pointnav_episodes: list[Episode]) -> None:
    headings = np.array([episode.start.yaw_rad for episode in pointnav_episodes])
    quadrants, _ = np.histogram(headings, bins=4, range=(-math.pi, math.pi))
    assert (quadrants > 2).all()
    assert (np.abs(headings) <= math.pi).all()


def test_the_same_seed_gives_the_same_episodes(pointnav_episodes: list[Episode]) -> None:
    assert generate_pointnav(flat(), pointnav_task(), 5, seed=3) == pointnav_episodes[:5]
    assert generate_pointnav(flat(), pointnav_task(), 5, seed=4) != pointnav_episodes[:5]
    assert generate_episodes(flat(), objectnav_task(), 4, seed=8) == generate_objectnav(flat(), objectnav_task(), 4, 8)
    assert generate_episodes(flat(), pointnav_task(), 4, seed=3) == pointnav_episodes[:4]


def test_generated_episodes_survive_habitats_format(
    tmp_path: Path, pointnav_episodes: list[Episode], objectnav_episodes: list[Episode]
) -> None:
    for task, episodes in ((pointnav_task(), pointnav_episodes), (objectnav_task(), objectnav_episodes)):
        path = tmp_path / f"{task.kind}.json.gz"
        save_episodes(path, episodes, task)
        again = load_episodes(path)
        assert_runnable(task, flat(), [replace(episode, info={}) for episode in again])
        for found, made in zip(again, episodes, strict=True):
            assert (found.id, found.category, found.scene) == (made.id, made.category, made.scene)
            assert (found.start.x_m, found.start.y_m) == (made.start.x_m, made.start.y_m)
            assert found.start.yaw_rad == pytest.approx(made.start.yaw_rad)
            assert found.shortest_path_m == made.shortest_path_m
            assert found.shortest_path == made.shortest_path


def test_a_category_that_nobody_can_reach_is_left_out() -> None:
    east_is_solid = occupancy((3.0, 0.0, 6.0, 4.0), (0.75, 0.75, 1.25, 1.25), (1.2, 1.8, 3.0, 2.0))
    episodes = generate_objectnav(flat(map_=east_is_solid), objectnav_task(), 5, seed=0)
    assert {episode.category for episode in episodes} == {"chair"}


def test_scenes_that_are_too_small_are_refused() -> None:
    closet = flat(map_=occupancy(size_m=(0.8, 0.8)))
    with raises_naming(EpisodeError, "small_flat") as caught:
        generate_pointnav(closet, pointnav_task(), 1, seed=0)
    assert "larger scene" in caught.value.remedy
    with raises_naming(EpisodeError, "ObjectNav"):
        generate_objectnav(closet, objectnav_task(), 1, seed=0)
    with raises_naming(EpisodeError, "map.yaml", "0.18"):
        generate_pointnav(flat(map_=occupancy(size_m=(0.3, 0.3))), pointnav_task(), 1, seed=0)


def test_scenes_without_objects_or_view_points_are_refused() -> None:
    with raises_naming(EpisodeError, "view_points.json") as caught:
        generate_objectnav(flat(view_points=False), objectnav_task(), 1, seed=0)
    assert "robot-runtime scene view-points" in caught.value.remedy
    bare = flat()
    bare = replace(bare, file=replace(bare.file, objects=()), view_points={})
    with raises_naming(EpisodeError, "scene.yaml"):
        generate_objectnav(bare, objectnav_task(), 1, seed=0)
