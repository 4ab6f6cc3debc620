"""The connection of this process to a ROS 2 network, shared by all devices of the robot.

A monitor thread looks for second publishers and for a link on which nothing is heard: discovery is each participant's
own, so nothing needs to be asked for on the network.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from drivers.ros.connection import session as shared
from drivers.ros.connection.clock import HELD_UP, SIMULATED_SKEW_S, RosClock
from drivers.ros.connection.errors import LinkLost, WrongDefinition
from drivers.ros.connection.received import Received
from drivers.ros.connection.session import Endpoint
from drivers.ros.connection.waiting import wait_until
from drivers.ros.protocol import ACKNOWLEDGE_TOPIC
from drivers.ros2.messages import SET_ATOMICALLY, RclpyMessages, parameters
from drivers.ros2.node import UNNAMED, Node, write_profile
from drivers.ros2.options import NetworkOptions
from robot_runtime.common.clock import ns_to_seconds
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import DeviceFault, RuntimeFault, StaleData

POLL_S = 0.02

UNNAMED_S = 0.5
"""Longest wait for the real name of a node."""

SERVICE_S = 5.0
"""Limit of a service's answer; the simulated robot's may wait for an image."""


@dataclass(frozen=True)
class _Endpoint:
    """A subscription or a publisher of rclpy."""

    session: "Session"
    rclpy: Any
    acknowledged: bool = False

    @property
    def topic(self) -> str:
        return str(self.rclpy.topic_name)

    def has_publisher(self) -> bool:
        return bool(self.session.ros.publishers_info(self.topic))

    def has_subscriber(self) -> bool:
        return bool(self.rclpy.get_subscription_count())

    def publish(self, message: Any) -> None:
        try:
            self.rclpy.publish(message)
        except Exception as error:  # rclpy's own errors have no common base
            raise DeviceFault(f"topic {self.topic}: cannot be published any more: {error}", "connect again") from error

    def remove(self) -> None:
        topic = self.topic
        self.session.ros.remove(self.rclpy)
        if self.acknowledged:
            self.session.acknowledge(topic, 0)


class Session(shared.Session):
    """The connection to a network.

    Args:
        options: network and time limits.
        clock: follows ``/clock`` if the options say so.
    """

    def __init__(self, options: NetworkOptions, clock: RosClock) -> None:
        super().__init__(clock, RclpyMessages(), options.connect_timeout_s)
        self.options = options
        self._node: Node | None = None
        self._monitor: threading.Thread | None = None
        self._acknowledge: Any = None
        self._unnamed_ns: int | None = None

    @property
    def ros(self) -> Node:
        """The node, while the session is open."""
        if self._node is None:
            raise DeviceFault("the ROS 2 session is not open", "connect first")
        return self._node

    @property
    def node(self) -> str:
        return str(self.ros.name)

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
        kinds = (kinds,) if isinstance(kinds, str) else kinds
        if required:
            self.require_publisher(topic)
        self.check_type(topic, kinds)
        acknowledged = acknowledged and self._acknowledge is not None

        def on_message(received: Received) -> None:
            self._receive(callback, received)
            if acknowledged and received.stamp_ns is not None:
                self.acknowledge(topic, received.stamp_ns)

        lane, latched = "images" if images else "base", topic.endswith(("tf_static", "/status"))
        made = self.ros.subscribe(topic, kinds, on_message, max(queue_size, 5), lane, latched)
        return _Endpoint(self, made, acknowledged)

    def check_type(self, topic: str, kinds: tuple[str, ...]) -> None:
        """Raise ``WrongDefinition`` if another node uses the topic with another type: ROS 2 would stay silent."""
        for info in (*self.ros.publishers_info(topic), *self.ros.subscribers_info(topic)):
            found = info.topic_type.replace("/msg/", "/")
            if found not in kinds:
                raise WrongDefinition(
                    f"topic {topic}: {info.node_name} uses the type {found}, expected is {' or '.join(kinds)}",
                    "set options.family (and base topics) in the robot's YAML to those of the robot's ROS "
                    "distribution: since Jazzy, TurtleBot 4's /cmd_vel is a TwistStamped, before a Twist; a family "
                    "with either type has base.stamped",
                )

    def acknowledge(self, topic: str, stamp_ns: int) -> None:
        """Report that a message has been processed, or with stamp 0 that no further one will be."""
        if self._acknowledge is not None:
            self._acknowledge.publish(self.messages.header(stamp_ns, topic))

    def advertise(self, topic: str, kind: str) -> _Endpoint:
        self.check_type(topic, (kind,))
        return _Endpoint(self, self.ros.advertise(topic, kind))

    def publishers(self) -> Mapping[str, tuple[str, ...]]:
        return {topic: self.ros.publishers(topic) for topic in self.ros.topics()}

    def require_publisher(self, *topics: str) -> dict[str, tuple[str, ...]]:
        nodes: dict[str, tuple[str, ...]] = {}

        def published() -> bool:
            nodes.update((topic, self.ros.publishers(topic)) for topic in topics)
            return any(nodes.values())

        if not wait_until(published, self.wait, self.connect_timeout_s, POLL_S):
            raise StaleData(
                f"topic {' or '.join(topics)} has no publisher",
                "start its node, or name the right topic or namespace in the robot's YAML; compare ROS_DOMAIN_ID and "
                f"the discovery server of both computers{self._similar(topics[0])}",
            )
        return nodes

    def require_subscriber(self, publisher: shared.Publisher) -> None:
        topic = publisher.topic
        if wait_until(publisher.has_subscriber, self.wait, self.connect_timeout_s, POLL_S):
            return
        if readers := self.ros.subscribers_info(topic):
            raise DeviceFault(
                f"topic {topic}: {readers[0].node_name} subscribes with another quality of service "
                f"({readers[0].qos_profile.durability.name.lower()}), which this publisher does not offer",
                "set that subscription's durability to volatile",
            )
        raise DeviceFault(
            f"topic {topic} has no subscriber", f"start its node, or name the right topic{self._similar(topic)}"
        )

    def call(self, service: str, kind: str, **request: Any) -> Any:
        client = self.ros.client(kind, service)
        if not wait_until(client.service_is_ready, self.wait, self.connect_timeout_s, POLL_S):
            raise DeviceFault(
                f"service {service} does not exist",
                "start the node that offers it, or name the right service in the robot's YAML",
            )
        answered, future = threading.Event(), client.call_async(client.srv_type.Request(**request))
        future.add_done_callback(lambda _: answered.set())
        if not answered.wait(SERVICE_S):
            raise DeviceFault(
                f"service {service}: no answer within {SERVICE_S:g} s", "look at the log of the node that offers it"
            )
        return future.result()

    def place(self, service: str, pose: SE2, tilt_rad: float) -> tuple[bool, str, str]:
        values = {"x": pose.x_m, "y": pose.y_m, "yaw": pose.yaw_rad, "tilt": tilt_rad}
        answer = self.call(service, SET_ATOMICALLY, parameters=parameters(self.messages, values))
        message, _, remedy = answer.result.reason.partition("\n")
        return answer.result.successful, message, remedy

    # --- opening and monitoring -------------------------------------------------------------------------------------

    def _open(self) -> None:
        write_profile(self.options.discovery_server)
        self._node = Node("robot_runtime", self.options.domain_id, ("base", "images"))
        self._heard_ns = self._host.now_ns()
        self.clock.restart()
        try:
            if self.options.use_sim_time:
                self._follow_clock()
        except RuntimeFault:
            self._close()()
            raise
        self._monitor = threading.Thread(target=self._watch, name="ros 2: monitor", daemon=True)
        self._monitor.start()

    def _close(self) -> Callable[[], object]:
        node, self._node, self._acknowledge = self._node, None, None
        monitor, self._monitor = self._monitor, None

        def end() -> None:
            if monitor is not None and monitor is not threading.current_thread():
                monitor.join(1.0)
            if node is not None:
                node.close()

        return end

    def _follow_clock(self) -> None:
        started = threading.Event()

        def tick(received: Received) -> None:
            clock = received.message.clock
            now_ns = clock.sec * 1_000_000_000 + clock.nanosec
            if not started.is_set():
                self.clock.start_simulated(now_ns)
                started.set()
            elif (passed_s := self.clock.advance(now_ns)) > SIMULATED_SKEW_S:
                raise DeviceFault(
                    f"topic /clock: it went on by {passed_s:.3f} s while this process received nothing, "
                    f"{SIMULATED_SKEW_S:g} s is allowed",
                    HELD_UP,
                )

        self._acknowledge = self.ros.advertise(ACKNOWLEDGE_TOPIC, "std_msgs/Header", depth=10)
        self.subscribe("/clock", "rosgraph_msgs/Clock", tick)
        if not started.wait(self.connect_timeout_s):
            raise StaleData(
                "topic /clock has delivered nothing, but network.use_sim_time is set",
                "start the simulator, or set use_sim_time to false in the robot's YAML",
            )

    def _watch(self) -> None:
        while self._fault is None and not self._stop.wait(self.options.monitor_period_s):
            node = self._node
            if node is None:
                return
            try:
                found = {topic: node.publishers(topic) for topic in tuple(self._exclusive)}
                if not any(name.endswith(UNNAMED) for names in found.values() for name in names):
                    self._unnamed_ns = None
                self._check_exclusive(found, self._is_dead)
                silent_s = ns_to_seconds(self._host.now_ns() - self._heard_ns)
                if silent_s > self.options.patience_s:
                    raise LinkLost(
                        f"link to the robot: for {silent_s:.1f} s no message of any topic has come",
                        "check the network between the computers, whether the robot's is on, and its discovery server",
                    )
            except RuntimeFault as fault:
                self.fail(fault)

    def _is_dead(self, node: str) -> bool:
        now_ns = self._host.now_ns()
        if not node.endswith(UNNAMED):
            return False
        self._unnamed_ns = self._unnamed_ns or now_ns
        return ns_to_seconds(now_ns - self._unnamed_ns) < UNNAMED_S

    def _watch_senders(self, topic: str) -> tuple[Endpoint, ...]:
        return ()  # the monitor sees every publisher, silent ones too

    def _similar(self, topic: str) -> str:
        last = topic.rsplit("/", 1)[-1]
        found = sorted(name for name in self.ros.topics() if name != topic and name.endswith(f"/{last}"))
        return f"; there is {', '.join(found[:3])}" if found else ""
