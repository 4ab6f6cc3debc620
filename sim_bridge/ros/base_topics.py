"""What both kinds of base have in common in ROS: commands, odometry, joints; and what each of them adds."""

from __future__ import annotations

import math
from typing import Any, Protocol

import rospy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import Twist
from nav_msgs.msg import Odometry
from sensor_msgs.msg import JointState

from robot_runtime.common.clock import Clock, seconds_to_ns
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.safety import STILL
from sim_bridge.robot.chassis import Chassis
from sim_bridge.robot.odometry import moved_between
from sim_bridge.ros import messages
from sim_bridge.ros.faults import Faults
from sim_bridge.ros.physics_executor import PhysicsExecutor
from sim_bridge.ros.publisher import DelayQueue, Publisher
from sim_bridge.ros.robot_variants import RobotVariant
from sim_bridge.ros.timing import PeriodicTimer, StampClock
from sim_bridge.ros.velocity_commands import VelocityCommandModel

DIAGNOSTICS_HZ = 1.0


class Encoders:
    """How far each wheel has turned, in metres, as odometry sees it; no placement ever resets it."""

    def __init__(self, separation_m: float) -> None:
        self.left_m = self.right_m = 0.0
        self._separation_m = separation_m
        self._seen = SE2()

    def restart(self) -> None:
        """Odometry begins anew at zero."""
        self._seen = SE2()

    def update(self, odom: SE2) -> None:
        """Odometry says ``odom`` now."""
        moved = moved_between(self._seen, odom)
        self._seen = odom
        half_rad = moved.yaw_rad / 2
        forward_m = moved.x_m * math.cos(half_rad) + moved.y_m * math.sin(half_rad)
        self.left_m += forward_m - moved.yaw_rad * self._separation_m / 2
        self.right_m += forward_m + moved.yaw_rad * self._separation_m / 2


class VariantTopics(Protocol):
    """What one kind of base publishes besides; see :class:`~sim_bridge.ros.kobuki_topics.KobukiTopics`."""

    def report(self, base: BaseTopics, now_ns: int) -> None:
        """After every measurement, at the base's rate."""
        ...

    def diagnose(self, base: BaseTopics) -> dict[str, tuple[int, str, dict[str, object]]]:
        """Name -> (level, summary, values)."""
        ...


