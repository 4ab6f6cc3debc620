"""Generated PointNav episodes: drawn as the paper says, runnable, equal for equal seeds, refused where impossible."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from generated_episodes import assert_room_for_a_robot, assert_runnable, assert_saved_as_they_are
from raising import raises_naming
from small_flat import flat, occupancy, pointnav_task

from robot_runtime.errors import EpisodeError
from robot_runtime.task_kinds.pointnav.generate import generate, keep_probability
from robot_runtime.tasks.episode import Episode

COUNT = 40


@pytest.fixture(scope="module")
def episodes() -> list[Episode]:
    return generate(flat(), pointnav_task(), COUNT, seed=3)


def test_pointnav_episodes_can_be_run(episodes: list[Episode]) -> None:
    assert len(episodes) == COUNT
    assert [episode.id for episode in episodes] == [str(index) for index in range(COUNT)]
    assert len({episode.key for episode in episodes}) == COUNT
    assert_runnable(pointnav_task(), flat(), episodes)


def test_the_robot_fits_at_every_start_and_goal(episodes: list[Episode]) -> None:
    assert_room_for_a_robot((episode.start.x_m, episode.start.y_m) for episode in episodes)
    assert_room_for_a_robot((episode.goals[0].x_m, episode.goals[0].y_m) for episode in episodes)


def test_tasks_of_thin_agents_start_where_a_robot_can_stand() -> None:
    thin = replace(pointnav_task(), robot_radius_m=0.1)
    stands = flat().map.navigable(0.18)
    for episode in generate(flat(), thin, COUNT, seed=3):
        for place in (episode.start, episode.goals[0]):
            assert stands[flat().map.to_cell(place.x_m, place.y_m)]


def test_straight_episodes_are_kept_as_rarely_as_habitat_lab_keeps_them() -> None:
    assert keep_probability(1.0) == pytest.approx(0.008)
    assert keep_probability(1.05) == pytest.approx(0.098)
    assert keep_probability(1.0999) == pytest.approx(0.288, abs=1e-3)
    assert keep_probability(1.1) == 1
    assert keep_probability(3.0) == 1


def test_few_pointnav_episodes_are_straight(episodes: list[Episode]) -> None:
    ratios = [
        episode.shortest_path_m / math.dist(episode.shortest_path[0], episode.shortest_path[-1])
        for episode in episodes
        if episode.shortest_path_m is not None
    ]
    # The paper: from 37 % straight ones to 10 %. Here most pairs in one room would be straight.
    assert np.mean(np.array(ratios) < 1.1) < 0.25


def test_headings_point_everywhere(episodes: list[Episode]) -> None:
    headings = np.array([episode.start.yaw_rad for episode in episodes])
    quadrants, _ = np.histogram(headings, bins=4, range=(-math.pi, math.pi))
    assert (quadrants > 2).all()
    assert (np.abs(headings) <= math.pi).all()


def test_the_same_seed_gives_the_same_episodes(episodes: list[Episode]) -> None:
    assert generate(flat(), pointnav_task(), 5, seed=3) == episodes[:5]
    assert generate(flat(), pointnav_task(), 5, seed=4) != episodes[:5]


def test_generated_episodes_survive_habitats_format(tmp_path: Path, episodes: list[Episode]) -> None:
    assert_saved_as_they_are(tmp_path / "points.json.gz", pointnav_task(), episodes)


def test_scenes_that_are_too_small_are_refused() -> None:
    closet = flat(map_=occupancy(size_m=(0.8, 0.8)))
    with raises_naming(EpisodeError, "small_flat") as caught:
        generate(closet, pointnav_task(), 1, seed=0)
    assert "larger scene" in caught.value.remedy
    with raises_naming(EpisodeError, "map.yaml", "0.18"):
        generate(flat(map_=occupancy(size_m=(0.3, 0.3))), pointnav_task(), 1, seed=0)
