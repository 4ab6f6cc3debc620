"""LoCoBots on ROS 1: ``driver: drivers.ros_locobot.driver.make_robot``. See README.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drivers.ros_locobot.base.driver import RosBase
from drivers.ros_locobot.camera.driver import NOMINAL, RosCamera
from drivers.ros_locobot.connection.clock import RosClock
from drivers.ros_locobot.connection.session import Session
from drivers.ros_locobot.head import RosHead
from drivers.ros_locobot.localizer.motion_history import MotionHistory
from drivers.ros_locobot.localizer.sources import make_localizer
from drivers.ros_locobot.options import LocalizerOptions, RosOptions
from drivers.ros_locobot.placer import RealPlacer, SimulationPlacer
from robot_runtime.common import config
from robot_runtime.hal import Placer, Robot
from robot_runtime.placement.driving import DrivingPlacer
from robot_runtime.placement.operator import OperatorPlacer
from robot_runtime.robots.loader import RobotContext


def make_robot(context: RobotContext, name: str, options: Mapping[str, Any], where: str) -> Robot:
    """A LoCoBot on a ROS network, disconnected. Raises ``ConfigError`` for a bad option."""
    chosen = config.parse(dict(options), RosOptions, where)
    clock = RosClock(chosen.clock.max_skew_s, chosen.clock.stall_s)
    session = Session(chosen.master, clock)
    motion = MotionHistory()
    base = RosBase(name, session, chosen, motion)
    head = RosHead(session, chosen, motion)
    nominal = context.camera.intrinsics if context.camera is not None else NOMINAL
    camera = RosCamera(session, chosen, nominal, motion, name)
    localizer = make_localizer("localizer", session, chosen.localizer, chosen, motion, name)
    referee = localizer
    if chosen.referee != chosen.localizer:
        referee = make_localizer("referee", session, chosen.referee, chosen, motion, name)
    odometry = localizer
    if chosen.localizer.source != "odometry":
        odometry = make_localizer("odometry", session, LocalizerOptions("odometry"), chosen, motion, name)
    localizers = tuple(dict.fromkeys((localizer, referee, odometry)))
    placer: Placer
    if chosen.placer.by == "simulation":
        placer = SimulationPlacer(session, base, head, camera, localizers, motion, chosen.placer)
    else:
        eyes = (clock, base, head, localizer, referee, chosen.placer.tolerance)
        drives, occupancy = chosen.placer.by == "drive", None if context.scene is None else context.scene.map
        guided = DrivingPlacer(*eyes, occupancy=occupancy) if drives else OperatorPlacer(*eyes)
        placer = RealPlacer(session, base, head, camera, localizers, motion, guided)
    return Robot(name, clock, base, head, camera, localizer, referee, placer, odometry=odometry)