class BaseTopics:
    """A chassis in ROS.

    Attributes:
        bumper, cliff, wheel_drop: levels with injected faults, bits of ``hal.Zone``.
        heading_rad: the gyro's, which ``commands/reset_odometry`` does not reset.
    """

    def __init__(
        self,
        clock: Clock,
        stamps: StampClock,
        executor: PhysicsExecutor,
        faults: Faults,
        chassis: Chassis,
        wheels: VelocityCommandModel,
        family: RobotVariant,
        tf: Publisher,
    ) -> None:
        self.clock, self.faults, self.chassis, self.wheels, self.family = clock, faults, chassis, wheels, family
        self.encoders = Encoders(family.wheels.separation_m)
        self.bumper = self.cliff = self.wheel_drop = 0
        self.heading_rad = 0.0
        self.velocity = STILL
        self.delayed = DelayQueue()
        self._stamps = stamps
        self._executor = executor
        self._extras: list[VariantTopics] = []
        self._driving = STILL
        self._origin = SE2()
        self._seen_heading_rad = 0.0
        self._has_been_placed = False
        self._commands = PeriodicTimer(family.timing.command_hz, chassis.world.step_ns)
        self._reports = PeriodicTimer(family.timing.report_hz, chassis.world.step_ns)
        self._diagnoses = PeriodicTimer(DIAGNOSTICS_HZ, chassis.world.step_ns)
        self._latency_ns = seconds_to_ns(family.timing.report_latency_s)
        names = family.names
        self._tf = tf
        self._odom_out = Publisher(names.odom, Odometry)
        self._joints_out = Publisher(names.wheel_joints, JointState)
        self._diagnostics_out = Publisher("/diagnostics", DiagnosticArray)
        rospy.Subscriber(names.command, Twist, self._on_command, queue_size=10, tcp_nodelay=True)

    def add(self, extras: VariantTopics) -> None:
        """Have these published as well."""
        self._extras.append(extras)

    def restart(self) -> None:
        """The robot has been placed: odometry is at zero."""
        self.wheels.halt()
        self._driving = STILL
        self.encoders.restart()
        self._origin, self._seen_heading_rad = SE2(), 0.0
        self._has_been_placed = True

    def reset_odometry(self) -> None:
        """Odometry counts from here on."""
        self._origin = self.chassis.odom

    @property
    def odom(self) -> SE2:
        """As published."""
        return moved_between(self._origin, self.chassis.odom)

    def odom_at(self, now_ns: int) -> SE2:
        """Odometry, measured at this very step."""
        self.chassis.measure(now_ns, self._driving != STILL)
        return self.odom

    def stamp_ns(self, now_ns: int) -> int:
        """For what is measured now: the base's drivers stamp when they publish."""
        skew_ns = seconds_to_ns(self.faults.value("clock_skew_s"))
        return self._stamps.stamp_ns(now_ns) + self._latency_ns + skew_ns

    def send(self, now_ns: int, target: Publisher, message: Any) -> None:
        """Publish what was measured now, as late as the base's timing have it."""
        self.delayed.publish(now_ns + self._latency_ns, target, message)

    def on_step(self, now_ns: int) -> None:
        """Turn the wheels for one step; report at the base's rate."""
        self.chassis.drive(self._driving)
        if self._commands.due(now_ns):
            self._driving = self.wheels.tick(now_ns)
        # At once after a placement, so that odometry and localizer speak of the new place at one and the same instant.
        if self._reports.due(now_ns) or self._has_been_placed:
            self._has_been_placed = False
            self._measure(now_ns)
            if "sensors_silent" not in self.faults:
                self._report(now_ns)
        if self._diagnoses.due(now_ns) and self._diagnostics_out.has_subscribers:
            statuses = {}
            for extras in self._extras:
                statuses.update(extras.diagnose(self))
            self._diagnostics_out.publish(messages.diagnostics(self.stamp_ns(now_ns), statuses))
        self.delayed.flush(now_ns)

    def _on_command(self, message: Any) -> None:
        self._executor.post(lambda: self.wheels.command(message.linear.x, message.angular.z, self.clock.now_ns()))

    def _measure(self, now_ns: int) -> None:
        chassis, faults = self.chassis, self.faults
        if "battery" in faults:
            chassis.battery.fraction = faults.value("battery")
        chassis.measure(now_ns, self._driving != STILL)
        odom = chassis.odom
        self.encoders.update(odom)
        self.heading_rad = wrap_angle(self.heading_rad + wrap_angle(odom.yaw_rad - self._seen_heading_rad))
        self._seen_heading_rad = odom.yaw_rad
        self.velocity = chassis.velocity
        self.bumper = chassis.bumper_bits | faults.bits("bumper")
        self.cliff = chassis.cliff_bits | faults.bits("cliff")
        self.wheel_drop = chassis.wheel_drop_bits | faults.bits("wheel_drop")

    def _report(self, now_ns: int) -> None:
        names, wheels = self.family.names, self.family.wheels
        stamp_ns = self.stamp_ns(now_ns)
        if "odom_silent" not in self.faults:
            pose = self.odom
            if self._odom_out.has_subscribers:
                frames = names.odom_frame, names.base_frame
                self.send(now_ns, self._odom_out, messages.odometry(stamp_ns, frames, pose, self.velocity))
            if self._tf.has_subscribers:
                transform = messages.planar_transform(stamp_ns, names.odom_frame, names.base_frame, pose)
                self.send(now_ns, self._tf, transform)
        if self._joints_out.has_subscribers:
            positions, rates = self.wheel_states()
            self.send(now_ns, self._joints_out, messages.joint_state(stamp_ns, wheels.names, positions, rates))
        for extras in self._extras:
            extras.report(self, now_ns)

    def wheel_states(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Left and right: angles in rad, speeds in rad/s."""
        wheels, velocity = self.family.wheels, self.velocity
        half_m_s = velocity.angular_rad_s * wheels.separation_m / 2
        left_m_s, right_m_s = velocity.linear_m_s - half_m_s, velocity.linear_m_s + half_m_s
        positions = self.encoders.left_m / wheels.radius_m, self.encoders.right_m / wheels.radius_m
        return positions, (left_m_s / wheels.radius_m, right_m_s / wheels.radius_m)


def battery_diagnosis(chassis: Chassis, low_v: float) -> tuple[int, str, dict[str, object]]:
    """The battery's line in ``/diagnostics``."""
    voltage_v = chassis.battery.voltage_v
    low = voltage_v < low_v
    values: dict[str, object] = {
        "Voltage (V)": f"{voltage_v:.1f}",
        "Percent": f"{100 * chassis.battery.fraction:.0f}",
        "Charging State": "Not Charging",
    }
    return (DiagnosticStatus.WARN, "Low", values) if low else (DiagnosticStatus.OK, "Healthy", values)


def level_diagnosis(bits: int, what: str) -> tuple[int, str, dict[str, object]]:
    """A safety sensor's line in ``/diagnostics``."""
    if bits:
        return DiagnosticStatus.WARN, f"{what}!", {"Bits": bits}
    return DiagnosticStatus.OK, "All right", {"Bits": 0}
