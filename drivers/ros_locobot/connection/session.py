"""The connection of this process to one ROS master, shared by all devices of the robot.

::

    open ──► master reachable? ──► node ──► /clock? ──► monitor thread: same master? only publisher?
                                                            └── fault: listeners notified, raised by every read

A gap in the link is no fault: the monitor's calls are lost before anything else is, because each needs a connection of
its own. Only when no topic delivers anything either, for ``patience_s``, the link is given up.
"""

import logging
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import rosgraph
import rospy
from rosgraph_msgs.msg import Clock as ClockMessage
from roslib.message import get_service_class

from drivers.ros.connection import session as shared
from drivers.ros.connection.clock import HELD_UP, SIMULATED_SKEW_S, RosClock
from drivers.ros.connection.errors import LinkLost, MasterGone
from drivers.ros.connection.received import Received
from drivers.ros.connection.session import Endpoint
from drivers.ros.connection.waiting import wait_until
from drivers.ros.protocol import ACKNOWLEDGE_TOPIC
from drivers.ros_locobot.connection.acknowledge import AcknowledgePublisher
from drivers.ros_locobot.connection.master import ALIVE_S, ATTEMPTS, Master, check_publishers, similar_topics
from drivers.ros_locobot.connection.node import call_within, join_network
from drivers.ros_locobot.messages import RospyMessages
from drivers.ros_locobot.options import MasterOptions
from drivers.ros_locobot.reading import Reader, message_class, received
from robot_runtime.common.clock import ns_to_seconds
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import DeviceFault, RuntimeFault, StaleData

T = TypeVar("T")

IMAGE_BUFFER_BYTES = 2**24
"""Receive buffer of image topics. rospy's 64 KiB would leave half a second of old images in the socket."""

POLL_S = 0.02

