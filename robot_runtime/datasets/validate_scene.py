"""Checks of episodes against a scene: start and goals lie in navigable space and are connected."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from scipy import ndimage

from robot_runtime.datasets.findings import Findings, Problem
from robot_runtime.errors import EpisodeError
from robot_runtime.scenes.geodesic import GeodesicMap
from robot_runtime.scenes.scene import Scene
from robot_runtime.tasks.episode import Episode, EpisodeDetails
from robot_runtime.tasks.floors import off_floor
from robot_runtime.tasks.task import Task

LOCOBOT_RADIUS_M = 0.18

_BESIDE = np.ones((3, 3), bool)


class SceneChecks:
    """Check of episodes against one scene, for a LoCoBot without a task. Connected areas are labeled once."""

    def __init__(self, scene: Scene, task: Task | None, kinds: Sequence[Findings]) -> None:
        self._scene, self._kinds = scene, kinds
        self._geodesic = GeodesicMap(scene.map, LOCOBOT_RADIUS_M if task is None else task.robot_radius_m)
        self._areas = ndimage.label(self._geodesic.navigable, _BESIDE)[0]
        self._objects = {item.id for item in scene.objects}

    def __call__(self, episode: Episode) -> Iterator[Problem]:
        """Yield the findings of an episode: names of checks, and details."""
        if Path(episode.scene).stem != self._scene.name:
            yield "other scene", episode.scene
            return
        yield from self._unknown_objects(episode)
        for findings in self._kinds:
            yield from findings.in_scene(episode, self._scene)
        if elsewhere := next(off_floor(episode, self._scene), None):
            yield "other floor", elsewhere
            return
        start = (episode.start.x_m, episode.start.y_m)
        start_area = self._area(*start)
        if not start_area:
            yield "start off the map", place_text(start)
        try:
            targets = self._targets(episode)
        except EpisodeError as error:
            yield "goal off the map", error.message
            return
        if not targets:
            return
        areas = {self._area(*target) for target in targets} - {0}
        if not areas:
            yield "goal off the map", f"{len(targets)} places, the first at {place_text(targets[0])}"
        elif start_area and start_area not in areas:
            yield "unreachable goal", f"from {place_text(start)} to {place_text(targets[0])}"

    def _targets(self, episode: Episode) -> list[tuple[float, float]]:
        for findings in self._kinds:
            targets = findings.targets(episode, self._scene)
            if targets is not None:
                return targets
        views = [(pose.x_m, pose.y_m) for goal in episode.goals for pose in goal.view_points]
        return views or [(goal.x_m, goal.y_m) for goal in episode.goals]

    def _unknown_objects(self, episode: Episode) -> Iterator[Problem]:
        moved = EpisodeDetails.of(episode).objects_to_move
        named = [goal.object_id for goal in episode.goals] + [item.id for item in moved if not item.template]
        unknown = [name for name in named if name is not None and name not in self._objects]
        if unknown:
            yield "unknown object", unknown[0]

    def _area(self, x_m: float, y_m: float) -> int:
        """Label of the connected area of a point; 0 for none."""
        near = self._geodesic.snap(x_m, y_m) if math.isfinite(x_m) and math.isfinite(y_m) else None
        return 0 if near is None else int(self._areas[self._scene.map.to_cell(*near)])


def place_text(point: tuple[float, float]) -> str:
    """A place for messages, meters."""
    return f"({point[0]:.3f}, {point[1]:.3f})"
