"""The simulated base: the Guard in front of the wheels, bumper, cliff and wheel-drop sensors, odometry, battery."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

from robot_runtime import config
from robot_runtime.clock import Clock, ns_to_seconds, seconds_to_ns
from robot_runtime.errors import DeviceFault
from robot_runtime.geometry import SE2, wrap_angle
from robot_runtime.hal import Base, BaseInfo, BaseState, Halt, Velocity, Zone
from robot_runtime.safety import STILL, Feedback, Guard, GuardLimits
from robot_runtime.streams import fresh
from sim_bridge.battery import Battery
from sim_bridge.device import SimDevice
from sim_bridge.noise import Drift, Positive
from sim_bridge.odometry import Odometry
from sim_bridge.world import ZONES, World

MIN_RATE_HZ = 20.0
"""Two reports within the Guard's feedback timeout of 0.1 s: a slower base would stand still for ever."""


@dataclass(frozen=True)
class BaseOptions:
    """What the wheels can do (Kobuki), and how often the base reports and listens."""

    rate_hz: Annotated[float, Field(ge=MIN_RATE_HZ, allow_inf_nan=False)] = 100.0
    max_linear_m_s: Positive = 0.7
    max_angular_rad_s: Positive = math.pi
    max_linear_accel_m_s2: Positive = 1.0
    max_angular_accel_rad_s2: Positive = 7.0

    __pydantic_config__ = config.STRICT


CLIFF_SENSORS_M = ((Zone.LEFT, 0.0873, 0.1360), (Zone.CENTER, 0.156, 0.0), (Zone.RIGHT, 0.0873, -0.1360))
"""Where they look down, in base_link (kobuki_description)."""

WHEELS_M = ((Zone.LEFT, 0.0, 0.115), (Zone.RIGHT, 0.0, -0.115))
"""Where the wheels stand, in base_link (kobuki_description: 0.23 m apart)."""

FLOOR_POINTS_M = tuple((zone.value, x_m, y_m) for zone, x_m, y_m in CLIFF_SENSORS_M) + tuple(
    (zone.value << 3, x_m, y_m) for zone, x_m, y_m in WHEELS_M
)
"""All places that need a floor, each with its bit: cliff zones, and three bits higher the wheels."""

FLOOR_REACH_M = max(math.hypot(x_m, y_m) for _, x_m, y_m in FLOOR_POINTS_M)
LOOK_DOWN_M = 0.005
"""How far such a place moves between two looks at the floor: half of what ``World.has_floor`` can tell apart."""


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
        self._odometry, self._actuation, self._battery = Odometry(odometry, world.pose), actuation, battery
        self._period_ns = seconds_to_ns(1 / options.rate_hz)
        self._decided_ns = self._reported_ns = self._drained_ns = clock.now_ns()
        self._held_back = False
        self._wheels = STILL
        self._halt = Halt.NONE
        self._measured_at: SE2 | None = None
        self._looked_from: SE2 | None = None
        self._unsupported = 0
        self._levels = (0, 0)
        self._state: BaseState | None = None

    @property
    def info(self) -> BaseInfo:
        return self._info

    @property
    def world(self) -> World:
        """The world that it drives in."""
        return self._world

    @property
    def odom(self) -> SE2:
        """Wheel odometry as last measured."""
        return self._odometry.pose

    def connect(self) -> None:
        if self._connected:
            return
        super().connect()
        self._reported_ns = self._clock.now_ns()
        self._report(self._reported_ns)

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
        # A second decision at one instant grants no acceleration; the next step must not wait a period for it.
        self._held_back = self._decided_ns == now_ns
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
        self._odometry.restart(self._world.pose, random)
        self._actuation.restart(random)
        self._guard.stop()
        self._wheels = STILL
        self._measured_at = self._looked_from = None
        if self._connected:
            self._report(self._clock.now_ns())

    def on_step(self, now_ns: int) -> None:
        """Move the world to ``now_ns``; measure at the base's own rate and whenever a contact begins or ends."""
        if not self._connected:
            self._world.advance(0.0, 0.0)
            return
        # Later than one period by the clock's step: a command that comes once per period decides by itself.
        if self._held_back or now_ns - self._decided_ns > self._period_ns:
            self._held_back = False
            self._decide(now_ns)
        linear_m_s, angular_rad_s = self._wheels.linear_m_s, self._wheels.angular_rad_s
        if not self._actuation.exact:
            step_s = self._world.step_s
            forward_m, turn_rad = self._actuation.distort(linear_m_s * step_s, angular_rad_s * step_s)
            linear_m_s, angular_rad_s = forward_m / step_s, turn_rad / step_s
        self._world.advance(linear_m_s, angular_rad_s)
        if now_ns - self._reported_ns >= self._period_ns:
            self._reported_ns = now_ns
            self._report(now_ns)
        elif self._world.touching != self._levels[0]:
            self._report(now_ns)

    def _decide(self, now_ns: int) -> None:
        decision = self._guard.tick(now_ns)
        self._decided_ns = now_ns
        self._wheels, self._halt = decision.velocity, decision.halt

    def _report(self, now_ns: int) -> None:
        """Measure everything and tell the Guard, which decides at once if a level has changed."""
        world = self._world
        pose = world.pose
        if pose != self._measured_at:
            self._measured_at = pose
            self._odometry.update(pose)
            if self._has_moved_on(pose):
                self._looked_from = pose
                self._unsupported = self._look_down(pose)
        linear_m_s, angular_rad_s = world.velocity
        driving = self._wheels.linear_m_s != 0 or self._wheels.angular_rad_s != 0
        self._battery.drain(ns_to_seconds(now_ns - self._drained_ns), driving)
        self._drained_ns = now_ns
        levels = self._levels
        self._levels = world.touching, self._unsupported
        bumper = ZONES[world.touching]
        cliff, wheel_drop = ZONES[self._unsupported & 7], ZONES[self._unsupported >> 3]
        self._guard.feedback(Feedback(now_ns, bumper, cliff, wheel_drop))
        if levels != self._levels:
            self._decide(now_ns)
        self._state = BaseState(
            now_ns,
            self._odometry.pose,
            Velocity(linear_m_s, angular_rad_s),
            bumper,
            cliff,
            wheel_drop,
            self._halt,
            self._battery.voltage_v,
            self._battery.fraction,
        )

    def _has_moved_on(self, pose: SE2) -> bool:
        """Whether a floor point may have moved by ``LOOK_DOWN_M`` since the last look down."""
        last = self._looked_from
        if last is None:
            return True
        turned_m = FLOOR_REACH_M * abs(wrap_angle(pose.yaw_rad - last.yaw_rad))
        return abs(pose.x_m - last.x_m) + abs(pose.y_m - last.y_m) + turned_m >= LOOK_DOWN_M

    def _look_down(self, pose: SE2) -> int:
        """Bits of the cliff sensors that see no floor, and, three bits higher, of the wheels that have none."""
        cos, sin = math.cos(pose.yaw_rad), math.sin(pose.yaw_rad)
        x0_m, y0_m, has_floor = pose.x_m, pose.y_m, self._world.has_floor
        bits = 0
        for bit, x_m, y_m in FLOOR_POINTS_M:
            if not has_floor(x0_m + cos * x_m - sin * y_m, y0_m + sin * x_m + cos * y_m):
                bits |= bit
        return bits
