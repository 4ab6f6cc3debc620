"""The driver of robots on ROS 2: ``driver: drivers.ros2.driver.make_robot``. See README.md."""

from collections.abc import Mapping
from typing import Any

from drivers.ros.connection.clock import RosClock
from drivers.ros.robot import assemble
from drivers.ros2.create3 import Ros2Base
from drivers.ros2.options import Ros2Options
from drivers.ros2.session import Session
from robot_runtime.common import config
from robot_runtime.hal import Robot
from robot_runtime.robots.loader import RobotContext


def make_robot(context: RobotContext, name: str, options: Mapping[str, Any], where: str) -> Robot:
    """Return a robot on a ROS 2 network, disconnected. Raises ``ConfigError`` for a bad option."""
    chosen = config.parse(dict(options), Ros2Options, where)
    clock = RosClock(chosen.clock.max_skew_s, chosen.clock.stall_s)
    return assemble(context, name, Session(chosen.network, clock), chosen, Ros2Base)
