"""Wheel odometry as a localizer: ``driver: robot_runtime.localization.wheel_odometry.make_localizer``."""

from collections.abc import Mapping
from typing import Any

from robot_runtime.errors import ConfigError
from robot_runtime.hal import Localizer, Robot
from robot_runtime.robots.loader import RobotContext


def make_localizer(robot: Robot, context: RobotContext, options: Mapping[str, Any], where: str) -> Localizer:
    """``robot.odometry``, in ``odom``. Raises ``ConfigError`` if the robot has none, or for an option."""
    if options:
        raise ConfigError(f"{where}: odometry takes no options, got {', '.join(options)}", "leave them out")
    if robot.odometry is None:
        raise ConfigError(f"{where}: robot {robot.name!r} has no odometry", "use a robot whose driver reports it")
    return robot.odometry
