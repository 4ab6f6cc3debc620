"""The connection of this process to one ROS master, shared by all devices of the robot.

::

    open ──► master reachable? ──► node ──► /clock? ──► monitor thread: same master? only publisher?
                                                            └── fault: listeners notified, raised by every read

A gap in the link is no fault: the monitor's calls are lost before anything else is, because each needs a connection of
its own. Only when no topic delivers anything either, for ``patience_s``, the link is given up.

A connection that has faulted stays so until every device is closed. Connecting again registers everything again, also
with a master that was restarted meanwhile.
"""

import logging
import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import rosgraph
import rospy
from rosgraph_msgs.msg import Clock as ClockMessage

from drivers.ros_locobot.connection.acknowledge import AcknowledgePublisher
from drivers.ros_locobot.connection.clock import HELD_UP, SIMULATED_SKEW_S, RosClock
from drivers.ros_locobot.connection.errors import LinkLost, MasterGone, SecondPublisher
from drivers.ros_locobot.connection.master import (
    ALIVE_S,
    ATTEMPTS,
    Master,
    check_publishers,
    similar_topics,
    wait_until,
)
from drivers.ros_locobot.connection.node import call_within, join_network
from drivers.ros_locobot.options import MasterOptions
from drivers.ros_locobot.protocol import ACKNOWLEDGE_TOPIC
from robot_runtime.common.clock import SystemClock, ns_to_seconds
from robot_runtime.errors import DeviceFault, RuntimeFault, StaleData

T = TypeVar("T")

IMAGE_BUFFER_BYTES = 2**24
"""Receive buffer of image topics. rospy's 64 KiB would leave half a second of old images in the socket."""

POLL_S = 0.02

LEAST_UNANSWERED = 3
"""Calls of the monitor in a row without an answer before anything follows from them."""

log = logging.getLogger(__name__)


