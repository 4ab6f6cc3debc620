"""Create 2 base: ``driver: drivers.create2.driver.make_base``."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from drivers.create2.emulator import EmulatedCreate2
from drivers.create2.wire import Create2Wire
from drivers.serial_base.driver import BaseKind, BaseOptions
from robot_runtime.common import config
from robot_runtime.common.config import Positive
from robot_runtime.hal import Base, Robot
from robot_runtime.hal.motors import CREATE_2_MOTORS
from robot_runtime.robots.loader import RobotContext

CRITICAL_FRACTION = 0.05

CREATE_2_BASE = BaseKind("Create 2", Create2Wire, EmulatedCreate2, CREATE_2_MOTORS, CRITICAL_FRACTION)


@dataclass(frozen=True)
class Create2Options(BaseOptions):
    """The ``options`` of a Create 2; its button 0 is Clean.

    The accelerations grant a step of the base's speed controller, 28.5 mm/s, in each period.
    """

    port: str = "/dev/create2"
    radius_m: Positive = 0.17
    max_linear_m_s: Positive = 0.5
    max_angular_rad_s: Positive = 3.0
    max_linear_accel_m_s2: Positive = 2.0
    max_angular_accel_rad_s2: Positive = 17.0


def make_base(robot: Robot, context: RobotContext, options: Mapping[str, Any], where: str) -> Base:
    """Return the base, disconnected; emulated on a simulated robot. Raises ``ConfigError`` for a bad option."""
    return CREATE_2_BASE.make(robot, config.parse(dict(options), Create2Options, where))
