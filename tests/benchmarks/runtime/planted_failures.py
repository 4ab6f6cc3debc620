"""Logs of episodes that fail for a known cause, written by the recorder: the reference for ``failure_causes``.

A simulated robot drives through a flat of three rooms, with noise in motions, poses and referee, single contacts and
single motions that time out. Its camera sees walls, floor and the goal object by ray casting.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from robot_runtime.actions.discrete import Action, Displacement, Magnitudes
from robot_runtime.common.clock import seconds_to_ns
from robot_runtime.common.geometry import SE2
from robot_runtime.hal import BaseState, Halt, HeadState, PoseEstimate, RgbdFrame, Velocity, Zone
from robot_runtime.hal.events import Event
from robot_runtime.recording.writer import Recorder
from robot_runtime.records import ActionResult, EndReason, EpisodeEnd, EpisodeHeader, Outcome, StepRecord, StepTimes
from robot_runtime.scenes.geodesic import DistanceField, GeodesicMap
from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap
from robot_runtime.scenes.scene import Scene, SceneFile, SceneObject
from robot_runtime.scoring.failure_causes import CauseName
from robot_runtime.scoring.summary import Maps, score_log
from robot_runtime.tasks.episode import Episode, Goal
from robot_runtime.tasks.task import Category, Success, Task, TrainingCamera
from tests.benchmarks.report import Row

COUNT = 400
MAX_STEPS = 60
_RADIUS_M = 0.18
_RESOLUTION_M = 0.1
_SIZE_M = (9.0, 5.0)
_HEIGHT_M = 0.88
_RANGE_M = 8.0
_ACTIONS = (Action.STOP, Action.MOVE_FORWARD, Action.TURN_LEFT, Action.TURN_RIGHT)

Point = tuple[float, float]


@cache
def _flat() -> GeodesicMap:
    """Three rooms of 3 m, with doors of 1 m in the walls between them."""
    cells = np.full([round(size / _RESOLUTION_M) for size in reversed(_SIZE_M)], Cell.FREE, np.uint8)
    cells[[0, -1], :] = cells[:, [0, -1]] = Cell.OCCUPIED
    for wall_m, door_m in ((3.0, 0.6), (6.0, 3.4)):
        column = round(wall_m / _RESOLUTION_M)
        cells[:, column] = Cell.OCCUPIED
        rows = [round(y_m / _RESOLUTION_M) for y_m in (door_m, door_m + 1.0)]
        cells[rows[0] : rows[1], column] = Cell.FREE
    return GeodesicMap(OccupancyMap(cells, _RESOLUTION_M, 0.0, 0.0), _RADIUS_M)


@lru_cache(maxsize=64)
def _way(x_m: float, y_m: float) -> DistanceField:
    """Distances to a point for a robot that keeps away from walls."""
    return _wide().field([(x_m, y_m)])


@cache
def _wide() -> GeodesicMap:
    return GeodesicMap(_flat().map, 0.3)


class _Over(Exception):
    """The script of an episode has ended it."""

    def __init__(self, end: EpisodeEnd) -> None:
        super().__init__(end.reason.value)
        self.end = end


class _Drive:
    """A robot in the flat, whose steps go to the recorder.

    Attributes:
        pose: where it is.
        offset: error of the policy's localizer, added to every pose.
        drift_m: growth of that error per step.
        slip: share of a motion that the wheels turn without moving the robot.
        stuck: share of motions that time out.
    """

    def __init__(self, recorder: Recorder, header: EpisodeHeader, random: np.random.Generator) -> None:
        self.pose = header.episode.start
        self.offset: Point = (0.0, 0.0)
        self.drift: Point = (0.0, 0.0)
        self.slip = 0.0
        self.stuck = 0.015
        self.random = random
        self.index = 0
        self.now_ns = header.start_ns
        self._recorder, self._header = recorder, header
        self._odom = SE2(0.0, 0.0, 0.0)
        recorder.on_episode_start(header)
        self._publish(None, None)

    @property
    def goal(self) -> Goal:
        """The goal."""
        return self._header.episode.goals[0]

    def event(self, kind: str, detail: str) -> None:
        """Record an event of the policy's localizer."""
        self._recorder.on_event(Event(self.now_ns, "beacons", kind, detail))

    def end(self, reason: EndReason, detail: str = "", of_policy: bool = False) -> None:
        """End the episode. Raises ``_Over``."""
        raise _Over(EpisodeEnd(reason, self.index, self.now_ns, detail, of_policy=of_policy))

    def act(self, action: Action, halt: Halt = Halt.NONE) -> bool:
        """Carry out an action; return whether it met no contact. Raises ``_Over`` after a stop and the last step."""
        moved = self._header.task.magnitudes.displacement(action)
        noise = self.random.normal(1, 0.02)
        turned, forward_m = moved.turn_rad * noise, moved.forward_m * noise
        outcome, zone, detail = Outcome.REACHED, Zone.NONE, ""
        timed_out = action is not Action.STOP and self.random.random() < self.stuck
        if halt is not Halt.NONE:
            outcome, turned, forward_m = Outcome.STOPPED, 0.0, 0.0
        elif timed_out:
            outcome, turned, forward_m, detail = Outcome.TIMED_OUT, 0.1 * turned, 0.1 * forward_m, "after 10.0 s"
        ahead = self.pose @ SE2(forward_m * (1 - self.slip), 0.0, turned * (1 - self.slip))
        if forward_m and not _flat().is_clear(self.pose.x_m, self.pose.y_m, ahead.x_m, ahead.y_m):
            outcome, zone, ahead, forward_m = Outcome.CONTACT, Zone.CENTER, self.pose, 0.0
        self._odom = self._odom @ SE2(forward_m, 0.0, turned)
        self.pose = ahead
        self.offset = self.offset[0] + self.drift[0], self.offset[1] + self.drift[1]
        self.index += 1
        self.now_ns += seconds_to_ns(1.0)
        measured = Displacement(forward_m, turned)
        self._publish(action, ActionResult(outcome, moved, measured, zone, 1.0, detail), halt)
        if action is Action.STOP:
            self.end(EndReason.STOP)
        if halt is not Halt.NONE:
            self.end(EndReason.INTERRUPTED, f"base: held by {halt.value}", halt is Halt.CLIFF)
        if self.index >= MAX_STEPS:
            self.end(EndReason.MAX_STEPS)
        return outcome is not Outcome.CONTACT

    def face(self, x_m: float, y_m: float) -> None:
        """Turn towards a point, to half a turn's angle."""
        while abs(error := self._bearing(x_m, y_m)) > math.radians(16):
            self.act(Action.TURN_LEFT if error > 0 else Action.TURN_RIGHT)

    def go(self, x_m: float, y_m: float, until_m: float = 0.3, steps: int = 1000) -> None:
        """Drive to a distance from a point, or for a number of steps; slides off where it touches."""
        field = _way(round(x_m, 2), round(y_m, 2))
        last = self.index + steps
        while field.at(self.pose.x_m, self.pose.y_m) > until_m and self.index < last:
            way = field.path(self.pose.x_m, self.pose.y_m)
            near = next((p for p in way[1:] if math.hypot(p[0] - self.pose.x_m, p[1] - self.pose.y_m) > 0.2), way[-1])
            if abs(error := self._bearing(*near)) > math.radians(16):
                self.act(Action.TURN_LEFT if error > 0 else Action.TURN_RIGHT)
            elif not self.act(Action.MOVE_FORWARD):
                away = Action.TURN_LEFT if self.random.random() < 0.5 else Action.TURN_RIGHT
                for action in (away, away, Action.MOVE_FORWARD):
                    self.act(action)

    def wander(self, region: tuple[float, float, float, float], steps: int = 1000) -> None:
        """Drive to random points of a region (least and largest x, then y)."""
        last = self.index + steps
        while self.index < last:
            x_m, y_m = self.random.uniform(*region[:2]), self.random.uniform(*region[2:])
            if _flat().is_navigable(x_m, y_m):
                self.go(x_m, y_m, steps=last - self.index)

    def _bearing(self, x_m: float, y_m: float) -> float:
        return math.remainder(math.atan2(y_m - self.pose.y_m, x_m - self.pose.x_m) - self.pose.yaw_rad, math.tau)

    def _publish(self, action: Action | None, result: ActionResult | None, halt: Halt = Halt.NONE) -> None:
        camera, index = self._header.task.camera, self.index
        depth_m = _depth(self.pose, self._header)
        contact = Zone.NONE if result is None else result.contact
        noise = self.random.normal(0, 0.02, 4)
        referee = SE2(self.pose.x_m + noise[0], self.pose.y_m + noise[1], self.pose.yaw_rad)
        policy = SE2(referee.x_m + noise[2] + self.offset[0], referee.y_m + noise[3] + self.offset[1], referee.yaw_rad)
        rgb = np.full((camera.height, camera.width, 3), index, np.uint8)
        self._recorder.on_step(
            StepRecord(
                index=index,
                action=action,
                result=result,
                observation={"compass": np.array([referee.yaw_rad], np.float32)},
                frame=RgbdFrame(self.now_ns, rgb, depth_m),
                pose=PoseEstimate(self.now_ns, policy, "map"),
                referee=PoseEstimate(self.now_ns, referee, "map"),
                base=BaseState(self.now_ns, self._odom, Velocity(), contact, Zone.NONE, Zone.NONE, halt, 16.2, 0.9),
                head=HeadState(self.now_ns, 0.0, 0.0, False),
                times=StepTimes(self.now_ns, self.now_ns, self.now_ns, self.now_ns),
            )
        )


