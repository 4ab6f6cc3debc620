"""This process as a ROS node. rospy has one node and one master per process, in module globals touched only here."""

import http.client
import logging
import os
import sys
import threading
import xmlrpc.client
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import TypeVar

import rosgraph
import rospy

from drivers.ros.connection.errors import MasterGone
from robot_runtime.errors import DeviceFault, RuntimeFault

T = TypeVar("T")

NODE_NAME = "robot_runtime"

REGISTRATION = "unable to communicate with ROS Master"
"""rospy logs this once for each topic that it leaves without a master; the session reports it once."""

_CALL_ERRORS = (OSError, rospy.ROSException, xmlrpc.client.Error, http.client.HTTPException)
"""The exceptions that rospy raises when the master is gone."""


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
    logging.getLogger("rosout").addFilter(_is_not_registration_noise)
    if not rospy.core.is_initialized():
        raise DeviceFault("an earlier attempt to become a ROS node is still waiting for its master", "try again later")


def _is_not_registration_noise(record: logging.LogRecord) -> bool:
    return REGISTRATION not in record.getMessage()


def call_within(call: Callable[[], T], what: str, limit_s: float, master_uri: str) -> T:
    """Return the result of a blocking call of rospy.

    Args:
        call: The call.
        what: Description of the call.
        limit_s: Time limit.
        master_uri: Address of the master, for the error.

    Raises:
        MasterGone: The call has not returned in time, or could not reach the master.
    """
    future: Future[T] = Future()

    def work() -> None:
        try:
            future.set_result(call())
        except (*_CALL_ERRORS, RuntimeFault) as error:
            future.set_exception(error)

    threading.Thread(target=work, name=f"ros: {what}", daemon=True).start()
    try:
        return future.result(limit_s)
    except (FutureTimeout, *_CALL_ERRORS) as error:
        reason = str(error) if future.done() else f"no answer within {limit_s:g} s"
        raise MasterGone(
            f"ROS master {master_uri}: {what}: {reason}",
            "check that roscore runs on the robot and is not suspended, then connect again",
        ) from error
