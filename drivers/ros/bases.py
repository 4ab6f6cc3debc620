"""Limits of each variant's base."""

from __future__ import annotations

import math
from collections.abc import Mapping

from robot_runtime.hal.wheels import BaseInfo

GYRO_LIMIT_RAD_S = math.radians(110)
"""A Kobuki turns at 180 degrees/s, but its gyro, the source of its odometry's heading, degrades above this."""

_KOBUKI = BaseInfo("Kobuki", 0.178, 0.7, GYRO_LIMIT_RAD_S, 1.0, 7.0, rate_hz=50.0)
_CREATE = BaseInfo("Create 2", 0.175, 0.5, GYRO_LIMIT_RAD_S, 1.0, 7.0, rate_hz=50.0)

BASES: Mapping[str, BaseInfo] = {"pyrobot-kobuki": _KOBUKI, "pyrobot-create": _CREATE, "interbotix": _KOBUKI}
"""The limits by family."""
