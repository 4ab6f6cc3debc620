"""A robot behind ROS topics: its devices on one session."""

from collections.abc import Callable

from drivers.ros.base.driver import RosBase
from drivers.ros.camera.driver import NOMINAL, RosCamera
from drivers.ros.connection.session import Session
from drivers.ros.head import RosHead
from drivers.ros.localizer.motion_history import MotionHistory
from drivers.ros.localizer.sources import RosLocalizer, make_localizer
from drivers.ros.options import LocalizerOptions, RobotOptions
from drivers.ros.placer import PlacedDevices, RealPlacer, SimulationPlacer
from drivers.ros.robot_variants import VARIANTS
from robot_runtime.hal import Head, Placer, Robot
from robot_runtime.hal.stand_ins import FixedHead
from robot_runtime.placement.driving import DrivingPlacer
from robot_runtime.placement.placer import OperatorPlacer
from robot_runtime.robots.loader import RobotContext


def assemble(
    context: RobotContext,
    name: str,
    session: Session,
    chosen: RobotOptions,
    make_base: Callable[..., RosBase] = RosBase,
) -> Robot:
    """Return a robot on a session, disconnected.

    Args:
        context: scene and camera of the run.
        name: name of the robot.
        session: connection to the network.
        chosen: options of the robot.
        make_base: constructor of the base, with the arguments of ``RosBase``.
    """
    clock, motion = session.clock, MotionHistory()
    base = make_base(name, session, chosen, motion)
    head: Head = RosHead(session, chosen, motion) if VARIANTS[chosen.family].head != "none" else FixedHead(clock)
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
