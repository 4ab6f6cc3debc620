"""Rows of ``bench policy``: a trajectory and a velocity policy on a Kobuki's motors, against ground truth.

The policy decides four times a second, from the true pose at the exposure of its image, and its answer is 0.2 s old
when the robot gets it. Beside it, the same trajectories with the pose at their arrival taken for that of the image.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drivers.fake.driver import make_robot
from robot_runtime.actions.timed import Control, Decision, TimedAction, TrajectoryControl, trajectory, velocity
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.env import Env
from robot_runtime.policy import Observation, Policy, World
from robot_runtime.records import ActionResult, EndReason, StepRecord, Subscriber
from robot_runtime.robots.loader import RobotContext
from robot_runtime.runtime import run_episode
from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap
from robot_runtime.scenes.scene import Room, Scene, SceneFile
from robot_runtime.tasks.episode import Episode, Goal
from robot_runtime.tasks.task import Task, load_task
from tests.benchmarks.report import Row

Floats = NDArray[np.float64]

SPEED_M_S, VELOCITY_M_S, SECONDS, PERIOD_S, HALF_M = 0.3, 0.2, 20.0, 0.25, 4.0
CAMERA_LATENCY_S, POSE_LATENCY_S, LATENCY_S = 0.03, 0.05, 0.15
POINTS = 8
SPACING_M = 0.001
KOBUKI = {
    "motors": {"type": "kobuki"},
    "camera_rate_hz": 20.0,
    "camera_latency_s": CAMERA_LATENCY_S,
    "pose_latency_s": POSE_LATENCY_S,
}


@dataclass(frozen=True)
class Curve:
    """A closed curve that begins at the origin along x, by points 1 mm apart: (n, 3) of x, y, heading."""

    points: Floats

    @classmethod
    def of(cls, place: Callable[[Floats], tuple[Floats, Floats]]) -> Curve:
        """The curve that a function of 0 .. 2 pi draws."""
        x_m, y_m = place(np.linspace(0.0, 2 * math.pi, 40001))
        along_m = np.concatenate([[0.0], np.cumsum(np.hypot(np.diff(x_m), np.diff(y_m)))])
        at_m = np.arange(0.0, along_m[-1], SPACING_M)
        x_m, y_m = np.interp(at_m, along_m, x_m), np.interp(at_m, along_m, y_m)
        yaw_rad = np.unwrap(np.arctan2(np.roll(y_m, -1) - np.roll(y_m, 1), np.roll(x_m, -1) - np.roll(x_m, 1)))
        turned = SE2(0.0, 0.0, float(yaw_rad[0])).inverse()
        rows = [SE2(x, y, w).relative_to(SE2(x_m[0], y_m[0], 0.0)) for x, y, w in zip(x_m, y_m, yaw_rad, strict=True)]
        rows = [turned @ row for row in rows]
        return cls(np.array([(row.x_m, row.y_m, row.yaw_rad) for row in rows]))

    def nearest(self, pose: SE2, near: int) -> int:
        """Index of the nearest point within half a meter along the curve of the point ``near``."""
        reach = round(0.5 / SPACING_M)
        indices = np.arange(near - reach, near + reach) % len(self.points)
        off = self.points[indices, :2] - (pose.x_m, pose.y_m)
        return int(indices[np.argmin(np.square(off).sum(axis=1))])

    def pose(self, index: int) -> SE2:
        """Pose on the curve."""
        return SE2(*self.points[index % len(self.points)].tolist())


CIRCLE = Curve.of(lambda share: (np.sin(share), 1 - np.cos(share)))
EIGHT = Curve.of(lambda share: (1.5 * np.sin(share), 1.5 * np.sin(share) * np.cos(share)))
"""A circle of 1 m radius, and Gerono's lemniscate, 3 m long."""


class OnCurve(Policy):
    """Answers with the next two seconds of a curve, from the true pose at its image."""

    name = "on-curve"
    privileged = True

    def __init__(self, curve: Curve) -> None:
        self._curve = curve

    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        """Start at the curve's beginning."""
        assert world is not None
        self._pose, self._index = world.pose, 0

    def act(self, observation: Observation) -> Decision:
        """The points ahead, in the robot's frame at the image."""
        pose = self._pose()
        self._index = self._curve.nearest(pose, self._index)
        step = SPEED_M_S * PERIOD_S / SPACING_M
        ahead = [self._curve.pose(self._index + round(step * number)) for number in range(1, POINTS + 1)]
        seen = [point.relative_to(pose) for point in ahead]
        return trajectory([(point.x_m, point.y_m) for point in seen], PERIOD_S)


class Straight(Policy):
    """Answers with one velocity."""

    name = "straight"

    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        """Nothing is remembered."""

    def act(self, observation: Observation) -> Decision:
        """The velocity."""
        return velocity(VELOCITY_M_S, 0.0, duration_s=PERIOD_S, settle=False)


