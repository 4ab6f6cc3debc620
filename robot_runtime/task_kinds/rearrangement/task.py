"""Rearrangement: bring objects from where they are to where they should be (Batra et al. 2020, "Rearrangement").

An object's pose is that of its box (:mod:`robot_runtime.scenes.objects`). The episode states the start of each object
and, unless its program alone decides, its goal; with a program, goals are one way to make it true.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self, override

from robot_runtime.common import config
from robot_runtime.errors import EpisodeError
from robot_runtime.scenes.objects import ObjectPose
from robot_runtime.scenes.scene import Room, Scene, SceneObject
from robot_runtime.task_kinds.rearrangement.crosshair import Pointer, UprightBox, settings
from robot_runtime.tasks.episode import Episode, EpisodeDetails, RearrangedObject
from robot_runtime.tasks.episode_objects import added_objects
from robot_runtime.tasks.goal_program import Program, selections
from robot_runtime.tasks.task import Task

PLACE_SPACING_M = 0.1
"""Spacing of the places from which an object can be grabbed; distance is measured to the nearest."""

MOVED_M, MOVED_RAD = 1e-3, math.radians(0.1)
"""A goal this near to the start counts as the start."""

Point = tuple[float, float]


@dataclass(frozen=True)
class Layout(EpisodeDetails, config.Strict):
    """What episodes of rearrangement have besides the common fields.

    Attributes:
        objects: objects with their start and goal poses.
        program: conditions of the goal state; None if the objects' goals are the condition.
    """

    objects: tuple[RearrangedObject, ...] = ()
    program: Program | None = None

    @classmethod
    @override
    def from_yaml(cls, fields: Mapping[str, Any], path: Path, where: str) -> Self:
        from robot_runtime.task_kinds.rearrangement import yaml_fields  # readers of files, which runs need not load

        return cls(*yaml_fields.read(fields, path, where))

    @override
    def to_yaml(self) -> dict[str, Any]:
        from robot_runtime.task_kinds.rearrangement import yaml_fields

        return yaml_fields.write(self.objects, self.program)

    @property
    @override
    def objects_to_move(self) -> tuple[RearrangedObject, ...]:
        return self.objects


def to_move(episode: Episode) -> tuple[RearrangedObject, ...]:
    """The objects whose goal differs from their start."""
    return tuple(
        item for item in Layout.of(episode).objects if item.goal is not None and _differs(item.start, item.goal)
    )


def scene_object(scene: Scene, episode: Episode, object_id: str) -> SceneObject:
    """The scene's entry of an object that the episode moves, or the object that the episode adds (a ``template``).

    Raises:
        EpisodeError: neither has such an object, or it cannot be moved.
    """
    found = {item.id: item for item in scene.objects}.get(object_id)
    if found is None:
        items = [item for item in Layout.of(episode).objects if item.id == object_id and item.template is not None]
        for added in added_objects(scene, [replace(episode, details=Layout(tuple(items)))]):
            return added
        raise EpisodeError(
            f"episode {episode.id!r}: scene {scene.name!r} has no object {object_id!r}",
            f"correct the episode, or add the object to 'objects' in {scene.folder / 'scene.yaml'}",
        )
    if not found.movable:
        raise EpisodeError(
            f"episode {episode.id!r}: object {object_id!r} of scene {scene.name!r} cannot be moved",
            f"choose another object, or state 'movable: true' in {scene.folder / 'scene.yaml'}",
        )
    return found


def upright_box(item: SceneObject, pose: ObjectPose) -> UprightBox:
    """The box that an object fills there; around one that leans, a box along the axes of ``map``.

    Raises:
        EpisodeError: the pose is none.
    """
    if pose.fault is not None:
        raise EpisodeError(f"object {item.id!r}: {pose.fault}", "correct its pose")
    w, x, y, z = pose.quaternion
    up = 1 - 2 * (x * x + y * y)
    size = tuple(max(edge_m, 1e-3) for edge_m in item.size)
    if up > 1 - 1e-6:
        return UprightBox(pose.position, (size[0], size[1], size[2]), pose.yaw_rad)
    turn = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), up],
        ]
    )
    around = (np.abs(turn) @ np.array(size)).tolist()
    return UprightBox(pose.position, (around[0], around[1], around[2]), 0.0)


def resolve_goals(task: Task, scene: Scene, episode: Episode) -> Episode:
    """The episode itself: its objects and its program state what is asked for.

    Raises:
        EpisodeError: it has no objects, one that the scene does not have or cannot move, a pose that is none; no
            program where the task's goals are predicates, nothing to move where they are not; or a program about
            objects that there are not.
    """
    if not Layout.of(episode).objects:
        raise EpisodeError(
            f"episode {episode.id!r}: field 'objects' is empty: there is nothing to rearrange",
            f"make episodes with `robot-runtime episodes generate --task {task.name}`",
        )
    names = [item.id for item in Layout.of(episode).objects]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise EpisodeError(f"episode {episode.id!r}: object {repeated[0]!r} stands in it twice", "remove one of them")
    for item in Layout.of(episode).objects:
        found = scene_object(scene, episode, item.id)
        for pose in (item.start, item.goal):
            if pose is not None:
                upright_box(found, pose)
    if settings(task).goal == "predicate":
        _check_program(scene, episode)
    elif not to_move(episode):
        raise EpisodeError(
            f"episode {episode.id!r}: every object is where it belongs: there is nothing to rearrange",
            "give an object a 'goal' that differs from its 'start'",
        )
    return episode


def targets(task: Task, episode: Episode, scene: Scene) -> list[Point]:
    """The points (x, y in map, meters) that distance is measured to: from where an object to be moved can be grabbed.

    With a program, those are the objects that have a goal; without such, all that the program wants moved.

    Raises:
        EpisodeError: as :func:`resolve_goals`; or no object can be grabbed from anywhere.
    """
    resolve_goals(task, scene, episode)
    wanted = to_move(episode) or Layout.of(episode).objects
    found = [place for item in wanted for place in grab_places(task, scene, episode, item.id, item.start)]
    if not found:
        raise EpisodeError(
            f"episode {episode.id!r}: none of the objects {', '.join(item.id for item in wanted)} can be grabbed: "
            f"nowhere does the crosshair meet one within {settings(task).reach_m:g} m of a camera at "
            f"{task.camera.height_m:g} m",
            "choose other objects, or a task with a longer reach, a lower camera or look actions",
        )
    return found


def grab_places(task: Task, scene: Scene, episode: Episode, object_id: str, pose: ObjectPose) -> list[Point]:
    """:func:`places_to_grab` of an object of the scene or the episode at ``pose``."""
    return places_to_grab(task, scene, upright_box(scene_object(scene, episode, object_id), pose))


def places_to_grab(task: Task, scene: Scene, box: UprightBox) -> list[Point]:
    """Places where the robot fits, in the box's room, at such a distance that the crosshair meets the box.

    There the robot can grab an object, or have it at that pose after its release.
    """
    spans = [(near, far) for _, near, far in Pointer.of(task).spans(box.low_m, box.high_m, box.radius_m)]
    if not spans:
        return []
    map_ = scene.map
    step = max(1, round(PLACE_SPACING_M / map_.resolution_m))
    cells = np.argwhere(map_.navigable(task.robot_radius_m)[::step, ::step]) * step
    x, y = map_.centers(*cells.T)
    away_m = np.hypot(x - box.center[0], y - box.center[1])
    # Nearer than this, the robot would stand in it.
    apart_m = task.robot_radius_m + box.radius_m if box.low_m < task.camera.height_m else 0.0
    near_enough = np.zeros(len(cells), bool)
    for near_m, far_m in spans:
        near_enough |= (away_m >= max(near_m, apart_m)) & (away_m <= far_m)
    room = room_at(scene, box.center[0], box.center[1])
    if room is not None:
        near_enough &= within(room, x, y)
    return list(zip(x[near_enough].tolist(), y[near_enough].tolist(), strict=True))


def within(room: Room, x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.bool_]:
    """``room.contains`` for arrays of the same shape."""
    inside = np.zeros(x.shape, bool)
    corners = room.polygon
    for (x0, y0), (x1, y1) in zip(corners, (*corners[1:], corners[0]), strict=True):
        if y0 != y1:
            inside ^= ((y0 > y) != (y1 > y)) & (x < x0 + (y - y0) * (x1 - x0) / (y1 - y0))
    return inside


def all_categories(scene: Scene, episode: Episode) -> dict[str, str]:
    """Category by id, of all objects of the scene and those that the episode adds."""
    added = {item.id: scene_object(scene, episode, item.id).category for item in Layout.of(episode).objects}
    return {**{item.id: item.category for item in scene.objects}, **added}


def at_height(pose: ObjectPose, other: ObjectPose) -> ObjectPose:
    """A pose at the height of another: an object is carried at the height that it was taken at, and may then fall."""
    return replace(pose, position=(pose.position[0], pose.position[1], other.position[2]))


def room_at(scene: Scene, x_m: float, y_m: float) -> Room | None:
    """The room around a point, the first by id where several are."""
    return min((room for room in scene.rooms if room.contains(x_m, y_m)), key=lambda room: room.id, default=None)


def _check_program(scene: Scene, episode: Episode) -> None:
    where = f"episode {episode.id!r}: program"
    program = Layout.of(episode).program
    if program is None:
        raise EpisodeError(
            f"episode {episode.id!r}: has no program, and the task's goals are predicates",
            "write one under 'program', or choose a task whose goals are poses",
        )
    expressions = program.expressions(where)
    program.harm(where)
    categories = all_categories(scene, episode)
    for selection in selections(expressions):
        if selection.id is not None and selection.id not in categories:
            raise EpisodeError(f"{where}: there is no object {selection.id!r}", "name an object of the scene")
        if selection.id is None and selection.category not in categories.values():
            raise EpisodeError(
                f"{where}: there is no object of category {selection.category!r}", "name a category of the scene"
            )


def _differs(a: ObjectPose, b: ObjectPose) -> bool:
    if math.dist(a.position, b.position) > MOVED_M or a.openness != b.openness:
        return True
    cosine = abs(sum(p * q for p, q in zip(a.quaternion, b.quaternion, strict=True)))
    return 2 * math.acos(min(1.0, cosine)) > MOVED_RAD
