"""How the oracle rearranges: object by object, in the order that makes the shortest way, to the poses that it knows.

For each it goes where the crosshair can meet it, makes the moves that point the ray at its middle, grabs; goes to where
it must stand for the object to come down at its goal; releases. It is judged by what it does, like any agent: a grab
that takes nothing, or a release that something prevents, is tried again from elsewhere, a few times.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_runtime.actions.discrete import Action
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.planning.goal_alignment import Quality, reach
from robot_runtime.planning.path_follower import Disc, PathFollower
from robot_runtime.policy import World
from robot_runtime.scenes.grid_interpolation import Floats
from robot_runtime.scenes.objects import ObjectPose
from robot_runtime.tasks.episode import RearrangedObject
from robot_runtime.tasks.rearrangement import task as rearrangement
from robot_runtime.tasks.rearrangement.crosshair import Pointer, Ray, UprightBox, settings
from robot_runtime.tasks.rearrangement.episode_objects import added_objects
from robot_runtime.tasks.task import Task

TRIES = 9
"""Grabs, and releases, of one object, before it is given up."""

ROUNDS = 3
"""Times that an object is put down and does not stay where it should, before it is given up."""

_ARRIVE_M = 0.15
_ARRIVE_OF_OFF = 0.5
_COARSE_ARRIVE = 0.75
"""Of a forward move: with coarse turns the robot cannot get nearer to some places."""
_ELSEWHERE_M = 0.3
_GOOD_AIM = 0.6
_GOOD_SPOT = 0.15
_ORDERED = 6
_MOST_STEERING = 4
_MOST_PLANS = 4
_NO_WAY_M = 1e6
_SAME_PLACE_M = 0.02
_BIN_M = 0.1
_AT_HOME_M = 0.05
_MARGIN_M = -0.015
"""Less than nothing: a plan may end with the robot's rim in a cell's corner that is taken for a wall."""
_BACK_M, _BACK_RAD = 0.05, math.radians(10.0)


@dataclass(frozen=True)
class _Job:
    """One object and where it is to go.

    Attributes:
        off_m, off_rad: how far from there is still right. goes_back: whether it only goes where it was taken.
    """

    item: RearrangedObject
    goal: ObjectPose
    off_m: float
    off_rad: float
    goes_back: bool = False


class RearrangementOracle:
    """Decides the actions of one rearrangement episode."""

    def __init__(self, task: Task, world: World) -> None:
        self._task, self._world = task, world
        self._pointer = Pointer.of(task)
        self._follower = PathFollower(task, world.scene)
        self._jobs = self._ordered([self._job(item) for item in rearrangement.to_move(world.episode)])
        self._queue: list[Action] = []
        self._grabbing: tuple[SE2, Mapping[str, ObjectPose]] | None = None
        self._grabbed_at: tuple[SE2, ObjectPose] | None = None
        self._avoided: list[tuple[float, float]] = []
        self._tries = self._steered = self._plans = self._rounds = 0
        self._useless: dict[str, list[tuple[float, float]]] = {}
        self._later: list[tuple[int, list[tuple[float, float]]]] = []
        self._aimed_for: tuple[str, bool] | None = None
        self._travels = False

    def act(self) -> Action:
        """The next action."""
        pose = self._world.pose()
        self._follower.observe(pose)
        action = self._decide(pose)
        self._follower.acted(action)
        return action

    def info(self) -> dict[str, Any]:
        """For the log."""
        return {"objects_left": len(self._jobs), "tries": self._tries}

    # --- one object after the other ---------------------------------------------------------------------------------

    def _decide(self, pose: SE2) -> Action:
        if self._world.phase() == "walkthrough":
            return Action.STOP
        self._take_in()
        while self._jobs:
            if self._queue:
                return self._queue.pop(0)
            job, holds = self._jobs[0], bool(self._world.held())
            if not holds and (job.item.id not in self._world.objects() or self._is_right(job)):
                self._next_job()
                continue
            if self._tries >= TRIES or self._rounds >= ROUNDS:
                self._give_up(job, holds)
                continue
            if self._aimed_for != (job.item.id, holds):
                self._set_out(job, holds)
            if self._travels:
                action = self._travel(pose)
                if action is not None:
                    return action
                self._travels = False
            self._finish(job, holds, pose)
        return Action.GRAB_RELEASE if self._must_let_go() else Action.STOP

    def _travel(self, pose: SE2) -> Action | None:
        """The next action on the way; None at its end, or where plans end again and again without getting there."""
        if self._follower.left == 0:
            self._plans += 1
            if self._plans > _MOST_PLANS:
                return None
        return self._follower.next(pose)

    def _take_in(self) -> None:
        """What became of the last grab or release."""
        if self._grabbing is None:
            return
        pose, before = self._grabbing
        self._grabbing = None
        held = self._world.held()
        if self._grabbed_at is None and held:
            self._taken(held[-1], pose, before)
        elif self._grabbed_at is not None and not held:
            self._grabbed_at = None
            self._rounds += 1
            self._begin()
        else:
            self._failed(pose)

    def _taken(self, name: str, pose: SE2, before: Mapping[str, ObjectPose]) -> None:
        """Something is in the backpack now. If it is not what was meant, it goes back to where it was, first of all."""
        self._grabbed_at = pose, before[name]
        if name == self._jobs[0].item.id:
            self._begin()
            return
        self._failed(pose)
        self._later.append((self._tries, self._avoided))
        wrong = RearrangedObject(name, before[name], before[name])
        self._jobs = (_Job(wrong, before[name], _BACK_M, _BACK_RAD, goes_back=True), *self._jobs)
        self._begin()

    def _begin(self) -> None:
        """Nothing has been tried yet."""
        self._tries, self._avoided, self._aimed_for = 0, [], None

    def _failed(self, pose: SE2) -> None:
        self._tries += 1
        self._avoided.append((pose.x_m, pose.y_m))
        self._aimed_for = None

    def _next_job(self) -> None:
        was_wrong = self._jobs[0].goes_back and self._later
        self._jobs = self._jobs[1:]
        self._rounds = 0
        self._begin()
        if was_wrong:
            self._tries, self._avoided = self._later.pop()

    def _give_up(self, job: _Job, holds: bool) -> None:
        """What is carried goes back to where it was taken, to be taken from elsewhere; without that, on to the next."""
        taken_at = self._grabbed_at
        self._next_job()
        if not holds:
            return
        if taken_at is None or job.goes_back:
            self._jobs = ()
            return
        useless = self._useless.setdefault(job.item.id, [])
        useless.append((taken_at[0].x_m, taken_at[0].y_m))
        again = (job,) if len(useless) < ROUNDS else ()
        back = replace(job, goal=taken_at[1], off_m=_BACK_M, off_rad=_BACK_RAD, goes_back=True)
        self._jobs = (back, *again, *self._jobs)

    def _must_let_go(self) -> bool:
        """Whether something is still carried that could not be put down where it belongs: once, anywhere."""
        if not self._world.held() or self._grabbed_at is None:
            return False
        self._grabbed_at = None
        return True

    def _set_out(self, job: _Job, holds: bool) -> None:
        self._aimed_for, self._steered = (job.item.id, holds), 0
        self._follower.obstacles = self._obstacles()
        places = self._drop_places(job) if holds else self._grab_places(job)
        bad_places = self._avoided if holds else [*self._avoided, *self._useless.get(job.item.id, ())]
        far = [place for place in places if all(math.dist(place, bad) > _ELSEWHERE_M for bad in bad_places)]
        self._travels = bool(far or places)
        self._plans = 0
        if self._travels:
            coarse_m = _COARSE_ARRIVE * self._task.magnitudes.forward_m if self._follower.moves.headings <= 8 else 0.0
            near_m = _ARRIVE_OF_OFF * job.off_m if holds else 0.0
            self._follower.go_to(far or places, max(_ARRIVE_M, coarse_m, near_m))

    def _finish(self, job: _Job, holds: bool, pose: SE2) -> None:
        """Queue the moves that point at the object, or at its goal, and the grab or release if the robot is there."""
        # The more often something stood in the way, the nearer to the goal itself, where nothing should.
        spot = min(_GOOD_SPOT + 0.25 * self._tries, 0.9)
        quality, good = (self._drop_quality(job), spot) if holds else (self._aim_quality(job), _GOOD_AIM)
        found = reach(pose, self._follower.moves, self._follower.slowness(_MARGIN_M), quality, good)
        if found is None or self._steered >= _MOST_STEERING:
            self._failed(pose)
            return
        self._steered += 1
        looks = [] if holds else self._looks(job, pose)
        if found.actions:
            self._queue = list(found.actions)
        elif looks:
            self._queue = looks
        else:
            self._queue = [Action.GRAB_RELEASE]
            self._grabbing = pose, dict(self._world.objects())

    # --- grabbing ---------------------------------------------------------------------------------------------------

    def _grab_places(self, job: _Job) -> list[tuple[float, float]]:
        world = self._world
        now = world.objects()[job.item.id]
        places = rearrangement.grab_places(self._task, world.scene, world.episode, job.item.id, now)
        fits = [place for place, fit in zip(places, self._can_release(job, np.array(places)), strict=True) if fit]
        return fits or places

    def _aim_quality(self, job: _Job) -> Quality:
        box = self._aim_box(job)

        def quality(x: Floats, y: Floats, yaw: Floats) -> Floats:
            worth = np.max([self._pointer.hits(x, y, yaw, ray, box) for ray in self._pointer.rays], axis=0)
            for bad_x, bad_y in self._avoided:
                worth = np.where(np.hypot(x - bad_x, y - bad_y) < _SAME_PLACE_M, -np.inf, worth)
            for bad_x, bad_y in self._useless.get(job.item.id, ()):
                worth = np.where(np.hypot(x - bad_x, y - bad_y) < _ELSEWHERE_M, -np.inf, worth)
            fits = self._can_release(job, np.hstack([x, y]))[:, None]
            return np.asarray(np.where(fits, worth, -np.inf))

        return quality

    def _can_release(self, job: _Job, places: Floats) -> NDArray[np.bool_]:
        """For places (N, 2) to grab it from: whether there is one to stand at when the object is to come down."""
        now = self._world.objects()[job.item.id]
        if not len(places):
            return np.zeros(0, bool)
        if not self._is_exact(job):
            away_m = np.hypot(places[:, 0] - now.position[0], places[:, 1] - now.position[1])
            return np.asarray(self._free_around(job, away_m)[2].any(axis=1))
        x, y = self._stands_to_release(job, places[:, 0], places[:, 1], now)
        return self._is_free(job, x, y)

    def _free_around(self, job: _Job, away_m: Floats) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Places (N, M) that face the goal from distances (N,) by the robot's possible headings; are they free?"""
        angles = self._follower.moves.angles(self._world.pose().yaw_rad)
        x = job.goal.position[0] - away_m[:, None] * np.cos(angles)
        y = job.goal.position[1] - away_m[:, None] * np.sin(angles)
        return x, y, self._is_free(job, x, y)

    def _is_free(self, job: _Job, x: Floats, y: Floats) -> NDArray[np.bool_]:
        """Whether the robot can stand there and sees the goal, as far as rooms tell."""
        # When the object comes down it is not where it is now.
        free = np.isfinite(self._follower.slowness(_MARGIN_M, self._obstacles(job.item.id))(x, y))
        room = rearrangement.room_at(self._world.scene, job.goal.position[0], job.goal.position[1])
        return np.asarray(free if room is None else free & rearrangement.within(room, x, y))

    def _aim_box(self, job: _Job) -> UprightBox:
        """What to point at: the object's box; after a grab at nothing, its upper or lower half: plants have gaps."""
        item = rearrangement.scene_object(self._world.scene, self._world.episode, job.item.id)
        box = rearrangement.upright_box(item, self._world.objects()[job.item.id])
        side = (0, 1, -1)[self._tries % 3]
        if side == 0:
            return box
        (x, y, z), (length, width, height) = box.center, box.size
        return UprightBox((x, y, z + side * height / 4), (length, width, height / 2), box.yaw_rad)

    def _looks(self, job: _Job, pose: SE2) -> list[Action]:
        """To the tilt at which the ray meets the object best; none if it has that."""
        box = self._aim_box(job)
        x, y, yaw = (np.array([value]) for value in (pose.x_m, pose.y_m, pose.yaw_rad))

        def worth(ray: Ray) -> float:
            return float(self._pointer.hits(x, y, yaw, ray, box)[0])

        best = max(self._pointer.rays, key=worth)
        step_rad = math.radians(self._task.magnitudes.tilt_deg)
        looks = round((best.tilt_rad - self._world.tilt_rad()) / step_rad)
        return [Action.LOOK_UP if looks > 0 else Action.LOOK_DOWN] * abs(looks)

    # --- releasing --------------------------------------------------------------------------------------------------

    def _drop_places(self, job: _Job) -> list[tuple[float, float]]:
        assert self._grabbed_at is not None
        at, was = self._grabbed_at
        if self._is_exact(job):
            x, y = self._stands_to_release(job, np.array([at.x_m]), np.array([at.y_m]), was)
            return [(float(x[0]), float(y[0]))]
        away_m = math.dist((at.x_m, at.y_m), was.position[:2])
        x, y, free = self._free_around(job, np.array([away_m]))
        exact = list(zip(x[free].tolist(), y[free].tolist(), strict=True))
        level = rearrangement.at_height(job.goal, was)
        world, off_m = self._world, max(0.6 * job.off_m, _BIN_M / 2)
        places = rearrangement.grab_places(self._task, world.scene, world.episode, job.item.id, level)
        around = [place for place in places if abs(math.dist(place, job.goal.position[:2]) - away_m) <= off_m]
        return exact or around

    def _drop_quality(self, job: _Job) -> Quality:
        assert self._grabbed_at is not None
        at, was = self._grabbed_at
        ahead = at.inverse().apply(was.position[0], was.position[1])
        turn_rad = _yaw(was) - at.yaw_rad
        exact = self._is_exact(job)

        def quality(x: Floats, y: Floats, yaw: Floats) -> Floats:
            c, s = np.cos(yaw), np.sin(yaw)
            off_x = x + c * ahead[0] - s * ahead[1] - job.goal.position[0]
            off_y = y + s * ahead[0] + c * ahead[1] - job.goal.position[1]
            worth = 1 - np.hypot(off_x, off_y) / job.off_m
            if exact:
                off_rad = np.abs((yaw + turn_rad - _yaw(job.goal) + math.pi) % math.tau - math.pi)
                worth = np.minimum(worth, 1 - off_rad / job.off_rad)
            for bad_x, bad_y in self._avoided:
                worth = np.where(np.hypot(x - bad_x, y - bad_y) < _SAME_PLACE_M, -np.inf, worth)
            return np.asarray(worth)

        return quality

    def _stands_to_release(self, job: _Job, x: Floats, y: Floats, was: ObjectPose) -> tuple[Floats, Floats]:
        """Where to stand to put an object exactly at its goal, turned as it must be, that was grabbed from there."""
        turn_rad = wrap_angle(_yaw(job.goal) - _yaw(was))
        c, s = math.cos(turn_rad), math.sin(turn_rad)
        from_x, from_y = x - was.position[0], y - was.position[1]
        return job.goal.position[0] + c * from_x - s * from_y, job.goal.position[1] + s * from_x + c * from_y

    # --- what is right ----------------------------------------------------------------------------------------------

    def _job(self, item: RearrangedObject) -> _Job:
        hand = settings(self._task)
        size = rearrangement.scene_object(self._world.scene, self._world.episode, item.id).size
        off_m = 0.1 if hand.goal == "predicate" else 0.7 * (hand.max_translation_m or math.inf)
        if hand.min_iou is not None:
            # An upright box shifted by a fraction f along both of its edges keeps (1-f)^2 of itself.
            shift = 1 - math.sqrt(2 * hand.min_iou / (1 + hand.min_iou))
            off_m = min(off_m, 0.8 * shift * min(size[:2]))
        off_rad = math.radians(min(hand.max_angle_deg or 10.0, 10.0))
        assert item.goal is not None
        return _Job(item, item.goal, off_m, off_rad)

    def _is_exact(self, job: _Job) -> bool:
        """Whether the object's heading matters, too."""
        if job.goes_back:
            return True
        hand = settings(self._task)
        return hand.min_iou is not None or hand.max_angle_deg is not None

    def _is_right(self, job: _Job) -> bool:
        now = self._world.objects()[job.item.id]
        if math.dist(now.position, job.goal.position) > job.off_m:
            return False
        return not self._is_exact(job) or abs(wrap_angle(_yaw(now) - _yaw(job.goal))) <= job.off_rad

    def _obstacles(self, without: str = "") -> list[Disc]:
        """Objects that are not where the scene has them: the map shows only those that are."""
        world, found = self._world, []
        at_home = {item.id: item.center for item in world.scene.objects}
        for item in (*world.scene.objects, *added_objects(world.scene, [world.episode])):
            pose = world.objects().get(item.id)
            if item.id == without or pose is None:
                continue
            if item.id in at_home and math.dist(pose.position, at_home[item.id]) <= _AT_HOME_M:
                continue
            if pose.position[2] - item.size[2] / 2 < self._task.camera.height_m:
                found.append((pose.position[0], pose.position[1], min(item.size[:2]) / 2))
        return found

    def _ordered(self, jobs: Sequence[_Job]) -> tuple[_Job, ...]:
        """In the order of the shortest way over objects and goals; as they stand if there are many."""
        if not 1 < len(jobs) <= _ORDERED:
            return tuple(jobs)
        world, space = self._world, self._follower.space
        places = [
            rearrangement.grab_places(self._task, world.scene, world.episode, job.item.id, job.item.start)
            for job in jobs
        ]
        fields = [space.field(near) for near in places]

        stands = [self._release_place(job) for job in jobs]

        def length_m(order: Sequence[int]) -> float:
            starts = [(world.episode.start.x_m, world.episode.start.y_m), *(stands[i] for i in order)]
            return sum(min(fields[i].at(*start), _NO_WAY_M) for i, start in zip(order, starts, strict=False))

        return tuple(jobs[i] for i in min(permutations(range(len(jobs))), key=length_m))

    def _release_place(self, job: _Job) -> tuple[float, float]:
        """Some place from which the object can be put down at its goal."""
        goal = (job.goal.position[0], job.goal.position[1])
        level = rearrangement.at_height(job.goal, job.item.start)
        places = rearrangement.grab_places(self._task, self._world.scene, self._world.episode, job.item.id, level)
        return min(places, key=lambda place: math.dist(place, goal), default=goal)


def _yaw(pose: ObjectPose) -> float:
    w, x, y, z = pose.quaternion
    return math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
