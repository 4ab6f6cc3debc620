"""The topics of each variant of the LoCoBot: driver, guard, simulated robot and bags take them from this table.

It imports only the standard library, so that every part can use it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

RAMPING = ("smoother", "raw_cmd_vel", "mux", "yocs", "safety_controller", "teleop")
"""Parts of the names of topics through which a stop would be ramped, delayed or overridden."""

_KOBUKI_NODE = "kobuki_node: kobuki_ros.cpp"
_CA_DRIVER = "create_autonomy 1.3.0, pinned by PyRobot: ca_driver/src/create_driver.cpp"
_LOCOBOT_CONTROL = "PyRobot: locobot_control"
_REALSENSE = "realsense2_camera: align_depth, enable_sync"
_INTERBOTIX = "interbotix_ros_rovers: xslocobot_control.launch"


@dataclass(frozen=True)
class Topic:
    """One topic.

    Attributes:
        name: Full name; ``{name}`` stands for the option ``robot_name``.
        kinds: Types under which the robot's drivers publish it, all of the same definition.
        origin: The software of the robot that publishes it or subscribes to it.
    """

    name: str
    kinds: tuple[str, ...]
    origin: str


@dataclass(frozen=True)
class BaseTopicNames:
    """Full names of the base's topics; empty where the variant has none.

    Attributes:
        velocity: The base's own command topic.
        motor_power: A Kobuki's switch of its motors.
        core: A Kobuki's levels.
        bumper: Events of a Kobuki, levels of a Create 2; of any other base a std_msgs/Bool.
        cliff: Events of a Kobuki; a Create 2 reports its cliff sensors in ``diagnostics``.
        wheel_drop: Events of a Kobuki, pulses of a Create 2.
        hazards: A Create 3's contacts, cliffs and wheel drops, complete at each change.
        odom: Odometry.
        diagnostics: Diagnoses of the robot's drivers.
    """

    velocity: str = ""
    motor_power: str = ""
    core: str = ""
    bumper: str = ""
    cliff: str = ""
    wheel_drop: str = ""
    hazards: str = ""
    odom: str = ""
    diagnostics: str = ""


def _kobuki(root: str) -> dict[str, Topic]:
    def topic(name: str, kind: str) -> Topic:
        return Topic(f"{root}/mobile_base/{name}", (kind,), _KOBUKI_NODE)

    return {
        "velocity": topic("commands/velocity", "geometry_msgs/Twist"),
        "motor_power": topic("commands/motor_power", "kobuki_msgs/MotorPower"),
        "core": topic("sensors/core", "kobuki_msgs/SensorState"),
        "bumper": topic("events/bumper", "kobuki_msgs/BumperEvent"),
        "cliff": topic("events/cliff", "kobuki_msgs/CliffEvent"),
        "wheel_drop": topic("events/wheel_drop", "kobuki_msgs/WheelDropEvent"),
        "diagnostics": Topic("/diagnostics", ("diagnostic_msgs/DiagnosticArray",), _KOBUKI_NODE),
    }


def _create() -> dict[str, Topic]:
    def topic(name: str, *kinds: str) -> Topic:
        return Topic(name, kinds, _CA_DRIVER)

    return {
        "velocity": topic("/cmd_vel", "geometry_msgs/Twist"),
        # ca_msgs/Bumper before create_robot 2.0, create_msgs/Bumper since.
        "bumper": topic("/bumper", "ca_msgs/Bumper", "create_msgs/Bumper"),
        "wheel_drop": topic("/wheeldrop", "std_msgs/Empty"),
        # No topic reports cliffs (create_autonomy's README: planned); the diagnosis "Safety Status" does.
        "diagnostics": topic("/diagnostics", "diagnostic_msgs/DiagnosticArray"),
        "odom": topic("/odom", "nav_msgs/Odometry"),
        "voltage": topic("/battery/voltage", "std_msgs/Float32"),
        "charge_ratio": topic("/battery/charge_ratio", "std_msgs/Float32"),
    }


def _camera(root: str) -> dict[str, Topic]:
    def topic(name: str, kind: str) -> Topic:
        return Topic(f"{root}/camera/{name}", (f"sensor_msgs/{kind}",), _REALSENSE)

    return {
        "color": topic("color/image_raw", "Image"),
        "color_info": topic("color/camera_info", "CameraInfo"),
        "depth": topic("aligned_depth_to_color/image_raw", "Image"),
    }


_PYROBOT_HEAD = {
    "joints": Topic("/joint_states", ("sensor_msgs/JointState",), _LOCOBOT_CONTROL),
    "pan": Topic("/pan/command", ("std_msgs/Float64",), _LOCOBOT_CONTROL),
    "tilt": Topic("/tilt/command", ("std_msgs/Float64",), _LOCOBOT_CONTROL),
}

_CREATE_3 = "Create 3, firmware H.2.6 or I.0.0"
_TURTLEBOT_4 = "turtlebot4_bringup: create3_republisher"
_OAK = "turtlebot4_bringup: oakd"


def _create_3(root: str, velocity: str = "Twist", origin: str = _CREATE_3) -> dict[str, Topic]:
    return {
        "velocity": Topic(f"{root}/cmd_vel", (f"geometry_msgs/{velocity}",), origin),
        "hazards": Topic(f"{root}/hazard_detection", ("irobot_create_msgs/HazardDetectionVector",), origin),
        "odom": Topic(f"{root}/odom", ("nav_msgs/Odometry",), origin),
    }


_OAK_CAMERA = {
    "color": Topic("/oakd/rgb/preview/image_raw", ("sensor_msgs/Image",), _OAK),
    "color_info": Topic("/oakd/rgb/preview/camera_info", ("sensor_msgs/CameraInfo",), _OAK),
    "depth": Topic("/oakd/stereo/image_raw", ("sensor_msgs/Image",), _OAK),
}
_DIFFERENTIAL = {
    "velocity": Topic("/cmd_vel", ("geometry_msgs/Twist", "geometry_msgs/TwistStamped"), "the base's driver"),
    "bumper": Topic("", ("std_msgs/Bool",), "the base's driver"),
    "hazards": Topic("", ("irobot_create_msgs/HazardDetectionVector",), "the base's driver"),
    "odom": Topic("/odom", ("nav_msgs/Odometry",), "the base's driver"),
}

TOPICS: Mapping[str, Mapping[str, Topic]] = {
    "pyrobot-kobuki": {
        "odom": Topic("/odom", ("nav_msgs/Odometry",), _KOBUKI_NODE),
        **_kobuki(""),
        **_PYROBOT_HEAD,
        **_camera(""),
    },
    "pyrobot-create": {**_create(), **_PYROBOT_HEAD, **_camera("")},
    "interbotix": {
        "odom": Topic("/{name}/mobile_base/odom", ("nav_msgs/Odometry",), _KOBUKI_NODE),
        **_kobuki("/{name}"),
        "joints": Topic("/{name}/joint_states", ("sensor_msgs/JointState",), _INTERBOTIX),
        "joint_group": Topic("/{name}/commands/joint_group", ("interbotix_xs_msgs/JointGroupCommand",), _INTERBOTIX),
        **_camera("/{name}"),
    },
    "create3": {**_create_3(""), **_camera("")},
    "locobot-create3": {
        **_create_3("/{name}/mobile_base"),
        "joints": Topic("/{name}/joint_states", ("sensor_msgs/JointState",), _INTERBOTIX),
        "joint_group": Topic("/{name}/commands/joint_group", ("interbotix_xs_msgs/JointGroupCommand",), _INTERBOTIX),
        **_camera("/{name}"),
    },
    "turtlebot4-jazzy": {**_create_3("", "TwistStamped", _TURTLEBOT_4), **_OAK_CAMERA},
    "turtlebot4-humble": {**_create_3(""), **_OAK_CAMERA},
    "turtlebot3": {**_DIFFERENTIAL, **_camera("")},
    "differential": {**_DIFFERENTIAL, **_camera("")},
}
"""The topics by family, and by field of ``options.Topics``; a variant lacks those that are not here."""


CONTROL_NODES: Mapping[str, str] = {
    "create3": "/motion_control",
    "locobot-create3": "/{name}/mobile_base/motion_control",
    "turtlebot4-jazzy": "/_do_not_use/motion_control",
    "turtlebot4-humble": "/motion_control",
}
"""Nodes with the parameters of a Create 3's reflexes; not republished."""


