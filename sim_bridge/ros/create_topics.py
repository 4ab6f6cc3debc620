"""The topics of a Create 2's driver except odometry: bumper, wheel drop, battery; cliffs are in its diagnoses."""

from __future__ import annotations

from functools import partial

from ca_msgs.msg import Bumper, ChargingState, Mode
from diagnostic_msgs.msg import DiagnosticStatus
from std_msgs.msg import Empty, Float32, Int16

from drivers.ros_locobot.protocol import Diagnosis, create_safety_diagnosis
from drivers.ros_locobot.safety_fields import CREATE_SAFETY_STATUS
from robot_runtime.hal import Zone
from sim_bridge.ros.base_topics import BaseTopics, VariantTopics, battery_diagnosis
from sim_bridge.ros.messages import messages
from sim_bridge.ros.publisher import Publisher

CAPACITY_AH = 2.7
CURRENT_A = -1.0
LOW_V = 14.0
TEMPERATURE_C = 25

BATTERY_TOPICS = ("voltage", "current", "charge", "capacity", "charge_ratio")


class CreateTopics(VariantTopics):
    """A Create 2; add it to :class:`BaseTopics`."""

    def __init__(self, base: BaseTopics) -> None:
        topics = base.variant.names.topics
        self._bumper = Publisher(topics["bumper"], Bumper)
        self._wheel_drop = Publisher(topics["wheel_drop"], Empty)
        self._mode = Publisher("/mode", Mode)
        self._charging = Publisher("/battery/charging_state", ChargingState)
        self._battery = [Publisher(f"/battery/{name}", Float32) for name in BATTERY_TOPICS]
        self._temperature = Publisher("/battery/temperature", Int16)

    def publish(self, base: BaseTopics, now_ns: int) -> None:
        header = messages.header(base.stamp_ns(now_ns), base.variant.names.frames.base)
        # Both switches together mean the middle of the bumper.
        left, right = (bool(base.bumper & (zone | Zone.CENTER).value) for zone in (Zone.LEFT, Zone.RIGHT))
        if "core_silent" not in base.faults:
            pressed = {"is_left_pressed": left, "is_right_pressed": right}
            base.send(now_ns, self._bumper, lambda: Bumper(header=header, **pressed))
        # The driver repeats this message while the level is active; no message reports its end.
        if base.wheel_drop:
            base.send(now_ns, self._wheel_drop, Empty)
        base.send(now_ns, self._mode, lambda: Mode(header, Mode.MODE_FULL))
        base.send(now_ns, self._charging, lambda: ChargingState(header, ChargingState.CHARGE_NONE))
        battery = base.chassis.battery
        charge_ah = battery.fraction * CAPACITY_AH
        values = (battery.voltage_v, CURRENT_A, charge_ah, CAPACITY_AH, battery.fraction)
        for publisher, value in zip(self._battery, values, strict=True):
            base.send(now_ns, publisher, partial(Float32, value))
        base.send(now_ns, self._temperature, lambda: Int16(TEMPERATURE_C))

    def diagnose(self, base: BaseTopics) -> dict[str, Diagnosis]:
        return {
            "ca_driver: Battery Status": battery_diagnosis(base.chassis, LOW_V),
            f"ca_driver: {CREATE_SAFETY_STATUS}": create_safety_diagnosis(bool(base.cliff), bool(base.wheel_drop)),
            "ca_driver: Base Mode": (DiagnosticStatus.OK, "Mode is set to FULL", {}),
        }
