"""The node of the simulated robot on a ROS network of either generation, as its physics thread uses it."""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, Protocol

from drivers.ros.protocol import MessageFactory

QUEUE_SIZE = 200
"""Messages that wait per subscriber; a slow subscriber loses the oldest instead of blocking the robot."""


class Publisher(Protocol):
    """A publisher that never blocks, and ignores messages sent during shutdown."""

    @property
    def has_subscribers(self) -> bool:
        """Whether any node subscribes."""

    def publish(self, message: Any) -> None:
        """Queue a message for the subscribers and return."""


class Network(ABC):
    """A node on a network."""

    messages: MessageFactory

    @abstractmethod
    def publisher(self, topic: str, kind: str, latch: bool = False, queue_size: int = QUEUE_SIZE) -> Publisher:
        """Create a publisher.

        Args:
            topic: full name.
            kind: type such as ``nav_msgs/Odometry``.
            latch: whether later subscribers receive the newest message.
            queue_size: number of messages that wait per subscriber.
        """

    @abstractmethod
    def subscribe(self, topic: str, kind: str, receive: Callable[[Any], object], queue_size: int = 10) -> None:
        """Subscribe; ``receive`` gets messages in a thread of the network."""

    @abstractmethod
    def subscribe_senders(self, topic: str, kind: str, receive: Callable[[str, int, Any], object]) -> None:
        """Subscribe to messages with a header; ``receive`` gets sender, stamp in nanoseconds and message."""

    @abstractmethod
    def log_error(self, text: str) -> None:
        """Write to the node's log."""

    @abstractmethod
    def close(self) -> None:
        """Leave the network; the simulation ends."""

    @abstractmethod
    def is_shutdown(self) -> bool:
        """Whether the node has ended."""


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
