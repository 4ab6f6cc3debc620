"""The kind of task ``areagoal``: go into a room of a category."""

import math
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from typing_extensions import override

from robot_runtime.common.geometry import SE2
from robot_runtime.errors import EpisodeError
from robot_runtime.scenes.scene import Room, Scene
from robot_runtime.tasks.categories import CategoryGoal, category_of, category_sensor, check_categories
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.kind import TaskKind
from robot_runtime.tasks.sensor import Sensor
from robot_runtime.tasks.task import Task

# No paper defines its success. Presets state the definitions that are executable: EmbodiedQA's r_T, a stop in the room,
# and MINOS's room goal, which ends when the room is entered.
TARGET_SPACING_M = 0.1
"""Distance to a room is that to the nearest of points inside it, so far apart."""

WELL_INSIDE_M = 0.3


def goal_rooms(task: Task, scene: Scene, episode: Episode) -> tuple[Room, ...]:
    """Every room of the scene that counts as the episode's category, as an area by the task's rule.

    Raises:
        EpisodeError: the category is unknown, or the scene has no such room.
    """
    names = category_of(task, episode).matches
    found = [room for room in scene.rooms if room.category in names]
    if not found:
        raise EpisodeError(
            f"episode {episode.id!r}: scene {scene.name!r} has no room of category {episode.category!r} "
            f"({', '.join(names)})",
            f"choose another episode, or correct 'rooms' in {scene.folder / 'scene.yaml'}",
        )
    return tuple(room.box if task.success.room == "box" else room for room in found)


def well_inside(task: Task, episode: Episode, scene: Scene) -> list[tuple[float, float]]:
    """Those of :meth:`AreaGoal.targets` that lie ``WELL_INSIDE_M`` or more inside their room; all if none does."""
    rooms = goal_rooms(task, scene, episode)
    found = KIND.targets(task, episode, scene)
    around = [(WELL_INSIDE_M * math.cos(a), WELL_INSIDE_M * math.sin(a)) for a in np.linspace(0, math.tau, 8, False)]
    return [
        (x, y) for x, y in found if any(all(room.contains(x + dx, y + dy) for dx, dy in around) for room in rooms)
    ] or found


def _places(task: Task, scene: Scene, room: Room) -> list[tuple[float, float]]:
    map_ = scene.map
    step = max(1, round(TARGET_SPACING_M / map_.resolution_m))
    # Which rows and columns are taken follows from the map alone, so that all rooms share one grid.
    cells = np.argwhere(map_.navigable(task.robot_radius_m)[::step, ::step]) * step
    points = (map_.to_point(row, column) for row, column in cells.tolist())
    return [(float(x), float(y)) for x, y in points if room.contains(x, y)]


class AreaGoal(TaskKind):
    """Navigation to a room. The rule ``room``: the robot's center is in a goal room."""

    sensors: ClassVar[Mapping[str, Sensor]] = {
        "areagoal": category_sensor("the id of the goal room's category in the task")
    }
    success_rules: ClassVar[tuple[str, ...]] = ("room",)
    distance_rules: ClassVar[tuple[str, ...]] = ()

    @override
    def check_task(self, task: Task) -> None:
        super().check_task(task)
        check_categories(task)

    @override
    def resolve_goals(self, task: Task, scene: Scene, episode: Episode) -> Episode:
        goal_rooms(task, scene, episode)
        return episode

    @override
    def targets(self, task: Task, episode: Episode, scene: Scene) -> list[tuple[float, float]]:
        """The points (x, y in map, meters) that distance is measured to: a grid over the rooms where the robot fits.

        Raises:
            EpisodeError: as :func:`goal_rooms`, or the robot fits nowhere in these rooms.
        """
        found = [point for room in goal_rooms(task, scene, episode) for point in _places(task, scene, room)]
        if not found:
            raise EpisodeError(
                f"episode {episode.id!r}: in no {episode.category} of scene {scene.name!r} is room for a robot of "
                f"radius {task.robot_radius_m} m",
                "choose another episode, or a task with a smaller robot",
            )
        return found

    @override
    def goal(self, task: Task, scene: Scene, episode: Episode, start: SE2) -> object:
        return CategoryGoal(category_of(task, episode).id) if episode.category is not None else None


KIND = AreaGoal()
