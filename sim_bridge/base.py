"""The simulated base: the Guard in front of the wheels, bumper, cliff and wheel-drop sensors, odometry, battery."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from robot_runtime import config
from robot_runtime.clock import Clock, ns_to_seconds, seconds_to_ns
from robot_runtime.errors import DeviceFault
from robot_runtime.geometry import SE2, wrap_angle
from robot_runtime.hal import Base, BaseInfo, BaseState, Halt, Velocity, Zone
from robot_runtime.safety import STILL, Decision, Feedback, Guard, GuardLimits
from robot_runtime.streams import fresh
from sim_bridge.battery import Battery
from sim_bridge.device import SimDevice
from sim_bridge.noise import Drift, Positive
from sim_bridge.world import ZONES, World


@dataclass(frozen=True)
class BaseOptions:
    """What the wheels can do (Kobuki), and how often the base reports and listens."""

    rate_hz: Positive = 100.0
    max_linear_m_s: Positive = 0.7
    max_angular_rad_s: Positive = math.pi
    max_linear_accel_m_s2: Positive = 1.0
    max_angular_accel_rad_s2: Positive = 7.0

    __pydantic_config__ = config.STRICT


CLIFF_SENSORS_M = ((Zone.LEFT, 0.0873, 0.1360), (Zone.CENTER, 0.156, 0.0), (Zone.RIGHT, 0.0873, -0.1360))
"""Where they look down, in base_link (kobuki_description)."""

WHEELS_M = ((Zone.LEFT, 0.0, 0.115), (Zone.RIGHT, 0.0, -0.115))
"""Where the wheels stand, in base_link (kobuki_description: 0.23 m apart)."""


class SimBase(SimDevice, Base):
    """A base in a :class:`World`.

    Args:
        clock: whose steps call :meth:`on_step`.
        odometry: how odometry departs from the true motion. actuation: how true motion departs from the wheels'.
    """

    def __init__(
        self, clock: Clock, world: World, options: BaseOptions, odometry: Drift, actuation: Drift, battery: Battery
    ) -> None:
        super().__init__("base")
        self._clock = clock
        self._world = world
        self._info = BaseInfo(
            name="simulated LoCoBot",
            radius_m=world.scene_model.body.radius_m,
            max_linear_m_s=options.max_linear_m_s,
            max_angular_rad_s=options.max_angular_rad_s,
            max_linear_accel_m_s2=options.max_linear_accel_m_s2,
            max_angular_accel_rad_s2=options.max_angular_accel_rad_s2,
            rate_hz=options.rate_hz,
        )
        self._guard = Guard(GuardLimits.of(self._info))
        self._odometry, self._actuation, self._battery = odometry, actuation, battery
        self._period_ns = seconds_to_ns(1 / options.rate_hz)
        self._decide_ns = self._report_ns = 0
        self._wheels = STILL
        self._halt = Halt.NONE
        self._pressed = 0
        self._bumper = self._cliff = self._wheel_drop = Zone.NONE
        self._state: BaseState | None = None
        self._drained_ns = clock.now_ns()
        self._measured_at: SE2 | None = None
        self._start = self._odometry_from = world.pose
        self._odom = SE2()

    @property
    def info(self) -> BaseInfo:
        return self._info

    @property
    def odom(self) -> SE2:
        """Wheel odometry as last measured."""
        return self._odom

    def connect(self) -> None:
        if self._connected:
            return
        super().connect()
        now_ns = self._clock.now_ns()
        self._decide_ns, self._report_ns = now_ns, now_ns + self._period_ns
        self._report(now_ns)

    def close(self) -> None:
        self._guard.stop()
        self._wheels = STILL
        super().close()

    def state(self, max_age_s: float) -> BaseState:
        self._require_connected()
        return fresh("base", self._state, self._clock.now_ns(), max_age_s)

    def command(self, velocity: Velocity) -> Velocity:
        self._require_connected()
        now_ns = self._clock.now_ns()
        try:
            self._guard.command(velocity, now_ns)
        finally:
            self._decide(now_ns)
        if self._battery.fraction == 0:
            self.stop()
            raise DeviceFault("simulated base: the battery is empty", "raise the robot's option battery.start_fraction")
        return self._wheels

    def stop(self) -> None:
        self._require_connected()
        self._guard.stop()
        self._decide(self._clock.now_ns())

    def emergency_stop(self) -> None:
        self._require_connected()
        self._guard.emergency_stop()
        self._decide(self._clock.now_ns())
        self._report(self._clock.now_ns())

    def release_emergency_stop(self) -> None:
        self._require_connected()
        self._guard.release_emergency_stop()
        self._decide(self._clock.now_ns())
        self._report(self._clock.now_ns())

    def restart(self, random: np.random.Generator) -> None:
        """The world has placed the robot: odometry starts at zero, and errors are drawn from ``random``."""
        self._odometry.restart(random)
        self._actuation.restart(random)
        self._guard.stop()
        self._wheels = STILL
        self._start = self._odometry_from = self._world.pose
        self._odom = SE2()
        self._measured_at = None
        if self._connected:
            self._report(self._clock.now_ns())

    def on_step(self, now_ns: int) -> None:
        """Move the world to ``now_ns``; measure at the base's own rate and whenever a contact begins or ends."""
        if not self._connected:
            self._world.advance(0.0, 0.0)
            return
        # Decided before the step, at the time of the step's end: a command acts in the very step that follows it.
        if now_ns > self._decide_ns:
            self._decide_ns = now_ns + self._period_ns - self._world.step_ns
            self._decide(now_ns)
        linear_m_s, angular_rad_s = self._wheels.linear_m_s, self._wheels.angular_rad_s
        if not self._actuation.exact:
            step_s = self._world.step_s
            forward_m, turn_rad = self._actuation.distort(linear_m_s * step_s, angular_rad_s * step_s)
            linear_m_s, angular_rad_s = forward_m / step_s, turn_rad / step_s
        self._world.advance(linear_m_s, angular_rad_s)
        if now_ns >= self._report_ns:
            self._report_ns = now_ns + self._period_ns
            self._report(now_ns)
        elif self._world.touching != self._pressed:
            self._report(now_ns)

    def _decide(self, now_ns: int) -> None:
        decision: Decision = self._guard.tick(now_ns)
        self._wheels, self._halt = decision.velocity, decision.halt

    def _report(self, now_ns: int) -> None:
        """Measure everything and tell the Guard, which decides at once if a level has changed."""
        levels = self._bumper, self._cliff, self._wheel_drop
        pose = self._world.pose
        if pose != self._measured_at:
            self._measured_at = pose
            self._look_down(pose)
            self._measure_odometry(pose)
        linear_m_s, angular_rad_s = self._world.velocity
        driving = linear_m_s != 0 or angular_rad_s != 0
        self._battery.drain(ns_to_seconds(now_ns - self._drained_ns), driving)
        self._drained_ns = now_ns
        self._pressed = self._world.touching
        self._bumper = ZONES[self._pressed]
        self._guard.feedback(Feedback(now_ns, self._bumper, self._cliff, self._wheel_drop))
        if levels != (self._bumper, self._cliff, self._wheel_drop):
            self._decide(now_ns)
        self._state = BaseState(
            now_ns,
            self._odom,
            Velocity(linear_m_s, angular_rad_s),
            self._bumper,
            self._cliff,
            self._wheel_drop,
            self._halt,
            self._battery.voltage_v,
            self._battery.fraction,
        )

    def _look_down(self, pose: SE2) -> None:
        cliff, wheel_drop = Zone.NONE, Zone.NONE
        for zone, x_m, y_m in CLIFF_SENSORS_M:
            if not self._has_floor(pose, x_m, y_m):
                cliff |= zone
        for zone, x_m, y_m in WHEELS_M:
            if not self._has_floor(pose, x_m, y_m):
                wheel_drop |= zone
        self._cliff, self._wheel_drop = cliff, wheel_drop

    def _has_floor(self, pose: SE2, x_m: float, y_m: float) -> bool:
        cos, sin = math.cos(pose.yaw_rad), math.sin(pose.yaw_rad)
        return self._world.has_floor(pose.x_m + cos * x_m - sin * y_m, pose.y_m + sin * x_m + cos * y_m)

    def _measure_odometry(self, pose: SE2) -> None:
        if self._odometry.exact:
            self._odom = pose.relative_to(self._start)
            return
        moved = pose.relative_to(self._odometry_from)
        self._odometry_from = pose
        half_rad = moved.yaw_rad / 2
        # Along the mean heading of this short arc; wheels do not measure sideways.
        forward_m = moved.x_m * math.cos(half_rad) + moved.y_m * math.sin(half_rad)
        forward_m, turn_rad = self._odometry.distort(forward_m, moved.yaw_rad)
        heading_rad = self._odom.yaw_rad + turn_rad / 2
        self._odom = SE2(
            self._odom.x_m + forward_m * math.cos(heading_rad),
            self._odom.y_m + forward_m * math.sin(heading_rad),
            wrap_angle(self._odom.yaw_rad + turn_rad),
        )
