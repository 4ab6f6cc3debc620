"""Checks of a computer for robots behind ROS 2: ``robot-runtime doctor ros2``."""

import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path

from robot_runtime.common.host_checks import Finding, Status

PROFILES = ("FASTDDS_DEFAULT_PROFILES_FILE", "FASTRTPS_DEFAULT_PROFILES_FILE")

SERVER = "ROS_DISCOVERY_SERVER"


def check() -> Sequence[Finding]:
    """Check the client library, what DDS is told to do, and the discovery server's role."""
    if importlib.util.find_spec("rclpy") is None:
        remedy = "source ROS's setup.bash (Humble or later), or install its wheels: docs/robots/create3.md"
        return [Finding("rclpy", Status.FAIL, "Python does not find it", remedy, absent=True)]
    return [Finding("rclpy", Status.OK, "found"), _profile(), *_server()]


def _profile() -> Finding:
    what = "vendors of DDS"
    named = next((os.environ[name] for name in PROFILES if os.environ.get(name)), "")
    if "cyclone" in os.environ.get("RMW_IMPLEMENTATION", "") or not named:
        return Finding(what, Status.OK, "the runtime's own profile: Fast DDS and Cyclone DDS understand each other")
    try:
        text = Path(named).read_text(encoding="utf-8")
    except OSError as error:
        return Finding(what, Status.FAIL, f"{named}: {error.strerror}", "name an existing file, or unset the variable")
    if "fastdds.type_propagation" in text:
        return Finding(what, Status.OK, f"{named} sets fastdds.type_propagation")
    return Finding(
        what,
        Status.WARN,
        f"{named} does not set fastdds.type_propagation: a Cyclone DDS on the other side silently loses Odometry",
        "add <property><name>fastdds.type_propagation</name><value>disabled</value></property> to the participant's "
        "propertiesPolicy in that file",
    )


def _server() -> list[Finding]:
    if not os.environ.get(SERVER):
        return []
    if os.environ.get("ROS_SUPER_CLIENT", "").lower() in ("1", "true"):
        return [Finding("discovery server", Status.OK, f"super client of {os.environ[SERVER]}")]
    return [
        Finding(
            "discovery server",
            Status.WARN,
            f"{SERVER} is set, but this computer is not a super client, and sees only topics that it uses itself",
            "set ROS_SUPER_CLIENT=True, or options.network.discovery_server in the robot's YAML instead",
        )
    ]