class Poses(Subscriber):
    """Keeps the referee's poses, which are exact, and the steps."""

    def __init__(self) -> None:
        self.steps: list[StepRecord] = []
        self.poses: list[SE2] = []

    def on_poses(self, source: str, estimates: Any) -> None:
        """Keep them."""
        if "referee" in source:
            self.poses += [estimate.pose for estimate in estimates]

    def on_step(self, record: StepRecord) -> None:
        """Keep it."""
        self.steps.append(record)


def drive(policy: Policy, pose_now: bool = False, seconds: float = SECONDS) -> Poses:
    """Run one episode on the fake robot with a Kobuki's motors."""
    limits = TrajectoryControl((0.0, 0.5), 1.5, PERIOD_S, latency_s=LATENCY_S)
    task = replace(
        load_task("pointnav_gps_compass"),
        control=Control((0.0, 0.0), trajectory=limits),
        max_seconds=seconds,
        max_steps=10_000,
    )
    with make_robot(RobotContext(None, task.camera, seed=0), "fake", dict(KOBUKI), "bench") as robot:
        seen = Poses()
        env = Env(robot, task, _room(), (seen,))
        if pose_now:
            pursuit = env._pursuit
            assert pursuit is not None
            step = pursuit.step

            def at_arrival(action: TimedAction, exposed_ns: int) -> ActionResult:
                return step(replace(action, exposure_ns=robot.clock.now_ns()), exposed_ns)

            pursuit.step = at_arrival  # type: ignore[method-assign]
        end = run_episode(env, policy, Episode("1", "room", SE2(), (Goal(3.5, 3.5),)), seed=0)
        assert end.reason is EndReason.MAX_SECONDS, end
    return seen


def errors(curve: Curve, poses: Sequence[SE2]) -> tuple[Floats, Floats]:
    """Distances from the curve in centimeters, and errors of the heading in degrees."""
    found, index = [], 0
    for pose in poses:
        index = curve.nearest(pose, index)
        there = curve.pose(index)
        found.append((100 * pose.distance_to(there), abs(math.degrees(wrap_angle(pose.yaw_rad - there.yaw_rad)))))
    table = np.array(found)
    return table[:, 0], table[:, 1]


def rows() -> list[Row]:
    """Rows of the pursuit."""
    worst: dict[bool, list[tuple[float, float, float]]] = {False: [], True: []}
    ages_s, driven_m_s = [], []
    for curve in (CIRCLE, EIGHT):
        for pose_now in (False, True):
            seen = drive(OnCurve(curve), pose_now)
            away_cm, off_deg = errors(curve, seen.poses)
            worst[pose_now].append((away_cm.max(), off_deg.max(), away_cm.mean()))
            if not pose_now:
                ages_s += [step.result.pursued.age_s for step in seen.steps if step.result and step.result.pursued]
                driven_m_s.append(length_m(seen.poses) / SECONDS)
    straight = drive(Straight())
    asked_m = VELOCITY_M_S * SECONDS
    note = (
        f"circle of 1 m radius and lemniscate of 3 m, {SECONDS:g} s from rest, {SPEED_M_S} m/s asked and "
        f"{min(driven_m_s):.3f} driven; answers {min(ages_s):.3f} to {max(ages_s):.3f} s old, one per {PERIOD_S} s"
    )
    (_, _, mean_cm) = max(worst[False], key=lambda row: row[2])
    return [
        Row(
            "trajectory_error_cm",
            "largest distance from the trajectories' curve, Kobuki motors, ground truth",
            max(row[0] for row in worst[False]),
            "cm",
            1.0,
            "<=",
            "the same with the pose at arrival for that of the image",
            max(row[0] for row in worst[True]),
            note=f"{note}; mean {mean_cm:.2f} cm",
        ),
        Row(
            "trajectory_error_deg",
            "largest error of the heading on that curve",
            max(row[1] for row in worst[False]),
            "°",
            1.0,
            "<=",
            "the same with the pose at arrival for that of the image",
            max(row[1] for row in worst[True]),
        ),
        Row(
            "velocity_follow_ratio",
            "distance driven over distance asked, of a velocity policy at 4 Hz, from rest",
            length_m(straight.poses) / asked_m,
            "",
            0.95,
            note=f"{SECONDS:g} s of {VELOCITY_M_S} m/s on a Kobuki's motors",
        ),
    ]


def length_m(poses: Sequence[SE2]) -> float:
    return sum(a.distance_to(b) for a, b in pairwise(poses))


def _room() -> Scene:
    """An empty room."""
    cells = np.full((160, 160), Cell.FREE, np.uint8)
    cells[[0, -1], :] = cells[:, [0, -1]] = Cell.OCCUPIED
    corners = ((-HALF_M, -HALF_M), (HALF_M, -HALF_M), (HALF_M, HALF_M), (-HALF_M, HALF_M))
    file = SceneFile(schema=1, name="room", rooms=(Room("hall", "hall", corners),), objects=())
    return Scene(Path("room"), file, OccupancyMap(cells, 0.05, -HALF_M, -HALF_M), {}, "digest")
