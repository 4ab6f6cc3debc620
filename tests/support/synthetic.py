"""Synthetic episodes without simulator or robot: a two-room flat, ideal motion, ray-cast frames.

Everything is a pure function of its arguments, so two calls give equal records.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from robot_runtime.actions.discrete import Action, Displacement, Magnitudes
from robot_runtime.common.clock import seconds_to_ns
from robot_runtime.common.geometry import SE2, optical_axes
from robot_runtime.hal import BaseState, Halt, HeadState, Intrinsics, PoseEstimate, RgbdFrame, Velocity, Zone
from robot_runtime.records import (
    ActionResult,
    EndReason,
    EpisodeEnd,
    EpisodeHeader,
    Outcome,
    StepRecord,
    StepTimes,
    Subscriber,
)
from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap
from robot_runtime.scenes.scene import Room, Scene, SceneFile, SceneObject
from robot_runtime.sensors import observations_of
from robot_runtime.tasks.episode import Episode, Goal
from robot_runtime.tasks.task import Category, Success, Task, TrainingCamera

RADIUS_M = 0.18
MOUNT = (0.0, 0.0, 0.88)
FORWARD, LEFT, RIGHT, UP, DOWN, STOP = (
    Action.MOVE_FORWARD,
    Action.TURN_LEFT,
    Action.TURN_RIGHT,
    Action.LOOK_UP,
    Action.LOOK_DOWN,
    Action.STOP,
)


@dataclass(frozen=True)
class Box:
    """An oriented box, turned about z, with a colour."""

    center: tuple[float, float, float]
    size: tuple[float, float, float]
    yaw_rad: float = 0.0
    rgb: tuple[int, int, int] = (200, 200, 200)


TABLE = SceneObject("table_1", "DiningTable", (4.8, 2.2, 0.35), (0.8, 0.6, 0.7), 0.0, "east")
MUG = SceneObject("mug_1", "Mug", (4.6, 2.2, 0.76), (0.10, 0.10, 0.12), 20.0, "east")
SOFA = SceneObject("sofa_1", "Sofa", (0.5, 3.3, 0.4), (0.8, 1.2, 0.8), 0.0, "west")
_WALL_RGB = (214, 204, 190)
WALLS = (
    Box((3.0, -0.05, 1.25), (6.2, 0.1, 2.5), rgb=_WALL_RGB),
    Box((3.0, 4.05, 1.25), (6.2, 0.1, 2.5), rgb=_WALL_RGB),
    Box((-0.05, 2.0, 1.25), (0.1, 4.0, 2.5), rgb=_WALL_RGB),
    Box((6.05, 2.0, 1.25), (0.1, 4.0, 2.5), rgb=_WALL_RGB),
    # Between the rooms, with a doorway at y = 1.4 .. 2.4.
    Box((3.0, 0.7, 1.25), (0.1, 1.4, 2.5), rgb=(190, 180, 170)),
    Box((3.0, 3.2, 1.25), (0.1, 1.6, 2.5), rgb=(190, 180, 170)),
)


@cache
def scene() -> Scene:
    """A 6 x 4 m flat of two rooms with a table, a mug on it and a sofa; map at 5 cm, view points of the mug."""
    file = SceneFile(
        schema=1,
        name="two rooms",
        rooms=(
            Room("west", "living_room", ((0.0, 0.0), (3.0, 0.0), (3.0, 4.0), (0.0, 4.0))),
            Room("east", "kitchen", ((3.0, 0.0), (6.0, 0.0), (6.0, 4.0), (3.0, 4.0))),
        ),
        objects=(TABLE, MUG, SOFA),
        source={"generator": "tests", "seed": 0},
    )
    view_points = {"mug_1": (SE2(4.0, 2.2, 0.0), SE2(4.6, 1.5, math.pi / 2))}
    return Scene(Path("flat"), file, _occupancy(), view_points, "0" * 64)


def _occupancy() -> OccupancyMap:
    resolution_m, x0, y0 = 0.05, -0.2, -0.2
    cells = np.full((88, 128), Cell.UNKNOWN, np.uint8)
    occupancy = OccupancyMap(cells, resolution_m, x0, y0)
    rows, columns = np.indices(cells.shape)
    x, y = x0 + (columns + 0.5) * resolution_m, y0 + (rows + 0.5) * resolution_m
    cells[(x > 0) & (x < 6) & (y > 0) & (y < 4)] = Cell.FREE
    for box in (*WALLS, _box(TABLE), _box(SOFA)):
        inside = (abs(x - box.center[0]) <= box.size[0] / 2) & (abs(y - box.center[1]) <= box.size[1] / 2)
        cells[inside] = Cell.OCCUPIED
    return occupancy


def _box(item: SceneObject) -> Box:
    colors = {"table_1": (150, 100, 60), "mug_1": (200, 40, 40), "sofa_1": (70, 90, 150)}
    return Box(item.center, item.size, math.radians(item.yaw_deg), colors[item.id])


def pointnav_task(width: int = 64, height: int = 48, **changes: Any) -> Task:
    """PointNav with every sensor of a LoCoBot and small images."""
    task = Task(
        name="pointnav_test",
        kind="pointnav",
        source="tests",
        actions=(STOP, FORWARD, LEFT, RIGHT, UP, DOWN),
        magnitudes=Magnitudes(0.25, 30.0, 30.0),
        sensors=("rgb", "depth", "gps", "compass", "pointgoal_with_gps_compass"),
        camera=TrainingCamera(width, height, 79.0, 0.88, 0.5, 5.0, True),
        robot_radius_m=RADIUS_M,
        max_steps=500,
        success=Success("distance", 0.36),
    )
    return replace(task, **changes)


def objectnav_task(rule: str = "visible", **changes: Any) -> Task:
    """ObjectNav for a mug: RoboTHOR's rule, or Habitat's with ``rule="distance"``."""
    success = (
        Success("visible", 1.0, target="view_points", inclusive=True)
        if rule == "visible"
        else Success("distance", 0.1, target="view_points")
    )
    return pointnav_task(
        name=f"objectnav_{rule}_test",
        kind="objectnav",
        sensors=("rgb", "depth", "objectgoal"),
        success=success,
        categories={"Mug": Category(8, ("Mug",))},
        **changes,
    )


def pointnav_episode(**changes: Any) -> Episode:
    """From the west room through the doorway to (4.0, 1.9)."""
    return replace(Episode("7", "two rooms", SE2(1.0, 1.9, 0.0), (Goal(4.0, 1.9),)), **changes)


def objectnav_episode(**changes: Any) -> Episode:
    """From the doorway to the mug on the table."""
    goal = Goal(*MUG.center, object_id="mug_1", view_points=scene().view_points["mug_1"])
    return replace(Episode("m/1", "two rooms", SE2(3.0, 1.9, 0.0), (goal,), category="Mug"), **changes)


def header(task: Task | None = None, episode: Episode | None = None, **changes: Any) -> EpisodeHeader:
    """A header for an episode in :func:`scene`."""
    task = task or pointnav_task()
    result = EpisodeHeader(
        episode=episode or (pointnav_episode() if task.kind == "pointnav" else objectnav_episode()),
        task=task,
        scene=scene(),
        robot="synthetic",
        robot_config={"base": {"radius_m": RADIUS_M}},
        agent="scripted",
        seed=3,
        intrinsics=task.camera.intrinsics,
        depth_unit_m=0.001,
        mount=MOUNT,
        start_ns=seconds_to_ns(1.0),
        provenance={"commit": "1234567", "libraries": {"numpy": "2"}},
    )
    return replace(result, **changes)


def drive(start: EpisodeHeader, actions: Iterable[Action], tilt_rad: float = 0.0) -> list[StepRecord]:
    """The records of an ideal robot that carries out ``actions``; it stops where its disc would touch something."""
    robot = _Robot(start, tilt_rad)
    return [robot.observe(0, None, None), *(robot.act(i, action) for i, action in enumerate(actions, 1))]


def end_of(records: Sequence[StepRecord], reason: EndReason = EndReason.STOP) -> EpisodeEnd:
    """The end that belongs to ``records``."""
    last = records[-1]
    return EpisodeEnd(reason, last.index, last.times.observed_ns + 1)


def play(
    subscriber: Subscriber, start: EpisodeHeader, records: Sequence[StepRecord], end: EpisodeEnd | None = None
) -> None:
    """Tell a subscriber about a whole episode; four base states before each step."""
    subscriber.on_episode_start(start)
    for record in records:
        for k in range(4):
            subscriber.on_base_state(replace(record.base, stamp_ns=record.base.stamp_ns - (4 - k) * 20_000_000))
        subscriber.on_step(record)
    subscriber.on_episode_end(end or end_of(records))


class _Robot:
    def __init__(self, start: EpisodeHeader, tilt_rad: float) -> None:
        self._header = start
        self._pose = start.episode.start
        self._tilt_rad = tilt_rad
        self._now_ns = start.start_ns
        self._free = start.scene.map.navigable(RADIUS_M)
        self._builder = observations_of(start.task, start.scene, start.episode, self._pose, self._pose)

    def act(self, index: int, action: Action) -> StepRecord:
        wanted = self._header.task.magnitudes.displacement(action)
        done, blocked = wanted, False
        if wanted.forward_m:
            done_m = self._advance(wanted.forward_m)
            blocked = done_m < wanted.forward_m
            done = Displacement(forward_m=done_m)
        self._pose = SE2(self._pose.x_m, self._pose.y_m, (self._pose @ SE2(0, 0, wanted.turn_rad)).yaw_rad)
        self._tilt_rad += wanted.tilt_rad
        self._now_ns += seconds_to_ns(1.0)
        outcome, zone = (Outcome.CONTACT, Zone.CENTER) if blocked else (Outcome.REACHED, Zone.NONE)
        return self.observe(index, action, ActionResult(outcome, wanted, done, zone, 1.0))

    def _advance(self, wanted_m: float) -> float:
        done_m = 0.0
        while done_m < wanted_m - 1e-9:
            ahead = self._pose @ SE2(0.01, 0.0, 0.0)
            row, column = self._header.scene.map.to_cell(ahead.x_m, ahead.y_m)
            if not self._free[row, column]:
                break
            self._pose = ahead
            done_m += 0.01
        return min(done_m, wanted_m)

    def observe(self, index: int, action: Action | None, result: ActionResult | None) -> StepRecord:
        ended_ns = self._now_ns
        self._now_ns += seconds_to_ns(0.05)
        stamp_ns = self._now_ns
        frame = render(self._header.intrinsics, self._pose, self._tilt_rad, stamp_ns)
        estimate = PoseEstimate(stamp_ns, self._pose, "map")
        contact = result.contact if result is not None else Zone.NONE
        base = BaseState(
            stamp_ns, self._pose, Velocity(), contact, Zone.NONE, Zone.NONE, Halt.NONE, 16.2, 0.9 - index * 1e-4
        )
        return StepRecord(
            index=index,
            action=action,
            result=result,
            observation=self._builder.build(frame, self._pose),
            frame=frame,
            pose=estimate,
            referee=replace(estimate, covariance=np.diag([1e-6, 1e-6, 0.0])),
            base=base,
            head=HeadState(stamp_ns, 0.0, self._tilt_rad, False),
            times=StepTimes(ended_ns - seconds_to_ns(1.0), ended_ns, stamp_ns, stamp_ns + 1000),
            policy_info={"confidence": 0.1 * index},
            phase_s={"infer": 0.001, "act": 0.02},
        )


def render(intrinsics: Intrinsics, pose: SE2, tilt_rad: float, stamp_ns: int = 0) -> RgbdFrame:
    """A frame of the flat by ray casting against its boxes, the floor and the ceiling; depth in whole millimetres."""
    u, v = np.meshgrid(np.arange(intrinsics.width), np.arange(intrinsics.height))
    optical = np.stack([(u - intrinsics.cx) / intrinsics.fx, (v - intrinsics.cy) / intrinsics.fy, np.ones(u.shape)], -1)
    rays = optical @ (_turn(pose.yaw_rad) @ optical_axes(0.0, tilt_rad)).T
    eye = np.array([*pose.apply(*MOUNT[:2]), MOUNT[2]])
    depth = np.full(u.shape, np.inf)
    rgb = np.zeros((*u.shape, 3))
    for z, color in ((0.0, (120, 96, 72)), (2.5, (235, 235, 230))):
        with np.errstate(divide="ignore"):
            hit = (z - eye[2]) / rays[..., 2]
        _nearer(depth, rgb, np.where(hit > 0, hit, np.inf), color)
    for box in (*WALLS, *(_box(item) for item in scene().objects)):
        _nearer(depth, rgb, _slab(box, eye, rays), box.rgb)
    shade = np.clip(1.15 - depth / 8, 0.35, 1.0)[..., None]
    depth_m = np.rint(depth * 1000).astype(np.uint16) * np.float32(0.001)
    return RgbdFrame(stamp_ns, np.clip(rgb * shade, 0, 255).astype(np.uint8), depth_m)


def _slab(box: Box, eye: np.ndarray, rays: np.ndarray) -> np.ndarray:
    turn = _turn(-box.yaw_rad)
    origin, directions = turn @ (eye - box.center), rays @ turn.T
    half = np.array(box.size) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        near, far = (-half - origin) / directions, (half - origin) / directions
    (x, y, z), (x2, y2, z2) = np.moveaxis(np.minimum(near, far), -1, 0), np.moveaxis(np.maximum(near, far), -1, 0)
    enter, leave = np.fmax(np.fmax(x, y), z), np.fmin(np.fmin(x2, y2), z2)
    return np.where((enter <= leave) & (enter > 0), enter, np.inf)


def _nearer(depth: np.ndarray, rgb: np.ndarray, hit: np.ndarray, color: tuple[int, int, int]) -> None:
    closer = hit < depth
    depth[closer] = hit[closer]
    rgb[closer] = color


def _turn(yaw_rad: float) -> np.ndarray:
    c, s = math.cos(yaw_rad), math.sin(yaw_rad)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