def _depth(pose: SE2, header: EpisodeHeader) -> NDArray[np.float32]:
    """Depth image of walls, floor and goal object, float32 (H, W) along the optical axis."""
    lens, space = header.intrinsics, _flat()
    across = -(np.arange(lens.width) - lens.cx) / lens.fx
    down = (np.arange(lens.height) - lens.cy) / lens.fy
    along_m = np.arange(0.05, _RANGE_M, 0.04)
    c, s = math.cos(pose.yaw_rad), math.sin(pose.yaw_rad)
    direction = np.stack([c - across * s, s + across * c], axis=-1)  # per meter of depth, (W, 2)
    points = np.array([pose.x_m, pose.y_m]) + along_m[:, None, None] * direction
    columns = np.clip((points[..., 0] / _RESOLUTION_M).astype(int), 0, space.map.cells.shape[1] - 1)
    rows = np.clip((points[..., 1] / _RESOLUTION_M).astype(int), 0, space.map.cells.shape[0] - 1)
    wall = space.map.cells[rows, columns] == Cell.OCCUPIED
    walls_m = np.where(wall.any(axis=0), along_m[wall.argmax(axis=0)], np.inf)
    with np.errstate(divide="ignore"):
        floor_m = np.where(down > 0, _HEIGHT_M / down, np.inf)
    depth_m = np.minimum(walls_m[None, :], floor_m[:, None])
    for item in header.scene.objects:
        depth_m = np.minimum(depth_m, _box_depth(pose, direction, down, item))
    return np.where(np.isfinite(depth_m), depth_m, 0).astype(np.float32)


