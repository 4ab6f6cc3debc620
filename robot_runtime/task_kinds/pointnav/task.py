"""PointNav: go to a place given relative to the start (Savva et al. 2019, section 4)."""

from __future__ import annotations

from robot_runtime.errors import EpisodeError
from robot_runtime.scenes.scene import Scene
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.task import Task


def resolve_goals(task: Task, scene: Scene, episode: Episode) -> Episode:
    """The episode itself: a PointNav file states its goals.

    Raises:
        EpisodeError: if it states none.
    """
    if not episode.goals:
        raise EpisodeError(f"episode {episode.id!r}: field 'goals' is empty", "give it a goal position")
    return episode


def targets(task: Task, episode: Episode, scene: Scene) -> list[tuple[float, float]]:
    """The points (x, y in map, meters) that distance is measured to: the goal positions."""
    return [(goal.x_m, goal.y_m) for goal in resolve_goals(task, scene, episode).goals]


def goal_point(episode: Episode) -> tuple[float, float]:
    """The point (x, y in map, meters) that the point-goal sensors show: the first goal, as habitat-lab's do."""
    return episode.goals[0].x_m, episode.goals[0].y_m
