"""Acknowledgement of the base's and the head's messages to a simulator that waits for it.

The simulated robot (``sim_bridge.ros.lockstep_barrier``) lets ``/clock`` advance no further than its subscribers have
processed its messages. Without that, messages queued on a busy computer would look like silent sensors. In real time
nothing is acknowledged.
"""

from contextlib import suppress
from typing import Any

import rospy
from std_msgs.msg import Header

from drivers.ros.protocol import ACKNOWLEDGE_TOPIC

QUEUE_SIZE = 10


class AcknowledgePublisher:
    """Publisher of the acknowledgements. Thread-safe."""

    def __init__(self) -> None:
        self.publisher = rospy.Publisher(ACKNOWLEDGE_TOPIC, Header, queue_size=QUEUE_SIZE, tcp_nodelay=True)

    def acknowledge(self, topic: str, message: Any) -> None:
        """Report that a message has been processed; one without a header is not reported."""
        header = header_of(message)
        if header is not None:
            self.publisher.publish(Header(stamp=header.stamp, frame_id=topic))

    def end(self, topic: str) -> None:
        """Report that no further message of ``topic`` will be processed."""
        with suppress(rospy.ROSException):  # The node has been shut down: the simulator's timeout applies.
            self.publisher.publish(Header(frame_id=topic))


def header_of(message: Any) -> Header | None:
    """Return a message's header, also of an ``AnyMsg``; None if the message does not begin with one."""
    if not isinstance(message, rospy.AnyMsg):
        return getattr(message, "header", None)
    definition = message._connection_header.get("message_definition", "")
    lines = (line.partition("#")[0].split() for line in definition.splitlines())
    first = next((line[0] for line in lines if line), "")
    return Header().deserialize(message._buff) if first in ("Header", "std_msgs/Header") else None
