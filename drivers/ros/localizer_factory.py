"""Localizers over ROS as a driver of their own: ``driver: drivers.ros.localizer_factory.make_localizer``.

For presets in ``launch/localizers/`` and the sections ``localizer`` and ``referee`` of a robot's file: motion capture,
AMCL, SLAM. Options are :class:`~drivers.ros.options.LocalizerOptions`.
"""

from collections.abc import Mapping
from typing import Any

from drivers.ros.base.driver import RosBase
from drivers.ros.localizer.sources import make_localizer as make_source
from drivers.ros.options import LocalizerOptions
from robot_runtime.common import config
from robot_runtime.errors import ConfigError
from robot_runtime.hal import Localizer, Robot
from robot_runtime.robots.loader import RobotContext


def make_localizer(robot: Robot, context: RobotContext, options: Mapping[str, Any], where: str) -> Localizer:
    """Return the source, disconnected. Raises ``ConfigError`` for a bad option, or a robot that is not on ROS."""
    chosen = config.parse(dict(options), LocalizerOptions, where)
    if not isinstance(robot.base, RosBase):
        raise ConfigError(
            f"{where}: robot {robot.name!r} is not on ROS, where these poses are", "choose a robot on ROS"
        )
    session, site = robot.base.site
    return make_source("localizer", session, chosen, site, robot.name)
