"""What the emulated bases share: motion in the world, faults, and the state that tests read."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

from tests.ros2.emulators.world import Pose, Wheels, World

STEP_S = 0.005


@dataclass
class Base(ABC):
    """A differential base as a function of commands and time; times are of one monotonic clock, in seconds.

    Attributes:
        world: in which it moves.
        wheels: its motors.
        pose: the true one.
        odometry: by the wheels.
        commanded: the last command that had an effect.
        command_at_s: when that came.
        commands: all that have come.
        zero_at_s: when the present row of zero commands began.
        hazard_at_s: when the newest hazard was published.
        hazard_to_zero_s: from then to the first zero command.
        stopped_at_s: since when the wheels are at rest.
        is_held: whether a wall holds it.
        dead: whether it takes commands and turns no wheel.
        e_stop: whether its motors have no power.
    """

    world: World
    wheels: Wheels
    pose: Pose
    odometry: Pose = field(default_factory=Pose)
    commanded: tuple[float, float] = (0.0, 0.0)
    command_at_s: float | None = None
    commands: int = 0
    zero_at_s: float | None = None
    hazard_at_s: float | None = None
    hazard_to_zero_s: float | None = None
    stopped_at_s: float | None = None
    is_held: bool = False
    dead: bool = False
    e_stop: bool = False
    now_s: float = 0.0

    def receive(self, v_mps: float, w_radps: float, now_s: float) -> None:
        """Take a command from the wire."""
        self.commands += 1
        if (v_mps, w_radps) != (0.0, 0.0):
            self.zero_at_s = None
        else:
            self.zero_at_s = now_s if self.zero_at_s is None else self.zero_at_s
            if self.hazard_at_s is not None and self.hazard_to_zero_s is None:
                self.hazard_to_zero_s = now_s - self.hazard_at_s
        if self.obeys():
            self.commanded, self.command_at_s = (v_mps, w_radps), now_s

    def obeys(self) -> bool:
        """Whether commands have an effect now."""
        return True

    @abstractmethod
    def target(self, now_s: float) -> tuple[float, float]:
        """The velocity that the motors are to reach."""

    def step(self, now_s: float) -> None:
        """Move on to a time."""
        self.now_s, dt_s = now_s, min(max(now_s - self.now_s, 0.0), 10 * STEP_S) if self.now_s else 0.0
        v, w = (0.0, 0.0) if self.dead or self.e_stop else self.target(now_s)
        self.wheels.step(v, w, dt_s)
        v, w = self.wheels.v_mps, self.wheels.w_radps
        self.pose, self.is_held = self.world.move(self.pose, v, w, dt_s)
        self.odometry = self.odometry.moved(v, w, dt_s)  # of the wheels, which slip at a wall
        if not self.wheels.at_rest:
            self.stopped_at_s = None
        elif self.stopped_at_s is None:
            self.stopped_at_s = now_s

    def command(self, name: str, value: Any) -> None:
        """Take a test's command: ``dead``, ``e_stop`` (true or false), ``pose`` ([x, y, yaw])."""
        if name == "pose":
            self.pose = Pose(*map(float, value))
        elif name in ("dead", "e_stop"):
            setattr(self, name, bool(value))
        else:
            raise ValueError(f"unknown command {name!r}")

    def published_hazard(self) -> None:
        """Note that the message of a new hazard was sent now."""
        self.hazard_at_s, self.hazard_to_zero_s = time.monotonic(), None

    def restart(self) -> None:
        """Forget everything, as a power cycle does; the walls and the pose stay."""
        self.dead = self.e_stop = False
        self.wheels.left_mps = self.wheels.right_mps = 0.0
        self.odometry, self.commanded, self.command_at_s = Pose(), (0.0, 0.0), None

    def hazards(self) -> list[tuple[int, str]]:
        """The present hazards: type and frame."""
        return []

    def state(self) -> dict[str, Any]:
        """What tests may ask."""
        return {
            "now_s": self.now_s,
            "pose": [self.pose.x_m, self.pose.y_m, self.pose.yaw_rad],
            "odometry": [self.odometry.x_m, self.odometry.y_m, self.odometry.yaw_rad],
            "velocity": [self.wheels.v_mps, self.wheels.w_radps],
            "commanded": list(self.commanded),
            "command_at_s": self.command_at_s,
            "commands": self.commands,
            "hazards": [list(hazard) for hazard in self.hazards()],
            "hazard_at_s": self.hazard_at_s,
            "hazard_to_zero_s": self.hazard_to_zero_s,
            "zero_at_s": self.zero_at_s,
            "stopped_at_s": self.stopped_at_s,
            "dead": self.dead,
            "e_stop": self.e_stop,
        }


def quaternion(yaw_rad: float, roll_rad: float = 0.0) -> tuple[float, float, float, float]:
    """(x, y, z, w) of a turn about z after one about x."""
    cy, sy, cr, sr = (f(angle / 2) for angle in (yaw_rad, roll_rad) for f in (math.cos, math.sin))
    return cy * sr, sy * sr, sy * cr, cy * cr
