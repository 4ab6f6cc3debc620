"""Category that is an episode's goal: of objects in ObjectNav, of rooms in AreaGoal."""

from __future__ import annotations

from robot_runtime.errors import EpisodeError
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.task import Category, Task


def category_of(task: Task, episode: Episode) -> Category:
    """The task's entry for the episode's goal category.

    Raises:
        EpisodeError: the episode has no category, or one that the task does not have.
    """
    if episode.category is None:
        what = "AreaGoal" if task.kind == "areagoal" else "ObjectNav"
        raise EpisodeError(
            f"episode {episode.id!r}: has no goal category",
            f"use an {what} episode file, or make one with `robot-runtime episodes generate --task {task.name}`",
        )
    if episode.category not in task.categories:
        raise EpisodeError(
            f"episode {episode.id!r}: category {episode.category!r} is not in task {task.name!r}",
            f"use a task that has it; this one has: {', '.join(task.categories)}",
        )
    return task.categories[episode.category]
