"""Rearrangement episodes for any scene with movable objects.

House cleanup (Batra et al. 2020, A.5): "Each episode requires the agent to rearrange 2-5 objects", each with a start
and a goal position. Room rearrangement (A.4): up to 5 objects lie elsewhere than in the scene's own state, which is to
be restored. Neither paper says how places are drawn. Here:

* An object takes part if the task's crosshair can meet it from somewhere, and is no thinner than ``THINNEST_M``.
* ``grab_release`` keeps an object's height over the floor and sets it down on what it then meets. So what stands on the
  floor goes to free floor, and what lies on furniture to the same surface; or to the floor, where the task forgives the
  fall.
* A place on the floor is free of everything by ``FREE_M``, and leaves the rest of the floor in one piece.
* Where the task asks for more than a place (an overlap, an angle), a goal is a sum of the task's own moves from the
  start, none of them more than ``MOST_MOVES`` long: a robot that turns by 90 degrees reaches no others.
* At its start, nothing passes its test.
* A scene with too few such objects gets more: episodes bring along what the paper has, the YCB set's, onto free floor.
  Where the crosshair does not get down to those, they are boxes as tall as it takes.
* With a program, the goal state is one way to make it true; each target is drawn from those that hold there and not at
  the start: ``at`` another room, ``next_to`` a piece of furniture, ``on`` a rug.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.datasets.sampling import MAX_GEODESIC_M, MIN_GEODESIC_M, Sampler
from robot_runtime.errors import EpisodeError
from robot_runtime.scenes.geodesic import GeodesicMap
from robot_runtime.scenes.objects import ObjectPose
from robot_runtime.scenes.occupancy_map import Cell
from robot_runtime.scenes.scene import Scene, SceneObject
from robot_runtime.tasks.episode import Episode, RearrangedObject
from robot_runtime.tasks.goal_program import Program
from robot_runtime.tasks.rearrangement import task as rearrangement
from robot_runtime.tasks.rearrangement.crosshair import Pointer, settings
from robot_runtime.tasks.rearrangement.episode_objects import model_size_m
from robot_runtime.tasks.task import Task

THINNEST_M = 0.07
FREE_M = 0.05
MOST_MOVES = 8
LEAST_WAY_M = 0.5
"""Nothing is asked to move by less."""

RESERVE_M = 0.3
"""Start and goal are farther apart than the task forgives by so much."""

FORGIVES_A_FALL_M = 0.9
"""A task that accepts an object within so much of its goal may ask for it to be put on the floor from a table."""

HIGHEST_FALL_M = 0.6

COARSE_TURN_DEG = 45
"""From such turns on, the robot's moves form a grid."""

GRID_AIM = 0.4
"""How well a ray from the grid must meet an object: see ``Pointer.hits``."""

STEPS_SHARE = 0.8
"""Of the task's steps, so many are enough for straight ways and the turns between them."""

NEXT_TO_M = 0.3
_RUG_M = 0.03
_ON_FLOOR_M = 0.02
_SURFACE_MARGIN_M = 0.04

YCB_MODELS = ("002_master_chef_can", "013_apple", "017_orange", "019_pitcher_base", "025_mug")
"""Of the set, what is no thinner than ``THINNEST_M`` in any direction."""

BOX_EDGE_CM = 30
"""Tall boxes have so wide a base that they stand."""

AIM_ROOM_M = 0.15
"""Over so much of the robot's distance, at least, the ray goes through the axis of what an episode brings along."""

_TRIES = 200
_EPISODE_TRIES = 600


def generate_rearrangement(scene: Scene, task: Task, count: int, seed: int) -> list[Episode]:
    """``count`` rearrangement episodes of the task's kind of goal.

    Raises:
        EpisodeError: the robot fits nowhere; or there is no place for as many objects as the task wants moved.
    """
    drawer = _Drawer(scene, task, seed)
    return [drawer.episode(index) for index in range(count)]


_Point = tuple[float, float]


@dataclass(frozen=True)
class _Candidate:
    """An object that can be moved: as it stands in the scene, and from where it can be grabbed there."""

    item: SceneObject
    pose: ObjectPose
    places: tuple[rearrangement.Point, ...]

    @property
    def low_m(self) -> float:
        return self.item.center[2] - self.item.size[2] / 2

    @property
    def radius_m(self) -> float:
        """Of a circle around the box, seen from above."""
        return math.hypot(self.item.size[0], self.item.size[1]) / 2


