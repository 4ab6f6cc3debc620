"""The driver of LoCoBots on ROS 1: ``driver: drivers.ros_locobot.driver.make_robot``. See README.md."""

from collections.abc import Mapping
from typing import Any

from drivers.ros_locobot.base.driver import RosBase
from drivers.ros_locobot.camera.driver import NOMINAL, RosCamera
from drivers.ros_locobot.connection.clock import RosClock
from drivers.ros_locobot.connection.session import Session
from drivers.ros_locobot.head import RosHead
from drivers.ros_locobot.localizer.motion_history import MotionHistory
from drivers.ros_locobot.localizer.sources import RosLocalizer, make_localizer
from drivers.ros_locobot.options import LocalizerOptions, RosOptions
from drivers.ros_locobot.placer import PlacedDevices, RealPlacer, SimulationPlacer
from robot_runtime.common import config
from robot_runtime.hal import Placer, Robot
from robot_runtime.placement.driving import DrivingPlacer
from robot_runtime.placement.operator import OperatorPlacer
from robot_runtime.robots.loader import RobotContext


def make_robot(context: RobotContext, name: str, options: Mapping[str, Any], where: str) -> Robot:
    """Return a LoCoBot on a ROS network, disconnected. Raises ``ConfigError`` for a bad option."""
    chosen = config.parse(dict(options), RosOptions, where)
    clock = RosClock(chosen.clock.max_skew_s, chosen.clock.stall_s)
    session = Session(chosen.master, clock)
    motion = MotionHistory()
    base = RosBase(name, session, chosen, motion)
    head = RosHead(session, chosen, motion)
    nominal = context.camera.intrinsics if context.camera is not None else NOMINAL
    camera = RosCamera(session, chosen, nominal, motion, name)

    def localizer_of(role: str, source: LocalizerOptions) -> RosLocalizer:
        return make_localizer(role, session, source, chosen, name)

    localizer = localizer_of("localizer", chosen.localizer)
    referee = localizer if chosen.referee == chosen.localizer else localizer_of("referee", chosen.referee)
    is_odometry = chosen.localizer.source == "odometry"
    odometry = localizer if is_odometry else localizer_of("odometry", LocalizerOptions("odometry"))
    localizers = tuple(dict.fromkeys((localizer, referee, odometry)))
    devices = PlacedDevices(session, base, head, camera, motion, localizers)
    placer: Placer
    if chosen.placer.by == "simulation":
        placer = SimulationPlacer(devices, chosen.placer.service)
    else:
        used = (clock, base, head, localizer, referee, chosen.placer.tolerance)
        occupancy = None if context.scene is None else context.scene.map
        drives = chosen.placer.by == "drive"
        placer = RealPlacer(devices, DrivingPlacer(*used, occupancy=occupancy) if drives else OperatorPlacer(*used))
    return Robot(name, clock, base, head, camera, localizer, referee, placer, odometry=odometry)
