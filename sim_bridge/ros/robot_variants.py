"""The kinds of LoCoBot: what each calls its topics, frames and joints, and how its base behaves.

Sources: PyRobot (locobot_control, turtlebot bring-up), kobuki_node, create_robot, interbotix_ros_rovers
(xslocobot_control.launch), as their code reads. ``tests/ros/test_ros_sim_topics.py`` holds the same table written out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from robot_runtime.common import config
from robot_runtime.common.config import NonNegative, Positive
from robot_runtime.errors import ConfigError


@dataclass(frozen=True)
class Wheels:
    """A differential drive: radius of the wheels, distance between them, encoder ticks per metre."""

    radius_m: float
    separation_m: float
    ticks_per_m: float
    names: tuple[str, str]


KOBUKI_WHEELS = Wheels(0.035, 0.230, 11724.4166, ("wheel_left_joint", "wheel_right_joint"))
CREATE_WHEELS = Wheels(0.036, 0.235, 1000 / 0.4446, ("left_wheel_joint", "right_wheel_joint"))


@dataclass(frozen=True)
class DriverTiming:
    """How the base and its ROS driver behave; every family has its own, and ``--manner NAME=VALUE`` changes one.

    Attributes:
        report_hz: how often the base reports.
        command_hz: how often its driver passes the newest command on to it.
        command_timeout_s: the driver stops the wheels when no command has come for this long,
        timeout_check_s: which it looks at this often.
        acceleration_limiter: whether the driver ramps what it is told, stops included (0.5 m/s² up, 0.6 down).
        radius_commands: whether velocities pass as millimetres per second and a radius (Kobuki), which rounds them.
        report_latency_s: from measuring to publishing what the base reports; its stamps are of the publishing.
        event_latency_s: the same for events, which have no stamps.
        command_latency_s: from a command's arrival to the wheels, in addition to waiting to be passed on.
    """

    report_hz: Positive
    command_hz: Positive
    command_timeout_s: Positive
    timeout_check_s: Positive = 0.1
    acceleration_limiter: bool = False
    radius_commands: bool = False
    report_latency_s: NonNegative = 0.0
    event_latency_s: NonNegative = 0.0
    command_latency_s: NonNegative = 0.0

    __pydantic_config__ = config.STRICT


@dataclass(frozen=True)
class Names:
    """Topics, frames and joints of one robot.

    Attributes:
        base: namespace of a Kobuki's topics; a Create's stand in the root.
        head_joints: pan, tilt. head_hz: how often their states come.
        merged_joints: topic on which all joints come together, if there is such a node; else None.
        frame_prefix: before every frame but ``map``.
    """

    command: str
    odom: str
    wheel_joints: str
    head_joint_states: str
    camera: str
    head_joints: tuple[str, str]
    head_hz: float
    base: str = ""
    merged_joints: str | None = None
    frame_prefix: str = ""

    @property
    def odom_frame(self) -> str:
        return f"{self.frame_prefix}odom"

    @property
    def base_frame(self) -> str:
        return f"{self.frame_prefix}base_footprint"

    @property
    def optical_frame(self) -> str:
        return f"{self.frame_prefix}camera_color_optical_frame"


@dataclass(frozen=True)
class RobotVariant:
    """One kind of LoCoBot."""

    names: Names
    timing: DriverTiming
    wheels: Wheels = field(default=KOBUKI_WHEELS)


def _pyrobot_kobuki(robot_name: str) -> RobotVariant:
    names = Names(
        command="/mobile_base/commands/velocity",
        odom="/odom",
        wheel_joints="/joint_states",
        head_joint_states="/joint_states",
        camera="/camera",
        head_joints=("head_pan_joint", "head_tilt_joint"),
        head_hz=50.0,
        base="/mobile_base",
    )
    return RobotVariant(
        names, DriverTiming(report_hz=50.0, command_hz=50.0, command_timeout_s=0.6, radius_commands=True)
    )


def _pyrobot_create(robot_name: str) -> RobotVariant:
    names = Names(
        command="/cmd_vel",
        odom="/odom",
        wheel_joints="/joint_states",
        head_joint_states="/joint_states",
        camera="/camera",
        head_joints=("head_pan_joint", "head_tilt_joint"),
        head_hz=50.0,
    )
    return RobotVariant(names, DriverTiming(report_hz=10.0, command_hz=1000.0, command_timeout_s=0.2), CREATE_WHEELS)


def _interbotix(robot_name: str) -> RobotVariant:
    root = f"/{robot_name}"
    names = Names(
        command=f"{root}/mobile_base/commands/velocity",
        odom=f"{root}/mobile_base/odom",
        wheel_joints=f"{root}/mobile_base/joint_states",
        head_joint_states=f"{root}/dynamixel/joint_states",
        camera=f"{root}/camera",
        head_joints=("pan", "tilt"),
        head_hz=100.0,
        base=f"{root}/mobile_base",
        merged_joints=f"{root}/joint_states",
        frame_prefix=f"{robot_name}/",
    )
    timing = DriverTiming(50.0, 50.0, command_timeout_s=2.0, acceleration_limiter=True, radius_commands=True)
    return RobotVariant(names, timing)


VARIANTS: dict[str, Callable[[str], RobotVariant]] = {
    "pyrobot-kobuki": _pyrobot_kobuki,
    "pyrobot-create": _pyrobot_create,
    "interbotix": _interbotix,
}


def family(name: str, robot_name: str = "locobot") -> RobotVariant:
    """The family of that name.

    Args:
        robot_name: what an Interbotix robot's topics and frames begin with; the others have none.

    Raises:
        ConfigError: for a family that does not exist, or a name that ROS does not allow.
    """
    if name not in VARIANTS:
        raise ConfigError(f"there is no family {name!r} of LoCoBots", f"use one of: {', '.join(VARIANTS)}")
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", robot_name):
        raise ConfigError(f"{robot_name!r} cannot be a ROS namespace", "use letters, digits and underscores")
    return VARIANTS[name](robot_name)
