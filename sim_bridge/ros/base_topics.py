"""The base's topics: commands, odometry, joint states and diagnostics; each variant adds its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from drivers.ros.protocol import Diagnosis
from robot_runtime.common.clock import seconds_to_ns
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.safety.guard import STILL
from sim_bridge.robot.chassis import Chassis
from sim_bridge.robot.odometry import Encoders, moved_between
from sim_bridge.ros.context import SimContext
from sim_bridge.ros.network import DelayQueue, Publisher
from sim_bridge.ros.timing import PeriodicTimer
from sim_bridge.ros.velocity_commands import VelocityCommandModel

OK, WARN = 0, 1
"""Levels of diagnostic_msgs/DiagnosticStatus."""

UNKNOWN = 1e10
"""kobuki_node's variance for a quantity that a wheel cannot measure."""

KOBUKI_VARIANCES = (0.1, 0.1, UNKNOWN, UNKNOWN, UNKNOWN, 0.05)
"""Constant variances of kobuki_node's odometry: x, y, z, roll, pitch, yaw."""


class VariantTopics(ABC):
    """The topics that only one kind of base has."""

    @abstractmethod
    def publish(self, base: BaseTopics, now_ns: int) -> None:
        """Publish after a measurement, at the base's rate."""

    @abstractmethod
    def diagnose(self, base: BaseTopics) -> dict[str, Diagnosis]:
        """Return the diagnoses by name."""


