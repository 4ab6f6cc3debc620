"""This process as a ROS 2 node. For Python >= 3.8, as all that the guard uses.

rclpy is the system's on a robot and PyPI's on a computer without ROS. A context of its own makes every connection
independent of others of the process.
"""

from __future__ import annotations

import importlib
import os
import tempfile
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import rclpy
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

from drivers.ros.connection.received import UNKNOWN, Received
from robot_runtime.errors import DeviceFault, DriverMissing

NS_PER_S = 1_000_000_000

PROFILES = "FASTDDS_DEFAULT_PROFILES_FILE"
PROFILES_BEFORE_JAZZY = "FASTRTPS_DEFAULT_PROFILES_FILE"

PROFILE = """<?xml version="1.0" encoding="UTF-8" ?>
<profiles xmlns="http://www.eprosima.com">{descriptors}
  <participant profile_name="robot_runtime" is_default_profile="true"><rtps>{transports}
    <propertiesPolicy><properties><property>
      <name>fastdds.type_propagation</name><value>disabled</value>
    </property></properties></propertiesPolicy>
  </rtps></participant>
</profiles>
"""
"""Without the property, a Cyclone DDS on the other side silently loses types with a fixed array, such as Odometry."""

DESCRIPTOR = """
  <transport_descriptors><transport_descriptor>
    <transport_id>robot_runtime_udp</transport_id><type>UDPv4</type>{interface}
  </transport_descriptor></transport_descriptors>"""
UDP = """
    <userTransports><transport_id>robot_runtime_udp</transport_id></userTransports>
    <useBuiltinTransports>false</useBuiltinTransports>"""
LOOPBACK = """
    <maxInitialPeersRange>32</maxInitialPeersRange>
    <interfaceWhiteList><address>127.0.0.1</address></interfaceWhiteList>"""
PEERS = """
    <builtin><initialPeersList>
      <locator><udpv4><address>127.0.0.1</address></udpv4></locator>
    </initialPeersList></builtin>"""
"""What rmw itself does for this computer only has shared memory, whatever the profile says."""

TRANSPORTS = "FASTDDS_BUILTIN_TRANSPORTS"
"""Variable of Fast DDS since 2.13, which holds for a user's profile too."""

UNNAMED = "_NODE_NAME_UNKNOWN_"
"""rmw's name for a node whose endpoint has been discovered before the node."""

DISCOVERY_PORT = "11811"

HAZARD_PERIOD_MS = 16
"""Before H.2.5, the period of a Create 3's hazards."""

SET_PARAMETERS = "rcl_interfaces/SetParameters"


def write_profile(discovery_server: str = "", shares_memory: bool = True) -> None:
    """Write the profile for Fast DDS and name it in the environment, unless the user's environment names one.

    The server is named in the environment, too: in a profile, Fast DDS 2 and 3 write it in different ways.

    Args:
        discovery_server: ``HOST:PORT`` of a discovery server, used as a super client; empty for multicast.
        shares_memory: whether Fast DDS may use shared memory with other processes of this computer. After ``kill -9``
            of one of them, any call of it may wait for 1.3 s, its check of that memory. A user's profile decides it
            before Fast DDS 2.13, and where discovery is restricted to this computer.
    """
    if discovery_server:
        host, _, port = discovery_server.partition(":")
        os.environ["ROS_DISCOVERY_SERVER"] = f"{host}:{port or DISCOVERY_PORT}"
        os.environ["ROS_SUPER_CLIENT"] = "TRUE"
    if not shares_memory:
        os.environ.setdefault(TRANSPORTS, "UDPv4")
    if os.environ.get(PROFILES) or os.environ.get(PROFILES_BEFORE_JAZZY):
        return
    descriptors, transports, name = "", "", "default"
    if not shares_memory:
        is_local = _is_for_this_computer_only()
        descriptors = DESCRIPTOR.format(interface=LOOPBACK if is_local else "")
        transports, name = (UDP + PEERS, "loopback") if is_local else (UDP, "udp")
    path = Path(tempfile.gettempdir()) / f"robot_runtime_fastdds_{name}_{os.getuid()}.xml"
    path.write_text(PROFILE.format(descriptors=descriptors, transports=transports), encoding="utf-8")
    before_jazzy = os.environ.get("ROS_DISTRO") in ("foxy", "galactic", "humble", "iron")
    os.environ[PROFILES_BEFORE_JAZZY if before_jazzy else PROFILES] = str(path)


def _is_for_this_computer_only() -> bool:
    """Whether the environment restricts discovery to this computer, which the profile does then in rmw's place."""
    is_local = (
        os.environ.get("ROS_LOCALHOST_ONLY") == "1"
        or os.environ.get("ROS_AUTOMATIC_DISCOVERY_RANGE", "").upper() == "LOCALHOST"
    )
    if is_local:
        os.environ.pop("ROS_LOCALHOST_ONLY", None)
        os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "SYSTEM_DEFAULT"
    return is_local


