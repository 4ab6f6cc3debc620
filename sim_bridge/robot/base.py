"""The simulated base: the Guard in front of a :class:`~sim_bridge.robot.chassis.Chassis`."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

from robot_runtime.common.clock import Clock, seconds_to_ns
from robot_runtime.common.config import Positive, Strict
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.errors import DeviceFault
from robot_runtime.hal import BaseInfo, BaseState, Velocity, Zone, fresh
from robot_runtime.hal.simulated_motors import LateReports, MotorOptions
from robot_runtime.hal.simulation import SimulatedChassis, Subscription, WheelSensors
from robot_runtime.safety.guard import STILL, Feedback
from robot_runtime.safety.guarded_base import GuardedBase
from sim_bridge.physics.world import ZONES
from sim_bridge.robot.chassis import Chassis
from sim_bridge.robot.device import SimDevice
from sim_bridge.robot.odometry import Encoders


class FirmwareChassis(SimulatedChassis):
    """A :class:`Chassis` that a firmware drives."""

    def __init__(self, chassis: Chassis, separation_m: float) -> None:
        self._chassis = chassis
        self._encoders = Encoders(separation_m)
        self._firmware: Callable[[int], Velocity] | None = None
        self._command = STILL
        self._heading_rad = 0.0
        self._yaw_rad = chassis.world.pose.yaw_rad

    def attach(self, firmware: Callable[[int], Velocity]) -> Subscription:
        self._firmware, self._command = firmware, STILL
        return Subscription(self._detach)

    def sensors(self) -> WheelSensors:
        chassis, wheels_m = self._chassis, (self._encoders.left_m, self._encoders.right_m)
        zones = (ZONES[bits] for bits in (chassis.bumper_bits, chassis.cliff_bits, chassis.wheel_drop_bits))
        return WheelSensors(wheels_m, self._heading_rad, chassis.battery.voltage_v, *zones)

    def restart(self) -> None:
        """The robot was placed: its odometry is at zero, wheels and gyro have not turned."""
        self._encoders.restart()
        self._yaw_rad = self._chassis.world.pose.yaw_rad

    def on_step(self, now_ns: int) -> bool:
        """Move the world to ``now_ns`` by the firmware's command; return False if there is no firmware."""
        firmware, chassis = self._firmware, self._chassis
        if firmware is None:
            return False
        chassis.drive(self._command, now_ns - chassis.world.step_ns)
        chassis.measure(now_ns, self._command != STILL)
        self._encoders.update(chassis.odom)
        yaw_rad = chassis.world.pose.yaw_rad
        self._heading_rad += wrap_angle(yaw_rad - self._yaw_rad)
        self._yaw_rad = yaw_rad
        self._command = firmware(now_ns)
        return True

    def _detach(self) -> None:
        self._firmware, self._command = None, STILL


MIN_RATE_HZ = 20.0
"""Two reports within the Guard's feedback timeout of 0.1 s: a slower base would never move."""


@dataclass(frozen=True)
class BaseOptions(Strict):
    """Limits of the wheels (Kobuki) and the rate of the base's control loop."""

    rate_hz: Annotated[float, Field(ge=MIN_RATE_HZ, allow_inf_nan=False)] = 100.0
    max_linear_m_s: Positive = 0.7
    max_angular_rad_s: Positive = math.pi
    max_linear_accel_m_s2: Positive = 1.0
    max_angular_accel_rad_s2: Positive = 7.0