class BaseTopics:
    """The topics of a simulated base.

    Attributes:
        bumper: Level with injected faults, bits of ``hal.Zone``.
        cliff: As ``bumper``.
        wheel_drop: As ``bumper``.
        heading_rad: The gyro's heading; ``commands/reset_odometry`` does not reset it.
    """

    def __init__(self, context: SimContext, chassis: Chassis, commands: VelocityCommandModel, tf: Publisher) -> None:
        variant, step_ns = context.variant, context.world.step_ns
        topics = variant.names.topics
        network, self.messages = context.network, context.network.messages
        self.context, self.chassis, self.commands, self.variant = context, chassis, commands, variant
        self.faults = context.faults
        self.encoders = Encoders(variant.wheels.separation_m)
        self.bumper = self.cliff = self.wheel_drop = 0
        self.heading_rad = 0.0
        self.velocity = STILL
        self.delayed = DelayQueue()
        self._extensions: list[VariantTopics] = []
        self._driving = STILL
        self._origin = SE2()
        self._last_yaw_rad = 0.0
        self._has_been_placed = False
        self._command_timer = PeriodicTimer(variant.timing.command_hz, step_ns)
        self._report_timer = PeriodicTimer(variant.timing.report_hz, step_ns)
        self._diagnostics_timer = PeriodicTimer(variant.timing.diagnostics_hz, step_ns)
        self._latency_ns = seconds_to_ns(variant.timing.report_latency_s)
        self._tf = tf
        self._odom_publisher = network.publisher(topics["odom"], "nav_msgs/Odometry")
        self._joints_publisher = network.publisher(variant.names.wheel_joints, "sensor_msgs/JointState")
        diagnostics = topics.get("diagnostics", "/diagnostics")
        self._diagnostics_publisher = network.publisher(diagnostics, "diagnostic_msgs/DiagnosticArray")
        network.subscribe(topics["velocity"], variant.names.velocity_kind, self._on_command)

    def add(self, extension: VariantTopics) -> None:
        """Publish the topics of a variant as well."""
        self._extensions.append(extension)

    def restart(self) -> None:
        """The robot has been placed: odometry is at zero."""
        self.commands.reset()
        self._driving = STILL
        self.encoders.restart()
        self._origin, self._last_yaw_rad = SE2(), 0.0
        self._has_been_placed = True

    def reset_odometry(self) -> None:
        """Restart odometry here."""
        self._origin = self.chassis.odom

    @property
    def odom(self) -> SE2:
        """Odometry as published."""
        return moved_between(self._origin, self.chassis.odom)

    def odom_at(self, now_ns: int) -> SE2:
        """Measure odometry at this step."""
        self.chassis.measure(now_ns, self._driving != STILL)
        return self.odom

    def stamp_ns(self, now_ns: int) -> int:
        """Return the stamp of a measurement made now: the base's drivers stamp when they publish."""
        return self.context.stamp_ns(now_ns) + self._latency_ns

    def send(self, now_ns: int, publisher: Publisher, build: Callable[[], Any]) -> None:
        """Build a message of what was measured now, if it has subscribers, and publish it after the base's latency."""
        if publisher.has_subscribers:
            self.delayed.publish(now_ns + self._latency_ns, publisher, build())

    def on_step(self, now_ns: int) -> None:
        """Turn the wheels for one step; publish at the base's rate."""
        self.chassis.drive(self._driving, now_ns - self.context.world.step_ns)
        if self._command_timer.due(now_ns):
            self._driving = self.commands.tick(now_ns)
        # At once after a placement, so that odometry and localizer report the new place at the same instant.
        if self._report_timer.due(now_ns) or self._has_been_placed:
            self._has_been_placed = False
            self._measure(now_ns)
            if "sensors_silent" not in self.faults:
                self._publish(now_ns)
        if self._diagnostics_timer.due(now_ns) and self._diagnostics_publisher.has_subscribers:
            statuses = {name: status for item in self._extensions for name, status in item.diagnose(self).items()}
            self._diagnostics_publisher.publish(self.messages.diagnostics(self.stamp_ns(now_ns), statuses))
        self.delayed.flush(now_ns)

    def _on_command(self, message: Any) -> None:
        message = getattr(message, "twist", message)  # of a TwistStamped
        clock, twist = self.context.clock, (message.linear.x, message.angular.z)
        self.context.executor.submit(lambda: self.commands.command(*twist, clock.now_ns()))

    def _measure(self, now_ns: int) -> None:
        chassis, faults = self.chassis, self.faults
        if "battery" in faults:
            chassis.battery.fraction = faults.value("battery")
        chassis.measure(now_ns, self._driving != STILL)
        odom = chassis.odom
        self.encoders.update(odom)
        self.heading_rad = wrap_angle(self.heading_rad + wrap_angle(odom.yaw_rad - self._last_yaw_rad))
        self._last_yaw_rad = odom.yaw_rad
        self.velocity = chassis.velocity
        self.bumper = chassis.bumper_bits | faults.bits("bumper")
        self.cliff = chassis.cliff_bits | faults.bits("cliff")
        self.wheel_drop = chassis.wheel_drop_bits | faults.bits("wheel_drop")

    def _publish(self, now_ns: int) -> None:
        frames, stamp_ns, messages = self.variant.names.frames, self.stamp_ns(now_ns), self.messages
        if "odom_silent" not in self.faults:
            pose = self.odom
            self.send(
                now_ns,
                self._odom_publisher,
                lambda: messages.odometry(stamp_ns, frames, pose, self.velocity, KOBUKI_VARIANCES),
            )
            self.send(
                now_ns,
                self._tf,
                lambda: messages.tf(messages.planar_transform(stamp_ns, frames.odom, frames.base, pose)),
            )
        self.send(
            now_ns,
            self._joints_publisher,
            lambda: messages.joint_state(stamp_ns, self.variant.wheels.names, *self.wheel_states()),
        )
        for extension in self._extensions:
            extension.publish(self, now_ns)

    def wheel_states(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return angles in rad and speeds in rad/s, each of the left and the right wheel."""
        wheels, velocity = self.variant.wheels, self.velocity
        half_m_s = velocity.angular_rad_s * wheels.separation_m / 2
        left_m_s, right_m_s = velocity.linear_m_s - half_m_s, velocity.linear_m_s + half_m_s
        angles = self.encoders.left_m / wheels.radius_m, self.encoders.right_m / wheels.radius_m
        return angles, (left_m_s / wheels.radius_m, right_m_s / wheels.radius_m)


def battery_diagnosis(chassis: Chassis, low_v: float) -> Diagnosis:
    """Return the battery's diagnosis."""
    voltage_v = chassis.battery.voltage_v
    values: dict[str, object] = {
        "Voltage (V)": f"{voltage_v:.1f}",
        "Percent": f"{100 * chassis.battery.fraction:.0f}",
        "Charging State": "Not Charging",
    }
    return (WARN, "Low", values) if voltage_v < low_v else (OK, "Healthy", values)


def level_diagnosis(bits: int, active: str) -> Diagnosis:
    """Return a safety sensor's diagnosis."""
    if bits:
        return WARN, f"{active}!", {"Bits": bits}
    return OK, "All right", {"Bits": 0}
