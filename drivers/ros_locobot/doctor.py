"""Checks of a computer for robots behind ROS 1: ``robot-runtime doctor ros``."""

import os
import socket
from collections.abc import Sequence
from urllib.parse import urlsplit

from robot_runtime.common.host_checks import Finding, Status

DEFAULT_MASTER = "http://localhost:11311"

CONNECT_S = 2.0


def check() -> Sequence[Finding]:
    """Check the client library, the robot's message types, and whether the master answers."""
    return [_library(), _messages(), _master()]


def _library() -> Finding:
    try:
        import rospy
    except ImportError as missing:
        remedy = (
            "apt install python3-rospy (Debian, Ubuntu), or source ROS's setup.bash; then start robot-runtime again"
        )
        return Finding("rospy", Status.FAIL, str(missing), remedy, absent=True)
    return Finding("rospy", Status.OK, os.path.dirname(rospy.__file__))


def _messages() -> Finding:
    what = "messages of the Kobuki"
    try:
        import kobuki_msgs.msg
    except ImportError as missing:
        remedy = "source the workspace of the robot's drivers, or ros_ws/devel/setup.bash; a Create needs none"
        return Finding(what, Status.WARN, str(missing), remedy)
    return Finding(what, Status.OK, os.path.dirname(kobuki_msgs.msg.__file__))


def _master() -> Finding:
    what, uri = "ROS master", os.environ.get("ROS_MASTER_URI") or DEFAULT_MASTER
    try:
        parts = urlsplit(uri)
        host, port = parts.hostname, parts.port
    except ValueError:  # a port that is not a number
        host = port = None
    if not host or not port:
        return Finding(what, Status.FAIL, f"ROS_MASTER_URI is {uri!r}", f"write it like {DEFAULT_MASTER}")
    try:
        socket.create_connection((host, port), CONNECT_S).close()
    except OSError as error:
        remedy = "start the robot's launch file, or set ROS_MASTER_URI to the robot's computer"
        detail = f"nothing answers at {uri}: {error.strerror or error}"
        return Finding(what, Status.WARN, detail, remedy, absent=True)
    return Finding(what, Status.OK, f"answers at {uri}")
