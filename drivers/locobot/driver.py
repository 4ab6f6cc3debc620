"""A real LoCoBot without ROS: ``driver: drivers.locobot.driver.make_robot``.

Its file names ``base`` and ``camera``, and mostly ``localizer`` and ``referee``; without those, poses are odometry.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from robot_runtime.common import config
from robot_runtime.common.clock import SystemClock
from robot_runtime.hal import LocalizerInfo, Placer, PoseHistory, Robot
from robot_runtime.hal.stand_ins import FixedHead, HistoryLocalizer, MissingBase, MissingCamera
from robot_runtime.placement.driving import DrivingPlacer
from robot_runtime.placement.offset import Tolerance
from robot_runtime.placement.placer import OperatorPlacer
from robot_runtime.robots.loader import RobotContext

RATE_HZ = 50.0


@dataclass(frozen=True)
class LocobotOptions(config.Strict):
    """The ``options`` of a real LoCoBot.

    Attributes:
        placer: what brings the robot to an episode's start: a person, or its own wheels.
        tolerance: tolerance of the placement.
        tilt_deg: angle of the camera above the horizon, where no head is named.
    """

    placer: Literal["operator", "drive"] = "operator"
    tolerance: Tolerance = field(default_factory=Tolerance)
    tilt_deg: float = 0.0


def make_robot(context: RobotContext, name: str, options: Mapping[str, Any], where: str) -> Robot:
    """Return the robot, disconnected. Raises ``ConfigError`` for a bad option."""
    chosen, clock = config.parse(dict(options), LocobotOptions, where), SystemClock()
    base, head = MissingBase(), FixedHead(clock, math.radians(chosen.tilt_deg))
    history = PoseHistory("odometry", "odom")
    odometry = HistoryLocalizer(LocalizerInfo("odometry", "odom", RATE_HZ), clock, history)
    used = (clock, base, head, odometry, odometry, chosen.tolerance)
    occupancy = None if context.scene is None else context.scene.map
    placer: Placer = OperatorPlacer(*used)
    if chosen.placer == "drive":
        placer = DrivingPlacer(*used, occupancy=occupancy)
    return Robot(name, clock, base, head, MissingCamera(), odometry, odometry, placer, odometry=odometry)