class Session:
    """The connection to a master. Thread-safe.

    Args:
        options: Address of the master, and time limits.
        clock: Follows ``/clock`` if the master's ``/use_sim_time`` is set.
    """

    def __init__(self, options: MasterOptions, clock: RosClock) -> None:
        self.options = options
        self.clock = clock
        self._lock = threading.RLock()
        self._users: list[object] = []
        self._listeners: list[Callable[[], None]] = []
        self._exclusive: dict[str, frozenset[str]] = {}
        self._fault: RuntimeFault | None = None
        self._stop = threading.Event()
        self._monitor: threading.Thread | None = None
        self._clock_subscriber: rospy.Subscriber | None = None
        self._acknowledge: AcknowledgePublisher | None = None
        self._acknowledged: dict[rospy.Subscriber, str] = {}
        self._master: Master | None = None
        self._host = SystemClock()
        self._heard_ns = self._answered_ns = 0
        self._unanswered = 0

    @property
    def master(self) -> Master:
        """The master's API, usable before, during and after the connection."""
        if self._master is None:
            uri = self.options.uri or os.environ.get("ROS_MASTER_URI") or rosgraph.rosenv.DEFAULT_MASTER_URI
            self._master = Master(uri.rstrip("/"), self.options.timeout_s, ATTEMPTS)
        return self._master

    @property
    def node(self) -> str:
        """The node name of this process."""
        return str(rospy.get_name())

    @property
    def fault(self) -> RuntimeFault | None:
        """The fault that has broken this connection; None while it is good."""
        return self._fault

    def open(self, user: object) -> None:
        """Join the network on behalf of ``user``; only the first user's call connects.

        Raises:
            MasterGone: No master answers in time.
            DeviceFault: The process cannot become a node of this master.
            StaleData: Time is simulated, and ``/clock`` is silent.
        """
        with self._lock:
            if user in self._users:
                return
            if not self._users:
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
            monitor, self._monitor = self._monitor, None
            self._exclusive.clear()
            self._listeners.clear()
            self.unsubscribe(self._clock_subscriber)
            self._clock_subscriber = None
            if self._acknowledge is not None:
                self.unsubscribe(self._acknowledge.publisher)
                self._acknowledge = None
        if monitor is not None and monitor is not threading.current_thread():
            monitor.join(self.options.timeout_s)

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

    def subscribe(
        self,
        topic: str,
        message: Any,
        callback: Callable[[Any], object],
        queue_size: int = 1,
        images: bool = False,
        required: bool = True,
        acknowledged: bool = False,
    ) -> rospy.Subscriber:
        """Subscribe to a topic whose publishers use the right message definition.

        Args:
            topic: Full name.
            message: Generated message class.
            callback: Called in rospy's thread of each publisher; a ``RuntimeFault`` in it breaks the connection.
            queue_size: rospy's; older messages are dropped.
            images: Whether messages are large.
            required: Whether to wait for a publisher, and to fail without one.
            acknowledged: Whether simulated time waits until each message has been processed (``acknowledge.py``).

        Raises:
            StaleData: The topic has no publisher within ``connect_timeout_s``.
            WrongDefinition: Names both md5 sums.
            MasterGone: The master does not answer.
        """
        nodes = self.require_publisher(topic)[topic] if required else None
        if message is not rospy.AnyMsg:
            check_publishers(self.master, topic, message, self.options.timeout_s, nodes)

        def guarded(received: Any) -> None:
            self._heard_ns = self._host.now_ns()
            try:
                callback(received)
            except RuntimeFault as fault:
                self.fail(fault)
            if acknowledged and (acknowledge := self._acknowledge) is not None:
                acknowledge.acknowledge(topic, received)

        options = {"queue_size": queue_size, "tcp_nodelay": True, "buff_size": IMAGE_BUFFER_BYTES if images else 65536}
        subscriber = self.call_with_timeout(
            lambda: rospy.Subscriber(topic, message, guarded, **options), f"subscribing to {topic}"
        )
        if acknowledged:
            self._acknowledged[subscriber] = topic
        return subscriber

    def require_publisher(self, *topics: str) -> dict[str, tuple[str, ...]]:
        """Wait until one of ``topics`` has a publisher, and return the publishers of each.

        Raises:
            StaleData: None has within ``connect_timeout_s``.
        """
        nodes: dict[str, tuple[str, ...]] = {}

        def published() -> bool:
            publishers = self.master.graph().publishers
            nodes.update((topic, publishers.get(topic, ())) for topic in topics)
            return any(self.master.living_uri(node, ALIVE_S) for topic in topics for node in nodes[topic])

        if not wait_until(published, self.wait, self.options.connect_timeout_s, 0.1):
            dead = [node for topic in topics for node in nodes[topic]]
            raise StaleData(
                f"topic {' or '.join(topics)} has no publisher at {self.master.uri}"
                + (f" ({', '.join(dead)} published it and has died)" if dead else ""),
                f"start its node, or name the right topic in the robot's YAML{similar_topics(self.master, topics[0])}",
            )
        return nodes

    def check_definition(self, topic: str, message: Any) -> None:
        """Raise ``WrongDefinition`` if ``topic`` is published with another definition than ``message``'s."""
        check_publishers(self.master, topic, message, self.options.timeout_s)

    def advertise(self, topic: str, message: Any) -> rospy.Publisher:
        """Create a publisher that never blocks and sends only the newest message. Raises ``MasterGone``."""
        return self.call_with_timeout(
            lambda: rospy.Publisher(topic, message, queue_size=1, tcp_nodelay=True), f"advertising {topic}"
        )

    def require_subscriber(self, publisher: rospy.Publisher) -> None:
        """Wait until another node has connected to a publisher of this node.

        Raises:
            DeviceFault: No node has within ``connect_timeout_s``.
        """
        topic = publisher.resolved_name
        if self._wait_for_subscriber(publisher):
            return
        nodes = self._subscribing_nodes(topic)
        if nodes:
            raise DeviceFault(
                f"topic {topic}: {nodes[0]} subscribes to it, but does not connect to this node",
                f"it expects another definition of {publisher.type} (see its log), or cannot reach this computer: "
                "set ROS_IP here to the address that the robot sees",
            )
        raise DeviceFault(
            f"topic {topic} has no subscriber",
            f"start its node, or name the right topic{similar_topics(self.master, topic)}",
        )

    def has_subscriber(self, publisher: rospy.Publisher) -> bool:
        """Whether another node is connected to a publisher of this node."""
        return any(peer != self.node for _, peer, *_ in publisher.impl.get_stats_info())

    def unsubscribe(self, *endpoints: rospy.Subscriber | rospy.Publisher | None) -> None:
        """Unregister subscribers and publishers within the time limit, also without a master."""
        for endpoint in endpoints:
            if endpoint is not None:
                try:
                    leaving = f"leaving {endpoint.resolved_name}"
                    self.call_with_timeout(endpoint.unregister, leaving, self.options.connect_timeout_s)
                except MasterGone as error:
                    log.warning("%s", error.message)
            topic = self._acknowledged.pop(endpoint, None)
            if topic is not None and self._acknowledge is not None:
                self._acknowledge.end(topic)

    def claim_topic(self, topic: str, *others: str) -> None:
        """Allow only this node and ``others`` to publish ``topic`` from now on.

        Raises:
            SecondPublisher: Another node does already. Later ones break the connection when the monitor detects them.
        """
        self._exclusive[topic] = frozenset((self.node, *others))
        self._check_exclusive()

    def check_sender(self, topic: str, message: Any) -> None:
        """Raise ``SecondPublisher`` if a message on a claimed topic comes from a node that may not publish it."""
        sender = message._connection_header.get("callerid", "?")
        if sender not in self._exclusive.get(topic, (sender,)):
            raise SecondPublisher.of(topic, sender)

    def call_with_timeout(self, call: Callable[[], T], what: str, limit_s: float | None = None) -> T:
        """Return the result of a blocking call of rospy.

        Args:
            call: The call. It cannot be repeated; the system repeats what is lost of it on the way.
            what: Description of the call.
            limit_s: Time limit; None for that of connecting.

        Raises:
            MasterGone: It has not returned in time.
        """
        return call_within(call, what, self._connecting_s if limit_s is None else limit_s, self.master.uri)

    @property
    def _connecting_s(self) -> float:
        """Time limit of what is under way while connecting, with a gap in the link."""
        return self.options.connect_timeout_s + self.options.patience_s

    def _wait_for_subscriber(self, publisher: rospy.Publisher) -> bool:
        """Wait for a connection, for longer if a node has announced that it will connect."""

        def connected() -> bool:
            return self.has_subscriber(publisher)

        if wait_until(connected, self.wait, self.options.connect_timeout_s, POLL_S):
            return True
        announced = bool(self._subscribing_nodes(publisher.resolved_name))
        return announced and wait_until(connected, self.wait, self.options.patience_s, POLL_S)

    def _subscribing_nodes(self, topic: str) -> list[str]:
        return [node for node in self.master.graph().subscribers.get(topic, ()) if node != self.node]

    # --- opening and monitoring -------------------------------------------------------------------------------------

    def _open(self) -> None:
        self._fault = None
        self._stop.clear()
        identity = self.master.identity()
        self._heard_ns = self._answered_ns = self._host.now_ns()
        self._unanswered = 0
        self.call_with_timeout(lambda: join_network(self.master.uri), "joining as a node")
        self.clock.restart()
        if self.master.parameter("/use_sim_time", False):
            self._follow_clock()
        self._monitor = threading.Thread(target=self._watch, args=(identity,), name="ros: monitor", daemon=True)
        self._monitor.start()

    def _follow_clock(self) -> None:
        started = threading.Event()

        def tick(message: ClockMessage) -> None:
            now_ns = message.clock.to_nsec()
            if started.is_set():
                passed_s = self.clock.advance(now_ns)
                if passed_s > SIMULATED_SKEW_S:
                    raise DeviceFault(
                        f"topic /clock: it went on by {passed_s:.3f} s while this process received nothing, "
                        f"{SIMULATED_SKEW_S:g} s is allowed",
                        HELD_UP,
                    )
            else:
                self.clock.start_simulated(now_ns)
                started.set()

        self._acknowledge = self.call_with_timeout(AcknowledgePublisher, f"advertising {ACKNOWLEDGE_TOPIC}")
        # A simulator that waits for its subscribers must be connected before its time can run ahead of this one.
        simulators = self._subscribing_nodes(ACKNOWLEDGE_TOPIC)
        alive = any(not self.master.is_dead(node) for node in simulators)
        if alive and not self._wait_for_subscriber(self._acknowledge.publisher):
            log.warning(
                "topic %s: %s subscribes to it, but does not connect to this node, and will not wait for it; set "
                "ROS_IP here to the address that the simulator sees",
                ACKNOWLEDGE_TOPIC,
                simulators[0],
            )
        self._clock_subscriber = self.subscribe("/clock", ClockMessage, tick)
        if not started.wait(self._connecting_s):
            self.unsubscribe(self._clock_subscriber)
            raise StaleData(
                "topic /clock has delivered nothing, but /use_sim_time is set",
                "start the simulator, or on a real robot `rosparam set /use_sim_time false` and connect again",
            )

    def _watch(self, identity: str) -> None:
        master = Master(self.master.uri, self.options.timeout_s)
        while self._fault is None and not self._stop.wait(self.options.monitor_period_s):
            self._check_network(master, identity)

    def _check_network(self, master: Master, identity: str) -> None:
        """Ask the master once; what it answers counts at once, that it does not answer only after some time."""
        try:
            if master.identity() != identity:
                self.fail(
                    MasterGone(
                        f"ROS master {master.uri} was restarted and does not know the earlier nodes",
                        "restart the robot's nodes, then connect again",
                    )
                )
                return
            self._check_exclusive(master)
        except MasterGone as gone:
            self._unanswered += 1
            self._look_after_link(gone)
        except RuntimeFault as fault:
            self.fail(fault)
        else:
            if self._unanswered > 1:
                log.warning("link to the robot: ROS master %s answers again", master.uri)
            self._unanswered, self._answered_ns = 0, self._host.now_ns()

    def _look_after_link(self, gone: MasterGone) -> None:
        """Give the connection up if the master's computer says that there is none, or nothing is heard any more."""
        if self._unanswered == 2:
            log.warning("link to the robot: %s; waiting", gone.message)
        if self._unanswered < LEAST_UNANSWERED:
            return
        if isinstance(gone.__cause__, ConnectionRefusedError):
            self.fail(gone)
            return
        now_ns = self._host.now_ns()
        silent_s = ns_to_seconds(now_ns - max(self._answered_ns, self._heard_ns))
        if silent_s > self.options.patience_s:
            self.fail(
                LinkLost(
                    f"link to the robot: for {silent_s:.1f} s no message of any topic has come, and ROS master "
                    f"{self.master.uri} has not answered, {self._unanswered} times",
                    "check the network between the computers and whether the robot's is on, then connect again",
                )
            )

    def _check_exclusive(self, master: Master | None = None) -> None:
        if not self._exclusive:
            return
        master = master or self.master
        publishers = master.graph().publishers
        for topic, allowed in tuple(self._exclusive.items()):
            for node in publishers.get(topic, ()):
                if node not in allowed and not master.is_dead(node):
                    raise SecondPublisher.of(topic, node)