LEAST_UNANSWERED = 3
"""Calls of the monitor in a row without an answer before anything follows from them."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Endpoint:
    """A subscription or a publisher of rospy."""

    session: "Session"
    rospy: Any

    @property
    def topic(self) -> str:
        return str(self.rospy.resolved_name)

    def has_publisher(self) -> bool:
        return bool(self.rospy.get_num_connections())

    def has_subscriber(self) -> bool:
        return any(peer != self.session.node for _, peer, *_ in self.rospy.impl.get_stats_info())

    def publish(self, message: Any) -> None:
        try:
            self.rospy.publish(message)
        except rospy.ROSException as error:  # the node was shut down
            raise DeviceFault(f"topic {self.topic}: cannot be published any more: {error}", "connect again") from error

    def remove(self) -> None:
        self.session.remove(self.rospy)


class Session(shared.Session):
    """The connection to a master.

    Args:
        options: Address of the master, and time limits.
        clock: Follows ``/clock`` if the master's ``/use_sim_time`` is set.
    """

    def __init__(self, options: MasterOptions, clock: RosClock) -> None:
        super().__init__(clock, RospyMessages(), options.connect_timeout_s)
        self.options = options
        self._monitor: threading.Thread | None = None
        self._clock_subscriber: rospy.Subscriber | None = None
        self._acknowledge: AcknowledgePublisher | None = None
        self._acknowledged: dict[rospy.Subscriber, str] = {}
        self._master: Master | None = None
        self._answered_ns = 0
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
        return str(rospy.get_name())

    def _close(self) -> Callable[[], object]:
        monitor, self._monitor = self._monitor, None
        self.remove(self._clock_subscriber)
        self._clock_subscriber = None
        if self._acknowledge is not None:
            self.remove(self._acknowledge.publisher)
            self._acknowledge = None
        if monitor is None or monitor is threading.current_thread():
            return lambda: None
        return partial(monitor.join, self.options.timeout_s)

    # --- topics -----------------------------------------------------------------------------------------------------

    def subscribe(
        self,
        topic: str,
        kinds: str | tuple[str, ...],
        callback: Callable[[Received], object],
        queue_size: int = 1,
        images: bool = False,
        required: bool = True,
        acknowledged: bool = False,
    ) -> _Endpoint:
        nodes = self.require_publisher(topic)[topic] if required else None
        reader = Reader((kinds,) if isinstance(kinds, str) else kinds)
        check_publishers(self.master, topic, reader.definition, self.options.timeout_s, nodes)

        def on_message(message: Any) -> None:
            if (read := reader.read(message)) is not None:
                self._receive(callback, read)
            if acknowledged and (acknowledge := self._acknowledge) is not None:
                acknowledge.acknowledge(topic, message)

        subscriber = self._subscribe(topic, reader.message, on_message, queue_size, images)
        if acknowledged:
            self._acknowledged[subscriber] = topic
        return _Endpoint(self, subscriber)

    def _subscribe(
        self, topic: str, message: Any, callback: Callable[[Any], object], queue_size: int = 1, images: bool = False
    ) -> rospy.Subscriber:
        options = {"queue_size": queue_size, "tcp_nodelay": True, "buff_size": IMAGE_BUFFER_BYTES if images else 65536}
        return self.call_with_timeout(
            lambda: rospy.Subscriber(topic, message, callback, **options), f"subscribing to {topic}"
        )

    def publishers(self) -> Mapping[str, tuple[str, ...]]:
        return self.master.graph().publishers

    def require_publisher(self, *topics: str) -> dict[str, tuple[str, ...]]:
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

    def advertise(self, topic: str, kind: str) -> _Endpoint:
        message = message_class((kind,))
        publisher = self.call_with_timeout(
            lambda: rospy.Publisher(topic, message, queue_size=1, tcp_nodelay=True), f"advertising {topic}"
        )
        return _Endpoint(self, publisher)

    def require_subscriber(self, publisher: shared.Publisher) -> None:
        topic = publisher.topic
        if self._wait_for_subscriber(publisher):
            return
        nodes = self._subscribing_nodes(topic)
        if nodes:
            raise DeviceFault(
                f"topic {topic}: {nodes[0]} subscribes to it, but does not connect to this node",
                "it expects another definition (see its log), or cannot reach this computer: "
                "set ROS_IP here to the address that the robot sees",
            )
        raise DeviceFault(
            f"topic {topic} has no subscriber",
            f"start its node, or name the right topic{similar_topics(self.master, topic)}",
        )

    def remove(self, *endpoints: rospy.Subscriber | rospy.Publisher | None) -> None:
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

    def _is_dead(self, node: str) -> bool:
        return self.master.is_dead(node)

    def _watch_senders(self, topic: str) -> tuple[Endpoint, ...]:
        def on_message(message: Any) -> None:
            self._receive(lambda sent: self._check_sender(topic, sent.sender), received(message))

        return (_Endpoint(self, self._subscribe(topic, rospy.AnyMsg, on_message)),)

    def call(self, service: str, kind: str, **request: Any) -> Any:
        if not self.master.has_service(service):
            raise DeviceFault(
                f"service {service} does not exist",
                "start the node that offers it, or name the right service in the robot's YAML",
            )
        try:
            return self.call_with_timeout(
                lambda: rospy.ServiceProxy(service, get_service_class(kind))(**request), f"calling {service}"
            )
        except rospy.ServiceException as error:
            raise DeviceFault(f"service {service}: {error}", "look at the log of the node that offers it") from error

    def place(self, service: str, pose: SE2, tilt_rad: float) -> tuple[bool, str, str]:
        at = self.messages.make("geometry_msgs/Pose2D", x=pose.x_m, y=pose.y_m, theta=pose.yaw_rad)
        answer = self.call(service, "robot_runtime_simulation/Place", pose=at, tilt=tilt_rad)
        return answer.success, answer.message, answer.remedy

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

    def _wait_for_subscriber(self, publisher: shared.Publisher) -> bool:
        """Wait for a connection, for longer if a node has announced that it will connect."""
        connected = publisher.has_subscriber
        if wait_until(connected, self.wait, self.options.connect_timeout_s, POLL_S):
            return True
        announced = bool(self._subscribing_nodes(publisher.topic))
        return announced and wait_until(connected, self.wait, self.options.patience_s, POLL_S)

    def _subscribing_nodes(self, topic: str) -> list[str]:
        return [node for node in self.master.graph().subscribers.get(topic, ()) if node != self.node]

    # --- opening and monitoring -------------------------------------------------------------------------------------

    def _open(self) -> None:
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

        def tick(ticked: Received) -> None:
            now_ns = ticked.message.clock.to_nsec()
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
        if alive and not self._wait_for_subscriber(_Endpoint(self, self._acknowledge.publisher)):
            log.warning(
                "topic %s: %s subscribes to it, but does not connect to this node, and will not wait for it; set "
                "ROS_IP here to the address that the simulator sees",
                ACKNOWLEDGE_TOPIC,
                simulators[0],
            )
        self._clock_subscriber = self.subscribe("/clock", ClockMessage._type, tick).rospy
        if not started.wait(self._connecting_s):
            self.remove(self._clock_subscriber)
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
            self._check_exclusive(master.graph().publishers if self._exclusive else {}, master.is_dead)
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
