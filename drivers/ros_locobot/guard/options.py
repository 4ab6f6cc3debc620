"""Private parameters of the guard node on ROS 1, named as in the robot's YAML file."""

from __future__ import annotations

from typing import Any

from drivers.ros.guard.options import NETWORK_TIMEOUT_S, GuardOptions, parse_guard_options
from drivers.ros.topics import ROS_1_FAMILIES
from robot_runtime.errors import ConfigError

MASTER_TIMEOUT_S, CONNECT_TIMEOUT_S = NETWORK_TIMEOUT_S, 5.0
"""Limits of a call to the master, and of the wait for a master at the start."""


def read_guard_options(parameters: Any, where: str) -> GuardOptions:
    """Read the private parameters.

    Args:
        parameters: As the parameter server returns them.
        where: Name of the node.

    Raises:
        ConfigError: Names the parameter.
    """
    if not parameters:
        raise ConfigError(
            f"node {where} has no parameters",
            "start it with `roslaunch robot_runtime_guard guard.launch family:=FAMILY`, or load the family's first: "
            f"`rosparam load $(rospack find robot_runtime_guard)/config/FAMILY.yaml {where}`, with one of the families "
            f"{', '.join(ROS_1_FAMILIES)}",
        )
    return parse_guard_options(parameters, where, ROS_1_FAMILIES)
