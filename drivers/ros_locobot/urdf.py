"""The robot's URDF with the camera mount of a file, for roslaunch's ``<param command="...">``.

::

    describe family:=interbotix robot_name:=locobot mount:=interbotix
"""

import sys
from pathlib import Path

import xacro

from drivers.ros.topics import ROS_1_FAMILIES
from robot_runtime.common import config
from robot_runtime.errors import ConfigError, RuntimeFault
from robot_runtime.robots.camera_mount import load_mount

XACRO_FILE = Path("description", "locobot.urdf.xacro")


def describe(family: str = "pyrobot-kobuki", robot_name: str = "locobot", mount: str = "") -> str:
    """Return the URDF as XML.

    Args:
        family: Variant of the LoCoBot.
        robot_name: Namespace of an Interbotix robot's frames.
        mount: A preset of ``launch/mounts`` or a YAML file; the variant's own if empty.

    Raises:
        ConfigError: The family or the mount does not exist, or the mount file is malformed.
    """
    if family not in ROS_1_FAMILIES:
        raise ConfigError(f"there is no LoCoBot family {family!r}", f"use one of: {', '.join(ROS_1_FAMILIES)}")
    mount_file = config.find_preset("mounts", mount or family).resolve()
    load_mount(mount_file)
    source = next(path for root in config.preset_roots() if (path := root / XACRO_FILE).is_file())
    mappings = {"family": family, "robot_name": robot_name, "mount": str(mount_file)}
    document: str = xacro.process_file(str(source), mappings=mappings).toprettyxml(indent="  ")
    return document


def main() -> int:
    """Run the program; faults and their remedies are printed to standard error; roslaunch shows them."""
    try:
        arguments = dict(_pair(argument) for argument in sys.argv[1:])
        known = {"family", "robot_name", "mount"}
        if unknown := arguments.keys() - known:
            raise ConfigError(f"there is no argument {min(unknown)!r}", f"use {', '.join(sorted(known))}")
        sys.stdout.write(describe(**arguments))
    except RuntimeFault as fault:
        print(f"error: {fault}", file=sys.stderr)
        return fault.exit_code
    return 0


def _pair(argument: str) -> tuple[str, str]:
    name, assigned, value = argument.partition(":=")
    if not assigned:
        raise ConfigError(f"argument {argument!r} is not of the form NAME:=VALUE", "write e.g. family:=interbotix")
    return name, value
