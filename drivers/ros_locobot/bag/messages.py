"""Messages of bags, built by ``rosbags``. Stamps are the log's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drivers.ros_locobot.bag.definitions import stored_name, typestore
from drivers.ros_locobot.protocol import MessageFactory, bits_of, create_safety_diagnosis
from drivers.ros_locobot.safety_fields import CREATE_SAFETY_STATUS, KOBUKI_BITS, KOBUKI_WHEEL_BITS
from robot_runtime.common.clock import NS_PER_S
from robot_runtime.common.geometry import SE2
from robot_runtime.hal import BaseState, Zone
from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap

_OCCUPANCY = {Cell.FREE: 0, Cell.OCCUPIED: 100, Cell.UNKNOWN: -1}
_CREATE_LIGHTS = ("left", "front_left", "center_left", "center_right", "front_right", "right")


class BagMessages(MessageFactory):
    """Messages of the robots' topics. Fields that no log has are zero."""

    def make(self, kind: str, **fields: Any) -> Any:
        return typestore().types[stored_name(kind)](**fields)

    def time(self, stamp_ns: int) -> Any:
        return typestore().types["builtin_interfaces/msg/Time"](*divmod(stamp_ns, NS_PER_S))

    def numbers(self, values: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(values, float)

    def buffer(self, data: bytes) -> NDArray[np.uint8]:
        return np.frombuffer(data, np.uint8)

    def text(self, data: str) -> Any:
        """Build a std_msgs/String."""
        return self.make("std_msgs/String", data=data)

    def kobuki_core(self, state: BaseState) -> Any:
        """Build a Kobuki's kobuki_msgs/SensorState without encoders, currents, buttons and charger."""
        # A base that does not know its battery reports 0.
        battery = min(255, max(0, round(state.battery_v * 10))) if math.isfinite(state.battery_v) else 0
        zero = ("left_encoder", "right_encoder", "left_pwm", "right_pwm", "buttons", "charger", "over_current")
        return self.make(
            "kobuki_msgs/SensorState",
            header=self.header(state.stamp_ns),
            time_stamp=state.stamp_ns // 1_000_000 % 65536,
            bumper=bits_of(state.bumper, KOBUKI_BITS),
            wheel_drop=bits_of(state.wheel_drop, KOBUKI_WHEEL_BITS),
            cliff=bits_of(state.cliff, KOBUKI_BITS),
            battery=battery,
            bottom=np.zeros(3, np.uint16),
            current=np.zeros(2, np.uint8),
            digital_input=0,
            analog_input=np.zeros(4, np.uint16),
            **dict.fromkeys(zero, 0),
        )

    def create_bumper(self, state: BaseState) -> Any:
        """Build a Create's ca_msgs/Bumper without light sensors; a contact in the middle closes both switches."""
        middle = Zone.CENTER in state.bumper
        return self.make(
            "ca_msgs/Bumper",
            header=self.header(state.stamp_ns),
            is_left_pressed=middle or Zone.LEFT in state.bumper,
            is_right_pressed=middle or Zone.RIGHT in state.bumper,
            **{f"is_light_{name}": False for name in _CREATE_LIGHTS},
            **{f"light_signal_{name}": 0 for name in _CREATE_LIGHTS},
        )

    def create_diagnostics(self, state: BaseState) -> Any:
        """Build the diagnostic_msgs/DiagnosticArray of a Create's driver with the cliff and wheel-drop sensors."""
        diagnosis = create_safety_diagnosis(bool(state.cliff), bool(state.wheel_drop))
        return self.diagnostics(state.stamp_ns, {f"ca_driver: {CREATE_SAFETY_STATUS}": diagnosis})

    def occupancy_grid(self, stamp_ns: int, map_: OccupancyMap, frame: str) -> Any:
        """Build a nav_msgs/OccupancyGrid as map_server publishes it."""
        lookup = np.array([_OCCUPANCY[Cell(i)] for i in range(len(Cell))], np.int8)
        rows, columns = map_.cells.shape
        info = self.make(
            "nav_msgs/MapMetaData",
            map_load_time=self.time(0),
            resolution=map_.resolution_m,
            width=columns,
            height=rows,
            origin=self.pose(SE2(map_.origin_x_m, map_.origin_y_m)),
        )
        data = lookup[map_.cells].ravel()
        return self.make("nav_msgs/OccupancyGrid", header=self.header(stamp_ns, frame), info=info, data=data)


messages = BagMessages()
