"""Publishers for the physics thread: they never block, and messages can be delayed."""

import itertools
from heapq import heappop, heappush
from typing import Any

import rospy

QUEUE_SIZE = 200
"""Messages that wait per subscriber; a slow subscriber loses the oldest instead of blocking the robot."""


class Publisher:
    """A rospy publisher that ignores messages sent during shutdown.

    Args:
        topic: Full name.
        message: Generated message class.
        latch: Whether later subscribers receive the newest message.
        queue_size: Messages that wait per subscriber.
    """

    def __init__(self, topic: str, message: Any, latch: bool = False, queue_size: int = QUEUE_SIZE) -> None:
        self._publisher = rospy.Publisher(topic, message, queue_size=queue_size, latch=latch, tcp_nodelay=True)

    @property
    def has_subscribers(self) -> bool:
        """Whether any node subscribes."""
        return bool(self._publisher.get_num_connections())

    def publish(self, message: Any) -> None:
        """Queue a message for the subscribers and return."""
        try:
            self._publisher.publish(message)
        except rospy.ROSException:
            if not rospy.is_shutdown():
                raise


class DelayQueue:
    """Messages that are published at a later simulated time."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, int, Publisher, Any]] = []
        self._order = itertools.count()

    def publish(self, due_ns: int, publisher: Publisher, message: Any) -> None:
        """Publish with the first :meth:`flush` at or after ``due_ns``; equal times keep their order."""
        heappush(self._waiting, (due_ns, next(self._order), publisher, message))

    def flush(self, now_ns: int) -> None:
        """Publish the messages that are due."""
        while self._waiting and self._waiting[0][0] <= now_ns:
            _, _, publisher, message = heappop(self._waiting)
            publisher.publish(message)
