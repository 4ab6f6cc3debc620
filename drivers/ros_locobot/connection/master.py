"""Calls of the APIs of a ROS master and its nodes, each with a time limit.

rospy's own calls have none and wait forever for a master that is gone or hangs. Each call here opens its own
connection.
"""

from __future__ import annotations

import http.client
import io
import os
import socket
import threading
import xmlrpc.client
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar
from urllib.parse import urlparse

from rosgraph.network import ROSHandshakeException, read_ros_handshake_header, write_ros_handshake_header

from drivers.ros.connection.errors import MasterGone, WrongDefinition
from drivers.ros.connection.waiting import wait_until
from robot_runtime.common.clock import Stopwatch
from robot_runtime.errors import DeviceFault

T = TypeVar("T")

CALLER_ID = "/robot_runtime"
UNREACHABLE = (OSError, http.client.HTTPException, xmlrpc.client.Error)
"""The exceptions of :func:`call_api` when there is no answer."""

ATTEMPTS = 4
"""Calls of which one must be answered while connecting: on a wireless link, some packets are lost, and some seconds."""

ALIVE_S = 5.0
"""Time for which a node that has answered counts as alive while connecting: a robot's topics come from a few nodes."""

LEAVING_S = 0.5
"""Time that a node may take from its refusal of subscribers until its master knows that it has left."""


class _Transport(xmlrpc.client.Transport):
    def __init__(self, timeout_s: float) -> None:
        super().__init__()
        self._timeout_s = timeout_s

    def make_connection(self, host: Any) -> http.client.HTTPConnection:
        connection = super().make_connection(host)
        connection.timeout = self._timeout_s
        return connection


def call_api(
    uri: str, method: str, *arguments: Any, timeout_s: float, caller_id: str = CALLER_ID
) -> tuple[int, str, Any]:
    """Call a ROS API and return (code, text, value). Raises one of ``UNREACHABLE``."""
    with xmlrpc.client.ServerProxy(uri, transport=_Transport(timeout_s)) as proxy:
        code, text, value = getattr(proxy, method)(caller_id, *arguments)
    return int(code), str(text), value


def call_patiently(call: Callable[[], T], attempts: int) -> T:
    """Return the result of a call that is repeated while nobody answers. Raises its last error, a refusal at once."""
    while True:
        attempts -= 1
        try:
            return call()
        except (ConnectionRefusedError, xmlrpc.client.Fault):
            raise
        except UNREACHABLE:
            if attempts <= 0:
                raise


@dataclass(frozen=True)
class Graph:
    """The publishing and subscribing nodes of each topic."""

    publishers: dict[str, tuple[str, ...]]
    subscribers: dict[str, tuple[str, ...]]


class Master:
    """A master at a URI.

    Every method raises ``MasterGone``, naming the URI, when the master does not answer in time.

    Args:
        uri: E.g. ``http://locobot:11311``.
        timeout_s: Time limit of every call.
        attempts: Number of calls of which one must be answered.
    """

    def __init__(self, uri: str, timeout_s: float, attempts: int = 1) -> None:
        self.uri = uri
        self._timeout_s, self._attempts = timeout_s, attempts
        self._alive: dict[str, tuple[str, Stopwatch]] = {}

    def identity(self) -> str:
        """Return a text that differs between two masters that run at one URI one after the other."""
        return f"{self._call('getPid')} {self.parameter('/run_id', default='')}"

    def parameter(self, name: str, default: Any) -> Any:
        """Return a parameter's value, ``default`` if it is not set."""
        try:
            code, _, value = self._raw("getParam", name)
        except xmlrpc.client.Fault:
            return default
        return value if code == 1 else default

    def graph(self) -> Graph:
        """Return the present registrations."""
        publishers, subscribers, _ = self._call("getSystemState")
        return Graph(*({topic: tuple(nodes) for topic, nodes in side} for side in (publishers, subscribers)))

    def node_uri(self, node: str) -> str | None:
        """Return a node's own XML-RPC URI; None if the master does not know the node."""
        code, _, uri = self._raw("lookupNode", node)
        return uri if code == 1 else None

    def living_uri(self, node: str, within_s: float = 0.0) -> str | None:
        """Return a registered node's own URI; None if it has crashed without unregistering.

        Args:
            node: Name of the node.
            within_s: How old its last answer may be.
        """
        known = self._alive.pop(node, None)
        if known is not None and known[1].elapsed_s() < within_s:
            self._alive[node] = known
            return known[0]
        uri = self.node_uri(node)
        if uri is None:
            return None
        answered = Stopwatch()
        try:
            call_api(uri, "getPid", timeout_s=self._timeout_s)
        except ConnectionRefusedError:
            return None
        except UNREACHABLE:
            return uri  # unreachable from here, but perhaps not from the robot
        self._alive[node] = uri, answered
        return uri

    def is_dead(self, node: str) -> bool:
        """Whether a registered node has crashed without unregistering."""
        return self.living_uri(node) is None

    def has_service(self, name: str) -> bool:
        """Whether a node offers the service."""
        return self._raw("lookupService", name)[0] == 1

    def _raw(self, method: str, *arguments: Any) -> tuple[int, str, Any]:
        try:
            return call_patiently(
                partial(call_api, self.uri, method, *arguments, timeout_s=self._timeout_s), self._attempts
            )
        except xmlrpc.client.Fault:
            raise
        except UNREACHABLE as error:
            raise MasterGone(
                f"ROS master {self.uri} does not answer within {self._timeout_s:g} s: {error or type(error).__name__}",
                "start roscore on the robot, and check ROS_MASTER_URI (or the option master.uri) and the network",
            ) from error

    def _call(self, method: str, *arguments: Any) -> Any:
        code, text, value = self._raw(method, *arguments)
        if code != 1:
            raise MasterGone(f"ROS master {self.uri} refuses {method}: {text}", "look at the log of its roscore")
        return value


