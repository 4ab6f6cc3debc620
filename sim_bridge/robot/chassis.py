"""Wheels, odometry, bumper, cliff and wheel drop sensors and battery of the simulated base.

The owner of a :class:`Chassis` commands its wheels: :class:`~sim_bridge.robot.base.SimBase` through a Guard, the ROS
robot as the firmware of its real base does.
"""

import math
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from robot_runtime.common.clock import NS_PER_S
from robot_runtime.common.config import NonNegative, Positive, Strict
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.hal import Velocity, Zone
from robot_runtime.hal.simulated_motors import SimulatedMotors
from sim_bridge.noise.drift import Drift
from sim_bridge.physics.world import World
from sim_bridge.robot.odometry import Odometry, moved_between
from sim_bridge.robot.wheel_slip import Slip

SECONDS_PER_HOUR = 3600.0


@dataclass(frozen=True)
class BatteryOptions(Strict):
    """Kobuki's small battery (4S1P, 2200 mAh at 14.8 V) and the approximate power of a LoCoBot with its computer.

    Attributes:
        capacity_wh: energy when full.
        full_v: voltage under load when full.
        empty_v: voltage under load when empty; in between it is linear in the charge.
        idle_w: power at all times.
        drive_w: additional power while the wheels turn.
        start_fraction: charge at the start, 0 empty .. 1 full.
    """

    capacity_wh: Positive = 32.6
    full_v: Positive = 16.5
    empty_v: Positive = 13.2
    idle_w: NonNegative = 15.0
    drive_w: NonNegative = 12.0
    start_fraction: Annotated[float, Field(ge=0, le=1)] = 1.0


class Battery:
    """Charge that goes down with time and with driving.

    Attributes:
        fraction: 0 empty .. 1 full.
    """

    def __init__(self, options: BatteryOptions) -> None:
        self.fraction = options.start_fraction
        self._options = options

    @property
    def voltage_v(self) -> float:
        """Present voltage."""
        return self._options.empty_v + self.fraction * (self._options.full_v - self._options.empty_v)

    def drain(self, seconds: float, driving: bool) -> None:
        """Remove the energy that is used in that time."""
        power_w = self._options.idle_w + (self._options.drive_w if driving else 0.0)
        self.fraction = max(0.0, self.fraction - power_w * seconds / SECONDS_PER_HOUR / self._options.capacity_wh)


CLIFF_SENSORS_M = ((Zone.LEFT, 0.0873, 0.1360), (Zone.CENTER, 0.156, 0.0), (Zone.RIGHT, 0.0873, -0.1360))
"""Positions of the cliff sensors in base_link (kobuki_description)."""

WHEELS_M = ((Zone.LEFT, 0.0, 0.115), (Zone.RIGHT, 0.0, -0.115))
"""Positions of the wheels in base_link (kobuki_description: 0.23 m apart)."""

FLOOR_POINTS_M = tuple((zone.value, x_m, y_m) for zone, x_m, y_m in CLIFF_SENSORS_M) + tuple(
    (zone.value << 3, x_m, y_m) for zone, x_m, y_m in WHEELS_M
)
"""All points that need a floor, each with its bit: cliff zones, and three bits higher the wheels."""

SHORTENED_M = 2e-5
"""Least shortening of a way that is a collision: habitat-sim's 1e-5 m², between the squares, at steps of 0.25 m."""

FLOOR_REACH_M = max(math.hypot(x_m, y_m) for _, x_m, y_m in FLOOR_POINTS_M)
FLOOR_CHECK_M = 0.005
"""Motion of a floor point after which the floor is checked again: half a cell of ``World.has_floor``."""


@dataclass(frozen=True)
class ContactOptions(Strict):
    """Effect of walls on the robot.

    Attributes:
        behaviour: ``stop``: the bumper is pressed, and its reader stops the base. ``slide``: as in Habitat with
            ``allow_sliding``: the bumper is not pressed, the body slides along the wall without friction and without
            turning, and the wheels keep turning, so that odometry measures the full commanded distance. An action
            whose way was shortened is a collision (:meth:`Chassis.take_obstruction`).
    """

    behaviour: Literal["stop", "slide"] = "stop"


