"""Checks of episodes against a scene: start and goals lie in navigable space and are connected."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy import ndimage

from robot_runtime.actions.discrete import Action
from robot_runtime.errors import EpisodeError
from robot_runtime.scenes.geodesic import GeodesicMap
from robot_runtime.scenes.objects import ObjectPose
from robot_runtime.scenes.occupancy_map import Cell
from robot_runtime.scenes.scene import Scene
from robot_runtime.task_kinds.objectnav import task as objectnav
from robot_runtime.task_kinds.rearrangement import task as rearrangement
from robot_runtime.task_kinds.vln.task import Route
from robot_runtime.tasks.episode import Episode, RearrangedObject
from robot_runtime.tasks.goal_program import selections
from robot_runtime.tasks.task import Task

LOCOBOT_RADIUS_M = 0.18

_BESIDE = np.ones((3, 3), bool)


class SceneChecks:
    """Check of episodes against one scene. Connected areas are labeled once.

    Args:
        scene: the scene.
        task: for the robot's radius, and goals that the scene provides; None for a LoCoBot.
    """

    def __init__(self, scene: Scene, task: Task | None) -> None:
        self._scene, self._task = scene, task
        self._geodesic = GeodesicMap(scene.map, LOCOBOT_RADIUS_M if task is None else task.robot_radius_m)
        self._areas = ndimage.label(self._geodesic.navigable, _BESIDE)[0]
        self._objects = {item.id for item in scene.objects}

    def __call__(self, episode: Episode) -> Iterator[tuple[str, str]]:
        """Yield the findings of an episode: names of checks, and details."""
        if Path(episode.scene).stem != self._scene.name:
            yield "other scene", episode.scene
            return
        yield from self._unknown_objects(episode)
        yield from self._moved_objects(episode)
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
        if self._task is not None and self._task.kind == "rearrangement":
            moved = [item for item in rearrangement.to_move(episode) if self._can_move(item)]
            return [
                place
                for item in moved
                for place in rearrangement.grab_places(self._task, self._scene, episode, item.id, item.start)
            ]
        views = [(pose.x_m, pose.y_m) for goal in episode.goals for pose in goal.view_points]
        ends = views or [(goal.x_m, goal.y_m) for goal in episode.goals]
        return ends or [point[:2] for point in Route.of(episode).reference_path[-1:]]

    def _unknown_objects(self, episode: Episode) -> Iterator[tuple[str, str]]:
        named = [goal.object_id for goal in episode.goals] + [
            item.id for item in rearrangement.Layout.of(episode).objects if not item.template
        ]
        unknown = [name for name in named if name is not None and name not in self._objects]
        if unknown:
            yield "unknown object", unknown[0]

    def _moved_objects(self, episode: Episode) -> Iterator[tuple[str, str]]:
        fixed = [i.id for i in rearrangement.to_move(episode) if i.id in self._objects and not self._can_move(i)]
        if fixed:
            yield "object cannot be moved", fixed[0]
        for item in rearrangement.Layout.of(episode).objects:
            for pose in (item.start, item.goal):
                if pose is not None and not self._has_floor(pose):
                    yield "object off the map", f"{item.id} at {_place((pose.position[0], pose.position[1]))}"
        yield from self._program(episode)
        if self._task is None or Action.GRAB_RELEASE not in self._task.actions:
            return
        for item in rearrangement.to_move(episode):
            ends = [item.start] if item.goal is None else [item.start, rearrangement.at_height(item.goal, item.start)]
            known = self._can_move(item) and all(self._has_floor(end) for end in ends)
            places = rearrangement.grab_places
            if known and not all(places(self._task, self._scene, episode, item.id, end) for end in ends):
                yield "out of reach", item.id

    def _program(self, episode: Episode) -> Iterator[tuple[str, str]]:
        """Check that the objects of the program exist, without knowing their poses."""
        program = rearrangement.Layout.of(episode).program
        if program is None:
            return
        known = {item.id: item.category for item in self._scene.objects}
        known |= {item.id: item.category or item.id for item in rearrangement.Layout.of(episode).objects}
        for selection in selections(program.expressions()):
            if selection.id is not None and selection.id not in known:
                yield "program is wrong", f"there is no object {selection.id!r}"
            if selection.category is not None and selection.category not in known.values():
                yield "program is wrong", f"there is no object of category {selection.category!r}"

    def _can_move(self, item: RearrangedObject) -> bool:
        found = {one.id: one.movable for one in self._scene.objects}
        return found.get(item.id, item.template is not None)

    def _has_floor(self, pose: ObjectPose) -> bool:
        x_m, y_m, _ = pose.position
        map_ = self._scene.map
        if not (math.isfinite(x_m) and math.isfinite(y_m) and map_.contains(x_m, y_m)):
            return False
        return bool(map_.cells[map_.to_cell(x_m, y_m)] != Cell.UNKNOWN)

    def _area(self, x_m: float, y_m: float) -> int:
        """Label of the connected area of a point; 0 for none."""
        near = self._geodesic.snap(x_m, y_m) if math.isfinite(x_m) and math.isfinite(y_m) else None
        return 0 if near is None else int(self._areas[self._scene.map.to_cell(*near)])


def _place(point: tuple[float, float]) -> str:
    return f"({point[0]:.3f}, {point[1]:.3f})"