def robot_state_node(family: str, hazards: str) -> str:
    """Return the node of a Create 3 that publishes its hazards, not republished; empty for other bases.

    Args:
        family: A key of :data:`TOPICS`.
        hazards: Full name of the topic.
    """
    if family not in CONTROL_NODES:
        return ""
    namespace = "/_do_not_use" if family == "turtlebot4-jazzy" else hazards.rpartition("/")[0]
    return f"{namespace}/robot_state"


Ros1Family = Literal["pyrobot-kobuki", "pyrobot-create", "interbotix"]
Ros2Robot = Literal["create3", "locobot-create3", "turtlebot4-jazzy", "turtlebot4-humble", "turtlebot3"]
"""Families of known robots; ``differential`` is any other base on ROS 2."""

ROS_1_FAMILIES: tuple[str, ...] = get_args(Ros1Family)
ROS_2_FAMILIES = tuple(family for family in TOPICS if family not in ROS_1_FAMILIES)


def topic_names(family: str, robot_name: str) -> dict[str, str]:
    """Return the full names of a variant's topics, by field of ``options.Topics``."""
    return {field: topic.name.replace("{name}", robot_name) for field, topic in TOPICS[family].items()}


def kinds_of(family: str, field: str) -> tuple[str, ...]:
    """Return the types of a variant's topic, by field of ``options.Topics``."""
    return TOPICS[family][field].kinds


def family_of(published: Collection[str]) -> str | None:
    """Return the family whose safety levels are among published topics, under any ``robot_name``; else None."""
    for family, topics in TOPICS.items():
        name = next((topics[field].name for field in ("core", "hazards", "bumper") if field in topics), "")
        pattern = re.escape(name).replace(re.escape("{name}"), "[^/]+")
        if any(re.fullmatch(pattern, topic) for topic in published):
            return family
    return None


def check_topic(field: str, name: str) -> None:
    """Check the name of a topic, if it is not empty.

    Args:
        field: Field of ``options.Topics``.
        name: Full name.

    Raises:
        ValueError: It is not a full name, or stops sent to it would be ramped.
    """
    if name and (not name.startswith("/") or name.endswith("/") or " " in name):
        raise ValueError(f"{field} must be a full topic name such as /odom, got {name!r}")
    if field == "velocity" and any(part in name for part in RAMPING):
        raise ValueError(f"velocity must be the base's own topic; through {name!r} a stop would be ramped")