def _box_depth(
    pose: SE2, direction: NDArray[np.float64], down: NDArray[np.floating], item: SceneObject
) -> NDArray[np.float64]:
    """Depth of an axis-aligned box, inf beside it, (H, W)."""
    rays = np.empty((down.size, len(direction), 3))
    rays[..., :2], rays[..., 2] = direction, -down[:, None]
    origin = np.array([pose.x_m, pose.y_m, _HEIGHT_M])
    low, high = np.array(item.center) - np.array(item.size) / 2, np.array(item.center) + np.array(item.size) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        first, last = (low - origin) / rays, (high - origin) / rays
    enter, leave = np.minimum(first, last).max(axis=-1), np.maximum(first, last).min(axis=-1)
    return np.where((enter < leave) & (enter > 0), enter, np.inf)


# --- scripts --------------------------------------------------------------------------------------------------------


def _stops_early(drive: _Drive, objectnav: bool) -> None:
    goal = drive.goal
    drive.go(goal.x_m, goal.y_m, until_m=drive.random.uniform(2.0, 4.0), steps=int(drive.random.integers(8, 40)))
    drive.act(Action.STOP)


def _never_sees(drive: _Drive, objectnav: bool) -> None:
    drive.wander((0.4, 2.6, 1.9, 4.6))


def _leaves(drive: _Drive, objectnav: bool) -> None:
    goal = drive.goal
    drive.go(goal.x_m, goal.y_m, until_m=drive.random.uniform(0.75, 1.2) if objectnav else 0.25)
    drive.face(goal.x_m, goal.y_m)
    drive.go(1.0, drive.random.uniform(0.6, 4.0), steps=int(drive.random.integers(16, 40)))
    if drive.random.random() < 0.5:
        drive.act(Action.STOP)
    drive.wander((0.4, 2.6, 0.6, 4.6))


