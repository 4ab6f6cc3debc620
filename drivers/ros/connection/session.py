"""The connection of this process to a ROS network, shared by all devices of the robot.

A generation of ROS implements :class:`Session`; everything above it is the same for all. Messages have the fields of
their definitions, whatever library has made them.

A connection that has faulted stays so until every device is closed. Connecting again registers everything again.
"""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol

from drivers.ros.connection.clock import RosClock
from drivers.ros.connection.errors import SecondPublisher
from drivers.ros.connection.received import Received
from drivers.ros.protocol import MessageFactory
from robot_runtime.common.clock import SystemClock
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import RuntimeFault

log = logging.getLogger(__name__)


class Endpoint(Protocol):
    """A subscription, a publisher or a service's client, to be removed with ``Session.unsubscribe``."""

    @property
    def topic(self) -> str: ...
    def remove(self) -> None: ...


class Subscription(Endpoint, Protocol):
    """A subscription."""

    def has_publisher(self) -> bool:
        """Whether a node is connected that publishes the topic."""


class Publisher(Endpoint, Protocol):
    """A publisher that never blocks and sends only the newest message."""

    def publish(self, message: Any) -> None:
        """Send a message of ``Session.messages``. Raises ``DeviceFault`` if the node was shut down."""

    def has_subscriber(self) -> bool:
        """Whether another node is connected."""


