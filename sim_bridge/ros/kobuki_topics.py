"""The topics of kobuki_node except odometry: sensors/core, events, IMU, motor power, reset of odometry."""

import math
from typing import Any

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

from drivers.ros.protocol import Diagnosis, bits_of
from drivers.ros.safety_fields import KOBUKI_BITS, KOBUKI_WHEEL_BITS
from robot_runtime.common.clock import seconds_to_ns
from robot_runtime.hal import Zone
from sim_bridge.ros.base_topics import BaseTopics, VariantTopics, battery_diagnosis, level_diagnosis
from sim_bridge.ros.messages import messages
from sim_bridge.ros.rospy_network import Publisher

LOW_V, CRITICAL_V = 14.0, 13.2
"""kobuki_node's ``battery_low`` and ``battery_dangerous``."""

FLOOR_READING, CLIFF_READING = 1800, 60
"""12-bit readings of a cliff sensor over a floor and over none."""

RAW_IMU_NS = 10_000_000
"""Time between two readings of the gyro; two arrive with each report."""

CLIFF_READINGS = (Zone.RIGHT, Zone.CENTER, Zone.LEFT)
"""Order of the readings in ``sensors/core``; kobuki_core takes the reading of event number n from place n of it."""


class KobukiTopics(VariantTopics):
    """A Kobuki; add it to :class:`BaseTopics`."""

    def __init__(self, base: BaseTopics) -> None:
        names, executor = base.variant.names, base.context.executor
        root, topics = names.base, names.topics
        self._core = Publisher(topics["core"], SensorState._type)
        self._imu = Publisher(f"{root}/sensors/imu_data", Imu._type)
        self._raw_imu = Publisher(f"{root}/sensors/imu_data_raw", Imu._type)
        self._bumper = Publisher(topics["bumper"], BumperEvent._type)
        self._cliff = Publisher(topics["cliff"], CliffEvent._type)
        self._wheel_drop = Publisher(topics["wheel_drop"], WheelDropEvent._type)
        self._power = Publisher(f"{root}/events/power_system", PowerSystemEvent._type)
        robot_state = Publisher(f"{root}/events/robot_state", RobotStateEvent._type, latch=True)
        robot_state.publish(RobotStateEvent(RobotStateEvent.ONLINE))
        self._event_latency_ns = seconds_to_ns(base.variant.timing.event_latency_s)
        self._levels = (0, 0, 0)
        self._power_event: int | None = None

        def on_motor_power(message: MotorPower) -> None:
            executor.submit(lambda: base.commands.power(message.state == MotorPower.ON))

        rospy.Subscriber(topics["motor_power"], MotorPower, on_motor_power)
        rospy.Subscriber(f"{root}/commands/reset_odometry", Empty, lambda _: executor.submit(base.reset_odometry))

    def publish(self, base: BaseTopics, now_ns: int) -> None:
        self._publish_events(base, now_ns)
        stamp_ns, rate_rad_s = base.stamp_ns(now_ns), base.velocity.angular_rad_s

        def imu(earlier_ns: int, yaw_rad: float | None) -> Any:
            return messages.imu(stamp_ns - earlier_ns, "gyro_link", yaw_rad, rate_rad_s)

        if "core_silent" not in base.faults:
            base.send(now_ns, self._core, lambda: _core_state(base, now_ns, stamp_ns))
        base.send(now_ns, self._imu, lambda: imu(0, base.heading_rad))
        base.send(now_ns, self._raw_imu, lambda: imu(RAW_IMU_NS, None))
        base.send(now_ns, self._raw_imu, lambda: imu(0, None))

    def diagnose(self, base: BaseTopics) -> dict[str, Diagnosis]:
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

    def _publish_events(self, base: BaseTopics, now_ns: int) -> None:
        """Publish one message, without a stamp, for each change of a sensor."""
        bumper, cliff, wheel_drop = self._levels
        self._levels = base.bumper, base.cliff, base.wheel_drop

        def publish(publisher: Publisher, event: Any) -> None:
            base.delayed.publish(now_ns + self._event_latency_ns, publisher, event)

        for number, zone in enumerate((Zone.LEFT, Zone.CENTER, Zone.RIGHT)):
            bit = zone.value
            if (bumper ^ base.bumper) & bit:
                publish(self._bumper, BumperEvent(number, int(bool(base.bumper & bit))))
            if (cliff ^ base.cliff) & bit:
                reading = _reading(base.cliff, CLIFF_READINGS[number])
                publish(self._cliff, CliffEvent(number, int(bool(base.cliff & bit)), reading))
        for number, zone in enumerate((Zone.LEFT, Zone.RIGHT)):
            if (wheel_drop ^ base.wheel_drop) & zone.value:
                publish(self._wheel_drop, WheelDropEvent(number, int(bool(base.wheel_drop & zone.value))))
        power_event = _power_event(base.chassis.battery.voltage_v)
        if power_event != self._power_event:
            self._power_event = power_event
            if power_event is not None:
                publish(self._power, PowerSystemEvent(power_event))


def _core_state(base: BaseTopics, now_ns: int, stamp_ns: int) -> SensorState:
    ticks_per_m = base.variant.wheels.ticks_per_m
    return SensorState(
        header=messages.header(stamp_ns),
        time_stamp=now_ns // 1_000_000 % 65536,
        bumper=bits_of(Zone(base.bumper), KOBUKI_BITS),
        wheel_drop=bits_of(Zone(base.wheel_drop), KOBUKI_WHEEL_BITS),
        cliff=bits_of(Zone(base.cliff), KOBUKI_BITS),
        left_encoder=math.floor(base.encoders.left_m * ticks_per_m) % 65536,
        right_encoder=math.floor(base.encoders.right_m * ticks_per_m) % 65536,
        charger=SensorState.DISCHARGING,
        battery=round(base.chassis.battery.voltage_v * 10),
        bottom=[_reading(base.cliff, zone) for zone in CLIFF_READINGS],
        current=bytes([0, 0]),
        analog_input=[0] * 4,
    )


def _reading(cliff: int, zone: Zone) -> int:
    return CLIFF_READING if cliff & zone.value else FLOOR_READING


def _power_event(voltage_v: float) -> int | None:
    if voltage_v <= CRITICAL_V:
        return int(PowerSystemEvent.BATTERY_CRITICAL)
    return int(PowerSystemEvent.BATTERY_LOW) if voltage_v <= LOW_V else None