class _Grid:
    """The places and headings that a robot with coarse turns gets to, by straight moves through free space.

    Attributes:
        points: x and y in map. headings_rad: all that it can have at each.
    """

    def __init__(self, scene: Scene, task: Task, start: SE2) -> None:
        count = round(360 / task.magnitudes.turn_deg)
        self.headings_rad = [start.yaw_rad + k * math.tau / count for k in range(count)]
        self._start, self._step_m = start, task.magnitudes.forward_m
        space = GeodesicMap(scene.map, task.robot_radius_m)
        steps = [(self._step_m * math.cos(yaw), self._step_m * math.sin(yaw)) for yaw in self.headings_rad]
        todo = [(start.x_m, start.y_m)]
        found = {self._key(*todo[0]): todo[0]}
        while todo:
            x_m, y_m = todo.pop()
            for dx, dy in steps:
                point, key = (x_m + dx, y_m + dy), self._key(x_m + dx, y_m + dy)
                if key not in found and space.is_clear(x_m, y_m, *point):
                    found[key] = point
                    todo.append(point)
        self.points = list(found.values())
        self._keys = found.keys()

    def has(self, x_m: float, y_m: float) -> bool:
        """Whether the robot gets to this place, but for a tenth of a move."""
        i, j = self._key(x_m, y_m)
        return any((i + di, j + dj) in self._keys for di in (-1, 0, 1) for dj in (-1, 0, 1))

    def _key(self, x_m: float, y_m: float) -> tuple[int, int]:
        local = SE2(x_m, y_m).relative_to(self._start)
        return round(local.x_m * 10 / self._step_m), round(local.y_m * 10 / self._step_m)


