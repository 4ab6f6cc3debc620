"""What differs between the LoCoBots: topics, limits, pan-tilt, battery.

Sources: PyRobot's ``locobot_config.py``, kobuki_node's ``kobuki_ros.cpp``, create_robot's ``create_driver.cpp``
(PyRobot pins it while it was ``ca_driver``), Interbotix' ``xslocobot_control.launch`` and ``modes_*.yaml``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Literal, Protocol

from drivers.ros_locobot.options import BaseOptions, RosOptions, Topics, VariantName
from robot_runtime.hal import BaseInfo, HeadLimits

GYRO_LIMIT_RAD_S = math.radians(110)
"""A Kobuki turns at 180 degrees/s, but its gyro, which is its odometry's heading, degrades above this."""


@dataclass(frozen=True)
class RobotVariant:
    """One kind of LoCoBot.

    Attributes:
        topics: ``{name}`` stands for the option ``robot_name``.
        pan_joint, tilt_joint: in JointState, tilt downward positive (joint axis +y) in all families.
        head: how it is commanded: one Float64 each, or Interbotix' JointGroupCommand of the group ``camera``.
        base_frame: that odometry is of.
        full_v, low_v, empty_v: of the battery.
    """

    topics: Topics
    base: BaseInfo
    pan_joint: str
    tilt_joint: str
    head: Literal["floats", "group"]
    limits: HeadLimits
    base_frame: str
    full_v: float
    low_v: float
    empty_v: float


_KOBUKI = BaseInfo("Kobuki", 0.178, 0.7, GYRO_LIMIT_RAD_S, 1.0, 7.0, rate_hz=50.0)
_CREATE = BaseInfo("Create 2", 0.175, 0.5, GYRO_LIMIT_RAD_S, 1.0, 7.0, rate_hz=50.0)

_PYROBOT_HEAD = HeadLimits(
    # Less than PyRobot's software allows (pan -2.7..2.6, tilt 1.75 down): the URDF ends at 1.57, and further down the
    # camera sees the robot itself.
    min_pan_rad=-math.pi / 2,
    max_pan_rad=math.pi / 2,
    min_tilt_rad=-math.radians(75),
    max_tilt_rad=1.4,
    max_speed_rad_s=10 * 0.229 * 2 * math.pi / 60,  # Profile_Velocity 10
    settle_s=0.2,
)
_INTERBOTIX_HEAD = HeadLimits(
    min_pan_rad=-math.pi / 2,
    max_pan_rad=math.pi / 2,
    min_tilt_rad=-math.radians(75),
    max_tilt_rad=math.pi / 2,
    max_speed_rad_s=131 * 0.229 * 2 * math.pi / 60,  # Profile_Velocity 131
    settle_s=0.2,
)

_PYROBOT_CAMERA = {
    "color": "/camera/color/image_raw",
    "color_info": "/camera/color/camera_info",
    "depth": "/camera/aligned_depth_to_color/image_raw",
}
_PYROBOT_TURRET = {"joints": "/joint_states", "pan": "/pan/command", "tilt": "/tilt/command"}

VARIANTS: dict[VariantName, RobotVariant] = {
    "pyrobot-kobuki": RobotVariant(
        topics=Topics(
            velocity="/mobile_base/commands/velocity",
            core="/mobile_base/sensors/core",
            bumper="/mobile_base/events/bumper",
            cliff="/mobile_base/events/cliff",
            wheel_drop="/mobile_base/events/wheel_drop",
            odom="/odom",
            **_PYROBOT_TURRET,
            **_PYROBOT_CAMERA,
        ),
        base=_KOBUKI,
        pan_joint="head_pan_joint",
        tilt_joint="head_tilt_joint",
        head="floats",
        limits=_PYROBOT_HEAD,
        base_frame="base_footprint",
        full_v=16.5,
        low_v=14.0,
        empty_v=13.2,
    ),
    "pyrobot-create": RobotVariant(
        topics=Topics(
            velocity="/cmd_vel",
            bumper="/bumper",
            cliff="/cliff",
            wheel_drop="/wheeldrop",
            odom="/odom",
            voltage="/battery/voltage",
            charge_ratio="/battery/charge_ratio",
            **_PYROBOT_TURRET,
            **_PYROBOT_CAMERA,
        ),
        base=_CREATE,
        pan_joint="head_pan_joint",
        tilt_joint="head_tilt_joint",
        head="floats",
        limits=_PYROBOT_HEAD,
        base_frame="base_footprint",
        full_v=16.0,
        low_v=13.5,
        empty_v=12.5,
    ),
    "interbotix": RobotVariant(
        topics=Topics(
            velocity="/{name}/mobile_base/commands/velocity",
            core="/{name}/mobile_base/sensors/core",
            bumper="/{name}/mobile_base/events/bumper",
            cliff="/{name}/mobile_base/events/cliff",
            wheel_drop="/{name}/mobile_base/events/wheel_drop",
            odom="/{name}/mobile_base/odom",
            joints="/{name}/joint_states",
            joint_group="/{name}/commands/joint_group",
            color="/{name}/camera/color/image_raw",
            color_info="/{name}/camera/color/camera_info",
            depth="/{name}/camera/aligned_depth_to_color/image_raw",
        ),
        base=_KOBUKI,
        pan_joint="pan",
        tilt_joint="tilt",
        head="group",
        limits=_INTERBOTIX_HEAD,
        base_frame="{name}/base_footprint",
        full_v=16.5,
        low_v=14.0,
        empty_v=13.2,
    ),
}


class BaseDescription(Protocol):
    """Options that say which base it is: a robot's, or the guard node's."""

    @property
    def family(self) -> VariantName: ...
    @property
    def robot_name(self) -> str: ...
    @property
    def topics(self) -> Topics: ...
    @property
    def base(self) -> BaseOptions: ...


def topics_of(options: BaseDescription) -> Topics:
    """Every topic by its full name: the YAML's, else the family's; empty where the family has none."""
    family = VARIANTS[options.family].topics
    chosen = {
        item.name: getattr(options.topics, item.name)
        or getattr(family, item.name).replace("{name}", options.robot_name)
        for item in fields(Topics)
    }
    return Topics(**chosen)


def base_frame(options: BaseDescription) -> str:
    """The frame that odometry is of, on this robot."""
    return VARIANTS[options.family].base_frame.replace("{name}", options.robot_name)


def base_info(options: BaseDescription, name: str) -> BaseInfo:
    """The base's limits: the YAML's, else the family's."""
    return replace(VARIANTS[options.family].base, name=name, **_given(options.base, BaseInfo))


def head_limits(options: RosOptions) -> HeadLimits:
    """The pan-tilt's reach: the YAML's, else the family's."""
    return replace(VARIANTS[options.family].limits, **_given(options.head, HeadLimits))


def kobuki_charge(voltage_v: float, full_v: float, empty_v: float) -> float:
    """Charge, 0..1, as Kobuki's own driver estimates it from the voltage (``battery.cpp``): 5 % when empty."""
    return min(1.0, max(0.0, 0.95 * (voltage_v - empty_v) / (full_v - empty_v) + 0.05)) if voltage_v > 0 else math.nan


def _given(options: object, wanted: type[BaseInfo] | type[HeadLimits]) -> dict[str, float]:
    values = {item.name: getattr(options, item.name, None) for item in fields(wanted)}
    return {name: value for name, value in values.items() if value is not None}
