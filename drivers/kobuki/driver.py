"""Kobuki base: ``driver: drivers.kobuki.driver.make_base``."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from drivers.kobuki.emulator import EmulatedKobuki
from drivers.kobuki.wire import CRITICAL_FRACTION, KobukiWire
from drivers.serial_base.driver import BaseKind, BaseOptions
from robot_runtime.common import config
from robot_runtime.common.config import Positive
from robot_runtime.hal import Base, Robot
from robot_runtime.hal.motors import KOBUKI_MOTORS
from robot_runtime.robots.loader import RobotContext

KOBUKI_BASE = BaseKind("Kobuki", KobukiWire, EmulatedKobuki, KOBUKI_MOTORS, CRITICAL_FRACTION)


@dataclass(frozen=True)
class KobukiOptions(BaseOptions):
    """The ``options`` of a Kobuki.

    The vendor's limits are 0.7 m/s and 180 deg/s; the gyro degrades above 110 deg/s.
    """

    port: str = "/dev/kobuki"
    radius_m: Positive = 0.178
    max_linear_m_s: Positive = 0.7
    max_angular_rad_s: Positive = math.pi
    max_linear_accel_m_s2: Positive = 1.0
    max_angular_accel_rad_s2: Positive = 7.0
    stop_button: Annotated[int, Field(ge=0, le=2)] | None = 0


def make_base(robot: Robot, context: RobotContext, options: Mapping[str, Any], where: str) -> Base:
    """Return the base, disconnected; emulated on a simulated robot. Raises ``ConfigError`` for a bad option."""
    return KOBUKI_BASE.make(robot, config.parse(dict(options), KobukiOptions, where))
