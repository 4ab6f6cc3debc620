"""What the Create 2's driver publishes besides odometry: bumper, cliff, drop, battery."""

from __future__ import annotations

from typing import Any

from ca_msgs.msg import Bumper, ChargingState, Mode
from std_msgs.msg import Empty, Float32, Int16

from robot_runtime.hal import Zone
from sim_bridge.ros import messages
from sim_bridge.ros.base_topics import BaseTopics, battery_diagnosis, level_diagnosis
from sim_bridge.ros.publisher import Publisher

CAPACITY_AH = 2.7
LOW_V = 14.0
TEMPERATURE_C = 25


class CreateTopics:
    """A Create 2; add it to :class:`BaseTopics`."""

    def __init__(self) -> None:
        self._bumper = Publisher("/bumper", Bumper)
        self._cliff = Publisher("/cliff", Empty)
        self._wheel_drop = Publisher("/wheeldrop", Empty)
        self._mode = Publisher("/mode", Mode)
        self._charging = Publisher("/battery/charging_state", ChargingState)
        self._battery = {name: Publisher(f"/battery/{name}", Float32) for name in _FLOATS}
        self._temperature = Publisher("/battery/temperature", Int16)

    def report(self, base: BaseTopics, now_ns: int) -> None:
        frame = base.family.names.base_frame
        stamp_ns = base.stamp_ns(now_ns)

        def send(target: Publisher, message: Any) -> None:
            base.send(now_ns, target, message)

        if self._bumper.has_subscribers and "core_silent" not in base.faults:
            # Two switches for the whole arc: both together mean the middle.
            center = base.bumper & Zone.CENTER.value
            bumper = Bumper(header=messages.header(stamp_ns, frame))
            bumper.is_left_pressed = bool(base.bumper & Zone.LEFT.value or center)
            bumper.is_right_pressed = bool(base.bumper & Zone.RIGHT.value or center)
            send(self._bumper, bumper)
        # Nothing but the message says it, again and again while it lasts; there is no message for its end.
        if base.cliff:
            send(self._cliff, Empty())
        if base.wheel_drop:
            send(self._wheel_drop, Empty())
        if self._mode.has_subscribers:
            send(self._mode, Mode(messages.header(stamp_ns, frame), Mode.MODE_FULL))
        if self._charging.has_subscribers:
            send(self._charging, ChargingState(messages.header(stamp_ns, frame), ChargingState.CHARGE_NONE))
        battery = base.chassis.battery
        charge_ah = battery.fraction * CAPACITY_AH
        values = {
            "voltage": battery.voltage_v,
            "current": -1.0,
            "charge": charge_ah,
            "capacity": CAPACITY_AH,
            "charge_ratio": battery.fraction,
        }
        for name, target in self._battery.items():
            if target.has_subscribers:
                send(target, Float32(values[name]))
        if self._temperature.has_subscribers:
            send(self._temperature, Int16(TEMPERATURE_C))

    def diagnose(self, base: BaseTopics) -> dict[str, tuple[int, str, dict[str, object]]]:
        return {
            "ca_driver: Battery Status": battery_diagnosis(base.chassis, LOW_V),
            "ca_driver: Safety Status": level_diagnosis(base.cliff | base.wheel_drop, "Cliff or wheeldrop detected"),
        }


_FLOATS = ("voltage", "current", "charge", "capacity", "charge_ratio")