def _is_in_a_loop(drive: _Drive, objectnav: bool) -> None:
    drive.go(drive.goal.x_m, drive.goal.y_m, until_m=3.5, steps=int(drive.random.integers(3, 25)))
    while drive.act(Action.MOVE_FORWARD):
        pass
    while True:
        for _ in range(int(drive.random.integers(1, 5))):
            drive.act(Action.MOVE_FORWARD)
        way = [(Action.TURN_LEFT, Action.TURN_RIGHT), (Action.TURN_RIGHT, Action.TURN_LEFT)]
        if drive.random.random() < 0.5:
            for action in way[int(drive.random.integers(2))]:
                drive.act(action)


def _is_lost(drive: _Drive, objectnav: bool) -> None:
    way = int(drive.random.integers(3))
    goal = drive.goal
    if way == 0:
        drive.go(goal.x_m, goal.y_m, until_m=2.0, steps=int(drive.random.integers(3, 20)))
        drive.event("lost", "no fix for 2.0 s")
        drive.end(EndReason.LOCALIZATION_LOST, "beacons: no fix for 5.0 s")
    angle = drive.random.uniform(0, math.tau)
    if way == 1:  # a growing error: it stops where it thinks that the goal is
        drive.drift = (0.06 * math.cos(angle), 0.06 * math.sin(angle))
        drive.go(goal.x_m, goal.y_m, until_m=drive.random.uniform(1.6, 2.4), steps=40)
        drive.offset = goal.x_m - drive.pose.x_m, goal.y_m - drive.pose.y_m
        drive.act(Action.STOP)
    drive.go(goal.x_m, goal.y_m, until_m=2.0, steps=int(drive.random.integers(5, 15)))
    drive.event("jump_rejected", "1.4 m")
    drive.offset = 1.4 * math.cos(angle), 1.4 * math.sin(angle)
    drive.wander((0.4, 2.6, 0.6, 4.6))


def _runs_out_of_steps(drive: _Drive, objectnav: bool) -> None:
    goal = drive.goal
    for _ in range(int(drive.random.integers(0, 12))):
        drive.act(Action.TURN_LEFT)
    arrives = drive.random.random() < 0.4  # and does not stop
    drive.go(goal.x_m, goal.y_m, until_m=(0.9 if objectnav else 0.3) if arrives else drive.random.uniform(1.2, 1.8))
    drive.face(goal.x_m, goal.y_m)
    while True:
        for action in (Action.TURN_LEFT, Action.TURN_RIGHT):
            drive.act(action)


def _has_broken_wheels(drive: _Drive, objectnav: bool) -> None:
    goal = drive.goal
    drive.go(goal.x_m, goal.y_m, until_m=2.0, steps=int(drive.random.integers(2, 12)))
    way = int(drive.random.integers(3))
    if way == 0:
        drive.end(EndReason.FAULT, "base: no feedback for 2.0 s")
    drive.slip, drive.stuck = (0.9, 0.015) if way == 1 else (0.0, 0.7)
    for _ in range(int(drive.random.integers(20, 60))):
        drive.act(Action.MOVE_FORWARD if drive.random.random() < 0.7 else Action.TURN_LEFT)
    drive.act(Action.STOP)


def _is_ended_by_a_person(drive: _Drive, objectnav: bool) -> None:
    drive.go(drive.goal.x_m, drive.goal.y_m, until_m=2.0, steps=int(drive.random.integers(2, 30)))
    if drive.random.random() < 0.5:
        drive.act(Action.MOVE_FORWARD, Halt.E_STOP)
    drive.end(EndReason.INTERRUPTED, str(drive.random.choice(["interrupted from the keyboard", "ended by SIGTERM"])))


def _has_a_broken_policy(drive: _Drive, objectnav: bool) -> None:
    drive.go(drive.goal.x_m, drive.goal.y_m, until_m=2.0, steps=int(drive.random.integers(2, 30)))
    if drive.random.random() < 0.3:
        drive.act(Action.MOVE_FORWARD, Halt.CLIFF)
    drive.end(EndReason.FAULT, "the policy raised ValueError: logits are NaN", of_policy=True)


def _has_another_fault(drive: _Drive, objectnav: bool) -> None:
    drive.go(drive.goal.x_m, drive.goal.y_m, until_m=2.0, steps=int(drive.random.integers(2, 30)))
    details = ["camera: no new frame for 2.0 s", "run.mcap: cannot be written: no space left on device"]
    drive.end(EndReason.FAULT, str(drive.random.choice(details)))