def publisher_definition(node_uri: str, topic: str, timeout_s: float) -> tuple[str, str]:
    """Return the (type, md5) of a node's topic, from the header of its TCPROS handshake.

    Raises:
        DeviceFault: The node cannot be reached in time; usually it advertises a host name that is unknown here.
    """

    def handshake() -> dict[str, str]:
        code, text, protocol = call_api(node_uri, "requestTopic", topic, [["TCPROS"]], timeout_s=timeout_s)
        if code != 1:
            raise ConnectionRefusedError(text)
        _, host, port = protocol
        with socket.create_connection((host, port), timeout=timeout_s) as connection:
            greeting = {"callerid": CALLER_ID, "topic": topic, "md5sum": "*", "type": "*", "tcp_nodelay": "1"}
            write_ros_handshake_header(connection, greeting)
            return dict(read_ros_handshake_header(connection, io.BytesIO(), 65536))

    try:
        header = call_patiently(handshake, ATTEMPTS)
    except (*UNREACHABLE, ROSHandshakeException, ValueError) as error:
        host_name = urlparse(node_uri).hostname
        raise DeviceFault(
            f"topic {topic}: its publisher at {node_uri} cannot be reached: {error or type(error).__name__}",
            f"make {host_name!r} resolve here and the port reachable: set ROS_IP on the robot, or add it to "
            "/etc/hosts; if the node has crashed, start it again or run `rosnode cleanup`",
        ) from error
    if "error" in header:
        raise DeviceFault(
            f"topic {topic}: {node_uri} refuses subscribers: {header['error']}", "look at that node's log"
        )
    return header.get("type", "*"), header.get("md5sum", "*")


def check_publishers(
    master: Master, topic: str, message: Any, timeout_s: float, nodes: Sequence[str] | None = None
) -> None:
    """Check that every living publisher of a topic uses the definition of a generated message class.

    ROS sends nothing to a subscriber with another definition, and only the publisher's log reports it.

    Args:
        master: The master.
        topic: Full name.
        message: Generated message class.
        timeout_s: Time limit of every call.
        nodes: The topic's publishers where they are known; None for those that the master knows now.

    Raises:
        WrongDefinition: Names the topic, the node and both md5 sums.
        DeviceFault: A publisher cannot be reached.
    """
    for node in master.graph().publishers.get(topic, ()) if nodes is None else nodes:
        uri = master.living_uri(node, ALIVE_S)
        if uri is None:
            continue
        try:
            type_name, md5 = publisher_definition(uri, topic, timeout_s)
        except DeviceFault:
            # A node that leaves refuses subscribers before its master knows of it.
            if wait_until(partial(_has_left, master, node, topic), threading.Event().wait, LEAVING_S, LEAVING_S / 10):
                continue
            raise
        if type_name not in ("*", message._type) or md5 not in ("*", message._md5sum):
            raise WrongDefinition(
                f"topic {topic}: {node} publishes {type_name} with md5 {md5}, "
                f"expected is {message._type} with md5 {message._md5sum}",
                "remap the topic in the robot's YAML, or build ros_ws and the robot with the same message definitions",
            )


def similar_topics(master: Master, topic: str) -> str:
    """For a remedy: topics with the same last name, those with the longest common path first."""
    last = topic.rsplit("/", 1)[-1]
    graph = master.graph()
    similar = [t for t in {*graph.publishers, *graph.subscribers} if t != topic and t.endswith("/" + last)]
    similar.sort(key=lambda t: (-len(os.path.commonpath([t, topic])), t))
    return f"; there is {', '.join(similar[:3])}" if similar else ""


def _has_left(master: Master, node: str, topic: str) -> bool:
    return node not in master.graph().publishers.get(topic, ()) or master.is_dead(node)
