"""The simulated robot's node on ROS 1; ``rospy.init_node`` must have been called."""

from collections.abc import Callable
from typing import Any

import rospy

from drivers.ros_locobot.reading import message_class, received
from sim_bridge.ros.messages import messages
from sim_bridge.ros.network import QUEUE_SIZE, Network


class Publisher:
    """A rospy publisher that ignores messages sent during shutdown."""

    def __init__(self, topic: str, kind: str, latch: bool = False, queue_size: int = QUEUE_SIZE) -> None:
        message = message_class((kind,))
        self._publisher = rospy.Publisher(topic, message, queue_size=queue_size, latch=latch, tcp_nodelay=True)

    @property
    def has_subscribers(self) -> bool:
        return bool(self._publisher.get_num_connections())

    def publish(self, message: Any) -> None:
        try:
            self._publisher.publish(message)
        except rospy.ROSException:
            if not rospy.is_shutdown():
                raise


class RospyNetwork(Network):
    """This process's node."""

    messages = messages

    def publisher(self, topic: str, kind: str, latch: bool = False, queue_size: int = QUEUE_SIZE) -> Publisher:
        return Publisher(topic, kind, latch, queue_size)

    def subscribe(self, topic: str, kind: str, receive: Callable[[Any], object], queue_size: int = 10) -> None:
        rospy.Subscriber(topic, message_class((kind,)), receive, queue_size=queue_size, tcp_nodelay=True)

    def subscribe_senders(self, topic: str, kind: str, receive: Callable[[str, int, Any], object]) -> None:
        def on_message(message: Any) -> None:
            read = received(message)
            # A std_msgs/Header has no header: it is one.
            stamp_ns = message.stamp.to_nsec() if read.stamp_ns is None else read.stamp_ns
            receive(read.sender, stamp_ns, message)

        self.subscribe(topic, kind, on_message, queue_size=100)

    def log_error(self, text: str) -> None:
        rospy.logerr(text)

    def close(self) -> None:
        rospy.signal_shutdown("standard input closed")

    def is_shutdown(self) -> bool:
        return bool(rospy.is_shutdown())