_SCRIPTS: dict[CauseName, Callable[[_Drive, bool], None]] = {
    "stopped_too_early": _stops_early,
    "never_saw_goal": _never_sees,
    "saw_goal_and_left": _leaves,
    "contact_loop": _is_in_a_loop,
    "localization": _is_lost,
    "timeout": _runs_out_of_steps,
    "wheels": _has_broken_wheels,
    "operator": _is_ended_by_a_person,
    "policy_fault": _has_a_broken_policy,
    "unknown": _has_another_fault,
}


@dataclass(frozen=True)
class Planted:
    """A log, and the cause that was planted in it."""

    path: Path
    cause: CauseName


def plant(folder: Path, count: int, seed: int) -> Iterator[Planted]:
    """Write logs, the causes in turn, half of them of ObjectNav (all that never see the goal).

    Args:
        folder: folder to write to.
        count: number of logs.
        seed: random seed of starts, goals, noise and variants.
    """
    recorder = Recorder(folder)
    for number in range(count):
        random = np.random.default_rng((seed, number))
        cause = list(_SCRIPTS)[number % len(_SCRIPTS)]
        objectnav = cause == "never_saw_goal" or bool(number // len(_SCRIPTS) % 2)
        drive = _Drive(recorder, _header(number, objectnav, random), random)
        try:
            while True:
                _SCRIPTS[cause](drive, objectnav)
        except _Over as over:
            recorder.on_episode_end(over.end)
        assert recorder.path is not None
        yield Planted(recorder.path, cause)


def cause_rows(seed: int, count: int = COUNT) -> list[Row]:
    """Rows of the causes that are found in planted failures."""
    maps = Maps()
    right = wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for planted in plant(Path(folder), count, seed):
            cause = score_log(planted.path, maps=maps).cause
            name = "unknown" if cause is None else cause.name
            right += name == planted.cause
            wrong += name not in (planted.cause, "unknown")
    note = f"{count} logs, {len(_SCRIPTS)} causes in equal numbers, of which one is unknown; PointNav and ObjectNav"
    return [
        Row("causes_right", "failures whose planted cause is found", right / count, "", 0.95, note=note),
        Row("causes_wrong", "failures for which another cause is stated", wrong / count, "", 0.02, "<=", note=note),
    ]


def _header(number: int, objectnav: bool, random: np.random.Generator) -> EpisodeHeader:
    task = Task(
        name="objectnav" if objectnav else "pointnav",
        kind="objectnav" if objectnav else "pointnav",
        source="bench",
        actions=_ACTIONS,
        magnitudes=Magnitudes(0.25, 30.0, 30.0),
        sensors=("depth", "objectgoal", "gps", "compass") if objectnav else ("depth", "pointgoal"),
        camera=TrainingCamera(32, 24, 79.0, _HEIGHT_M, 0.5, 5.0, True),
        robot_radius_m=_RADIUS_M,
        max_steps=MAX_STEPS,
        success=Success("visible", 1.0, min_visible_pixels=1) if objectnav else Success("distance", 0.36),
        categories={"vase": Category(0, ("vase",))} if objectnav else {},
    )
    x_m, y_m = random.uniform(4.2, 5.4), random.uniform(2.0, 4.4)
    vase = SceneObject("vase_1", "vase", (x_m, y_m, 0.6), (0.3, 0.3, 1.2))
    start = SE2(random.uniform(0.5, 2.5), random.uniform(2.6, 4.5), random.uniform(-math.pi, math.pi))
    file = SceneFile(1, "flat", (), (vase,) if objectnav else (), source={"generator": "bench"})
    return EpisodeHeader(
        episode=Episode(str(number), "flat", start, (Goal(x_m, y_m),), category="vase" if objectnav else None),
        task=task,
        scene=Scene(Path("flat"), file, _flat().map, {}, "0" * 64),
        robot="bench",
        robot_config={},
        agent="script",
        seed=number,
        intrinsics=task.camera.intrinsics,
        depth_unit_m=0.001,
        mount=(0.0, 0.0, _HEIGHT_M),
        start_ns=seconds_to_ns(1.0),
        provenance={"created": "bench"},
        localizers={"policy": ("beacons",), "referee": ("ceiling",)},
    )
