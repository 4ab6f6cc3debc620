"""Options of the guard, named as in the robot's YAML file."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from drivers.ros.bases import BASES
from drivers.ros.guard.parameters import ParameterGroup
from drivers.ros.topics import TOPICS, BaseTopicNames, check_topic, kinds_of, topic_names
from robot_runtime.errors import ConfigError
from robot_runtime.safety.guard import MAX_TIMEOUT_S, GuardLimits

NETWORK_TIMEOUT_S = 2.0
"""Limit of a call to the network's master."""

FEEDBACK_TIMEOUT_S: Mapping[str, float] = {"pyrobot-kobuki": 0.1, "interbotix": 0.1, "pyrobot-create": 0.35}
"""Five periods of a Kobuki's 50 Hz, and three and a half of the default 10 Hz of a Create's driver."""

ODOMETRY_TIMEOUT_S = 0.25
"""Of the other bases: five periods of odometry at 20 Hz."""

UNUSED = {
    "base": ("guard", "rate_hz", "empty_v", "unchecked_reflexes"),
    "master": ("uri", "connect_timeout_s", "patience_s"),
    "network": ("domain_id", "use_sim_time", "connect_timeout_s", "patience_s", "monitor_period_s"),
}
"""Options of the robot's YAML that the guard does not use, but that may be copied with the others."""


@dataclass(frozen=True)
class GuardOptions:
    """The options.

    Attributes:
        family: Variant of the robot.
        topics: Of the base.
        limits: Enforced by the Guard: the variant's, unless ``base/max_…``, ``command_timeout_s``,
            ``feedback_timeout_s`` (silence of the base's sensors that stops the wheels) are given.
        silent_publishers: Nodes that advertise the velocity topic but never use it.
        master_timeout_s: Limit of each answer of the master or a node.
        monitor_period_s: Period of checks of the master and of the velocity topic's publishers.
        publish_hz: Rate at which the velocity is repeated to the base, zero included.
        e_stop_file: Remembers an emergency stop across restarts; empty means a file in ``ROS_HOME``.
        velocity_kind: Type of the velocities: ``base/stamped`` chooses a TwistStamped where the base may take either.
        periodic_hazards: As in the robot's YAML.
        discovery_server: As in the robot's YAML, there under ``network``.
    """

    family: str
    topics: BaseTopicNames
    limits: GuardLimits
    silent_publishers: tuple[str, ...] = ()
    master_timeout_s: float = NETWORK_TIMEOUT_S
    monitor_period_s: float = 0.5
    publish_hz: float = 50.0
    e_stop_file: str = ""
    velocity_kind: str = "geometry_msgs/Twist"
    periodic_hazards: bool = False
    discovery_server: str = ""

    def e_stop_path(self, node_name: str) -> Path:
        """Return the path of ``e_stop_file``."""
        if self.e_stop_file:
            return Path(self.e_stop_file)
        name = node_name.strip("/").replace("/", ".")
        home = Path(os.environ.get("ROS_HOME") or Path.home() / ".ros")
        return home / "robot_runtime_guard" / f"{name}.e_stop"


def parse_guard_options(parameters: Any, where: str, families: Collection[str]) -> GuardOptions:
    """Check the options.

    Args:
        parameters: As a parameter server or a YAML file has them.
        where: Name of the node or the file.
        families: Families that the network can have.

    Raises:
        ConfigError: Names the parameter.
    """
    root = ParameterGroup(where, parameters)
    topics, base, master, network = (root.group(name) for name in ("topics", "base", "master", "network"))
    family = root.choice("family", families)
    names = _topics(topics, family, root.text("robot_name", "locobot"), where)
    kinds, stamped = kinds_of(family, "velocity"), base.flag("stamped")
    if not (base.flag("without_contact") or any((names.core, names.bumper, names.hazards))):
        raise ConfigError(
            f"parameter {where}/topics: no topic reports the base's contacts",
            "name topics/bumper or topics/hazards, or set base/without_contact to true: it then stops for the "
            "commander, the emergency stop and silent odometry only",
        )
    options = GuardOptions(
        family,
        names,
        _limits(root, base, family),
        silent_publishers=base.texts("silent_publishers"),
        master_timeout_s=master.number("timeout_s", NETWORK_TIMEOUT_S),
        monitor_period_s=master.number("monitor_period_s", 0.5),
        publish_hz=root.number("publish_hz", 50.0, least=20.0, most=200.0),
        e_stop_file=root.text("e_stop_file", ""),
        velocity_kind=kinds[-1] if stamped else kinds[0],
        periodic_hazards=base.flag("periodic_hazards"),
        discovery_server=network.text("discovery_server", ""),
    )
    root.finish()
    topics.finish(("guard", *(field for variant in TOPICS.values() for field in variant)))
    base.finish(UNUSED["base"])
    master.finish(UNUSED["master"])
    network.finish(UNUSED["network"])
    return options


def _topics(group: ParameterGroup, family: str, robot_name: str, where: str) -> BaseTopicNames:
    defaults = topic_names(family, robot_name)
    names = {item.name: group.text(item.name, "") or defaults.get(item.name, "") for item in fields(BaseTopicNames)}
    try:
        for field, name in names.items():
            check_topic(field, name)
    except ValueError as error:
        raise ConfigError(
            f"parameter {where}/topics: {error}", "set it in YAML, the launch file or by rosparam"
        ) from error
    return BaseTopicNames(**names)


def _limits(root: ParameterGroup, base: ParameterGroup, family: str) -> GuardLimits:
    variant = BASES[family]
    return GuardLimits(
        base.number("max_linear_m_s", variant.max_linear_m_s),
        base.number("max_angular_rad_s", variant.max_angular_rad_s),
        base.number("max_linear_accel_m_s2", variant.max_linear_accel_m_s2),
        base.number("max_angular_accel_rad_s2", variant.max_angular_accel_rad_s2),
        command_timeout_s=root.number("command_timeout_s", 0.2, most=MAX_TIMEOUT_S),
        feedback_timeout_s=root.number(
            "feedback_timeout_s", FEEDBACK_TIMEOUT_S.get(family, ODOMETRY_TIMEOUT_S), most=MAX_TIMEOUT_S
        ),
    )
