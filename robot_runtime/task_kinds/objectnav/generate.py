"""Generator of ObjectNav episodes for any scene; deterministic by seed.

Batra et al. 2020, section 3: the distance is that to the nearest view point of any instance, and the ratio of it to the
Euclidean distance is at least 1.05, and the shortest path takes at most 750 actions.
"""

import math
from dataclasses import replace
from itertools import pairwise

from robot_runtime.actions.discrete import Magnitudes
from robot_runtime.common.geometry import wrap_angle
from robot_runtime.datasets.sampling import STARTS_PER_CATEGORY, Sampler
from robot_runtime.errors import EpisodeError
from robot_runtime.scenes.scene import Scene
from robot_runtime.tasks import categories
from robot_runtime.tasks.episode import Episode, Goal
from robot_runtime.tasks.task import Task

MIN_RATIO = 1.05
MAX_ACTIONS = 750


def generate(scene: Scene, task: Task, count: int, seed: int) -> list[Episode]:
    """``count`` ObjectNav episodes, with categories drawn uniformly from those in the scene.

    Raises:
        EpisodeError: the robot fits nowhere, the scene has no view points of any of the task's categories, or it is too
            small or too open for such episodes.
    """
    sampler = Sampler(scene, task, seed)
    goals = _visible_goals(scene, task)
    episodes: list[Episode] = []
    while len(episodes) < count:
        if not goals:
            raise sampler.too_small("an ObjectNav")
        category = sorted(goals)[sampler.rng.integers(len(goals))]
        episode = _object_episode(sampler, task.magnitudes, len(episodes), category, goals[category])
        if episode is None:
            del goals[category]
        else:
            episodes.append(episode)
    return episodes


def _object_episode(
    sampler: Sampler, magnitudes: Magnitudes, index: int, category: str, goals: tuple[Goal, ...]
) -> Episode | None:
    """An episode, or None if no start is found. A start 1 m or more from every view point has not succeeded already."""
    field = sampler.geodesic.field([(pose.x_m, pose.y_m) for goal in goals for pose in goal.view_points])
    for _ in range(STARTS_PER_CATEGORY):
        start = sampler.place()
        distance_m = field.at(*start)
        if not sampler.is_far_enough(distance_m):
            continue
        euclidean_m = math.dist(start, field.path(*start)[-1])
        if distance_m / euclidean_m < MIN_RATIO:
            continue
        episode = sampler.episode(index, start, field, goals)
        if least_actions(episode, magnitudes) <= MAX_ACTIONS:
            return replace(episode, category=category, info={"info": {"euclidean_distance": euclidean_m}})
    return None


def least_actions(episode: Episode, magnitudes: Magnitudes) -> int:
    """Turns, steps forward and stop along the episode's shortest path, each leg and turn rounded to whole actions."""
    heading_rad, actions = episode.start.yaw_rad, 1
    for (x0_m, y0_m), (x1_m, y1_m) in pairwise(episode.shortest_path):
        bearing_rad = math.atan2(y1_m - y0_m, x1_m - x0_m)
        actions += round(abs(wrap_angle(bearing_rad - heading_rad)) / math.radians(magnitudes.turn_deg))
        actions += round(math.hypot(x1_m - x0_m, y1_m - y0_m) / magnitudes.forward_m)
        heading_rad = bearing_rad
    return actions


def _visible_goals(scene: Scene, task: Task) -> dict[str, tuple[Goal, ...]]:
    """Per category of the task, the instances that have view points."""
    present = {
        name: [categories.object_goal(scene, item) for match in category.matches for item in scene.instances(match)]
        for name, category in task.categories.items()
    }
    visible = {name: tuple(goal for goal in goals if goal.view_points) for name, goals in present.items()}
    visible = {name: goals for name, goals in visible.items() if goals}
    if not any(present.values()):
        raise EpisodeError(
            f"{scene.folder / 'scene.yaml'}: has no object of any category of task {task.name!r}",
            "choose another task, or add objects to 'objects'",
        )
    if not visible:
        raise EpisodeError(
            f"{scene.folder / 'view_points.json'}: has no view points of any object of task {task.name!r}",
            "compute them with `robot-runtime scene view-points`",
        )
    return visible
