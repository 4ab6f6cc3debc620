"""Generator of rearrangement episodes for any scene with movable objects.

House cleanup (Batra et al. 2020, A.5): "Each episode requires the agent to rearrange 2-5 objects", each with a start
and a goal position. Room rearrangement (A.4): up to 5 objects lie elsewhere than in the scene's own state, which is to
be restored. Neither paper states how places are drawn. Here:

* An object takes part if the task's crosshair can meet it from somewhere, and is no thinner than ``THINNEST_M``.
* ``grab_release`` carries an object at its height and sets it down on what is below. So what stands on the floor goes
  to free floor, and what lies on furniture to the same surface; or to the floor, where the task forgives the fall.
* A place on the floor is free of everything by ``FREE_M``, and leaves the rest of the floor in one piece.
* Where the task asks for more than a place (an overlap, an angle), a goal is a sum of the task's own moves from the
  start, none of them more than ``MOST_MOVES`` long: a robot that turns by 90 degrees reaches no others.
* At its start, nothing passes its test.
* A scene with too few such objects gets more on its free floor, models of the YCB set as in the paper. Where the
  crosshair does not get down to those, they are boxes as tall as it takes.
* With a program, the goal state is one way to make it true; each target is drawn from those that hold there and not at
  the start: ``at`` another room, ``next_to`` a piece of furniture, ``on`` a rug.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.datasets.sampling import Sampler
from robot_runtime.errors import EpisodeError
from robot_runtime.scenes.objects import ObjectPose
from robot_runtime.scenes.occupancy_map import Cell
from robot_runtime.scenes.scene import Scene, SceneObject
from robot_runtime.task_kinds.rearrangement import task as rearrangement
from robot_runtime.task_kinds.rearrangement.crosshair import Pointer, settings
from robot_runtime.task_kinds.rearrangement.generate_space import ON_FLOOR_M, FreeFloor, Movable, MoveGrid, largest_part
from robot_runtime.task_kinds.rearrangement.task import Layout, Point
from robot_runtime.tasks.episode import Episode, RearrangedObject
from robot_runtime.tasks.episode_objects import model_size_m
from robot_runtime.tasks.goal_program import Program
from robot_runtime.tasks.task import Task

THINNEST_M = 0.07
FREE_M = 0.05
MOST_MOVES = 8
LEAST_WAY_M = 0.5
"""Shortest distance by which an object is to be moved."""

RESERVE_M = 0.3
"""Start and goal are farther apart than the task forgives by so much."""

FORGIVES_A_FALL_M = 0.9
"""A task that accepts an object within so much of its goal may ask for it to be put on the floor from a table."""

HIGHEST_FALL_M = 0.6

COARSE_TURN_DEG = 45
"""From such turns on, the robot's moves form a grid."""

GRID_AIM = 0.4
"""Least value of ``Pointer.hits`` with which a ray from the grid meets an object."""

STEPS_SHARE = 0.8
"""Share of the task's steps that suffices for straight ways and the turns between them."""

NEXT_TO_M = 0.3
_RUG_M = 0.03
_SURFACE_MARGIN_M = 0.04

YCB_MODELS = ("002_master_chef_can", "013_apple", "017_orange", "019_pitcher_base", "025_mug")
"""The models of the set that are no thinner than ``THINNEST_M`` in any direction."""

BOX_EDGE_CM = 30
"""Base of tall boxes, so wide that they stand."""

AIM_ROOM_M = 0.15
"""Least range of the robot's distance over which the ray meets the axis of an added object."""

_TRIES = 200
_EPISODE_TRIES = 600


def generate(scene: Scene, task: Task, count: int, seed: int) -> list[Episode]:
    """Generate ``count`` rearrangement episodes of the task's kind of goal.

    Raises:
        EpisodeError: the robot fits nowhere; or there is no place for as many objects as the task wants moved.
    """
    generator = _Generator(scene, task, seed)
    return [generator.episode(index) for index in range(count)]


@dataclass(frozen=True)
class _Move:
    """An object, its other pose and, for a program, its target."""

    movable: Movable
    pose: ObjectPose
    target: dict[str, Any] | None