class Session(ABC):
    """The connection to a network. Thread-safe.

    Args:
        clock: clock of the robot; follows ``/clock`` where the network's time is simulated.
        messages: builder of messages.
        connect_timeout_s: limit for a topic to be published, a subscriber to connect, a first message to arrive.

    Attributes:
        network: description of the network, for messages.
    """

    network = ""

    def __init__(self, clock: RosClock, messages: MessageFactory, connect_timeout_s: float) -> None:
        self.clock, self.messages, self.connect_timeout_s = clock, messages, connect_timeout_s
        self._lock = threading.RLock()
        self._users: list[object] = []
        self._listeners: list[Callable[[], None]] = []
        self._exclusive: dict[str, frozenset[str]] = {}
        self._fault: RuntimeFault | None = None
        self._stop = threading.Event()
        self._host = SystemClock()
        self._heard_ns = 0

    @property
    def fault(self) -> RuntimeFault | None:
        """The fault that has broken this connection; None while it is good."""
        return self._fault

    def open(self, user: object) -> None:
        """Join the network on behalf of ``user``; only the first user's call connects.

        Raises:
            DeviceFault: The process cannot become a node of this network.
            StaleData: Time is simulated, and ``/clock`` is silent.
        """
        with self._lock:
            if user in self._users:
                return
            if not self._users:
                self._fault = None
                self._stop.clear()
                self._open()
            self._users.append(user)

    def close(self, user: object) -> None:
        """Leave on behalf of ``user``; the last user's call ends the connection. Never raises."""
        with self._lock:
            if user not in self._users:
                return
            self._users.remove(user)
            if self._users:
                return
            self._stop.set()
            self._exclusive.clear()
            self._listeners.clear()
            end = self._close()
        end()

    def check(self) -> None:
        """Raise the fault that has broken the connection, if any."""
        if self._fault is not None:
            raise self._fault
        self.clock.check()

    def fail(self, fault: RuntimeFault) -> None:
        """Mark the connection as broken and notify the listeners; only the first fault counts."""
        with self._lock:
            if self._fault is not None:
                return
            self._fault = fault
            listeners = tuple(self._listeners)
        for listener in listeners:
            listener()

    def on_fault(self, listener: Callable[[], None]) -> None:
        """Register a listener, called once when the connection breaks, in the thread that detects it."""
        self._listeners.append(listener)

    def wait(self, seconds: float) -> None:
        """Sleep for host time, less if the connection ends meanwhile."""
        self._stop.wait(seconds)

    # --- topics -----------------------------------------------------------------------------------------------------

    @abstractmethod
    def subscribe(
        self,
        topic: str,
        kinds: str | tuple[str, ...],
        callback: Callable[[Received], object],
        queue_size: int = 1,
        images: bool = False,
        required: bool = True,
        acknowledged: bool = False,
    ) -> Subscription:
        """Subscribe to a topic whose publishers use the right message definition.

        Args:
            topic: full name.
            kinds: type such as ``nav_msgs/Odometry``; several have one definition, and their publishers any of them.
            callback: called in a thread of the session; a ``RuntimeFault`` in it breaks the connection.
            queue_size: number of messages that wait; older ones are dropped.
            images: whether messages are large.
            required: whether to wait for a publisher, and to fail without one.
            acknowledged: whether simulated time waits until each message has been processed, where it can wait.

        Raises:
            StaleData: The topic has no publisher within ``connect_timeout_s``.
            WrongDefinition: Names the topic and both types.
        """

    @abstractmethod
    def advertise(self, topic: str, kind: str) -> Publisher:
        """Create a publisher. Raises ``DeviceFault``."""

    @abstractmethod
    def require_publisher(self, *topics: str) -> Mapping[str, Collection[str]]:
        """Wait until one of ``topics`` has a publisher, and return the publishers of each.

        Raises:
            StaleData: None has within ``connect_timeout_s``.
        """

    @abstractmethod
    def require_subscriber(self, publisher: Publisher) -> None:
        """Wait until another node has connected to a publisher of this node.

        Raises:
            DeviceFault: No node has within ``connect_timeout_s``.
        """

    @abstractmethod
    def publishers(self) -> Mapping[str, Collection[str]]:
        """Return the publishing nodes of all topics."""

    @abstractmethod
    def call(self, service: str, kind: str, **request: Any) -> Any:
        """Call a service and return its response.

        Raises:
            DeviceFault: It does not exist, does not answer in time or fails.
        """

    @abstractmethod
    def place(self, service: str, pose: SE2, tilt_rad: float) -> tuple[bool, str, str]:
        """Call the simulated robot's service that places it; return success, message and remedy."""

    def unsubscribe(self, *endpoints: Endpoint | None) -> None:
        """Remove endpoints within the time limit, also without a network."""
        for endpoint in endpoints:
            if endpoint is not None:
                endpoint.remove()

    def claim_topic(self, topic: str, *others: str) -> tuple[Endpoint, ...]:
        """Allow only this node and ``others`` to publish ``topic`` from now on.

        Returns:
            The subscriptions that detect another's messages.

        Raises:
            SecondPublisher: Another node does already. Later ones break the connection when they are detected.
        """
        self._exclusive[topic] = frozenset((self.node, *others))
        self._check_exclusive(self.publishers(), self._is_dead)
        return self._watch_senders(topic)

    @property
    @abstractmethod
    def node(self) -> str:
        """The node name of this process."""

    # --- for subclasses ---------------------------------------------------------------------------------------------

    @abstractmethod
    def _open(self) -> None:
        """Connect; see :meth:`open`."""

    @abstractmethod
    def _close(self) -> Callable[[], object]:
        """Disconnect, under the lock; return what remains to be done without it."""

    @abstractmethod
    def _watch_senders(self, topic: str) -> tuple[Endpoint, ...]:
        """Subscribe to a claimed topic with :meth:`_check_sender`, where messages name their senders."""

    def _receive(self, callback: Callable[[Received], object], received: Received) -> None:
        """Pass a message to a callback; a fault in it breaks the connection."""
        self._heard_ns = self._host.now_ns()
        try:
            callback(received)
        except RuntimeFault as fault:
            self.fail(fault)

    def _check_sender(self, topic: str, sender: str) -> None:
        """Raise ``SecondPublisher`` if a message on a claimed topic comes from a node that may not publish it."""
        if sender not in self._exclusive.get(topic, (sender,)):
            raise SecondPublisher.of(topic, sender)

    def _is_dead(self, node: str) -> bool:
        """Whether a publishing node does not count: it has crashed without leaving, or its name is not yet known."""
        return False

    def _check_exclusive(self, publishers: Mapping[str, Collection[str]], is_dead: Callable[[str], bool]) -> None:
        """Raise ``SecondPublisher`` if another living node publishes a claimed topic."""
        for topic, allowed in tuple(self._exclusive.items()):
            for node in publishers.get(topic, ()):
                if node not in allowed and not is_dead(node):
                    raise SecondPublisher.of(topic, node)
