"""Generated AreaGoal episodes: runnable, equal for equal seeds, refused where impossible."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from raising import raises_naming
from small_flat import flat

from robot_runtime.errors import EpisodeError
from robot_runtime.scenes.geodesic import GeodesicMap
from robot_runtime.task_kinds.areagoal import kind as areagoal
from robot_runtime.task_kinds.areagoal.generate import generate
from robot_runtime.tasks.episode_check import check_episode
from robot_runtime.tasks.task import load_task


@pytest.mark.slow
def test_generated_episodes_start_outside_of_their_kind_of_room() -> None:
    task, scene = load_task("areagoal_room"), flat()
    made = generate(scene, task, 12, seed=4)
    assert made == generate(scene, task, 12, seed=4)
    assert {item.category for item in made} == {"bedroom", "living_room"}
    space = GeodesicMap(scene.map, task.robot_radius_m)
    for item in made:
        rooms = areagoal.goal_rooms(task, scene, item)
        assert not any(room.contains(item.start.x_m, item.start.y_m) for room in rooms)
        assert all(rooms[0].contains(goal.x_m, goal.y_m) for goal in item.goals)
        assert item.shortest_path_m is not None
        assert 1.0 <= item.shortest_path_m < math.inf
        check_episode(task, scene, item, space)


def test_scenes_without_such_a_room_are_refused() -> None:
    task = load_task("areagoal_room")
    nowhere = replace(task, categories={"kitchen": task.categories["kitchen"]})
    with raises_naming(EpisodeError, "room"):
        generate(flat(), nowhere, 1, 0)
