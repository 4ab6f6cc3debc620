"""Wheels and sensors of the simulated robot for the emulated firmware of a base."""

from __future__ import annotations

from collections.abc import Callable

from robot_runtime.common.geometry import wrap_angle
from robot_runtime.hal import Velocity, Zone
from robot_runtime.hal.simulation import SimulatedChassis, Subscription
from robot_runtime.safety.guard import STILL
from sim_bridge.physics.world import ZONES
from sim_bridge.robot.chassis import Chassis
from sim_bridge.robot.odometry import Encoders


class FirmwareChassis(SimulatedChassis):
    """A :class:`Chassis` that a firmware drives.

    Args:
        chassis: chassis of the robot.
        separation_m: distance between the wheels.
    """

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

    @property
    def wheels_m(self) -> tuple[float, float]:
        return self._encoders.left_m, self._encoders.right_m

    @property
    def heading_rad(self) -> float:
        return self._heading_rad

    @property
    def bumper(self) -> Zone:
        return ZONES[self._chassis.bumper_bits]

    @property
    def cliff(self) -> Zone:
        return ZONES[self._chassis.cliff_bits]

    @property
    def wheel_drop(self) -> Zone:
        return ZONES[self._chassis.wheel_drop_bits]

    @property
    def battery_v(self) -> float:
        return self._chassis.battery.voltage_v

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
