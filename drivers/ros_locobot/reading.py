"""Conversion of rospy's messages. For Python >= 3.8, as all that the guard uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rospy
from roslib.message import get_message_class

from drivers.ros.connection.received import UNKNOWN, Received
from robot_runtime.errors import DriverMissing


def message_class(kinds: Sequence[str]) -> Any:
    """Return the first class that is installed of types with one definition. Raises ``DriverMissing``."""
    for kind in kinds:
        found = get_message_class(kind)
        if found is not None:
            return found
    raise DriverMissing(
        f"Python does not find the ROS message {' or '.join(kinds)}",
        "source the workspace of the robot's drivers, or ros_ws/devel/setup.bash, in this shell",
    )


def received(message: Any) -> Received:
    """Return a message with its stamp and its sender; an ``AnyMsg`` has no stamp."""
    header = getattr(message, "header", None)
    connection = getattr(message, "_connection_header", None) or {}
    return Received(message, None if header is None else header.stamp.to_nsec(), connection.get("callerid", UNKNOWN))


class Reader:
    """Reads a topic whose publishers may use several types of one definition; rospy could subscribe to only one.

    Args:
        kinds: names of the types.

    Attributes:
        definition: class whose definition the publishers must use.
        message: class to subscribe with.

    Raises:
        DriverMissing: Python does not find the package of a message.
    """

    def __init__(self, kinds: Sequence[str]) -> None:
        self.definition = message_class(kinds)
        self.message = self.definition if len(kinds) == 1 else rospy.AnyMsg

    def read(self, message: Any) -> Received | None:
        """Return a message with its stamp and its sender; None if it has another definition."""
        if not isinstance(message, rospy.AnyMsg):
            return received(message)
        if message._connection_header["md5sum"] != self.definition._md5sum:
            return None
        decoded = self.definition().deserialize(message._buff)
        decoded._connection_header = message._connection_header
        return received(decoded)