def message_class(kinds: Sequence[str], part: str = "msg") -> Any:
    """Return the first class that is installed of types such as ``nav_msgs/Odometry``.

    rclpy's, or where only its wheels are installed, a stand-in for serialized messages (:func:`is_stand_in`).

    Raises:
        DriverMissing: Neither has it.
    """
    for kind in kinds:
        package, _, name = kind.partition("/")
        try:
            return getattr(importlib.import_module(f"{package}.{part}"), name)
        except (ImportError, AttributeError):
            continue
    if part == "msg":
        with suppress(ImportError):
            known = importlib.import_module("drivers.ros.bag.definitions").definitions(2)
            for kind in filter(known.__contains__, kinds):
                return importlib.import_module("drivers.ros2.forged").stand_in(kind)
    raise DriverMissing(
        f"Python does not find the ROS 2 type {' or '.join(kinds)}",
        "install its package (`apt install ros-$ROS_DISTRO-...`) and source ROS's setup.bash in this shell",
    )


def is_stand_in(message: Any) -> bool:
    """Whether a message class is one of ``drivers.ros2.forged``."""
    return hasattr(message, "kind")


def stamp_ns(message: Any) -> int | None:
    """Return the stamp of a message's header; None without one."""
    header = getattr(message, "header", None)
    return None if header is None else int(header.stamp.sec) * NS_PER_S + int(header.stamp.nanosec)


def repeated_hazards() -> list[Any]:
    """Return the parameters with which a Create 3's ``robot_state`` publishes its hazards periodically.

    Since H.2.5 it publishes them on change only. It is not documented whether firmware takes them while it runs.
    """
    made, value = (message_class((f"rcl_interfaces/{kind}",)) for kind in ("Parameter", "ParameterValue"))
    return [made(name="hazards_pub_fixed_period_ms", value=value(type=2, integer_value=HAZARD_PERIOD_MS))]


def quality(depth: int, is_reliable: bool = True, is_latched: bool = False) -> QoSProfile:
    """Return a quality of service."""
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST,
        depth=depth,
        reliability=ReliabilityPolicy.RELIABLE if is_reliable else ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.TRANSIENT_LOCAL if is_latched else DurabilityPolicy.VOLATILE,
    )