class _Generator:
    """Generator of the episodes of a scene and task."""

    def __init__(self, scene: Scene, task: Task, seed: int) -> None:
        self._scene, self._task, self._settings = scene, task, settings(task)
        self._sampler = Sampler(scene, task, seed)
        self._rng = self._sampler.rng
        self._main = largest_part(scene.map.navigable(task.robot_radius_m))
        self._main_cells = np.argwhere(self._main)
        self._exact = self._settings.min_iou is not None or self._settings.max_angle_deg is not None
        self._movables = [found for item in scene.objects if (found := self._movable(item)) is not None]
        if len(self._movables) < self._settings.min_objects:
            self._add_objects()

    def episode(self, index: int) -> Episode:
        """Draw the episode of that index; draws depend on all before."""
        fewest = self._settings.min_objects
        for _ in range(_EPISODE_TRIES):
            x_m, y_m = self._sampler.place()
            start = SE2(float(x_m), float(y_m), self._sampler.heading())
            most = min(self._settings.max_objects, len(self._movables))
            moves = self._moves(start, int(self._rng.integers(fewest, most + 1)))
            if len(moves) >= fewest and self._is_far_enough(start, moves):
                return self._episode(index, start, moves)
        raise EpisodeError(
            f"{self._scene.folder}: found no places to move {fewest} objects to for task {self._task.name!r}",
            "use a larger scene, e.g. from `robot-runtime scene generate`",
        )

    # --- objects ----------------------------------------------------------------------------------------------------

    def _movable(self, item: SceneObject, template: str | None = None) -> Movable | None:
        """The object as one that can be moved; None if it cannot."""
        if not item.movable or min(item.size) < THINNEST_M:
            return None
        movable = Movable(item, template=template)
        if not movable.is_on_floor(movable.pose) and self._support(item) is None:
            return None
        places = tuple(place for place in self._places(item, movable.pose) if self._is_main(*place))
        return replace(movable, places=places) if places else None

    def _add_objects(self) -> None:
        """Put objects onto free floor, as far as there is room, until there are as many as the task may want moved."""
        templates, floor = _templates(self._task), self._free_floor()
        own, least = len(self._movables), self._settings.min_objects
        for _ in range(_EPISODE_TRIES):
            if len(self._movables) >= self._settings.max_objects:
                return
            template = templates[int(self._rng.integers(len(templates)))]
            size = model_size_m(template)
            category = "box" if template.startswith("box_") else template[4:]
            name = f"brought_{category}_{len(self._movables) - own + 1}"
            item = SceneObject(name, category, (*self._floor_place(), size[2] / 2), size, movable=True)
            at = Movable(item)
            if self._is_free(at, at.pose) and floor.fits(at, at.pose):
                movable = self._movable(item, template)
                if movable is not None:
                    self._movables.append(movable)
                    file = self._scene.file
                    self._scene = replace(self._scene, file=replace(file, objects=(*file.objects, item)))
                    floor.occupy(movable, movable.pose)
        if len(self._movables) < least:
            raise EpisodeError(
                f"{self._scene.folder}: task {self._task.name!r} wants {least} objects moved; of the scene's, its "
                f"crosshair can meet {own} within {self._settings.reach_m:g} m of a camera at "
                f"{self._task.camera.height_m:g} m, and there is room on the floor for {len(self._movables) - own} "
                "more",
                "use a larger scene, e.g. from `robot-runtime scene generate`",
            )

    def _support(self, item: SceneObject) -> SceneObject | None:
        """The piece of furniture that an object lies on; None if there is none."""
        low_m = item.center[2] - item.size[2] / 2
        for other in self._scene.objects:
            top_m = other.center[2] + other.size[2] / 2
            if not other.movable and abs(top_m - low_m) <= ON_FLOOR_M and other.distance_m(*item.center[:2]) == 0:
                return other
        return None

    def _moves(self, start: SE2, wanted: int) -> list[_Move]:
        """Objects with their other poses, at most as many as wanted; in the order of the scene."""
        floor = self._free_floor()
        grid = MoveGrid(self._scene, self._task, start) if self._task.magnitudes.turn_deg >= COARSE_TURN_DEG else None
        for added in self._movables:
            if added.template is not None:  # the map does not show it
                floor.occupy(added, added.pose)
        found: dict[int, _Move] = {}
        for number in self._rng.permutation(len(self._movables)).tolist():
            if len(found) == wanted:
                break
            for move in self._other_places(self._movables[number], start, grid):
                if floor.fits(move.movable, move.pose):
                    found[number] = move
                    floor.occupy(move.movable, move.pose)
                    break
        return [found[number] for number in sorted(found)]

    def _other_places(self, movable: Movable, start: SE2, grid: MoveGrid | None) -> Iterator[_Move]:
        """Draw other places for an object, those from which the task's moves can restore it."""
        on_floor, forgiven_m = movable.is_on_floor(movable.pose), self._settings.max_translation_m
        least_m = max(LEAST_WAY_M, (forgiven_m or 0.0) + RESERVE_M)
        stands = self._stands(movable, grid)
        for _ in range(_TRIES):
            pose = self._draw(movable, start)
            distance_m = math.dist(pose.position[:2], movable.pose.position[:2])
            if distance_m < (least_m if on_floor or pose.position[2] != movable.pose.position[2] else RESERVE_M):
                continue
            if forgiven_m is not None and distance_m <= forgiven_m + RESERVE_M / 2:
                continue
            if not self._is_free(movable, pose) or not self._can_carry(movable, pose, stands, grid):
                continue
            if self._settings.goal != "predicate":
                yield _Move(movable, pose, None)
            elif targets := self._targets(movable.item, pose):
                yield _Move(movable, pose, targets[int(self._rng.integers(len(targets)))])

    def _draw(self, movable: Movable, start: SE2) -> ObjectPose:
        """Draw a pose, which may be impossible."""
        (x_m, y_m, z_m), quaternion = movable.pose.position, movable.pose.quaternion
        if self._exact:
            turn_rad = math.radians(self._task.magnitudes.turn_deg)
            headings = start.yaw_rad + turn_rad * self._rng.integers(0, 360, 2)
            steps = self._task.magnitudes.forward_m * self._rng.integers(-MOST_MOVES, MOST_MOVES + 1, 2)
            moved = (x_m + float(steps @ np.cos(headings)), y_m + float(steps @ np.sin(headings)), z_m)
            return ObjectPose(moved, quaternion)
        low_m = movable.low_m(movable.pose)
        forgives = self._settings.goal != "predicate" and (self._settings.max_translation_m or 0) >= FORGIVES_A_FALL_M
        if low_m <= ON_FLOOR_M or (forgives and low_m <= HIGHEST_FALL_M):
            return ObjectPose((*self._floor_place(), movable.item.size[2] / 2), quaternion)
        support = self._support(movable.item)
        assert support is not None
        u, v = (2 * self._rng.random(2) - 1) * (np.array(support.size[:2]) / 2)
        return ObjectPose((*_frame(support).apply(u, v), z_m), quaternion)

    def _floor_place(self) -> Point:
        row, column = self._main_cells[self._rng.integers(len(self._main_cells))]
        # Objects may stand nearer to a wall than the robot's center: a step to any side.
        x_m, y_m = self._scene.map.to_point(float(row), float(column))
        dx, dy = self._rng.uniform(-self._task.robot_radius_m, self._task.robot_radius_m, 2)
        return x_m + float(dx), y_m + float(dy)

    # --- suitable places --------------------------------------------------------------------------------------------

    def _free_floor(self) -> FreeFloor:
        return FreeFloor(self._scene.map, self._main, self._task.robot_radius_m)

    def _places(self, item: SceneObject, pose: ObjectPose) -> list[Point]:
        return rearrangement.places_to_grab(self._task, self._scene, rearrangement.upright_box(item, pose))

    def _is_free(self, movable: Movable, pose: ObjectPose) -> bool:
        """Whether nothing of the scene stands there."""
        if not movable.is_on_floor(pose):
            return self._lies_on_surface(movable, pose)
        x_m, y_m, _ = pose.position
        map_ = self._scene.map
        if not map_.contains(x_m, y_m):
            return False
        cell = map_.to_cell(x_m, y_m)
        return bool(map_.cells[cell] == Cell.FREE and map_.clearance_m()[cell] >= movable.radius_m + FREE_M)

    def _lies_on_surface(self, movable: Movable, pose: ObjectPose) -> bool:
        """Whether all corners are on the furniture that the object lies on now, apart from others there."""
        support = self._support(movable.item)
        assert support is not None
        box = rearrangement.upright_box(movable.item, pose)
        x_m, y_m = box.center[:2]
        for u in (-0.5, 0.5):
            for v in (-0.5, 0.5):
                corner = SE2(*SE2(x_m, y_m, box.yaw_rad).apply(u * box.size[0], v * box.size[1]))
                local = corner.relative_to(_frame(support))
                if abs(local.x_m) > support.size[0] / 2 - _SURFACE_MARGIN_M:
                    return False
                if abs(local.y_m) > support.size[1] / 2 - _SURFACE_MARGIN_M:
                    return False
        return all(
            other.distance_m(x_m, y_m) >= movable.radius_m + FREE_M
            for other in self._scene.objects
            if other.id not in (movable.item.id, support.id)
            and other.center[2] - other.size[2] / 2 < box.high_m
            and other.center[2] + other.size[2] / 2 > box.low_m + ON_FLOOR_M
        )

    def _can_carry(self, movable: Movable, pose: ObjectPose, stands: Sequence[Point], grid: MoveGrid | None) -> bool:
        """Whether the robot can have the object before it both where it stands and at ``pose``."""
        if not self._exact:
            level = rearrangement.at_height(pose, movable.pose)
            there = {_bin(place, pose) for place in self._places(movable.item, level) if self._is_main(*place)}
            # It is let go as far ahead as it was grabbed.
            return any(_bin(place, movable.pose) in there for place in stands)
        dx, dy = (pose.position[axis] - movable.pose.position[axis] for axis in (0, 1))
        return any(
            self._is_main(x_m + dx, y_m + dy)
            and self._sees(x_m + dx, y_m + dy, pose)
            and (grid is None or grid.has(x_m + dx, y_m + dy))
            for x_m, y_m in stands
        )

    def _stands(self, movable: Movable, grid: MoveGrid | None) -> Sequence[Point]:
        """Places to grab the object from; of a grid, those that face it."""
        if grid is None:
            return movable.places
        box = rearrangement.upright_box(movable.item, movable.pose)
        pointer = Pointer.of(self._task)
        x, y = np.array(grid.points).T
        met = np.zeros(x.shape, bool)
        for yaw_rad in grid.headings_rad:
            for ray in pointer.rays:
                met |= pointer.hits(x, y, np.full(x.shape, yaw_rad), ray, box) > GRID_AIM
        # Nearer than this, the robot would stand in it.
        met &= np.hypot(x - box.center[0], y - box.center[1]) >= self._task.robot_radius_m + box.radius_m + FREE_M
        return [grid.points[i] for i in np.flatnonzero(met) if self._sees(*grid.points[i], movable.pose)]

    def _is_main(self, x_m: float, y_m: float) -> bool:
        map_ = self._scene.map
        return map_.contains(x_m, y_m) and bool(self._main[map_.to_cell(x_m, y_m)])

    def _sees(self, x_m: float, y_m: float, pose: ObjectPose) -> bool:
        room = rearrangement.room_at(self._scene, pose.position[0], pose.position[1])
        return room is None or room.contains(x_m, y_m)

    def _is_far_enough(self, start: SE2, moves: Sequence[_Move]) -> bool:
        """Whether the robot has some way to go, and stands in none of the objects."""
        here = (start.x_m, start.y_m)
        if not self._is_main(*here):
            return False
        for move in moves:
            ends = (move.pose,) if move.movable.template is None else (move.pose, move.movable.pose)
            away_m = min(math.dist(end.position[:2], here) for end in ends)
            if away_m < move.movable.radius_m + self._task.robot_radius_m + FREE_M:
                return False
        first = [place for move in moves for place in move.movable.places]
        low_m, high_m = self._sampler.distance_m
        if not low_m / 2 <= self._sampler.geodesic.field(first).at(*here) <= high_m:
            return False
        # About as many actions as it takes: straight from each object to its other place, and the turns between.
        heading_rad, distance_m, turned_rad = start.yaw_rad, 0.0, 0.0
        for move in moves:
            for end in (move.movable.item.center[:2], move.pose.position[:2]):
                distance_m += math.dist(here, end)
                direction_rad = math.atan2(end[1] - here[1], end[0] - here[0])
                turned_rad += abs(wrap_angle(direction_rad - heading_rad))
                here, heading_rad = (end[0], end[1]), direction_rad
        moved = self._task.magnitudes
        steps = distance_m / moved.forward_m + math.degrees(turned_rad) / moved.turn_deg
        return steps <= STEPS_SHARE * self._task.max_steps

    # --- documents --------------------------------------------------------------------------------------------------

    def _targets(self, item: SceneObject, pose: ObjectPose) -> list[dict[str, Any]]:
        """Targets of a program that hold of the object at ``pose``, and not where the scene has it."""
        (x_m, y_m, _), (old_x, old_y, _) = pose.position, item.center
        found: list[dict[str, Any]] = []
        room = rearrangement.room_at(self._scene, x_m, y_m)
        if room is not None and not room.contains(old_x, old_y):
            found.append({"subject": item.id, "at": {"room": room.id}})
        edge_m = min(item.size[0], item.size[1]) / 2
        for other in self._scene.objects:
            if other.movable or other.id == item.id:
                continue
            top_m, low_m = other.center[2] + other.size[2] / 2, other.center[2] - other.size[2] / 2
            if top_m <= _RUG_M:
                if other.distance_m(x_m, y_m) == 0 and other.distance_m(old_x, old_y) > 0:
                    found.append({"subject": item.id, "on": other.id})
                continue
            is_next_to = low_m <= ON_FLOOR_M and other.distance_m(x_m, y_m) - edge_m <= NEXT_TO_M - FREE_M
            if is_next_to and other.distance_m(old_x, old_y) > NEXT_TO_M + math.hypot(*item.size[:2]) / 2:
                found.append({"subject": item.id, "next_to": other.id, "within_m": NEXT_TO_M})
        return found

    def _episode(self, index: int, start: SE2, moves: Sequence[_Move]) -> Episode:
        restores = self._settings.goal == "experience"
        objects = tuple(
            RearrangedObject(
                id=move.movable.item.id,
                start=move.pose if restores else move.movable.pose,
                goal=move.movable.pose if restores else move.pose,
                category=move.movable.item.category,
                template=move.movable.template,
            )
            for move in moves
        )
        targets = tuple(move.target for move in moves if move.target is not None)
        program = Program(targets) if targets else None
        return Episode(str(index), self._scene.name, start, (), details=Layout(objects, program))


