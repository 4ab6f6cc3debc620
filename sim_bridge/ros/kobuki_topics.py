"""What kobuki_node publishes besides odometry: sensors/core, events, IMU; and the commands that only it knows."""

from __future__ import annotations

import math

import rospy
from diagnostic_msgs.msg import DiagnosticStatus
from kobuki_msgs.msg import (
    BumperEvent,
    CliffEvent,
    MotorPower,
    PowerSystemEvent,
    RobotStateEvent,
    SensorState,
    WheelDropEvent,
)
from sensor_msgs.msg import Imu
from std_msgs.msg import Empty

from robot_runtime.common.clock import seconds_to_ns
from robot_runtime.hal import Zone
from sim_bridge.ros import messages
from sim_bridge.ros.base_topics import BaseTopics, battery_diagnosis, level_diagnosis
from sim_bridge.ros.physics_executor import PhysicsExecutor
from sim_bridge.ros.publisher import Publisher

LOW_V, CRITICAL_V = 14.0, 13.2
"""kobuki_node's ``battery_low`` and ``battery_dangerous``."""

FLOOR_READING, CLIFF_READING = 1800, 60
"""Of a cliff sensor, 12 bits: over a floor, over none."""

RAW_IMU_NS = 10_000_000
"""Between two readings of the gyro; two arrive with each report."""

CLIFF_EVENT_ORDER = (Zone.RIGHT, Zone.CENTER, Zone.LEFT)
"""Of the readings in ``sensors/core``; kobuki_core takes event number n (left, centre, right) from place n of it."""


