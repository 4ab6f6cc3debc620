"""ObjectNav: find any instance of a category (Batra et al. 2020; RoboTHOR challenge 2021)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from robot_runtime.errors import EpisodeError
from robot_runtime.scenes.scene import Scene, SceneObject
from robot_runtime.tasks.episode import Episode, Goal
from robot_runtime.tasks.goal_category import category_of
from robot_runtime.tasks.task import Task


def object_category_ids(task: Task, scene: Scene) -> NDArray[np.int32]:
    """For each object of the scene, in its order: the id of the task's category that it counts as, -1 for none."""
    ids = {name: category.id for category in task.categories.values() for name in category.matches}
    return np.array([ids.get(item.category, -1) for item in scene.objects], np.int32)


def instances(task: Task, scene: Scene, episode: Episode) -> tuple[SceneObject, ...]:
    """Every object of the scene that counts as the episode's category. Raises ``EpisodeError``."""
    return tuple(item for name in category_of(task, episode).matches for item in scene.instances(name))


def object_goal(scene: Scene, item: SceneObject) -> Goal:
    """A scene object as a goal, with the scene's view points of it (none if the scene has none)."""
    x_m, y_m, z_m = item.center
    return Goal(x_m, y_m, z_m, object_id=item.id, view_points=scene.view_points.get(item.id, ()))


def resolve_goals(task: Task, scene: Scene, episode: Episode) -> Episode:
    """The episode with the goals that it leaves to the scene.

    Goals from the file stay if they serve the task: that is, unless it measures to view points and they have none.
    Otherwise every instance in the scene becomes a goal (any instance counts in both challenges); for view points,
    instances that cannot be seen from anywhere are left out, as Batra et al. 2020 section 3 does.

    Raises:
        EpisodeError: category unknown, no instance in the scene, or none with view points; names the remedy.
    """
    needs_views = task.success.target == "view_points"
    if any(goal.view_points or not needs_views for goal in episode.goals):
        return episode
    found = instances(task, scene, episode)
    if not found:
        names = ", ".join(category_of(task, episode).matches)
        raise EpisodeError(
            f"episode {episode.id!r}: scene {scene.name!r} has no object of category {episode.category!r} ({names})",
            f"choose another episode, or add the object to {scene.folder / 'scene.yaml'}",
        )
    goals = [object_goal(scene, item) for item in found]
    if needs_views:
        goals = [goal for goal in goals if goal.view_points]
    if not goals:
        raise EpisodeError(
            f"episode {episode.id!r}: no view points of {', '.join(item.id for item in found)} "
            f"in {scene.folder / 'view_points.json'}",
            "compute them with `robot-runtime scene view-points`",
        )
    return replace(episode, goals=tuple(goals))


def targets(task: Task, episode: Episode, scene: Scene) -> list[tuple[float, float]]:
    """The points (x, y in map, meters) that distance is measured to: view points of every goal, or goal positions.

    Goals that the episode leaves to the scene are filled in (:func:`resolve_goals`, same errors).
    """
    goals = resolve_goals(task, scene, episode).goals
    if task.success.target == "view_points":
        return [(pose.x_m, pose.y_m) for goal in goals for pose in goal.view_points]
    return [(goal.x_m, goal.y_m) for goal in goals]
