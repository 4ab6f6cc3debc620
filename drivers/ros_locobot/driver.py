"""The driver of LoCoBots on ROS 1: ``driver: drivers.ros_locobot.driver.make_robot``. See README.md."""

from collections.abc import Mapping
from typing import Any

from drivers.ros.connection.clock import RosClock
from drivers.ros.robot import assemble
from drivers.ros_locobot.connection.session import Session
from drivers.ros_locobot.options import RosOptions
from robot_runtime.common import config
from robot_runtime.hal import Robot
from robot_runtime.robots.loader import RobotContext


def make_robot(context: RobotContext, name: str, options: Mapping[str, Any], where: str) -> Robot:
    """Return a LoCoBot on a ROS network, disconnected. Raises ``ConfigError`` for a bad option."""
    chosen = config.parse(dict(options), RosOptions, where)
    clock = RosClock(chosen.clock.max_skew_s, chosen.clock.stall_s)
    return assemble(context, name, Session(chosen.master, clock), chosen)
