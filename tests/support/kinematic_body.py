"""A body for emulated bases, without a simulator."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from robot_runtime.common.clock import ns_to_seconds
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.hal import Velocity, Zone
from robot_runtime.hal.simulated_motors import MotorOptions, SimulatedMotors
from robot_runtime.hal.simulation import SimulatedChassis, Subscription, WheelSensors
from robot_runtime.safety.guard import STILL


class KinematicBody(SimulatedChassis):
    """A body on an open floor, with a wall across its x axis: the motors' model, and nothing else.

    Args:
        motors: what the wheels do with their commands.
        radius_m: radius of the body.
        wall_x_m: position of the wall; infinite for none.

    Attributes:
        pose: true pose, from the origin.
        wall_x_m: position of the wall, which may be moved.
        motors: options of the motors.
        wheels_m: ways of the left and the right wheel.
        heading_rad: true heading, not wrapped.
        wheel_drop: wheels that hang.
    """

    def __init__(self, motors: MotorOptions, radius_m: float = 0.18, wall_x_m: float = math.inf) -> None:
        self.motors, self.pose, self.wall_x_m = motors, SE2(), wall_x_m
        self._radius_m = radius_m
        self._motors = SimulatedMotors(motors)
        self._separation_m = motors.true.separation_m
        self.wheels_m = (0.0, 0.0)
        self.heading_rad = 0.0
        self._now_ns: int | None = None
        self._touching = False
        self.wheel_drop = Zone.NONE
        self._firmware: Callable[[int], Velocity] | None = None
        self._command = STILL

    def attach(self, firmware: Callable[[int], Velocity]) -> Subscription:
        self._firmware = firmware
        return Subscription(self._detach)

    def on_step(self, now_ns: int) -> None:
        """Move on to ``now_ns`` by the firmware's command; a listener of a simulated clock."""
        self.advance(self._command, now_ns)
        if self._firmware is not None:
            self._command = self._firmware(now_ns)

    def _detach(self) -> None:
        self._firmware, self._command = None, STILL

    def sensors(self) -> WheelSensors:
        bumper = Zone.CENTER if self._touching else Zone.NONE
        return WheelSensors(self.wheels_m, self.heading_rad, 16.0, bumper, wheel_drop=self.wheel_drop)

    def advance(self, command: Velocity, now_ns: int) -> None:
        """Move on to ``now_ns``, the command having been in force since the call before."""
        before_ns, self._now_ns = self._now_ns, now_ns
        if before_ns is None or now_ns <= before_ns:
            return
        step_s = ns_to_seconds(now_ns - before_ns)
        linear_m_s, angular_rad_s = self._motors.drive(command.linear_m_s, command.angular_rad_s, before_ns, step_s)
        self.push(linear_m_s * step_s, angular_rad_s * step_s)

    def push(self, forward_m: float, turn_rad: float) -> None:
        """Move by hand, the wheels turning along; nothing moves through the wall."""
        moved = self.pose @ SE2.arc(forward_m, turn_rad)
        limit_m = self.wall_x_m - self._radius_m
        self._touching = moved.x_m >= limit_m
        if moved.x_m > limit_m:
            forward_m, moved = 0.0, replace(moved, x_m=max(self.pose.x_m, min(limit_m, moved.x_m)))
        self.pose = SE2(moved.x_m, moved.y_m, wrap_angle(moved.yaw_rad))
        half_m = turn_rad * self._separation_m / 2
        self.wheels_m = self.wheels_m[0] + forward_m - half_m, self.wheels_m[1] + forward_m + half_m
        self.heading_rad += turn_rad
