"""Decisions of the oracle in rearrangement: object by object, in the order of the shortest way, to the known goals.

For each object it goes to where the crosshair can meet it, makes the moves that point the ray at its middle, grabs;
goes to where the robot must stand for the object to come down at its goal; releases. A grab that takes nothing, or a
release that something prevents, is tried again from elsewhere, a few times.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from robot_runtime.actions.discrete import Action
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.errors import PolicyError
from robot_runtime.policies.baselines.kind_oracle import KindOracle
from robot_runtime.policies.planning.goal_alignment import PoseScore, align
from robot_runtime.policies.planning.path_follower import Disc, PathFollower
from robot_runtime.policy import Observation, Policy, World
from robot_runtime.scenes.grid_interpolation import Floats
from robot_runtime.scenes.objects import ObjectPose
from robot_runtime.task_kinds.rearrangement import task as rearrangement
from robot_runtime.task_kinds.rearrangement.crosshair import Pointer, Ray, UprightBox, settings
from robot_runtime.task_kinds.rearrangement.task import Point
from robot_runtime.tasks.episode import RearrangedObject
from robot_runtime.tasks.episode_objects import added_objects
from robot_runtime.tasks.task import Task

TRIES = 9
"""Largest number of grabs, and of releases, of an object."""

ROUNDS = 3
"""Largest number of times that one object is put down without remaining where it should."""

_ARRIVE_M = 0.15
_ARRIVE_OF_OFF = 0.5
_COARSE_ARRIVE = 0.75
"""Share of a forward move: with coarse turns the robot cannot get nearer to some places."""
_ELSEWHERE_M = 0.3
_GOOD_AIM = 0.6
_GOOD_SPOT = 0.15
_ORDERED = 6
_MOST_ALIGNMENTS = 4
_MOST_PLANS = 4
_NO_WAY_M = 1e6
_SAME_PLACE_M = 0.02
_BIN_M = 0.1
_AT_HOME_M = 0.05
_MARGIN_M = -0.015
"""Negative: a plan may end with the robot's rim in the corner of a cell that counts as a wall."""
_BACK_M, _BACK_RAD = 0.05, math.radians(10.0)


@dataclass(frozen=True)
class _Job:
    """One object and its goal.

    Attributes:
        item: the object.
        goal: the pose that it is brought to.
        off_m: tolerated distance from there.
        off_rad: tolerated difference of the heading.
        goes_back: whether it only goes back to where it was grabbed.
    """

    item: RearrangedObject
    goal: ObjectPose
    off_m: float
    off_rad: float
    goes_back: bool = False


@dataclass
class _Failures:
    """Grabs, or releases, of an object that failed, and where."""

    count: int = 0
    places: list[Point] = field(default_factory=list)


class CarryingOracle(KindOracle):
    """Carries the objects in place of plain navigation."""

    @override
    def policy(self) -> Policy:
        return RearrangementOracle()


