"""The guard as a program of its own, for either generation of ROS: ``guard FILE.yaml``.

It needs no policy, task or runtime, and runs on the robot's own Python (>= 3.8) with PyYAML and rospy or rclpy.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from drivers.ros.topics import ROS_2_FAMILIES
from robot_runtime.errors import ConfigError, DriverMissing, RuntimeFault


def read_parameters(path: Path) -> Any:
    """Return the content of the options' file. Raises ``ConfigError``."""
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: {error}", "name a YAML file such as those in launch/guards") from error


def run(path: Path) -> None:
    """Run the guard that a file describes, until SIGTERM or Ctrl-C.

    Raises:
        ConfigError: the file cannot be read, or has a bad option.
        DriverMissing: Python does not find ROS.
    """
    parameters = read_parameters(path)
    family = parameters.get("family") if isinstance(parameters, dict) else None
    generation = "ros2" if family in ROS_2_FAMILIES or family is None else "ros_locobot"
    try:
        node = importlib.import_module(f"drivers.{generation}.guard.node")
    except ModuleNotFoundError as error:
        raise DriverMissing(
            f"Python does not find {error.name}",
            "source ROS's setup.bash in this shell, and start the guard with that shell's Python, or install ROS 2's "
            "wheels: docs/robots/create3.md",
        ) from error
    node.run(parameters, str(path))


def main(arguments: Sequence[str]) -> int:
    """Run the program; print a fault and its remedy."""
    if len(arguments) != 1:
        print("usage: guard FILE.yaml", file=sys.stderr)
        return 2
    try:
        run(Path(arguments[0]))
    except RuntimeFault as fault:
        print(f"error: {fault}", file=sys.stderr)
        return fault.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
