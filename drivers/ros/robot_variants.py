"""The variants of the LoCoBot: pan-tilt and battery; topics are in ``topics.py``, limits of the base in ``bases.py``.

Sources: PyRobot's ``locobot_config.py``, kobuki_core's ``battery.cpp``, Interbotix' ``modes_*.yaml``.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Literal

from drivers.dynamixel.variants import VARIANTS as PAN_TILTS
from drivers.ros.bases import BASES
from drivers.ros.options import RobotOptions, Topics
from drivers.ros.protocol import Frames
from drivers.ros.topics import kinds_of, topic_names
from robot_runtime.hal import BaseInfo, HeadLimits
from robot_runtime.hal.motors import CREATE_2_MOTORS, IDEAL_MOTORS, KOBUKI_MOTORS, MotorModel

LIMITED_ACCEL_M_S2 = 0.4
"""Of a wheel on Interbotix' robots, which switch kobuki_node's limiter on: 0.5 m/s² and 3.5 rad/s² (kobuki_core), of
which the latter is 0.4 m/s² of each wheel."""


CREATE_3_MOTORS = MotorModel(dead_time_s=0.1, accel_m_s2=0.9)
"""Acceleration: the default of ``wheel_accel_limit``. The dead time is an assumption, not measured."""


@dataclass(frozen=True)
class RobotVariant:
    """One variant of the LoCoBot.

    Attributes:
        motors: Nominal ones of the base, what its ROS driver does with commands included.
        pan_joint: Name in JointState.
        tilt_joint: Name in JointState; positive is down (joint axis +y) in all variants.
        head: Head commands: one Float64 for each joint, or Interbotix' JointGroupCommand of the group ``camera``; none
            for a camera that does not move.
        limits: Of the head.
        full_v: Voltage of the full battery.
        empty_v: Voltage below which the robot refuses to drive.
        namespaced: Whether frames begin with the option ``robot_name``.
        names_dead_base: Whether a base that does not move when commanded is a fault of its own.
    """

    pan_joint: str
    tilt_joint: str
    motors: MotorModel
    head: Literal["floats", "group", "none"]
    limits: HeadLimits
    full_v: float
    empty_v: float
    namespaced: bool = False
    names_dead_base: bool = False

    @property
    def joints(self) -> tuple[str, str]:
        """Names of pan and tilt."""
        return self.pan_joint, self.tilt_joint

    def frames(self, robot_name: str) -> Frames:
        """Return the names of the robot's frames."""
        return Frames(f"{robot_name}/" if self.namespaced else "")


def _fixed_camera(motors: MotorModel) -> RobotVariant:
    fixed = HeadLimits(0.0, 0.0, 0.0, 0.0, max_speed_rad_s=1.0, settle_s=0.0)
    return RobotVariant("", "", motors, "none", fixed, math.nan, math.nan, names_dead_base=True)


_PYROBOT = RobotVariant(
    pan_joint="head_pan_joint",
    tilt_joint="head_tilt_joint",
    motors=KOBUKI_MOTORS,
    head="floats",
    limits=PAN_TILTS["pyrobot"].limits,
    full_v=16.5,
    empty_v=13.2,
)
_INTERBOTIX = RobotVariant(
    pan_joint="pan",
    tilt_joint="tilt",
    motors=replace(KOBUKI_MOTORS, accel_m_s2=LIMITED_ACCEL_M_S2),
    head="group",
    limits=PAN_TILTS["interbotix"].limits,
    full_v=16.5,
    empty_v=13.2,
    namespaced=True,
)

VARIANTS: Mapping[str, RobotVariant] = {
    "pyrobot-kobuki": _PYROBOT,
    "pyrobot-create": replace(_PYROBOT, motors=CREATE_2_MOTORS, full_v=16.0, empty_v=12.5),
    "interbotix": _INTERBOTIX,
    "create3": _fixed_camera(CREATE_3_MOTORS),
    "locobot-create3": replace(
        _INTERBOTIX, motors=CREATE_3_MOTORS, full_v=math.nan, empty_v=math.nan, names_dead_base=True
    ),
    "turtlebot4-jazzy": _fixed_camera(CREATE_3_MOTORS),
    "turtlebot4-humble": _fixed_camera(CREATE_3_MOTORS),
    "turtlebot3": _fixed_camera(IDEAL_MOTORS),
    "differential": _fixed_camera(IDEAL_MOTORS),
}


def topics_of(options: RobotOptions) -> Topics:
    """Return the full names of all topics: the YAML's, else the variant's; empty where the variant has none."""
    defaults = topic_names(options.family, options.robot_name)
    given = {item.name: getattr(options.topics, item.name) for item in fields(Topics)}
    return Topics(**{name: value or defaults.get(name, "") for name, value in given.items()})


def velocity_kind(options: RobotOptions) -> str:
    """Return the type of velocities, a Twist or a TwistStamped."""
    kinds = kinds_of(options.family, "velocity")
    return kinds[1] if len(kinds) > 1 and getattr(options.base, "stamped", False) else kinds[0]


def base_frame(options: RobotOptions) -> str:
    """Return the child frame of odometry on this robot."""
    return VARIANTS[options.family].frames(options.robot_name).base


def base_info(options: RobotOptions, name: str) -> BaseInfo:
    """Return the base's limits: the YAML's, else the variant's."""
    topics = topics_of(options)
    senses_contact = any((topics.core, topics.bumper, topics.hazards))
    given = _given(options.base, BaseInfo)
    return replace(BASES[options.family], name=name, senses_contact=senses_contact, **given)


def head_limits(options: RobotOptions) -> HeadLimits:
    """Return the pan-tilt's limits: the YAML's, else the variant's."""
    return replace(VARIANTS[options.family].limits, **_given(options.head, HeadLimits))


def kobuki_charge(voltage_v: float, full_v: float, empty_v: float) -> float:
    """Return the charge, 0..1, as Kobuki's driver estimates it from the voltage (``battery.cpp``): 5 % when empty."""
    return min(1.0, max(0.0, 0.95 * (voltage_v - empty_v) / (full_v - empty_v) + 0.05)) if voltage_v > 0 else math.nan


def _given(options: object, wanted: type[BaseInfo] | type[HeadLimits]) -> dict[str, float]:
    values = {item.name: getattr(options, item.name, None) for item in fields(wanted)}
    return {name: value for name, value in values.items() if value is not None}
