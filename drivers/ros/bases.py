"""Limits of each variant's base."""

from __future__ import annotations

import math
from collections.abc import Mapping

from robot_runtime.hal.wheels import BaseInfo

GYRO_LIMIT_RAD_S = math.radians(110)
"""A Kobuki turns at 180 degrees/s, but its gyro, the source of its odometry's heading, degrades above this."""

_KOBUKI = BaseInfo("Kobuki", 0.178, 0.7, GYRO_LIMIT_RAD_S, 1.0, 7.0, rate_hz=50.0)
_CREATE = BaseInfo("Create 2", 0.175, 0.5, GYRO_LIMIT_RAD_S, 1.0, 7.0, rate_hz=50.0)

_CREATE_3 = BaseInfo("Create 3", 0.171, 0.306, 1.9, 0.9, 7.0, rate_hz=20.0)
_TURTLEBOT_3 = BaseInfo("TurtleBot 3", 0.105, 0.22, 2.84, 1.0, 7.0, rate_hz=20.0)

BASES: Mapping[str, BaseInfo] = {
    "pyrobot-kobuki": _KOBUKI,
    "pyrobot-create": _CREATE,
    "interbotix": _KOBUKI,
    "create3": _CREATE_3,
    "locobot-create3": _CREATE_3,
    "turtlebot4-jazzy": _CREATE_3,
    "turtlebot4-humble": _CREATE_3,
    "turtlebot3": _TURTLEBOT_3,
    "differential": BaseInfo("differential base", 0.2, 0.3, 1.5, 0.5, 3.0, rate_hz=20.0),
}
"""The limits by family."""
