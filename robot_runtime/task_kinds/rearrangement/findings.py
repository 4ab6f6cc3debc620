"""Findings about objects to be moved, where they stand, and what a program asks of them."""

import math
from collections.abc import Iterator, Mapping
from typing import ClassVar

from typing_extensions import override

from robot_runtime.actions.discrete import Action
from robot_runtime.datasets.findings import Findings, Problem
from robot_runtime.datasets.validate_scene import place_text
from robot_runtime.scenes.objects import ObjectPose
from robot_runtime.scenes.occupancy_map import Cell
from robot_runtime.scenes.scene import Scene
from robot_runtime.task_kinds.rearrangement.settings import Rearrangement
from robot_runtime.task_kinds.rearrangement.task import Layout, at_height, grab_places, to_move
from robot_runtime.tasks.episode import Episode, RearrangedObject
from robot_runtime.tasks.goal_program import selections


class LayoutFindings(Findings):
    """Findings about episodes with objects to be moved."""

    checks: ClassVar[Mapping[str, str]] = {
        "nothing to rearrange": "every object is already where it belongs, and no program asks for more",
        "object twice": "names an object twice",
        "too many objects": "wants more objects moved than the task shows",
        "no program": "has no program, and the task's goals are predicates",
        "program is wrong": "has a program that cannot be evaluated in its scene",
    }
    scene_checks: ClassVar[Mapping[str, str]] = {
        "object cannot be moved": "wants an object moved that the scene holds fast",
        "object off the map": "an object starts, or is to go, where the map has no floor",
        "out of reach": "the task's crosshair meets an object from nowhere, at its start or at its goal",
    }
    rank = 30

    @override
    def of_episode(self, episode: Episode) -> Iterator[Problem]:
        layout = Layout.of(episode)
        if layout.objects and not layout.program and all(item.goal in (None, item.start) for item in layout.objects):
            yield "nothing to rearrange", f"{len(layout.objects)} objects"
        names = [item.id for item in layout.objects]
        if len(set(names)) < len(names):
            yield "object twice", max(names, key=names.count)
        if self.task is None or not isinstance(self.task.settings, Rearrangement):
            return
        most = self.task.settings.max_objects
        count = sum(item.goal not in (None, item.start) for item in layout.objects)
        if count > most:
            yield "too many objects", f"{count}, task {self.task.name} shows {most}"
        if self.task.settings.goal == "predicate" and layout.program is None:
            yield "no program", f"task {self.task.name} asks for one"

    @override
    def in_scene(self, episode: Episode, scene: Scene) -> Iterator[Problem]:
        objects, moved = Layout.of(episode).objects, to_move(episode)
        known = {item.id for item in scene.objects}
        fixed = [item.id for item in moved if item.id in known and not _can_move(item, scene)]
        if fixed:
            yield "object cannot be moved", fixed[0]
        for item in objects:
            for pose in (item.start, item.goal):
                if pose is not None and not _has_floor(pose, scene):
                    yield "object off the map", f"{item.id} at {place_text((pose.position[0], pose.position[1]))}"
        yield from _program(episode, scene)
        if self.task is None or Action.GRAB_RELEASE not in self.task.actions:
            return
        for item in moved:
            ends = [item.start] if item.goal is None else [item.start, at_height(item.goal, item.start)]
            possible = _can_move(item, scene) and all(_has_floor(end, scene) for end in ends)
            if possible and not all(grab_places(self.task, scene, episode, item.id, end) for end in ends):
                yield "out of reach", item.id

    @override
    def targets(self, episode: Episode, scene: Scene) -> list[tuple[float, float]] | None:
        if self.task is None or not isinstance(self.task.settings, Rearrangement):
            return None
        moved = [item for item in to_move(episode) if _can_move(item, scene)]
        return [place for item in moved for place in grab_places(self.task, scene, episode, item.id, item.start)]


def _program(episode: Episode, scene: Scene) -> Iterator[Problem]:
    """Check that the objects of the program exist, without knowing their poses."""
    layout = Layout.of(episode)
    if layout.program is None:
        return
    known = {item.id: item.category for item in scene.objects}
    known |= {item.id: item.category or item.id for item in layout.objects}
    for selection in selections(layout.program.expressions()):
        if selection.id is not None and selection.id not in known:
            yield "program is wrong", f"there is no object {selection.id!r}"
        if selection.category is not None and selection.category not in known.values():
            yield "program is wrong", f"there is no object of category {selection.category!r}"


def _can_move(item: RearrangedObject, scene: Scene) -> bool:
    movable = {known.id: known.movable for known in scene.objects}
    return movable.get(item.id, item.template is not None)


def _has_floor(pose: ObjectPose, scene: Scene) -> bool:
    x_m, y_m, _ = pose.position
    map_ = scene.map
    if not (math.isfinite(x_m) and math.isfinite(y_m) and map_.contains(x_m, y_m)):
        return False
    return bool(map_.cells[map_.to_cell(x_m, y_m)] != Cell.UNKNOWN)
