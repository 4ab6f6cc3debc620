"""Categories of objects and rooms: goals of episodes, ids in observations, objects of a scene that count as one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from robot_runtime.errors import EpisodeError
from robot_runtime.tasks.episode import Episode, Goal
from robot_runtime.tasks.sensor import Bound, Sensor, goal_of
from robot_runtime.tasks.task import Category, Task

if TYPE_CHECKING:
    from robot_runtime.scenes.scene import Scene, SceneObject


@dataclass(frozen=True, slots=True)
class CategoryGoal:
    """Goal that a sensor shows as the id of a category in the task."""

    id: int


def category_of(task: Task, episode: Episode) -> Category:
    """The task's entry for the episode's goal category.

    Raises:
        EpisodeError: the episode has no category, or one that the task does not have.
    """
    if episode.category is None:
        raise EpisodeError(
            f"episode {episode.id!r}: has no goal category",
            f"use an episode file of kind {task.kind}, or make one with "
            f"`robot-runtime episodes generate --task {task.name}`",
        )
    if episode.category not in task.categories:
        raise EpisodeError(
            f"episode {episode.id!r}: category {episode.category!r} is not in task {task.name!r}",
            f"use a task that has it; this one has: {', '.join(task.categories)}",
        )
    return task.categories[episode.category]


def check_categories(task: Task) -> None:
    """Check that a task whose goals are categories has some. Raises ``ValueError``."""
    if not task.categories:
        raise ValueError(f"a task of kind {task.kind} needs 'categories'")


def category_bounds(task: Task) -> tuple[Bound, Bound]:
    """Bounds of a category's id in a task, for sensors that show one."""
    return 0, max((category.id for category in task.categories.values()), default=0)


def category_sensor(doc: str, rank: int = 50) -> Sensor:
    """A sensor of that meaning and rank, which shows the goal's category by its id in the task."""
    return Sensor(
        doc=doc,
        dtype=np.int64,
        shape=lambda _: (1,),
        bounds=category_bounds,
        value=lambda moment: np.array([goal_of(moment, CategoryGoal).id], np.int64),
        goal_type=CategoryGoal,
        rank=rank,
    )


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
