"""Registry of the kinds of tasks: their modules and sessions, and the check of an episode before it is run."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from robot_runtime.errors import EpisodeError, InvalidStart, UnreachableGoal
from robot_runtime.hal import Robot
from robot_runtime.scenes.geodesic import GeodesicMap
from robot_runtime.scenes.scene import Scene
from robot_runtime.task_kinds.areagoal import task as areagoal
from robot_runtime.task_kinds.eqa import task as eqa
from robot_runtime.task_kinds.objectnav import task as objectnav
from robot_runtime.task_kinds.pointnav import task as pointnav
from robot_runtime.task_kinds.rearrangement import task as rearrangement
from robot_runtime.task_kinds.rearrangement.session import RearrangementSession
from robot_runtime.task_kinds.rearrangement.state import STATE_FORMAT
from robot_runtime.task_kinds.vln import task as vln
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.session import TaskSession
from robot_runtime.tasks.state import StateFormat
from robot_runtime.tasks.task import Task, TaskKind


class TaskModule(Protocol):
    """The functions that each task's module has; see there for the errors they raise."""

    def resolve_goals(self, task: Task, scene: Scene, episode: Episode) -> Episode:
        """The episode with the goals that its file leaves to the scene."""

    def targets(self, task: Task, episode: Episode, scene: Scene) -> list[tuple[float, float]]:
        """The points (x, y in map, meters) that distance to the goal is measured to."""


def task_module(task: Task) -> TaskModule:
    """The module of the task's kind."""
    return _MODULES[task.kind]


_MODULES: dict[TaskKind, TaskModule] = {
    "pointnav": pointnav,
    "objectnav": objectnav,
    "vln": vln,
    "eqa": eqa,
    "areagoal": areagoal,
    "rearrangement": rearrangement,
}


def task_session(robot: Robot, task: Task) -> TaskSession:
    """The session of a task on a robot. Raises ``ConfigError`` if the robot lacks a part that the task needs."""
    return _SESSIONS.get(task.kind, TaskSession)(robot, task)


_SESSIONS: dict[TaskKind, type[TaskSession]] = {"rearrangement": RearrangementSession}


def state_format(task: Task) -> StateFormat:
    """The place of the task's states in a log."""
    return STATE_FORMAT if task.kind == "rearrangement" else StateFormat()


def check_episode(task: Task, scene: Scene, episode: Episode, geodesic: GeodesicMap) -> Episode:
    """The episode with resolved goals, if it can be run: the robot fits at the start and a way leads to a goal.

    Args:
        task: of the episode.
        scene: of the episode.
        episode: as read from its file.
        geodesic: of the scene's map and the task's robot radius.

    Raises:
        InvalidStart: the start is off the map, in an obstacle, or too near one.
        UnreachableGoal: no target is navigable, or no way leads to one.
        EpisodeError: it belongs to another scene, or its goals cannot be resolved.
    """
    if Path(episode.scene).stem != scene.name:
        raise EpisodeError(
            f"episode {episode.id!r} belongs to scene {episode.scene!r}, and scene {scene.name!r} was loaded",
            "give that scene, or generate episodes for this one with `robot-runtime episodes generate`",
        )
    start = episode.start
    place = f"({start.x_m:.3f}, {start.y_m:.3f})"
    remedy = f"correct the episode, or generate others for {scene.folder} with `robot-runtime episodes generate`"
    if not scene.map.contains(start.x_m, start.y_m):
        raise InvalidStart(f"episode {episode.id!r}: start {place} is off the map of scene {scene.name!r}", remedy)
    if not geodesic.is_navigable(start.x_m, start.y_m):
        row, column = scene.map.to_cell(start.x_m, start.y_m)
        clearance_m = float(scene.map.clearance_m()[row, column])
        raise InvalidStart(
            f"episode {episode.id!r}: start {place} is {clearance_m:.3f} m from an obstacle of scene {scene.name!r}, "
            f"but the robot's radius is {geodesic.radius_m:.3f} m",
            remedy,
        )
    resolved = task_module(task).resolve_goals(task, scene, episode)
    field = geodesic.field(task_module(task).targets(task, resolved, scene))
    if not len(field.targets):
        raise UnreachableGoal(f"episode {episode.id!r}: no goal lies in navigable space of {scene.name!r}", remedy)
    if field.at(start.x_m, start.y_m) == float("inf"):
        raise UnreachableGoal(f"episode {episode.id!r}: no way leads from start {place} to a goal", remedy)
    return resolved
