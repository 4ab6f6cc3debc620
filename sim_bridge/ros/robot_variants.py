"""The simulated variants of the LoCoBot: names of frames and joints, and the timing of the base.

Topics that the driver uses are in its table, ``drivers/ros/topics.py``; here are names of further ones.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from drivers.ros.protocol import Frames
from drivers.ros.topics import CONTROL_NODES, kinds_of, topic_names
from robot_runtime.common.config import NonNegative, Positive, Strict
from robot_runtime.errors import ConfigError
from robot_runtime.hal.motors import MotorType


@dataclass(frozen=True)
class Wheels:
    """A differential drive.

    Attributes:
        names: Joints, left and right.
    """

    radius_m: float
    separation_m: float
    ticks_per_m: float
    names: tuple[str, str]


KOBUKI_WHEELS = Wheels(0.035, 0.230, 11724.4166, ("wheel_left_joint", "wheel_right_joint"))
CREATE_WHEELS = Wheels(0.036, 0.235, 1000 / 0.4446, ("left_wheel_joint", "right_wheel_joint"))


@dataclass(frozen=True)
class DriverTiming(Strict):
    """Timing of the base and its ROS driver; ``--manner NAME=VALUE`` changes one value.

    Attributes:
        report_hz: Rate of the base's measurements.
        command_hz: Rate at which the driver passes the newest command on to the base.
        command_timeout_s: Age of the newest command at which the driver stops the wheels.
        timeout_check_s: Period at which the driver checks that age.
        acceleration_limiter: Whether the driver ramps commands, stops included (0.5 m/s² up, 0.6 down).
        radius_commands: Whether velocities are rounded to mm/s and mm of radius (Kobuki).
        report_latency_s: From measuring to publishing; stamps are of the publishing.
        event_latency_s: The same for events; they have no stamps.
        command_latency_s: From a command's arrival to the wheels, in addition to the wait for ``command_hz``.
        diagnostics_hz: Rate of the driver's diagnoses (diagnostic_updater's ``diagnostic_period``, by default 1 s).
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
    diagnostics_hz: Positive = 1.0


@dataclass(frozen=True)
class Names:
    """Topics, frames and joints of a robot; the defaults are PyRobot's.

    Attributes:
        topics: Names of the driver's topics, by key of ``topics.TOPICS``.
        base: Namespace of a Kobuki's topics; empty for a Create, whose topics are in the root.
        wheel_joints: Topic of the wheels' joint states.
        head_joint_states: Topic of the head's joint states.
        head_joints: Pan and tilt; none for a camera that does not move.
        head_hz: Rate of the head's joint states.
        merged_joints: Topic with the states of all joints; None if no node merges them.
        velocity_kind: Type of the velocities.
        control: Node with the parameters of a Create 3's reflexes; empty for another base.
    """

    topics: Mapping[str, str]
    base: str = ""
    wheel_joints: str = "/joint_states"
    head_joint_states: str = "/joint_states"
    head_joints: tuple[str, ...] = ("head_pan_joint", "head_tilt_joint")
    head_hz: float = 50.0
    merged_joints: str | None = None
    frames: Frames = field(default_factory=Frames)
    velocity_kind: str = "geometry_msgs/Twist"
    control: str = ""


@dataclass(frozen=True)
class RobotVariant:
    """One variant of the LoCoBot."""

    names: Names
    timing: DriverTiming
    wheels: Wheels = KOBUKI_WHEELS
    motors: MotorType = "kobuki"


def _pyrobot_kobuki(robot_name: str) -> RobotVariant:
    names = Names(topic_names("pyrobot-kobuki", robot_name), base="/mobile_base")
    return RobotVariant(names, DriverTiming(50.0, 50.0, command_timeout_s=0.6, radius_commands=True))


def _pyrobot_create(robot_name: str) -> RobotVariant:
    names = Names(topic_names("pyrobot-create", robot_name))
    return RobotVariant(names, DriverTiming(10.0, 1000.0, command_timeout_s=0.2), CREATE_WHEELS, "create2")


def _interbotix(robot_name: str) -> RobotVariant:
    root, topics = f"/{robot_name}", topic_names("interbotix", robot_name)
    names = Names(
        topics,
        base=f"{root}/mobile_base",
        wheel_joints=f"{root}/mobile_base/joint_states",
        head_joint_states=f"{root}/dynamixel/joint_states",
        head_joints=("pan", "tilt"),
        head_hz=100.0,
        merged_joints=topics["joints"],
        frames=Frames(f"{robot_name}/"),
    )
    timing = DriverTiming(50.0, 50.0, command_timeout_s=2.0, acceleration_limiter=True, radius_commands=True)
    return RobotVariant(names, timing)


CREATE_3_WHEELS = Wheels(0.03575, 0.233, 508.8 / (2 * math.pi * 0.03575), ("left_wheel_joint", "right_wheel_joint"))
CREATE_3_TIMING = DriverTiming(20.0, 50.0, command_timeout_s=0.5)


def _fixed_camera(family: str, robot_name: str) -> RobotVariant:
    names = Names(
        topic_names(family, robot_name),
        head_joints=(),
        velocity_kind=kinds_of(family, "velocity")[0],
        control=CONTROL_NODES.get(family, ""),
    )
    return RobotVariant(names, CREATE_3_TIMING, CREATE_3_WHEELS, "ideal")


def _locobot_create3(robot_name: str) -> RobotVariant:
    root = f"/{robot_name}"
    names = Names(
        topic_names("locobot-create3", robot_name),
        wheel_joints=f"{root}/mobile_base/joint_states",
        head_joint_states=f"{root}/dynamixel/joint_states",
        head_joints=("pan", "tilt"),
        head_hz=100.0,
        merged_joints=f"{root}/joint_states",
        frames=Frames(f"{robot_name}/"),
        control=CONTROL_NODES["locobot-create3"].format(name=robot_name),
    )
    return RobotVariant(names, CREATE_3_TIMING, CREATE_3_WHEELS, "ideal")


VARIANTS: dict[str, Callable[[str], RobotVariant]] = {
    "pyrobot-kobuki": _pyrobot_kobuki,
    "pyrobot-create": _pyrobot_create,
    "interbotix": _interbotix,
    "locobot-create3": _locobot_create3,
    **{
        family: partial(_fixed_camera, family)
        for family in ("create3", "turtlebot4-jazzy", "turtlebot4-humble", "turtlebot3", "differential")
    },
}


def robot_variant(name: str, robot_name: str = "locobot") -> RobotVariant:
    """Return a variant by name.

    Args:
        name: A key of :data:`VARIANTS`.
        robot_name: Namespace of an Interbotix robot's topics and frames; the others have none.

    Raises:
        ConfigError: The variant does not exist, or ROS does not allow the namespace.
    """
    if name not in VARIANTS:
        raise ConfigError(f"there is no LoCoBot family {name!r}", f"use one of: {', '.join(VARIANTS)}")
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", robot_name):
        raise ConfigError(f"{robot_name!r} cannot be a ROS namespace", "use letters, digits and underscores")
    return VARIANTS[name](robot_name)