class RearrangementOracle(Policy):
    """Carries the objects of a rearrangement episode one by one."""

    name = "rearrangement-oracle"
    kinds: ClassVar[tuple[str, ...]] = ("rearrangement",)
    privileged: ClassVar[bool] = True

    @override
    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        if world is None:
            raise PolicyError(f"agent {self.name!r} needs the simulator's world", "run it on a simulated robot")
        self._task, self._world, self._settings = task, world, settings(task)
        self._pointer = Pointer.of(task)
        self._follower = PathFollower(task, world.scene)
        self._jobs = self._ordered([self._job(item) for item in rearrangement.to_move(world.episode)])
        self._queue: list[Action] = []
        self._grabbing: tuple[SE2, Mapping[str, ObjectPose]] | None = None
        self._grabbed_at: tuple[SE2, ObjectPose] | None = None
        self._failures, self._interrupted = _Failures(), list[_Failures]()
        self._alignments = self._plans = self._rounds = 0
        self._useless: dict[str, list[Point]] = {}
        self._approached: tuple[str, bool] | None = None
        self._travels = False

    @override
    def act(self, observation: Observation) -> Action:
        pose = self._world.pose()
        self._follower.observe(pose)
        action = self._decide(pose)
        self._follower.acted(action)
        return action

    @override
    def info(self) -> dict[str, Any]:
        return {"objects_left": len(self._jobs), "tries": self._failures.count}

    # --- one object after the other ---------------------------------------------------------------------------------

    def _decide(self, pose: SE2) -> Action:
        if not self._world.state().scored:
            return Action.STOP
        self._update()
        while self._jobs:
            if self._queue:
                return self._queue.pop(0)
            job, holds = self._jobs[0], bool(self._world.state().held)
            if not holds and (job.item.id not in self._world.state().poses or self._is_right(job)):
                self._next_job()
                continue
            if self._failures.count >= TRIES or self._rounds >= ROUNDS:
                self._give_up(job, holds)
                continue
            if self._approached != (job.item.id, holds):
                self._approach(job, holds)
            if self._travels:
                action = self._travel(pose)
                if action is not None:
                    return action
                self._travels = False
            self._align(job, holds, pose)
        if self._world.state().held and self._grabbed_at is not None:  # it could not be put down where it belongs
            self._grabbed_at = None
            return Action.GRAB_RELEASE
        return Action.STOP

    def _travel(self, pose: SE2) -> Action | None:
        """The next action on the way; None at its end, or where plans end again and again without getting there."""
        if self._follower.left == 0:
            self._plans += 1
            if self._plans > _MOST_PLANS:
                return None
        return self._follower.next(pose)

    def _update(self) -> None:
        """Take the outcome of the last grab or release into account."""
        if self._grabbing is None:
            return
        (pose, before), held = self._grabbing, self._world.state().held
        self._grabbing = None
        if self._grabbed_at is None and held:
            self._grabbed(held[-1], pose, before)
        elif self._grabbed_at is not None and not held:
            self._grabbed_at = None
            self._rounds += 1
            self._begin()
        else:
            self._failed(pose)

    def _grabbed(self, name: str, pose: SE2, before: Mapping[str, ObjectPose]) -> None:
        """Continue with the grabbed object; the wrong one goes back to where it was first."""
        self._grabbed_at = pose, before[name]
        if name != self._jobs[0].item.id:
            self._failed(pose)
            self._interrupted.append(self._failures)
            wrong = RearrangedObject(name, before[name], before[name])
            self._jobs = (_Job(wrong, before[name], _BACK_M, _BACK_RAD, goes_back=True), *self._jobs)
        self._begin()

    def _begin(self) -> None:
        self._failures, self._approached = _Failures(), None

    def _failed(self, pose: SE2) -> None:
        self._failures.count += 1
        self._failures.places.append((pose.x_m, pose.y_m))
        self._approached = None

    def _next_job(self) -> None:
        was_wrong = self._jobs[0].goes_back and self._interrupted
        self._jobs = self._jobs[1:]
        self._rounds = 0
        self._begin()
        if was_wrong:
            self._failures = self._interrupted.pop()

    def _give_up(self, job: _Job, holds: bool) -> None:
        """A carried object goes back to where it was grabbed, to be grabbed from elsewhere; else go on to the next."""
        grabbed_at = self._grabbed_at
        self._next_job()
        if not holds:
            return
        if grabbed_at is None or job.goes_back:
            self._jobs = ()
            return
        useless = self._useless.setdefault(job.item.id, [])
        useless.append((grabbed_at[0].x_m, grabbed_at[0].y_m))
        again = (job,) if len(useless) < ROUNDS else ()
        back = replace(job, goal=grabbed_at[1], off_m=_BACK_M, off_rad=_BACK_RAD, goes_back=True)
        self._jobs = (back, *again, *self._jobs)

    def _approach(self, job: _Job, holds: bool) -> None:
        """Choose the places from which to grab or to release."""
        self._approached, self._alignments, self._plans = (job.item.id, holds), 0, 0
        self._follower.obstacles = self._obstacles()
        places = self._drop_places(job) if holds else self._grab_places(job)
        bad = self._failures.places if holds else [*self._failures.places, *self._useless.get(job.item.id, ())]
        far = [place for place in places if all(math.dist(place, one) > _ELSEWHERE_M for one in bad)]
        self._travels = bool(far or places)
        if self._travels:
            coarse_m = _COARSE_ARRIVE * self._task.magnitudes.forward_m if self._follower.moves.headings <= 8 else 0.0
            near_m = _ARRIVE_OF_OFF * job.off_m if holds else 0.0
            self._follower.go_to(far or places, max(_ARRIVE_M, coarse_m, near_m))

    def _align(self, job: _Job, holds: bool, pose: SE2) -> None:
        """Queue the moves that point at the object, or at its goal, and the grab or release if the robot is there."""
        # The more often something was in the way, the nearer to the goal itself, which is free.
        spot = min(_GOOD_SPOT + 0.25 * self._failures.count, 0.9)
        score, good = (self._drop_score(job), spot) if holds else (self._aim_score(job), _GOOD_AIM)
        actions = align(pose, self._follower.moves, self._follower.slowness(_MARGIN_M), score, good)
        if actions is None or self._alignments >= _MOST_ALIGNMENTS:
            self._failed(pose)
            return
        self._alignments += 1
        self._queue = list(actions) or ([] if holds else self._looks(job, pose))
        if not self._queue:
            self._queue = [Action.GRAB_RELEASE]
            self._grabbing = pose, dict(self._world.state().poses)

    # --- grabbing ---------------------------------------------------------------------------------------------------

    def _places(self, job: _Job, pose: ObjectPose) -> list[Point]:
        """Places from which the crosshair meets the job's object at a pose."""
        return rearrangement.grab_places(self._task, self._world.scene, self._world.episode, job.item.id, pose)

    def _grab_places(self, job: _Job) -> list[Point]:
        places = self._places(job, self._world.state().poses[job.item.id])
        fits = [place for place, fit in zip(places, self._can_release(job, np.array(places)), strict=True) if fit]
        return fits or places

    def _aim_score(self, job: _Job) -> PoseScore:
        box = self._aim_box(job)

        def score(x: Floats, y: Floats, yaw: Floats) -> Floats:
            worth = np.max([self._pointer.hits(x, y, yaw, ray, box) for ray in self._pointer.rays], axis=0)
            worth = _without(worth, x, y, self._failures.places, _SAME_PLACE_M)
            worth = _without(worth, x, y, self._useless.get(job.item.id, ()), _ELSEWHERE_M)
            fits = self._can_release(job, np.hstack([x, y]))[:, None]
            return np.asarray(np.where(fits, worth, -np.inf))

        return score

    def _can_release(self, job: _Job, places: Floats) -> NDArray[np.bool_]:
        """For places (N, 2) to grab it from: whether there is one to stand at when the object is to come down."""
        now = self._world.state().poses[job.item.id]
        if not len(places):
            return np.zeros(0, bool)
        if not self._is_exact(job):
            away_m = np.hypot(places[:, 0] - now.position[0], places[:, 1] - now.position[1])
            return np.asarray(self._free_around(job, away_m)[2].any(axis=1))
        x, y = _stands_to_release(job, places[:, 0], places[:, 1], now)
        return self._is_free(job, x, y)

    def _free_around(self, job: _Job, away_m: Floats) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Places (N, M) that face the goal from distances (N,) by the robot's possible headings; are they free?"""
        angles = self._follower.moves.angles(self._world.pose().yaw_rad)
        x = job.goal.position[0] - away_m[:, None] * np.cos(angles)
        y = job.goal.position[1] - away_m[:, None] * np.sin(angles)
        return x, y, self._is_free(job, x, y)

    def _is_free(self, job: _Job, x: Floats, y: Floats) -> NDArray[np.bool_]:
        """Whether the robot can stand there, in the goal's room."""
        # When the object comes down it is not where it is now.
        free = np.isfinite(self._follower.slowness(_MARGIN_M, self._obstacles(job.item.id))(x, y))
        room = rearrangement.room_at(self._world.scene, job.goal.position[0], job.goal.position[1])
        return np.asarray(free if room is None else free & rearrangement.within(room, x, y))

    def _aim_box(self, job: _Job) -> UprightBox:
        """The object's box; after a grab of nothing, its upper or lower half: plants have gaps."""
        item = rearrangement.scene_object(self._world.scene, self._world.episode, job.item.id)
        box = rearrangement.upright_box(item, self._world.state().poses[job.item.id])
        side = (0, 1, -1)[self._failures.count % 3]
        if side == 0:
            return box
        (x, y, z), (length, width, height) = box.center, box.size
        return UprightBox((x, y, z + side * height / 4), (length, width, height / 2), box.yaw_rad)

    def _looks(self, job: _Job, pose: SE2) -> list[Action]:
        """Looks to the tilt at which the ray meets the object best; none if the camera has that."""
        box = self._aim_box(job)
        x, y, yaw = (np.array([value]) for value in (pose.x_m, pose.y_m, pose.yaw_rad))

        def worth(ray: Ray) -> float:
            return float(self._pointer.hits(x, y, yaw, ray, box)[0])

        best = max(self._pointer.rays, key=worth)
        step_rad = math.radians(self._task.magnitudes.tilt_deg)
        looks = round((best.tilt_rad - self._world.tilt_rad()) / step_rad)
        return [Action.LOOK_UP if looks > 0 else Action.LOOK_DOWN] * abs(looks)

    # --- releasing --------------------------------------------------------------------------------------------------

    def _drop_places(self, job: _Job) -> list[Point]:
        assert self._grabbed_at is not None
        at, was = self._grabbed_at
        if self._is_exact(job):
            x, y = _stands_to_release(job, np.array([at.x_m]), np.array([at.y_m]), was)
            return [(float(x[0]), float(y[0]))]
        away_m = math.dist((at.x_m, at.y_m), was.position[:2])
        x, y, free = self._free_around(job, np.array([away_m]))
        if free.any():
            return list(zip(x[free].tolist(), y[free].tolist(), strict=True))
        off_m = max(0.6 * job.off_m, _BIN_M / 2)
        places = self._places(job, rearrangement.at_height(job.goal, was))
        return [place for place in places if abs(math.dist(place, job.goal.position[:2]) - away_m) <= off_m]

    def _drop_score(self, job: _Job) -> PoseScore:
        assert self._grabbed_at is not None
        at, was = self._grabbed_at
        ahead = at.inverse().apply(was.position[0], was.position[1])
        turn_rad = was.yaw_rad - at.yaw_rad
        exact = self._is_exact(job)

        def score(x: Floats, y: Floats, yaw: Floats) -> Floats:
            c, s = np.cos(yaw), np.sin(yaw)
            off_x = x + c * ahead[0] - s * ahead[1] - job.goal.position[0]
            off_y = y + s * ahead[0] + c * ahead[1] - job.goal.position[1]
            worth = 1 - np.hypot(off_x, off_y) / job.off_m
            if exact:
                off_rad = np.abs((yaw + turn_rad - job.goal.yaw_rad + math.pi) % math.tau - math.pi)
                worth = np.minimum(worth, 1 - off_rad / job.off_rad)
            return _without(worth, x, y, self._failures.places, _SAME_PLACE_M)

        return score

    # --- jobs -------------------------------------------------------------------------------------------------------

    def _job(self, item: RearrangedObject) -> _Job:
        hand = self._settings
        size = rearrangement.scene_object(self._world.scene, self._world.episode, item.id).size
        off_m = 0.1 if hand.goal == "predicate" else 0.7 * (hand.max_translation_m or math.inf)
        if hand.min_iou is not None:
            # An upright box shifted by a fraction f along both of its edges overlaps itself by (1-f)^2.
            shift = 1 - math.sqrt(2 * hand.min_iou / (1 + hand.min_iou))
            off_m = min(off_m, 0.8 * shift * min(size[:2]))
        off_rad = math.radians(min(hand.max_angle_deg or 10.0, 10.0))
        assert item.goal is not None
        return _Job(item, item.goal, off_m, off_rad)

    def _is_exact(self, job: _Job) -> bool:
        """Whether the object's heading matters, too."""
        return job.goes_back or self._settings.min_iou is not None or self._settings.max_angle_deg is not None

    def _is_right(self, job: _Job) -> bool:
        now = self._world.state().poses[job.item.id]
        if math.dist(now.position, job.goal.position) > job.off_m:
            return False
        return not self._is_exact(job) or abs(wrap_angle(now.yaw_rad - job.goal.yaw_rad)) <= job.off_rad

    def _obstacles(self, without: str = "") -> list[Disc]:
        """Objects that are not where the scene has them: the map shows only those that are."""
        world, found = self._world, []
        at_home = {item.id: item.center for item in world.scene.objects}
        for item in (*world.scene.objects, *added_objects(world.scene, [world.episode])):
            pose = world.state().poses.get(item.id)
            if item.id == without or pose is None:
                continue
            if item.id in at_home and math.dist(pose.position, at_home[item.id]) <= _AT_HOME_M:
                continue
            if pose.position[2] - item.size[2] / 2 < self._task.camera.height_m:
                found.append((pose.position[0], pose.position[1], min(item.size[:2]) / 2))
        return found

    def _ordered(self, jobs: Sequence[_Job]) -> tuple[_Job, ...]:
        """In the order of the shortest way over objects and goals; unchanged if there are many."""
        if not 1 < len(jobs) <= _ORDERED:
            return tuple(jobs)
        start = self._world.episode.start
        fields = [self._follower.space.field(self._places(job, job.item.start)) for job in jobs]
        stands = [self._release_place(job) for job in jobs]

        def length_m(order: Sequence[int]) -> float:
            starts = [(start.x_m, start.y_m), *(stands[i] for i in order)]
            return sum(min(fields[i].at(*begin), _NO_WAY_M) for i, begin in zip(order, starts, strict=False))

        return tuple(jobs[i] for i in min(permutations(range(len(jobs))), key=length_m))

    def _release_place(self, job: _Job) -> Point:
        """Some place from which the object can be put down at its goal."""
        goal = (job.goal.position[0], job.goal.position[1])
        places = self._places(job, rearrangement.at_height(job.goal, job.item.start))
        return min(places, key=lambda place: math.dist(place, goal), default=goal)


def _stands_to_release(job: _Job, x: Floats, y: Floats, was: ObjectPose) -> tuple[Floats, Floats]:
    """Pose from which an object is put exactly at its goal, turned as it must be, that was grabbed from there."""
    turn_rad = wrap_angle(job.goal.yaw_rad - was.yaw_rad)
    c, s = math.cos(turn_rad), math.sin(turn_rad)
    from_x, from_y = x - was.position[0], y - was.position[1]
    return job.goal.position[0] + c * from_x - s * from_y, job.goal.position[1] + s * from_x + c * from_y


def _without(worth: Floats, x: Floats, y: Floats, places: Sequence[Point], radius_m: float) -> Floats:
    """Scores of poses, -inf near the given places."""
    for place_x, place_y in places:
        worth = np.where(np.hypot(x - place_x, y - place_y) < radius_m, -np.inf, worth)
    return np.asarray(worth)
