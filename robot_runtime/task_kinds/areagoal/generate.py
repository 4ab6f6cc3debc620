"""Generator of AreaGoal episodes for any scene; deterministic by seed. There is no published one.

Kinds of rooms are drawn uniformly from those in the scene, starts as for ObjectNav. There is no minimum ratio of
geodesic to Euclidean distance, since the nearest place of a room is rarely far off the straight line.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from robot_runtime.common.geometry import SE2
from robot_runtime.datasets.sampling import STARTS_PER_CATEGORY, Sampler
from robot_runtime.errors import EpisodeError
from robot_runtime.scenes.scene import Room, Scene
from robot_runtime.task_kinds.areagoal import kind as areagoal
from robot_runtime.tasks.episode import Episode, Goal
from robot_runtime.tasks.task import Task


def generate(scene: Scene, task: Task, count: int, seed: int) -> list[Episode]:
    """``count`` AreaGoal episodes that start outside of every room of their kind.

    Raises:
        EpisodeError: the robot fits nowhere, the scene has no room of the task's categories, or no place to start.
    """
    sampler = Sampler(scene, task, seed)
    present = {room.category for room in scene.rooms}
    categories = sorted(name for name, category in task.categories.items() if present & set(category.matches))
    if not categories:
        raise EpisodeError(
            f"{scene.folder / 'scene.yaml'}: has no room of any category of task {task.name!r}",
            "choose another task, or add rooms to 'rooms'",
        )
    episodes: list[Episode] = []
    while len(episodes) < count:
        if not categories:
            raise sampler.too_small("an AreaGoal")
        category = categories[sampler.rng.integers(len(categories))]
        episode = _room_episode(sampler, scene, task, len(episodes), category)
        if episode is None:
            categories.remove(category)
        else:
            episodes.append(episode)
    return episodes


def _room_episode(sampler: Sampler, scene: Scene, task: Task, index: int, category: str) -> Episode | None:
    """An episode, or None if no start is found, as in a scene with a single room."""
    wanted = Episode(str(index), scene.name, SE2(), (), category=category)
    rooms = areagoal.goal_rooms(task, scene, wanted)
    places = areagoal.KIND.targets(task, wanted, scene)
    field = sampler.geodesic.field(places)
    for _ in range(STARTS_PER_CATEGORY):
        start = sampler.place()
        outside = not any(room.contains(*start) for room in rooms)
        if outside and sampler.is_far_enough(field.at(*start)):
            goals = tuple(Goal(*_central_place(room, places)) for room in rooms)
            return replace(sampler.episode(index, start, field, goals), category=category)
    return None


def _central_place(room: Room, places: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The place nearest to the mean of a room's corners; for display, no distance is measured to it."""
    corners = np.array(room.polygon).mean(axis=0)
    inside = [place for place in places if room.contains(*place)]
    return min(inside or places, key=lambda place: math.dist(place, corners))