class Chassis:
    """A base in a :class:`World`, without any safety function.

    Args:
        world: the simulated world.
        odometry: error of odometry relative to the true motion.
        actuation: error of the true motion relative to the wheels'.
        battery: its battery.
        slip: further motion that odometry does not measure.
        contact: effect of walls.
        motors: what the wheels do with their commands.

    Attributes:
        bumper_bits: bits of :class:`Zone`, as of the last :meth:`measure`.
        cliff_bits: bits of the cliff sensors, as ``bumper_bits``.
        wheel_drop_bits: bits of the dropped wheels, as ``bumper_bits``.
    """

    def __init__(
        self,
        world: World,
        odometry: Drift,
        actuation: Drift,
        battery: Battery,
        slip: Slip,
        contact: ContactOptions,
        motors: SimulatedMotors,
    ) -> None:
        self.world = world
        self._motors = motors
        self.battery = battery
        self.bumper_bits = self.cliff_bits = self.wheel_drop_bits = 0
        self._slides = contact.behaviour == "slide"
        exact = not (slip.active or self._slides)
        self._odometry, self._actuation = Odometry(odometry, world.pose, exact), actuation
        self._slip = slip
        self._follows_exactly = motors.ideal and actuation.exact and not (slip.active or self._slides)
        self._slipped_m = self._slipped_rad = 0.0
        self._sliding_m_s = 0.0
        self._shortened_m, self._obstructing = 0.0, 0
        self._drained_ns = 0
        self._measured_at: SE2 | None = None
        self._checked_from: SE2 | None = None

    @property
    def odom(self) -> SE2:
        """Wheel odometry as last measured."""
        return self._odometry.pose

    @property
    def pressed(self) -> int:
        """Bits of the bumper's zones that are pressed now."""
        return 0 if self._slides else self.world.touching

    @property
    def velocity(self) -> Velocity:
        """Velocity that the wheels measure."""
        linear_m_s, angular_rad_s = self.world.velocity
        return Velocity(linear_m_s + self._sliding_m_s, angular_rad_s)

    def take_obstruction(self) -> Zone | None:
        """Zones of the walls that have shortened the way of a sliding body since the last call; None for none."""
        zones = Zone(self._obstructing) if self._shortened_m > SHORTENED_M else None
        self._shortened_m, self._obstructing = 0.0, 0
        return zones

    def restart(self, random: np.random.Generator) -> None:
        """Start odometry at zero after the robot was placed, and draw errors from ``random``."""
        self.take_obstruction()
        self._motors.restart()
        self._odometry.restart(self.world.pose, random)
        self._actuation.restart(random)
        self._slip.restart(random)
        self._slipped_m = self._slipped_rad = self._sliding_m_s = 0.0
        self._measured_at = self._checked_from = None

    def drive(self, command: Velocity, now_ns: int) -> None:
        """Simulate one physics step that begins at ``now_ns``, the motors commanded to this velocity."""
        if self._follows_exactly and not self.world.blocked:
            self._sliding_m_s = 0.0
            self.world.advance(command.linear_m_s, command.angular_rad_s)
            return
        linear_m_s, angular_rad_s = self._motors.drive(
            command.linear_m_s, command.angular_rad_s, now_ns, self.world.step_s, self.battery.fraction
        )
        if not self._actuation.exact:
            step_s = self.world.step_s
            forward_m, turn_rad = self._actuation.distort(linear_m_s * step_s, angular_rad_s * step_s)
            linear_m_s, angular_rad_s = forward_m / step_s, turn_rad / step_s
        if not self._slip.active:
            self._move(linear_m_s, angular_rad_s, 0.0)
            return
        forward_m, left_m, turn_rad = self._slip.step(linear_m_s, angular_rad_s)
        self._slipped_m += forward_m
        self._slipped_rad += turn_rad
        step_s = self.world.step_s
        self._move(linear_m_s + forward_m / step_s, angular_rad_s + turn_rad / step_s, left_m / step_s)

    def _move(self, linear_m_s: float, angular_rad_s: float, lateral_m_s: float) -> None:
        """Simulate one physics step; record the motion of slipping wheels that the body did not make.

        The wheels slip while the body slides along a wall, and while something above the bumper holds it.
        """
        world = self.world
        # Of the step before: those are the contacts that push during this one.
        slides = self._slides and world.touches
        if not (slides or world.blocked):
            self._sliding_m_s = 0.0
            world.advance(linear_m_s, angular_rad_s, lateral_m_s)
            return
        before = world.pose
        if slides:
            facing = world.advance_along_walls(linear_m_s, angular_rad_s, lateral_m_s)
            moved = moved_between(before, world.pose)
            shortened_m = math.hypot(linear_m_s, lateral_m_s) * world.step_s - math.hypot(moved.x_m, moved.y_m)
            if shortened_m > 0:
                self._shortened_m += shortened_m
                self._obstructing |= facing
        else:
            world.advance(linear_m_s, angular_rad_s, lateral_m_s)
            moved = moved_between(before, world.pose)
        half_rad = moved.yaw_rad / 2
        along_m = moved.x_m * math.cos(half_rad) + moved.y_m * math.sin(half_rad)
        lacking_m = linear_m_s * world.step_s - along_m
        self._slipped_m -= lacking_m
        self._sliding_m_s = lacking_m / world.step_s

    def measure(self, now_ns: int, driving: bool) -> bool:
        """Read every sensor and return whether any level has changed.

        Args:
            now_ns: time of the measurement.
            driving: whether the wheels have been turning and drained the battery faster.
        """
        world = self.world
        pose = world.pose
        changed = False
        at = self._measured_at
        moved = at is None or pose.x_m != at.x_m or pose.y_m != at.y_m or pose.yaw_rad != at.yaw_rad
        if moved or self._slipped_m:  # the wheels may slip on the spot
            self._measured_at = pose
            self._odometry.update(pose, self._slipped_m, self._slipped_rad)
            self._slipped_m = self._slipped_rad = 0.0
            if self._has_moved_on(pose):
                self._checked_from = pose
                unsupported = self._unsupported_bits(pose)
                changed = unsupported != self.cliff_bits | self.wheel_drop_bits << 3
                self.cliff_bits, self.wheel_drop_bits = unsupported & 7, unsupported >> 3
        pressed = self.pressed
        changed, self.bumper_bits = changed or pressed != self.bumper_bits, pressed
        self.battery.drain((now_ns - self._drained_ns) / NS_PER_S, driving)
        self._drained_ns = now_ns
        return changed

    def _has_moved_on(self, pose: SE2) -> bool:
        """Whether a floor point may have moved by ``FLOOR_CHECK_M`` since the last check."""
        last = self._checked_from
        if last is None:
            return True
        turned_m = FLOOR_REACH_M * abs(wrap_angle(pose.yaw_rad - last.yaw_rad))
        return abs(pose.x_m - last.x_m) + abs(pose.y_m - last.y_m) + turned_m >= FLOOR_CHECK_M

    def _unsupported_bits(self, pose: SE2) -> int:
        """Bits of the cliff sensors without floor below them and, three bits higher, of such wheels."""
        cos, sin = math.cos(pose.yaw_rad), math.sin(pose.yaw_rad)
        x0_m, y0_m, has_floor = pose.x_m, pose.y_m, self.world.has_floor
        bits = 0
        for bit, x_m, y_m in FLOOR_POINTS_M:
            if not has_floor(x0_m + cos * x_m - sin * y_m, y0_m + sin * x_m + cos * y_m):
                bits |= bit
        return bits