def _templates(task: Task) -> list[str]:
    """Models of objects that the task's crosshair meets when they stand on the floor: the least tall ones."""
    pointer = Pointer.of(task)

    def can_meet(template: str) -> bool:
        length_m, width_m, height_m = model_size_m(template)
        apart_m = task.robot_radius_m + min(length_m, width_m) / 2
        spans = pointer.spans(0.0, height_m, 0.0)
        return any(far_m - max(near_m, apart_m) >= AIM_ROOM_M for _, near_m, far_m in spans)

    small = [template for template in YCB_MODELS if can_meet(template)]
    if small:
        return small
    for height_cm in range(BOX_EDGE_CM, 301, 5):
        if can_meet(box := f"box_{BOX_EDGE_CM}x{BOX_EDGE_CM}x{height_cm}"):
            return [box]
    raise EpisodeError(
        f"task {task.name!r}: within {settings(task).reach_m:g} m of a camera at {task.camera.height_m:g} m, its "
        "crosshair meets nothing that stands on the floor",
        "correct the crosshair or the reach of the task",
    )


def _frame(item: SceneObject) -> SE2:
    return SE2(item.center[0], item.center[1], math.radians(item.yaw_deg))


def _bin(place: Point, pose: ObjectPose) -> int:
    """Distance of an object from a place, in tenths of a meter."""
    return round(10 * math.dist(place, pose.position[:2]))
