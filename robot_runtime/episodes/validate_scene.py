"""Checks of episodes against a scene: whether start and goals lie in it, and a way leads from one to the other."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy import ndimage

from robot_runtime.episodes.episode import Episode
from robot_runtime.errors import EpisodeError
from robot_runtime.geodesic import GeodesicMap
from robot_runtime.scene import Scene
from robot_runtime.tasks import objectnav
from robot_runtime.tasks.task import Task

LOCOBOT_RADIUS_M = 0.18

_BESIDE = np.ones((3, 3), bool)


class SceneChecks:
    """Finds episodes that the scene has no room for. What is connected is labelled once, so an episode costs little.

    Args:
        task: for the robot's radius, and the goals that an episode leaves to the scene; None for a LoCoBot.
    """

    def __init__(self, scene: Scene, task: Task | None) -> None:
        self._scene, self._task = scene, task
        self._geodesic = GeodesicMap(scene.map, LOCOBOT_RADIUS_M if task is None else task.robot_radius_m)
        self._areas = ndimage.label(self._geodesic.navigable, _BESIDE)[0]
        self._objects = {item.id for item in scene.objects}

    def __call__(self, episode: Episode) -> Iterator[tuple[str, str]]:
        if Path(episode.scene).stem != self._scene.name:
            yield "other scene", episode.scene
            return
        yield from self._unknown_objects(episode)
        start = (episode.start.x_m, episode.start.y_m)
        start_area = self._area(*start)
        if not start_area:
            yield "start off the map", _place(start)
        try:
            targets = self._targets(episode)
        except EpisodeError as error:
            yield "goal off the map", error.message
            return
        if not targets:
            return
        areas = {self._area(*target) for target in targets} - {0}
        if not areas:
            yield "goal off the map", f"{len(targets)} places, the first at {_place(targets[0])}"
        elif start_area and start_area not in areas:
            yield "unreachable goal", f"from {_place(start)} to {_place(targets[0])}"

    def _targets(self, episode: Episode) -> list[tuple[float, float]]:
        if self._task is not None and self._task.kind == "objectnav":
            return objectnav.targets(self._task, objectnav.resolve_goals(self._task, self._scene, episode), self._scene)
        views = [(pose.x_m, pose.y_m) for goal in episode.goals for pose in goal.view_points]
        ends = views or [(goal.x_m, goal.y_m) for goal in episode.goals]
        return ends or [point[:2] for point in episode.reference_path[-1:]]

    def _unknown_objects(self, episode: Episode) -> Iterator[tuple[str, str]]:
        named = [goal.object_id for goal in episode.goals] + [item.id for item in episode.objects if not item.template]
        unknown = [name for name in named if name is not None and name not in self._objects]
        if unknown:
            yield "unknown object", unknown[0]

    def _area(self, x_m: float, y_m: float) -> int:
        """Which connected part of navigable space a point belongs to; 0 if it is in none."""
        near = self._geodesic.snap(x_m, y_m) if math.isfinite(x_m) and math.isfinite(y_m) else None
        return 0 if near is None else int(self._areas[self._scene.map.to_cell(*near)])


def _place(point: tuple[float, float]) -> str:
    return f"({point[0]:.3f}, {point[1]:.3f})"