class KobukiTopics:
    """A Kobuki; add it to :class:`BaseTopics`."""

    def __init__(self, base: BaseTopics, executor: PhysicsExecutor) -> None:
        root = base.family.names.base
        self._core = Publisher(f"{root}/sensors/core", SensorState)
        self._imu = Publisher(f"{root}/sensors/imu_data", Imu)
        self._raw_imu = Publisher(f"{root}/sensors/imu_data_raw", Imu)
        self._bumper = Publisher(f"{root}/events/bumper", BumperEvent)
        self._cliff = Publisher(f"{root}/events/cliff", CliffEvent)
        self._wheel_drop = Publisher(f"{root}/events/wheel_drop", WheelDropEvent)
        self._power = Publisher(f"{root}/events/power_system", PowerSystemEvent)
        robot_state = Publisher(f"{root}/events/robot_state", RobotStateEvent, latch=True)
        robot_state.publish(RobotStateEvent(RobotStateEvent.ONLINE))
        self._events_ns = seconds_to_ns(base.family.timing.event_latency_s)
        self._seen = (0, 0, 0)
        self._power_event: int | None = None
        rospy.Subscriber(
            f"{root}/commands/motor_power",
            MotorPower,
            lambda message: executor.post(lambda: base.wheels.power(message.state == MotorPower.ON)),
        )
        rospy.Subscriber(f"{root}/commands/reset_odometry", Empty, lambda _: executor.post(base.reset_odometry))

    def report(self, base: BaseTopics, now_ns: int) -> None:
        self._publish_events(base, now_ns)
        stamp_ns = base.stamp_ns(now_ns)
        if self._core.has_subscribers and "core_silent" not in base.faults:
            base.send(now_ns, self._core, self._core_state(base, now_ns, stamp_ns))
        rate_rad_s = base.velocity.angular_rad_s
        if self._imu.has_subscribers:
            base.send(now_ns, self._imu, messages.imu(stamp_ns, "gyro_link", base.heading_rad, rate_rad_s))
        if self._raw_imu.has_subscribers:
            for earlier_ns in (RAW_IMU_NS, 0):
                raw = messages.imu(stamp_ns - earlier_ns, "gyro_link", None, rate_rad_s)
                base.send(now_ns, self._raw_imu, raw)

    def diagnose(self, base: BaseTopics) -> dict[str, tuple[int, str, dict[str, object]]]:
        node = "mobile_base_nodelet_manager"
        alive = "sensors_silent" not in base.faults
        watchdog = (DiagnosticStatus.OK, "Alive") if alive else (DiagnosticStatus.ERROR, "No Signal")
        return {
            f"{node}: Battery": battery_diagnosis(base.chassis, LOW_V),
            f"{node}: Watchdog": (*watchdog, {}),
            f"{node}: Cliff Sensor": level_diagnosis(base.cliff, "Cliff Detected"),
            f"{node}: Wall Sensor": level_diagnosis(base.bumper, "Wall Hit"),
            f"{node}: Wheel Drop": level_diagnosis(base.wheel_drop, "Wheel Drop"),
        }

    def _core_state(self, base: BaseTopics, now_ns: int, stamp_ns: int) -> SensorState:
        ticks_per_m = base.family.wheels.ticks_per_m
        return SensorState(
            header=messages.header(stamp_ns),
            time_stamp=now_ns // 1_000_000 % 65536,
            bumper=reversed_bits(base.bumper),
            wheel_drop=drop_bits(base.wheel_drop),
            cliff=reversed_bits(base.cliff),
            left_encoder=math.floor(base.encoders.left_m * ticks_per_m) % 65536,
            right_encoder=math.floor(base.encoders.right_m * ticks_per_m) % 65536,
            charger=SensorState.DISCHARGING,
            battery=round(base.chassis.battery.voltage_v * 10),
            bottom=[_reading(base.cliff, zone) for zone in CLIFF_EVENT_ORDER],
            current=bytes([0, 0]),
            analog_input=[0] * 4,
        )

    def _publish_events(self, base: BaseTopics, now_ns: int) -> None:
        """One message per change of one sensor, without a stamp."""
        due_ns = now_ns + self._events_ns
        bumper, cliff, wheel_drop = self._seen
        self._seen = base.bumper, base.cliff, base.wheel_drop
        for number, zone in enumerate((Zone.LEFT, Zone.CENTER, Zone.RIGHT)):
            bit = zone.value
            if (bumper ^ base.bumper) & bit:
                base.delayed.publish(due_ns, self._bumper, BumperEvent(number, int(bool(base.bumper & bit))))
            if (cliff ^ base.cliff) & bit:
                reading = _reading(base.cliff, CLIFF_EVENT_ORDER[number])
                base.delayed.publish(due_ns, self._cliff, CliffEvent(number, int(bool(base.cliff & bit)), reading))
        for number, zone in enumerate((Zone.LEFT, Zone.RIGHT)):
            if (wheel_drop ^ base.wheel_drop) & zone.value:
                dropped = int(bool(base.wheel_drop & zone.value))
                base.delayed.publish(due_ns, self._wheel_drop, WheelDropEvent(number, dropped))
        power_event = _power_event(base.chassis.battery.voltage_v)
        if power_event != self._power_event:
            self._power_event = power_event
            if power_event is not None:
                base.delayed.publish(due_ns, self._power, PowerSystemEvent(power_event))


def reversed_bits(zones: int) -> int:
    """``hal.Zone`` bits as Kobuki has them: right 1, centre 2, left 4."""
    return (zones & 1) << 2 | zones & 2 | zones >> 2 & 1


def drop_bits(zones: int) -> int:
    """``hal.Zone`` bits as Kobuki has them for wheels: right 1, left 2."""
    return (zones & 1) << 1 | zones >> 2 & 1


def _reading(cliff: int, zone: Zone) -> int:
    return CLIFF_READING if cliff & zone.value else FLOOR_READING


def _power_event(voltage_v: float) -> int | None:
    if voltage_v <= CRITICAL_V:
        return int(PowerSystemEvent.BATTERY_CRITICAL)
    return int(PowerSystemEvent.BATTERY_LOW) if voltage_v <= LOW_V else None
