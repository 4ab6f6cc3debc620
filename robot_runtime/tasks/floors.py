"""The floor of a map: what an episode places on another floor cannot be projected onto it.

A scene's map shows one floor, whose height in the frame of the episodes is ``Scene.floor_z_m``.
"""

from collections.abc import Iterator
from dataclasses import replace

from robot_runtime.scenes.scene import BELOW_FLOOR_M, Scene
from robot_runtime.tasks.episode import Episode, EpisodeDetails, Goal

STEP_M = 1.5
"""Height above or below the floor at which a place to stand belongs to another one; floors are 2.2 m apart or more."""

STOREY_M = 2.5
"""Height above the floor of whoever sees it that no object of a room has."""


def stands_on_floor(z_m: float, floor_z_m: float) -> bool:
    """Whether a place to stand is on the floor."""
    return abs(z_m - floor_z_m) <= STEP_M


def goal_on_floor(goal: Goal, scene: Scene) -> bool:
    """Whether a goal is on the floor of the scene's map: an object between floor and ceiling, or a place to stand."""
    item = next((item for item in scene.objects if item.id == goal.object_id), None)
    if item is not None:
        return item.is_on_floor(scene.file.ceiling_m)
    above_m = goal.z_m - scene.floor_z_m
    if goal.object_id is not None or goal.view_points:
        return -BELOW_FLOOR_M < above_m < scene.file.ceiling_m
    return stands_on_floor(goal.z_m, scene.floor_z_m)


def storeys_away_m(episode: Episode) -> float | None:
    """Height of the first goal above the start if each is a storey away: no map of one floor has both. Else None."""
    heights_m = [goal.z_m - episode.start_z_m for goal in episode.goals]
    return None if any(-STOREY_M < height_m < STOREY_M for height_m in heights_m) else next(iter(heights_m), None)


def with_goals_on_floor(episode: Episode, scene: Scene) -> Episode:
    """The episode without its goals on other floors."""
    goals = tuple(goal for goal in episode.goals if goal_on_floor(goal, scene))
    return episode if len(goals) == len(episode.goals) else replace(episode, goals=goals)


def off_floor(episode: Episode, scene: Scene) -> Iterator[str]:
    """Yield what an episode has on another floor than that of the scene's map, as phrases with heights."""
    floor_z_m = scene.floor_z_m
    if not stands_on_floor(episode.start_z_m, floor_z_m):
        yield f"the start is {_height(episode.start_z_m - floor_z_m)}"
    above = [goal for goal in episode.goals if not goal_on_floor(goal, scene)]
    if above and len(above) == len(episode.goals):
        yield f"the goal is {_height(above[0].z_m - floor_z_m)}"
    for item in EpisodeDetails.of(episode).objects_to_move:
        for pose in filter(None, (item.start, item.goal)):
            if not -BELOW_FLOOR_M < pose.position[2] - floor_z_m < scene.file.ceiling_m:
                yield f"object {item.id!r} is {_height(pose.position[2] - floor_z_m)}"
                break


def _height(above_m: float) -> str:
    return f"{abs(above_m):.2f} m {'above' if above_m > 0 else 'below'} the floor of the map"
