"""A disc on two wheels between walls: what an emulated base feels when it drives."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

MOTOR_TAU_S = 0.06
"""Time constant of the wheels' speed controllers."""

COMPRESSION_M = 0.003
"""How near a wall is when it presses the bumper."""

REST_MPS = 0.002

Wall = tuple[float, float, float, float]


@dataclass
class Wheels:
    """Two motors of first order with a limited acceleration.

    Args:
        track_m: distance of the wheels.
        max_accel_mps2: of each wheel.
        lag_s: time constant of each wheel.
        dead_time_s: from a target to the first motion.
    """

    track_m: float
    max_accel_mps2: float = 0.9
    left_mps: float = 0.0
    right_mps: float = 0.0
    lag_s: float = MOTOR_TAU_S
    dead_time_s: float = 0.0
    time_s: float = 0.0
    targets: deque[tuple[float, float, float]] = field(default_factory=deque)

    @property
    def v_mps(self) -> float:
        return (self.left_mps + self.right_mps) / 2

    @property
    def w_radps(self) -> float:
        return (self.right_mps - self.left_mps) / self.track_m

    @property
    def at_rest(self) -> bool:
        return max(abs(self.left_mps), abs(self.right_mps)) < REST_MPS

    def step(self, v_mps: float, w_radps: float, dt_s: float) -> None:
        self.time_s += dt_s
        self.targets.append((self.time_s, v_mps, w_radps))
        v_mps = w_radps = 0.0
        while len(self.targets) > 1 and self.targets[1][0] <= self.time_s - self.dead_time_s:
            self.targets.popleft()
        if self.targets[0][0] <= self.time_s - self.dead_time_s:
            _, v_mps, w_radps = self.targets[0]
        half = w_radps * self.track_m / 2
        self.left_mps = self._toward(self.left_mps, v_mps - half, dt_s)
        self.right_mps = self._toward(self.right_mps, v_mps + half, dt_s)

    def _toward(self, now: float, target: float, dt_s: float) -> float:
        change = (target - now) * (1 - math.exp(-dt_s / self.lag_s))
        limit = self.max_accel_mps2 * dt_s
        return now + min(max(change, -limit), limit)


@dataclass
class Pose:
    """A pose in the plane."""

    x_m: float = 0.0
    y_m: float = 0.0
    yaw_rad: float = 0.0

    def moved(self, v_mps: float, w_radps: float, dt_s: float) -> Pose:
        middle = self.yaw_rad + w_radps * dt_s / 2
        step_m = v_mps * dt_s
        yaw = math.remainder(self.yaw_rad + w_radps * dt_s, math.tau)
        return Pose(self.x_m + step_m * math.cos(middle), self.y_m + step_m * math.sin(middle), yaw)


@dataclass
class World:
    """Walls, and the disc among them; a wall holds it where it touches.

    Args:
        walls: (x0, y0, x1, y1) each, in meters.
        radius_m: of the disc.
    """

    walls: Sequence[Wall]
    radius_m: float

    def move(self, pose: Pose, v_mps: float, w_radps: float, dt_s: float) -> tuple[Pose, bool]:
        """The pose after a step, and whether a wall held the disc."""
        after = pose.moved(v_mps, w_radps, dt_s)
        if any(
            self._distance(wall, after)[0] < min(self.radius_m, self._distance(wall, pose)[0]) for wall in self.walls
        ):
            return Pose(pose.x_m, pose.y_m, after.yaw_rad), True
        return after, False

    def contacts_rad(self, pose: Pose) -> list[float]:
        """The bearings of walls that press the bumper, from -90 to 90 degrees, left positive."""
        bearings = []
        for wall in self.walls:
            distance_m, x_m, y_m = self._distance(wall, pose)
            if distance_m < self.radius_m + COMPRESSION_M:
                toward = math.atan2(y_m - pose.y_m, x_m - pose.x_m)
                bearings.append(math.remainder(toward - pose.yaw_rad, math.tau))
        return [bearing for bearing in bearings if abs(bearing) <= math.pi / 2]

    @staticmethod
    def _distance(wall: Wall, pose: Pose) -> tuple[float, float, float]:
        """The distance of a wall, and its nearest point."""
        x0, y0, x1, y1 = wall
        along = ((pose.x_m - x0) * (x1 - x0) + (pose.y_m - y0) * (y1 - y0)) / ((x1 - x0) ** 2 + (y1 - y0) ** 2)
        along = min(max(along, 0.0), 1.0)
        x, y = x0 + along * (x1 - x0), y0 + along * (y1 - y0)
        return math.hypot(pose.x_m - x, pose.y_m - y), x, y
