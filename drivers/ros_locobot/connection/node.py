"""This process as a ROS node. rospy has one node and one master per process, in module globals touched only here."""

from __future__ import annotations

import logging
import os
import sys

import rosgraph
import rospy

from robot_runtime.errors import DeviceFault

NODE_NAME = "robot_runtime"

REGISTRATION = "unable to communicate with ROS Master"
"""rospy logs this once for each topic that it leaves without a master; the session reports it once."""


def join_network(master_uri: str) -> None:
    """Make this process a node of a master; rospy allows that once in the life of a process.

    The master is passed in the environment variable ``ROS_MASTER_URI``; rospy reads it in many places.

    Raises:
        DeviceFault: The node was shut down before, belongs to another master, or still waits for its master.
    """
    if rospy.core.is_shutdown():
        raise DeviceFault(
            "this process's ROS node was shut down and cannot be started again", "start the runtime in a new process"
        )
    if rospy.core.is_initialized():
        if rosgraph.get_master_uri().rstrip("/") != master_uri:
            raise DeviceFault(
                f"this process is a node of the ROS master {rosgraph.get_master_uri()}, not of {master_uri}",
                "use one process per master",
            )
        return
    os.environ["ROS_MASTER_URI"] = master_uri
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        # rospy's own simulated time is disabled: its subscription to /clock would survive a restart of the master.
        rospy.init_node(NODE_NAME, argv=sys.argv[:1], anonymous=True, disable_signals=True, disable_rostime=True)
    finally:
        root.handlers[:], root.level = handlers, level  # init_node replaces the program's logging configuration
    logging.getLogger("rosout").addFilter(_says_something_new)
    if not rospy.core.is_initialized():
        raise DeviceFault("an earlier attempt to become a ROS node is still waiting for its master", "try again later")


def _says_something_new(record: logging.LogRecord) -> bool:
    return REGISTRATION not in record.getMessage()