class _Drawer:
    """Draws episodes from one scene."""

    def __init__(self, scene: Scene, task: Task, seed: int) -> None:
        self._scene, self._task, self._hand = scene, task, settings(task)
        self._sampler = Sampler(scene, task, seed)
        self._rng = self._sampler.rng
        self._clearance_m = scene.map.clearance_m()
        self._roomy = scene.map.navigable(task.robot_radius_m)
        labels, _ = ndimage.label(self._roomy, np.ones((3, 3)))
        # The robot moves in the largest connected part.
        self._main = labels == 1 + int(np.argmax(np.bincount(labels[labels > 0])[1:]))
        self._strict = self._hand.min_iou is not None or self._hand.max_angle_deg is not None
        self._candidates = [found for item in scene.objects if (found := self._candidate(item)) is not None]
        self._brought: dict[str, str] = {}
        if len(self._candidates) < self._hand.min_objects:
            self._bring_along()

    def episode(self, index: int) -> Episode:
        for _ in range(_EPISODE_TRIES):
            x_m, y_m = self._sampler.place()
            start = SE2(float(x_m), float(y_m), self._sampler.heading())
            most = min(self._hand.max_objects, len(self._candidates))
            wanted = int(self._rng.integers(self._hand.min_objects, most + 1))
            moved = self._moved(start, wanted)
            if len(moved) >= self._hand.min_objects and self._is_far_enough(start, moved):
                return self._episode(index, start, moved)
        raise EpisodeError(
            f"{self._scene.folder}: found no places to move {self._hand.min_objects} objects to for task "
            f"{self._task.name!r}",
            "use a larger scene, e.g. from `robot-runtime scene generate`",
        )

    # --- objects ----------------------------------------------------------------------------------------------------

    def _bring_along(self) -> None:
        """Put objects onto free floor, as far as there is room, until there are as many as the task may want moved."""
        templates, floor = _templates(self._task), self._main.copy()
        taken: list[tuple[float, float, float]] = []
        for _ in range(_EPISODE_TRIES):
            if len(self._candidates) >= self._hand.max_objects:
                return
            template = templates[int(self._rng.integers(len(templates)))]
            item = self._on_floor(template)
            at = _Candidate(item, item.pose, ())
            if not self._is_free(at, item.pose) or not self._fits(at, item.pose, floor, taken):
                continue
            before = self._scene
            self._scene = replace(before, file=replace(before.file, objects=(*before.objects, item)))
            candidate = self._candidate(item)
            if candidate is None:
                self._scene = before
                continue
            self._candidates.append(candidate)
            self._brought[item.id] = template
            floor &= ~self._blocked(item.pose, candidate.radius_m + self._task.robot_radius_m)
            taken.append((item.center[0], item.center[1], candidate.radius_m))
        if len(self._candidates) < self._hand.min_objects:
            raise EpisodeError(
                f"{self._scene.folder}: task {self._task.name!r} wants {self._hand.min_objects} objects moved; of the "
                f"scene's, its crosshair can meet {len(self._candidates) - len(self._brought)} within "
                f"{self._hand.reach_m:g} m of a camera at {self._task.camera.height_m:g} m, and there is room on the "
                f"floor for {len(self._brought)} more",
                "use a larger scene, e.g. from `robot-runtime scene generate`",
            )

    def _on_floor(self, template: str) -> SceneObject:
        size = model_size_m(template)
        category = "box" if template.startswith("box_") else template[4:]
        x_m, y_m = self._floor_place()
        return SceneObject(
            f"brought_{category}_{len(self._brought) + 1}", category, (x_m, y_m, size[2] / 2), size, movable=True
        )

    def _candidate(self, item: SceneObject) -> _Candidate | None:
        if not item.movable or min(item.size) < THINNEST_M or self._support(item) is None:
            return None
        pose = ObjectPose.upright(item.center, math.radians(item.yaw_deg))
        bare = Episode("", self._scene.name, SE2(), ())
        places = rearrangement.grab_places(self._task, self._scene, bare, item.id, pose)
        reachable = tuple(place for place in places if self._main[self._scene.map.to_cell(*place)])
        return _Candidate(item, pose, reachable) if reachable else None

    def _support(self, item: SceneObject) -> SceneObject | float | None:
        """What an object stands on: the floor (0.0), a piece of furniture with its top there, or None: unknown."""
        low_m = item.center[2] - item.size[2] / 2
        if low_m <= _ON_FLOOR_M:
            return 0.0
        under = [
            other
            for other in self._scene.objects
            if not other.movable
            and abs(other.center[2] + other.size[2] / 2 - low_m) <= _ON_FLOOR_M
            and other.distance_m(item.center[0], item.center[1]) == 0
        ]
        return under[0] if under else None

    def _moved(self, start: SE2, wanted: int) -> list[tuple[_Candidate, ObjectPose, dict[str, Any] | None]]:
        """Objects, each with its other pose and, for a program, its target; in the order of the scene."""
        floor, grid = self._main.copy(), self._grid(start)
        # The map shows what the scene has, not what is brought along.
        brought = [candidate for candidate in self._candidates if candidate.item.id in self._brought]
        taken = [(one.item.center[0], one.item.center[1], one.radius_m) for one in brought]
        for one in brought:
            floor &= ~self._blocked(one.pose, one.radius_m + self._task.robot_radius_m)
        found: list[tuple[int, _Candidate, ObjectPose, dict[str, Any] | None]] = []
        for number in self._rng.permutation(len(self._candidates)).tolist():
            if len(found) == wanted:
                break
            candidate = self._candidates[number]
            for pose, target in self._other_places(candidate, start, grid):
                if self._fits(candidate, pose, floor, taken):
                    found.append((number, candidate, pose, target))
                    if pose.position[2] - candidate.item.size[2] / 2 <= _ON_FLOOR_M:
                        floor &= ~self._blocked(pose, candidate.radius_m + self._task.robot_radius_m)
                    taken.append((pose.position[0], pose.position[1], candidate.radius_m))
                    break
        return [(candidate, pose, target) for _, candidate, pose, target in sorted(found, key=lambda one: one[0])]

    def _other_places(
        self, candidate: _Candidate, start: SE2, grid: _Grid | None
    ) -> Iterator[tuple[ObjectPose, dict[str, Any] | None]]:
        """Where the object could be instead, drawn at random; those that the task's crosshair can restore alone."""
        least_m = max(LEAST_WAY_M, (self._hand.max_translation_m or 0.0) + RESERVE_M)
        support = self._support(candidate.item)
        stands = self._stands(candidate, grid)
        for _ in range(_TRIES):
            pose = self._draw(candidate, support, start)
            way_m = math.dist(pose.position[:2], candidate.pose.position[:2])
            if way_m < (least_m if support == 0.0 or pose.position[2] != candidate.pose.position[2] else RESERVE_M):
                continue
            if self._hand.max_translation_m is not None and way_m <= self._hand.max_translation_m + RESERVE_M / 2:
                continue
            if not self._is_free(candidate, pose) or not self._can_carry(candidate, pose, stands, grid):
                continue
            if self._hand.goal != "predicate":
                yield pose, None
                continue
            targets = self._targets(candidate.item, pose)
            if targets:
                yield pose, targets[int(self._rng.integers(len(targets)))]

    def _draw(self, candidate: _Candidate, support: SceneObject | float | None, start: SE2) -> ObjectPose:
        x_m, y_m, z_m = candidate.pose.position
        if self._strict:
            turn_rad = math.radians(self._task.magnitudes.turn_deg)
            headings = start.yaw_rad + turn_rad * self._rng.integers(0, 360, 2)
            steps = self._task.magnitudes.forward_m * self._rng.integers(-MOST_MOVES, MOST_MOVES + 1, 2)
            moved = (x_m + float(steps @ np.cos(headings)), y_m + float(steps @ np.sin(headings)), z_m)
            return ObjectPose(moved, candidate.pose.quaternion)
        if isinstance(support, SceneObject) and not self._may_fall(candidate):
            half = np.array(support.size[:2]) / 2
            u, v = (2 * self._rng.random(2) - 1) * half
            x_m, y_m = SE2(support.center[0], support.center[1], math.radians(support.yaw_deg)).apply(u, v)
            return ObjectPose((x_m, y_m, z_m), candidate.pose.quaternion)
        x_m, y_m = self._floor_place()
        return ObjectPose((x_m, y_m, candidate.item.size[2] / 2), candidate.pose.quaternion)

    def _may_fall(self, candidate: _Candidate) -> bool:
        forgiven_m = self._hand.max_translation_m or 0.0
        return self._hand.goal != "predicate" and forgiven_m >= FORGIVES_A_FALL_M and candidate.low_m <= HIGHEST_FALL_M

    def _floor_place(self) -> _Point:
        cells = np.argwhere(self._main)
        row, column = cells[self._rng.integers(len(cells))]
        # Objects may stand nearer to a wall than the robot's centre: a step to any side.
        x_m, y_m = self._scene.map.to_point(float(row), float(column))
        dx, dy = self._rng.uniform(-self._task.robot_radius_m, self._task.robot_radius_m, 2)
        return x_m + float(dx), y_m + float(dy)

    # --- whether a place will do ------------------------------------------------------------------------------------

    def _fits(
        self,
        candidate: _Candidate,
        pose: ObjectPose,
        floor: NDArray[np.bool_],
        taken: Sequence[tuple[float, float, float]],
    ) -> bool:
        x_m, y_m, z_m = pose.position
        for other_x, other_y, other_m in taken:
            if math.hypot(x_m - other_x, y_m - other_y) < candidate.radius_m + other_m + 2 * self._task.robot_radius_m:
                return False
        if z_m - candidate.item.size[2] / 2 > _ON_FLOOR_M:
            return True
        # What is left of the floor must hang together, but for crumbs.
        left = floor & ~self._blocked(pose, candidate.radius_m + self._task.robot_radius_m)
        parts = np.bincount(ndimage.label(left, np.ones((3, 3)))[0][left])
        return bool(parts.size and parts.max() >= 0.98 * left.sum())

    def _is_free(self, candidate: _Candidate, pose: ObjectPose) -> bool:
        """Whether nothing of the scene stands there."""
        x_m, y_m, z_m = pose.position
        map_ = self._scene.map
        if z_m - candidate.item.size[2] / 2 > _ON_FLOOR_M:
            return self._lies_on_surface(candidate, pose)
        if not map_.contains(x_m, y_m):
            return False
        cell = map_.to_cell(x_m, y_m)
        return bool(map_.cells[cell] == Cell.FREE and self._clearance_m[cell] >= candidate.radius_m + FREE_M)

    def _lies_on_surface(self, candidate: _Candidate, pose: ObjectPose) -> bool:
        support = self._support(candidate.item)
        assert isinstance(support, SceneObject)
        frame = SE2(support.center[0], support.center[1], math.radians(support.yaw_deg))
        box = rearrangement.upright_box(candidate.item, pose)
        middle = SE2(box.center[0], box.center[1], box.yaw_rad)
        for u in (-0.5, 0.5):
            for v in (-0.5, 0.5):
                x_m, y_m = middle.apply(u * box.size[0], v * box.size[1])
                local = SE2(x_m, y_m).relative_to(frame)
                if abs(local.x_m) > support.size[0] / 2 - _SURFACE_MARGIN_M:
                    return False
                if abs(local.y_m) > support.size[1] / 2 - _SURFACE_MARGIN_M:
                    return False
        return all(
            other.distance_m(box.center[0], box.center[1]) >= candidate.radius_m + FREE_M
            for other in self._scene.objects
            if other.id not in (candidate.item.id, support.id)
            and other.center[2] - other.size[2] / 2 < box.high_m
            and other.center[2] + other.size[2] / 2 > box.low_m + _ON_FLOOR_M
        )

    def _blocked(self, pose: ObjectPose, radius_m: float) -> NDArray[np.bool_]:
        map_ = self._scene.map
        rows, columns = np.indices(map_.cells.shape)
        x = map_.origin_x_m + (columns + 0.5) * map_.resolution_m - pose.position[0]
        y = map_.origin_y_m + (rows + 0.5) * map_.resolution_m - pose.position[1]
        return np.asarray(np.hypot(x, y) < radius_m)

    def _can_carry(self, candidate: _Candidate, pose: ObjectPose, stands: Sequence[_Point], grid: _Grid | None) -> bool:
        """Whether the robot can stand so that it has the object before it, both where it is and where it could be.

        Args:
            stands: where it can grab the object. grid: the places that it reaches, if its moves form a grid.
        """
        if not self._strict:
            bare = Episode("", self._scene.name, SE2(), ())
            level = rearrangement.at_height(pose, candidate.pose)
            places = rearrangement.grab_places(self._task, self._scene, bare, candidate.item.id, level)
            there = {_bin(place, pose) for place in places if self._is_main(*place)}
            # It is let go as far ahead as it was grabbed.
            return any(_bin(place, candidate.pose) in there for place in stands)
        dx, dy = (pose.position[axis] - candidate.pose.position[axis] for axis in (0, 1))
        return any(
            self._is_main(x_m + dx, y_m + dy)
            and self._sees(x_m + dx, y_m + dy, pose)
            and (grid is None or grid.has(x_m + dx, y_m + dy))
            for x_m, y_m in stands
        )

    def _stands(self, candidate: _Candidate, grid: _Grid | None) -> Sequence[_Point]:
        """Places to grab the object from; of a grid, those that face it."""
        if grid is None:
            return candidate.places
        box = rearrangement.upright_box(candidate.item, candidate.pose)
        pointer = Pointer.of(self._task)
        x, y = np.array(grid.points).T
        met = np.zeros(x.shape, bool)
        for yaw_rad in grid.headings_rad:
            for ray in pointer.rays:
                met |= pointer.hits(x, y, np.full(x.shape, yaw_rad), ray, box) > GRID_AIM
        # Nearer than this, the robot would stand in it.
        apart_m = self._task.robot_radius_m + box.radius_m + FREE_M
        met &= np.hypot(x - box.center[0], y - box.center[1]) >= apart_m
        found = [point for point, one in zip(grid.points, met.tolist(), strict=True) if one]
        return [point for point in found if self._sees(*point, candidate.pose)]

    def _grid(self, start: SE2) -> _Grid | None:
        """Where the task's moves lead from a start; None where turns are so fine that they lead anywhere."""
        if self._task.magnitudes.turn_deg < COARSE_TURN_DEG:
            return None
        return _Grid(self._scene, self._task, start)

    def _is_main(self, x_m: float, y_m: float) -> bool:
        map_ = self._scene.map
        return map_.contains(x_m, y_m) and bool(self._main[map_.to_cell(x_m, y_m)])

    def _sees(self, x_m: float, y_m: float, pose: ObjectPose) -> bool:
        room = rearrangement.room_at(self._scene, pose.position[0], pose.position[1])
        return room is None or room.contains(x_m, y_m)

    def _is_far_enough(self, start: SE2, moved: Sequence[tuple[_Candidate, ObjectPose, dict[str, Any] | None]]) -> bool:
        """Whether the robot has some way to go, and stands in none of the objects."""
        if not self._is_main(start.x_m, start.y_m):
            return False
        for candidate, pose, _ in moved:
            ends = (pose, candidate.pose) if candidate.item.id in self._brought else (pose,)
            away_m = min(math.dist(end.position[:2], (start.x_m, start.y_m)) for end in ends)
            if away_m < candidate.radius_m + self._task.robot_radius_m + FREE_M:
                return False
        first = [place for candidate, _, _ in moved for place in candidate.places]
        if not MIN_GEODESIC_M / 2 <= self._sampler.geodesic.field(first).at(start.x_m, start.y_m) <= MAX_GEODESIC_M:
            return False
        return self._steps(start, moved) <= STEPS_SHARE * self._task.max_steps

    def _steps(self, start: SE2, moved: Sequence[tuple[_Candidate, ObjectPose, dict[str, Any] | None]]) -> float:
        """About how many actions it takes: straight from each object to its other place, and the turns between."""
        here, heading_rad, way_m, turned_rad = (start.x_m, start.y_m), start.yaw_rad, 0.0, 0.0
        for candidate, pose, _ in moved:
            for end in (candidate.item.center[:2], pose.position[:2]):
                way_m += math.dist(here, end)
                direction_rad = math.atan2(end[1] - here[1], end[0] - here[0])
                turned_rad += abs(wrap_angle(direction_rad - heading_rad))
                here, heading_rad = (end[0], end[1]), direction_rad
        return way_m / self._task.magnitudes.forward_m + math.degrees(turned_rad) / self._task.magnitudes.turn_deg

    # --- what it is written as --------------------------------------------------------------------------------------

    def _targets(self, item: SceneObject, pose: ObjectPose) -> list[dict[str, Any]]:
        """Targets of a program that hold of the object at ``pose``, and not where the scene has it."""
        x_m, y_m, _ = pose.position
        old_x, old_y, _ = item.center
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
            is_next_to = low_m <= _ON_FLOOR_M and other.distance_m(x_m, y_m) - edge_m <= NEXT_TO_M - FREE_M
            if is_next_to and other.distance_m(old_x, old_y) > NEXT_TO_M + math.hypot(*item.size[:2]) / 2:
                found.append({"subject": item.id, "next_to": other.id, "within_m": NEXT_TO_M})
        return found

    def _episode(
        self, index: int, start: SE2, moved: Sequence[tuple[_Candidate, ObjectPose, dict[str, Any] | None]]
    ) -> Episode:
        backwards = self._hand.goal == "experience"
        objects = tuple(
            RearrangedObject(
                id=candidate.item.id,
                start=pose if backwards else candidate.pose,
                goal=candidate.pose if backwards else pose,
                category=candidate.item.category,
                template=self._brought.get(candidate.item.id),
            )
            for candidate, pose, _ in moved
        )
        targets = tuple(target for _, _, target in moved if target is not None)
        return Episode(
            id=str(index),
            scene=self._scene.name,
            start=start,
            goals=(),
            objects=objects,
            program=Program(targets) if targets else None,
        )


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
    heights_cm = range(BOX_EDGE_CM, 301, 5)
    boxes = (f"box_{BOX_EDGE_CM}x{BOX_EDGE_CM}x{height_cm}" for height_cm in heights_cm)
    tall = [template for template in boxes if can_meet(template)][:1]
    if not tall:
        hand = settings(task)
        raise EpisodeError(
            f"task {task.name!r}: within {hand.reach_m:g} m of a camera at {task.camera.height_m:g} m, its crosshair "
            "meets nothing that stands on the floor",
            "correct the crosshair or the reach of the task",
        )
    return tall


def _bin(place: _Point, pose: ObjectPose) -> int:
    """How far an object is from a place, in tenths of a metre."""
    return round(10 * math.dist(place, pose.position[:2]))
