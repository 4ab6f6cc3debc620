"""With simulated time: tells the simulator which reports of base and head have been taken in.

A simulator that waits for these (``sim_bridge.ros.followers``) does not run away from a busy computer, where otherwise
sensors would look silent that are only unread. With real time nothing is told: it waits for nobody.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import rospy
from std_msgs.msg import Header

TOPIC = "/simulation/heard"
"""std_msgs/Header: the report's stamp, and its topic as ``frame_id``; without a stamp, that no more will be."""

QUEUE = 10


class Heard:
    """Says so; thread-safe."""

    def __init__(self) -> None:
        self.publisher = rospy.Publisher(TOPIC, Header, queue_size=QUEUE, tcp_nodelay=True)

    def __call__(self, topic: str, message: Any) -> None:
        """A message of ``topic`` has been taken in; one without a header is not told."""
        header = header_of(message)
        if header is not None:
            self.publisher.publish(Header(stamp=header.stamp, frame_id=topic))

    def leave(self, topic: str) -> None:
        """No more messages of ``topic`` will be taken in: nobody needs to wait for them."""
        with suppress(rospy.ROSException):  # the node has ended: then the simulator's patience does it
            self.publisher.publish(Header(frame_id=topic))


def header_of(message: Any) -> Header | None:
    """A message's header, also of one that was taken in without its definition; None if it begins with none."""
    if not isinstance(message, rospy.AnyMsg):
        return getattr(message, "header", None)
    definition = message._connection_header.get("message_definition", "")
    lines = (line.partition("#")[0].split() for line in definition.splitlines())
    first = next((line[0] for line in lines if line), "")
    return Header().deserialize(message._buff) if first in ("Header", "std_msgs/Header") else None
