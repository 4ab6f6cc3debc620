"""This process as a ROS node, and its connection to one master, shared by the robot's devices.

rospy has one node and one master per process, kept in its own module globals; :func:`_join` is the only place that
touches them. Everything else belongs to a :class:`Session`, which lives while any device is connected:

::

    open ──► master answers? ──► node ──► /clock? ──► monitor: same master? only publisher?
                                                          └── fault: told to listeners at once, raised by every read

A connection that faulted stays so until every device is closed; connecting again registers everything anew, also with a
master that was restarted meanwhile.
"""

from __future__ import annotations

import http.client
import logging
import os
import sys
import threading
import xmlrpc.client
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, TypeVar

import rosgraph
import rospy
from rosgraph_msgs.msg import Clock as ClockMessage

from drivers.ros_locobot.connection.acknowledge import TOPIC, AcknowledgePublisher
from drivers.ros_locobot.connection.clock import RosClock
from drivers.ros_locobot.connection.errors import MasterGone, SecondPublisher
from drivers.ros_locobot.connection.master import Master, check_publishers, wait_until
from drivers.ros_locobot.options import MasterOptions
from robot_runtime.errors import DeviceFault, RuntimeFault, StaleData

T = TypeVar("T")

NODE_NAME = "robot_runtime"
IMAGE_BUFFER_BYTES = 2**24
"""With rospy's 64 KiB a slow moment leaves half a second of old images in the socket."""

_CALL_ERRORS = (OSError, rospy.ROSException, xmlrpc.client.Error, http.client.HTTPException)
"""What rospy raises when the master is gone."""


