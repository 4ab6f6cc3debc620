"""Generated ObjectNav episodes: drawn as the paper says, runnable, equal for equal seeds, refused where impossible."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from generated_episodes import assert_room_for_a_robot, assert_runnable, assert_saved_as_they_are
from raising import raises_naming
from small_flat import flat, objectnav_task, occupancy

from robot_runtime.actions.discrete import Magnitudes
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import EpisodeError
from robot_runtime.task_kinds.objectnav.generate import generate, least_actions
from robot_runtime.tasks.episode import Episode

COUNT = 40


@pytest.fixture(scope="module")
def episodes() -> list[Episode]:
    return generate(flat(), objectnav_task(), COUNT, seed=3)


def test_objectnav_episodes_can_be_run(episodes: list[Episode]) -> None:
    assert len(episodes) == COUNT
    assert {episode.category for episode in episodes} == {"chair", "plant"}
    assert_runnable(objectnav_task(), flat(), episodes)
    chair = next(episode for episode in episodes if episode.category == "chair")
    assert [goal.object_id for goal in chair.goals] == ["chair_west", "chair_east"]


def test_objectnav_starts_are_no_straight_line_from_success(episodes: list[Episode]) -> None:
    for episode in episodes:
        euclidean_m = episode.info["info"]["euclidean_distance"]
        assert euclidean_m == pytest.approx(math.dist(episode.shortest_path[0], episode.shortest_path[-1]))
        assert episode.shortest_path_m is not None
        assert episode.shortest_path_m / euclidean_m >= 1.05


def test_no_shortest_path_takes_more_than_750_actions(episodes: list[Episode]) -> None:
    task = objectnav_task()
    assert all(3 <= least_actions(episode, task.magnitudes) <= 60 for episode in episodes)
    slow = replace(task, magnitudes=replace(task.magnitudes, forward_m=0.001))
    with raises_naming(EpisodeError, "ObjectNav"):
        generate(flat(), slow, 1, seed=3)


def test_the_actions_of_a_path_are_turns_legs_and_a_stop() -> None:
    path = ((0.0, 0.0), (1.0, 0.0), (1.0, 1.5))
    episode = Episode("0", "x", SE2(0.0, 0.0, math.pi / 2), (), shortest_path=path)
    assert least_actions(episode, Magnitudes(0.25, 30.0, 30.0)) == 3 + 4 + 3 + 6 + 1


def test_the_robot_fits_at_every_start(episodes: list[Episode]) -> None:
    assert_room_for_a_robot((episode.start.x_m, episode.start.y_m) for episode in episodes)


def test_the_same_seed_gives_the_same_episodes(episodes: list[Episode]) -> None:
    assert generate(flat(), objectnav_task(), 4, seed=3) == episodes[:4]
    assert generate(flat(), objectnav_task(), 4, seed=8) != episodes[:4]


def test_generated_episodes_survive_habitats_format(tmp_path: Path, episodes: list[Episode]) -> None:
    assert_saved_as_they_are(tmp_path / "objects.json.gz", objectnav_task(), episodes)


def test_a_category_that_nobody_can_reach_is_left_out() -> None:
    east_is_solid = occupancy((3.0, 0.0, 6.0, 4.0), (0.75, 0.75, 1.25, 1.25), (1.2, 1.8, 3.0, 2.0))
    drawn = generate(flat(map_=east_is_solid), objectnav_task(), 5, seed=0)
    assert {episode.category for episode in drawn} == {"chair"}


def test_scenes_that_are_too_small_are_refused() -> None:
    with raises_naming(EpisodeError, "ObjectNav"):
        generate(flat(map_=occupancy(size_m=(0.8, 0.8))), objectnav_task(), 1, seed=0)


def test_scenes_without_objects_or_view_points_are_refused() -> None:
    with raises_naming(EpisodeError, "view_points.json") as caught:
        generate(flat(view_points=False), objectnav_task(), 1, seed=0)
    assert "robot-runtime scene view-points" in caught.value.remedy
    bare = flat()
    bare = replace(bare, file=replace(bare.file, objects=()), view_points={})
    with raises_naming(EpisodeError, "scene.yaml"):
        generate(bare, objectnav_task(), 1, seed=0)
