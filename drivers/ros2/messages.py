"""Messages built by rclpy's generated classes."""

import array
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drivers.ros.protocol import MessageFactory
from drivers.ros2.node import is_stand_in, message_class
from robot_runtime.common.clock import NS_PER_S

SET_ATOMICALLY = "rcl_interfaces/SetParametersAtomically"
"""Type of the simulated robot's services: every installation of rclpy has it. A fault's reason and remedy are lines."""

_class_of = cache(lambda kind: message_class((kind,)))


class RclpyMessages(MessageFactory):
    """Messages of rclpy."""

    def make(self, kind: str, **fields: Any) -> Any:
        made = _class_of(kind)
        if is_stand_in(made):
            from drivers.ros2 import forged  # needs rosbags, which a computer with ROS may lack

            return forged.make(kind, **{name: _field(value) for name, value in fields.items()})
        if kind == "diagnostic_msgs/DiagnosticStatus":
            fields["level"] = bytes([fields["level"]])
        if kind == "sensor_msgs/CameraInfo":
            fields = {name.lower() if len(name) == 1 else name: value for name, value in fields.items()}
        return made(**fields)

    def time(self, stamp_ns: int) -> Any:
        seconds, nanoseconds = divmod(stamp_ns, NS_PER_S)
        return self.make("builtin_interfaces/Time", sec=seconds, nanosec=nanoseconds)

    def header(self, stamp_ns: int, frame: str = "") -> Any:
        return self.make("std_msgs/Header", stamp=self.time(stamp_ns), frame_id=frame)

    def numbers(self, values: Sequence[float] | NDArray[np.float64]) -> list[float]:
        return [float(value) for value in values]

    def buffer(self, data: bytes) -> Any:
        return array.array("B", data)


def parameters(messages: MessageFactory, values: Mapping[str, bool | float]) -> list[Any]:
    """Return values as rcl_interfaces/Parameter."""

    def value_of(value: bool | float) -> Any:
        given = {"type": 1, "bool_value": value} if isinstance(value, bool) else {"type": 3, "double_value": value}
        return messages.make("rcl_interfaces/ParameterValue", **given)

    return [
        messages.make("rcl_interfaces/Parameter", name=name, value=value_of(value)) for name, value in values.items()
    ]


def _field(value: Any) -> Any:
    """Return a field as rosbags has it: numbers in an array."""
    numbers = isinstance(value, list) and value and isinstance(value[0], float)
    return np.array(value, np.float32) if numbers else value