class SimBase(SimDevice, GuardedBase):
    """A base in a :class:`World`.

    Attributes:
        chassis: wheels and sensors, for an emulated base in this one's place.
    """

    def __init__(self, clock: Clock, chassis: Chassis, options: BaseOptions, motors: MotorOptions) -> None:
        SimDevice.__init__(self, "base")
        info = BaseInfo(
            name="simulated LoCoBot",
            radius_m=chassis.world.scene_model.body.radius_m,
            max_linear_m_s=options.max_linear_m_s,
            max_angular_rad_s=options.max_angular_rad_s,
            max_linear_accel_m_s2=options.max_linear_accel_m_s2,
            max_angular_accel_rad_s2=options.max_angular_accel_rad_s2,
            rate_hz=options.rate_hz,
        )
        self._clock = clock
        GuardedBase.__init__(self, info, clock, interval_s=1 / options.rate_hz)
        self.world, self._chassis = chassis.world, chassis
        self._period_ns = seconds_to_ns(1 / options.rate_hz)
        self._reported_ns = clock.now_ns()
        self._decision_pending = False
        self._reports = LateReports(motors.report_delay_s)
        self.chassis = FirmwareChassis(self._chassis, motors.true.separation_m)
        self.motors = motors.nominal

    @property
    def odom(self) -> SE2:
        """Wheel odometry as last measured."""
        return self._chassis.odom

    def connect(self) -> None:
        if self._connected:
            return
        super().connect()
        self._reported_ns = self._clock.now_ns()
        self._report(self._reported_ns)

    def close(self) -> None:
        with self._lock:
            self._guard.restart()
        super().close()

    def state(self, max_age_s: float) -> BaseState:
        self._require_connected()
        now_ns = self._clock.now_ns()
        return fresh("base", self._reports.newest(now_ns), now_ns, max_age_s)

    def obstructed(self) -> Zone | None:
        return self._chassis.take_obstruction()

    def command(self, velocity: Velocity) -> Velocity:
        # A second decision at one instant grants no acceleration; the next step must not wait a period for it.
        self._decision_pending = self._guard.decided_ns == self._clock.now_ns()
        let_through = super().command(velocity)
        if self._chassis.battery.fraction == 0:
            self.stop()
            raise DeviceFault("simulated base: the battery is empty", "raise the robot's option battery.start_fraction")
        return let_through

    def _emergency_stop_changed(self) -> None:
        # The clock may stand still, and the world belongs to its thread: nothing is measured.
        self._reports.hold(self._guard.halt)

    def restart(self, random: np.random.Generator) -> None:
        """Start odometry at zero after the robot was placed, and draw errors from ``random``."""
        self._chassis.restart(random)
        self.chassis.restart()
        with self._lock:
            self._guard.restart()
        self._reports.clear()
        if self._connected:
            self._report(self._clock.now_ns())

    def on_step(self, now_ns: int) -> None:
        """Move the world to ``now_ns``; measure at the base's own rate and whenever a contact begins or ends."""
        world, chassis, guard = self.world, self._chassis, self._guard
        if not self._connected:
            if not self.chassis.on_step(now_ns):
                world.advance(0.0, 0.0)
            return
        with self._lock:
            pending, self._decision_pending = self._decision_pending, False
            (guard.decide if pending else guard.poll)(now_ns)
        chassis.drive(guard.velocity, now_ns - world.step_ns)
        if now_ns - self._reported_ns >= self._period_ns:
            self._reported_ns = now_ns
            self._report(now_ns)
        elif chassis.pressed != chassis.bumper_bits:
            self._report(now_ns)

    def _report(self, now_ns: int) -> None:
        """Measure everything and tell the Guard, which decides at once if a level has changed."""
        chassis, guard = self._chassis, self._guard
        wheels = guard.velocity
        changed = chassis.measure(now_ns, bool(wheels.linear_m_s or wheels.angular_rad_s))
        bumper, cliff = ZONES[chassis.bumper_bits], ZONES[chassis.cliff_bits]
        wheel_drop = ZONES[chassis.wheel_drop_bits]
        with self._lock:
            guard.feedback(Feedback(now_ns, bumper, cliff, wheel_drop))
            (guard.decide if changed else guard.poll)(now_ns)
            battery = chassis.battery
            halt, volts, fraction = guard.halt, battery.voltage_v, battery.fraction
            self._reports.add(
                BaseState(now_ns, chassis.odom, chassis.velocity, bumper, cliff, wheel_drop, halt, volts, fraction)
            )
