"""Publishing from the physics thread: cheap where nobody listens, late where the robot is late."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

import rospy

QUEUE = 200
"""Messages that wait per subscriber; a slow one loses the oldest instead of holding up the robot."""


class Publisher:
    """A topic that is published to. What comes while ROS shuts down is lost, as it would be a moment later."""

    def __init__(self, topic: str, kind: Any, latch: bool = False, queue_size: int = QUEUE) -> None:
        self._publisher = rospy.Publisher(topic, kind, queue_size=queue_size, latch=latch, tcp_nodelay=True)

    @property
    def has_subscribers(self) -> bool:
        """Whether anybody listens."""
        return bool(self._publisher.get_num_connections())

    def publish(self, message: Any) -> None:
        """Hand it to the subscribers' queues and return."""
        try:
            self._publisher.publish(message)
        except rospy.ROSException:
            if not rospy.is_shutdown():
                raise


class DelayQueue:
    """Publishes messages when their time has come."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, int, Callable[[], None]]] = []
        self._order = itertools.count()

    def publish(self, due_ns: int, target: Publisher, message: Any) -> None:
        """Have it published by the first :meth:`flush` at or after ``due_ns``; equal times keep their order."""
        heappush(self._waiting, (due_ns, next(self._order), lambda: target.publish(message)))

    def flush(self, now_ns: int) -> None:
        """Publish what is due."""
        while self._waiting and self._waiting[0][0] <= now_ns:
            heappop(self._waiting)[2]()