class Node:
    """A node with a thread per lane: messages of one lane never wait for those of another.

    Args:
        name: name of the node.
        domain_id: domain of the network; None for the environment's.
        lanes: names of the lanes.
    """

    def __init__(self, name: str, domain_id: int | None = None, lanes: Sequence[str] = ("base",)) -> None:
        self._context = rclpy.Context()
        try:
            rclpy.init(context=self._context, domain_id=domain_id)
            names = [name, *(f"{name}_{lane}" for lane in lanes[1:])]
            self._nodes = [
                rclpy.create_node(
                    made, context=self._context, use_global_arguments=False, start_parameter_services=False
                )
                for made in names
            ]
        except Exception as error:  # rclpy's own errors have no common base
            raise DeviceFault(
                f"this process cannot become a ROS 2 node: {error}", "check ROS_DOMAIN_ID and RMW_IMPLEMENTATION"
            ) from error
        self.name = self._nodes[0].get_fully_qualified_name()
        self._own = {node.get_fully_qualified_name() for node in self._nodes}
        self._lanes = dict(zip(lanes, self._nodes))  # noqa: B905 - Python 3.8
        self._senders: dict[bytes, str] = {}
        self._clients: dict[str, Any] = {}
        self._executors = [SingleThreadedExecutor(context=self._context) for _ in self._nodes]
        self._threads = []
        for executor, node in zip(self._executors, self._nodes):  # noqa: B905 - Python 3.8
            executor.add_node(node)
            thread = threading.Thread(
                target=self._spin, args=(executor,), name=f"ros 2: {node.get_name()}", daemon=True
            )
            self._threads.append(thread)
            thread.start()

    def _spin(self, executor: SingleThreadedExecutor) -> None:
        while self._context.ok():
            try:
                executor.spin()
            except (ExternalShutdownException, RuntimeError) as error:  # noqa: PERF203 - a lane must go on
                # rclpy also raises if the context ends, or an endpoint is removed, just before it waits.
                if self._context.ok() and type(error).__name__ != "InvalidHandle":
                    raise

    def is_shutdown(self) -> bool:
        """Whether the node has left the network."""
        return not self._context.ok()

    def close(self) -> None:
        """Leave the network. Never raises."""
        self._context.try_shutdown()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(1.0)

    # --- topics -----------------------------------------------------------------------------------------------------

    def subscribe(
        self,
        topic: str,
        kinds: Sequence[str],
        receive: Callable[[Received], object],
        depth: int = 1,
        lane: str = "base",
        is_latched: bool = False,
    ) -> Any:
        """Subscribe with the best quality that every present publisher offers: the newest message from before, too.

        Args:
            topic: full name.
            kinds: types of one definition.
            receive: called in the lane's thread.
            depth: number of messages that wait.
            lane: one of the node's lanes.
            is_latched: whether a publisher is expected to keep its newest message, where none is present.
        """
        node, offers = self._lanes[lane], [info.qos_profile for info in self.publishers_info(topic)]
        is_reliable = all(offer.reliability is not ReliabilityPolicy.BEST_EFFORT for offer in offers)
        if offers:
            is_latched = all(offer.durability is DurabilityPolicy.TRANSIENT_LOCAL for offer in offers)
        message = message_class(kinds)
        is_raw = is_stand_in(message)
        decode = importlib.import_module("drivers.ros2.forged").decode if is_raw else None

        def on_message(sent: Any, info: Any) -> None:
            read = sent if decode is None else decode(message.kind, sent)
            receive(Received(read, stamp_ns(read), self._sender(topic, info)))

        profile = quality(depth, is_reliable, is_latched)
        return node.create_subscription(message, topic, on_message, profile, raw=is_raw)

    def advertise(self, topic: str, kind: str, depth: int = 1, is_latched: bool = False) -> Any:
        """Create a publisher, reliable, which fits readers of either kind."""
        message = message_class((kind,))
        made = self._nodes[0].create_publisher(message, topic, quality(depth, True, is_latched))
        return importlib.import_module("drivers.ros2.forged").Publisher(made) if is_stand_in(message) else made

    def remove(self, endpoint: Any) -> None:
        """Remove a subscription or a publisher."""
        endpoint = getattr(endpoint, "rclpy", endpoint)
        for node in self._nodes:
            for destroy in (node.destroy_subscription, node.destroy_publisher):
                if destroy(endpoint):
                    return

    def client(self, kind: str, service: str) -> Any:
        """Return the client of a service such as ``std_srvs/SetBool``; it stays until the node is closed.

        Through a discovery server, one client in ten to forty that followed another just removed got no answer.
        """
        if service not in self._clients:
            self._clients[service] = self._nodes[0].create_client(message_class((kind,), "srv"), service)
        return self._clients[service]

    def serve(self, kind: str, service: str, answer: Callable[[Any, Any], Any], lane: str = "base") -> Any:
        """Offer a service."""
        return self._lanes[lane].create_service(message_class((kind,), "srv"), service, answer)

    # --- discovery --------------------------------------------------------------------------------------------------

    def publishers_info(self, topic: str) -> list[Any]:
        """Return the endpoints that publish a topic, other nodes' only."""
        return [info for info in self._nodes[0].get_publishers_info_by_topic(topic) if _node_of(info) not in self._own]

    def publishers(self, topic: str) -> tuple[str, ...]:
        """Return the names of other nodes that publish a topic, one for each endpoint."""
        return tuple(_node_of(info) for info in self.publishers_info(topic))

    def subscribers_info(self, topic: str) -> list[Any]:
        """Return the endpoints that subscribe to a topic, other nodes' only."""
        return [
            info for info in self._nodes[0].get_subscriptions_info_by_topic(topic) if _node_of(info) not in self._own
        ]

    def topics(self) -> dict[str, tuple[str, ...]]:
        """Return the types of all topics of the network."""
        return {
            name: tuple(kind.replace("/msg/", "/") for kind in kinds)
            for name, kinds in self._nodes[0].get_topic_names_and_types()
        }

    def nodes(self) -> tuple[str, ...]:
        """Return the full names of all nodes of the network."""
        found = self._nodes[0].get_node_names_and_namespaces()
        return tuple(f"{namespace.rstrip('/')}/{name}" for name, namespace in found)

    def _sender(self, topic: str, info: Any) -> str:
        """Return the node that has sent a message; rclpy tells it since Kilted, else there may be only one."""
        gid = info.get("publisher_gid") if isinstance(info, dict) else None
        if gid is None:
            names = set(self.publishers(topic))
            return names.pop() if len(names) == 1 else UNKNOWN
        key = bytes(gid["data"])[:16]
        if key not in self._senders:
            for found in self._nodes[0].get_publishers_info_by_topic(topic):
                gid_found, name = bytes(found.endpoint_gid)[:16], _node_of(found)
                # It stays nameless, but itself: under a new name it would be refused as a second sender.
                self._senders.setdefault(gid_found, f"/{gid_found.hex()}{name}" if found.node_name == UNNAMED else name)
        return self._senders.get(key, UNKNOWN)


def _node_of(info: Any) -> str:
    return f"{info.node_namespace.rstrip('/')}/{info.node_name}"