class Session:
    """The connection to a master. Thread-safe.

    Args:
        clock: follows ``/clock`` if the master's ``/use_sim_time`` is set.
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

    @property
    def master(self) -> Master:
        """Where questions about the network go. Valid while open, and after."""
        if self._master is None:
            uri = self.options.uri or os.environ.get("ROS_MASTER_URI") or rosgraph.rosenv.DEFAULT_MASTER_URI
            self._master = Master(uri.rstrip("/"), self.options.timeout_s)
        return self._master

    @property
    def node(self) -> str:
        """This process's node name."""
        return str(rospy.get_name())

    @property
    def fault(self) -> RuntimeFault | None:
        """What has broken this connection; None while it is good."""
        return self._fault

    def open(self, user: object) -> None:
        """Join the network for ``user``; only the first one does the work.

        Raises:
            MasterGone: no master answers in time. DeviceFault: the process cannot become a node of this master.
            StaleData: time is simulated and ``/clock`` is silent.
        """
        with self._lock:
            if user in self._users:
                return
            if not self._users:
                self._open()
            self._users.append(user)

    def close(self, user: object) -> None:
        """Leave for ``user``; with the last one the connection ends. Never raises."""
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
        """Raise what has broken the connection, if anything."""
        if self._fault is not None:
            raise self._fault
        self.clock.check()

    def fail(self, fault: RuntimeFault) -> None:
        """The connection is broken: tell all listeners, once; the first fault counts."""
        with self._lock:
            if self._fault is not None:
                return
            self._fault = fault
            listeners = tuple(self._listeners)
        for listener in listeners:
            listener()

    def on_fault(self, listener: Callable[[], None]) -> None:
        """Have ``listener`` called once when the connection breaks, in the thread that finds out."""
        self._listeners.append(listener)

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
        """Subscribe once somebody publishes ``topic`` with the right definition.

        Args:
            message: generated message class.
            callback: called in rospy's thread of each publisher; a ``RuntimeFault`` in it breaks the connection.
            required: whether to wait for a publisher, and to fail without one.
            acknowledged: whether simulated time should wait until each message has been taken in (``acknowledge.py``).

        Raises:
            StaleData: nobody publishes it within ``connect_timeout_s``. WrongDefinition: naming both md5s.
            MasterGone: the master is gone or hangs.
        """
        if required:
            self.require_publisher(topic)
        if message is not rospy.AnyMsg:
            self.check_definition(topic, message)

        def guarded(received: Any) -> None:
            try:
                callback(received)
            except RuntimeFault as fault:
                self.fail(fault)
            if acknowledged and (acknowledge := self._acknowledge) is not None:
                acknowledge.acknowledge(topic, received)

        subscriber = self.call_with_timeout(
            lambda: rospy.Subscriber(
                topic,
                message,
                guarded,
                queue_size=queue_size,
                buff_size=IMAGE_BUFFER_BYTES if images else 65536,
                tcp_nodelay=True,
            ),
            f"subscribing to {topic}",
        )
        if acknowledged:
            self._acknowledged[subscriber] = topic
        return subscriber

    def require_publisher(self, topic: str) -> None:
        """Wait until somebody publishes ``topic``. Raises ``StaleData`` after ``connect_timeout_s``."""
        self.require_any_publisher((topic,))

    def require_any_publisher(self, topics: Sequence[str]) -> None:
        """Wait until somebody publishes one of ``topics``. Raises ``StaleData`` after ``connect_timeout_s``."""

        def published() -> bool:
            nodes = self._publishers_of(topics)
            return any(not self.master.is_dead(node) for node in nodes)

        if not wait_until(published, self.wait, self.options.connect_timeout_s, 0.1):
            dead = self._publishers_of(topics)
            raise StaleData(
                f"topic {' or '.join(topics)}: nobody publishes it at {self.master.uri}"
                + (f" ({', '.join(dead)} did, and has died)" if dead else ""),
                f"start its node, or name the right topic in the robot's YAML{self._like(topics[0])}",
            )

    def check_definition(self, topic: str, message: Any) -> None:
        """Raise ``WrongDefinition`` if somebody publishes ``topic`` with another definition than ``message``'s."""
        check_publishers(self.master, topic, message, self.options.timeout_s)

    def advertise(self, topic: str, message: Any) -> rospy.Publisher:
        """A publisher that never blocks and sends only the newest. Raises ``MasterGone``."""
        return self.call_with_timeout(
            lambda: rospy.Publisher(topic, message, queue_size=1, tcp_nodelay=True), f"advertising {topic}"
        )

    def require_subscriber(self, publisher: rospy.Publisher) -> None:
        """Wait until somebody has connected to what this node publishes.

        Raises:
            DeviceFault: nobody did within ``connect_timeout_s``.
        """
        topic = publisher.resolved_name
        if wait_until(lambda: self.has_subscriber(publisher), self.wait, self.options.connect_timeout_s, 0.02):
            return
        nodes = [node for node in self.master.graph().subscribers.get(topic, ()) if node != self.node]
        if nodes:
            raise DeviceFault(
                f"topic {topic}: {nodes[0]} subscribes to it, but does not connect to this node",
                f"it expects another definition of {publisher.type} (see its log), or cannot reach this computer: "
                "set ROS_IP here to the address that the robot sees",
            )
        raise DeviceFault(
            f"topic {topic}: nobody listens to it", f"start its node, or name the right topic{self._like(topic)}"
        )

    def has_subscriber(self, publisher: rospy.Publisher) -> bool:
        """Whether another node is connected to what this node publishes: its own ear does not count."""
        return any(peer != self.node for _, peer, *_ in publisher.impl.get_stats_info())

    def unsubscribe(self, *endpoints: rospy.Subscriber | rospy.Publisher | None) -> None:
        """Withdraw subscribers and publishers, within the time limit and whatever the master does."""
        for endpoint in endpoints:
            if endpoint is not None:
                try:
                    self.call_with_timeout(endpoint.unregister, f"leaving {endpoint.resolved_name}")
                except MasterGone as error:
                    logging.getLogger(__name__).warning("%s", error.message)
            topic = self._acknowledged.pop(endpoint, None)
            if topic is not None and self._acknowledge is not None:
                self._acknowledge.end(topic)

    def claim_topic(self, topic: str, *others: str) -> None:
        """From now on only this node and ``others`` may publish ``topic``.

        Raises:
            SecondPublisher: another node does already. Later ones break the connection when the monitor sees them.
        """
        self._exclusive[topic] = frozenset((self.node, *others))
        self._check_exclusive()

    def check_sender(self, topic: str, message: Any) -> None:
        """A message on a claimed topic: break the connection if a stranger sent it."""
        sender = message._connection_header.get("callerid", "?")
        if sender not in self._exclusive.get(topic, (sender,)):
            raise _second(topic, sender)

    def call_with_timeout(self, call: Callable[[], T], what: str) -> T:
        """The result of a call of rospy, which itself would wait for ever. Raises ``MasterGone`` at the limit."""
        future: Future[T] = Future()

        def work() -> None:
            try:
                future.set_result(call())
            except (*_CALL_ERRORS, RuntimeFault) as error:
                future.set_exception(error)

        threading.Thread(target=work, name=f"ros: {what}", daemon=True).start()
        limit_s = self.options.connect_timeout_s
        try:
            return future.result(limit_s)
        except (FutureTimeout, *_CALL_ERRORS) as error:
            reason = str(error) if future.done() else f"no answer within {limit_s:g} s"
            raise MasterGone(
                f"ROS master {self.master.uri}: {what}: {reason}",
                "check that roscore runs on the robot and is not suspended, then connect again",
            ) from error

    # --- opening ----------------------------------------------------------------------------------------------------

    def _open(self) -> None:
        self._fault = None
        self._stop.clear()
        identity = self.master.identity()
        self.call_with_timeout(lambda: _join(self.master.uri), "joining as a node")
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
                self.clock.advance(now_ns)
            else:
                self.clock.start_simulated(now_ns)
                started.set()

        self._acknowledge = self.call_with_timeout(AcknowledgePublisher, f"advertising {TOPIC}")
        self._await_simulator(self._acknowledge.publisher)
        self._clock_subscriber = self.subscribe("/clock", ClockMessage, tick)
        if not started.wait(self.options.connect_timeout_s):
            self.unsubscribe(self._clock_subscriber)
            raise StaleData(
                "topic /clock has delivered nothing, but /use_sim_time is set",
                "start the simulator, or on a real robot `rosparam set /use_sim_time false` and connect again",
            )

    def _await_simulator(self, acknowledge: rospy.Publisher) -> None:
        """A simulator that waits for its readers must know of this one before time can run away from it."""
        nodes = [node for node in self.master.graph().subscribers.get(TOPIC, ()) if node != self.node]
        if not any(not self.master.is_dead(node) for node in nodes):
            return  # one that waits for nobody
        if not wait_until(lambda: self.has_subscriber(acknowledge), self.wait, self.options.connect_timeout_s, 0.02):
            logging.getLogger(__name__).warning(
                "topic %s: %s subscribes to it, but does not connect to this node, and will not wait for it; set "
                "ROS_IP here to the address that the simulator sees",
                TOPIC,
                nodes[0],
            )

    def _publishers_of(self, topics: Sequence[str]) -> list[str]:
        publishers = self.master.graph().publishers
        return [node for topic in topics for node in publishers.get(topic, ())]

    def _like(self, topic: str) -> str:
        """Names of topics that end alike, those that begin alike first, to be added to a remedy."""
        last = topic.rsplit("/", 1)[-1]
        graph = self.master.graph()
        alike = [t for t in {*graph.publishers, *graph.subscribers} if t != topic and t.endswith("/" + last)]
        alike.sort(key=lambda t: (-len(os.path.commonpath([t, topic])), t))
        return f"; there is {', '.join(alike[:3])}" if alike else ""

    def wait(self, seconds: float) -> None:
        """Spend host time, less if the connection ends meanwhile."""
        self._stop.wait(seconds)

    def _watch(self, identity: str) -> None:
        while not self._stop.wait(self.options.monitor_period_s):
            try:
                if self.master.identity() != identity:
                    self.fail(
                        MasterGone(
                            f"ROS master {self.master.uri} was restarted: the nodes of before are unknown to it",
                            "start the robot's nodes anew, then connect again",
                        )
                    )
                self._check_exclusive()
            except RuntimeFault as fault:
                self.fail(fault)
            if self._fault is not None:
                return

    def _check_exclusive(self) -> None:
        if not self._exclusive:
            return
        publishers = self.master.graph().publishers
        for topic, allowed in tuple(self._exclusive.items()):
            for node in publishers.get(topic, ()):
                if node not in allowed and not self.master.is_dead(node):
                    raise _second(topic, node)


def _second(topic: str, node: str) -> SecondPublisher:
    return SecondPublisher(
        f"topic {topic}: {node} publishes velocities beside this runtime",
        "stop that node (teleop, smoother, multiplexer, move_base or another runtime); with the guard node, set "
        "base.guard to true in the robot's YAML; one that is known to be silent can be listed there under "
        "base.silent_publishers",
    )


def _join(master_uri: str) -> None:
    """Make this process a node of the master; rospy allows that once in a process's life.

    The environment variable is the only way to tell rospy the master: it reads it anew in many places.
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
        # Without rospy's own time: it would hold on to /clock, and a master that was restarted would not tell us of it.
        rospy.init_node(NODE_NAME, argv=sys.argv[:1], anonymous=True, disable_signals=True, disable_rostime=True)
    finally:
        root.handlers[:], root.level = handlers, level  # init_node takes over the program's whole logging
    if not rospy.core.is_initialized():
        raise DeviceFault("an earlier attempt to become a ROS node is still waiting for its master", "try again later")
