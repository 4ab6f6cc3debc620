"""This process as a node: what happens to a lane's thread when endpoints and contexts end under it."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
from typing import Any

import pytest
from rclpy._rclpy_pybind11 import InvalidHandle, RCLError
from rclpy.executors import SingleThreadedExecutor
from ros2_programs import ROOT
from std_msgs.msg import Header

from drivers.ros.connection.clock import RosClock
from drivers.ros.connection.errors import SecondPublisher
from drivers.ros.connection.received import UNKNOWN, Received
from drivers.ros.connection.waiting import wait_until
from drivers.ros2.node import PROFILES, TRANSPORTS, UNNAMED, Node
from drivers.ros2.options import NetworkOptions
from drivers.ros2.session import UNNAMED_S, Session


@pytest.fixture
def failing_once(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make the next wait of every executor fail, after something that happened meanwhile."""

    def arrange(error: Exception, meanwhile: Any) -> threading.Event:
        wait, failed = SingleThreadedExecutor.spin_once, threading.Event()

        def spin_once(executor: SingleThreadedExecutor, timeout_sec: float | None = None) -> None:
            if threading.current_thread().name.startswith("ros 2") and not failed.is_set():
                meanwhile()
                failed.set()
                raise error
            wait(executor, timeout_sec)

        monkeypatch.setattr(SingleThreadedExecutor, "spin_once", spin_once)
        return failed

    return arrange


def test_a_lane_outlives_an_endpoint_that_is_removed_before_it_waits(
    ros2_domain: int, client: Any, failing_once: Any
) -> None:
    failed = failing_once(InvalidHandle("destruction was requested"), lambda: None)
    node, received = Node("test", ros2_domain), list[Any]()
    try:
        node.subscribe("/header", ("std_msgs/Header",), received.append)
        publisher = client.node.create_publisher(Header, "/header", 1)
        client.wait(lambda: publisher.publish(Header()) or received)
        assert failed.is_set()
    finally:
        node.close()


def test_a_context_that_ends_before_a_wait_ends_the_lane_in_silence(ros2_domain: int, failing_once: Any) -> None:
    nodes: list[Node] = []
    made = threading.Event()

    def close() -> None:
        assert made.wait(10.0)
        nodes[0]._context.try_shutdown()

    failed = failing_once(RCLError("the given context is not valid"), close)
    nodes.append(Node("test", ros2_domain))
    made.set()
    assert failed.wait(10.0)
    nodes[0].close()
    assert nodes[0].is_shutdown()


def test_senders_without_a_name_are_told_apart_and_stay_the_same(
    ros2_domain: int, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Unnamed:
        node_namespace, node_name = "_NODE_NAMESPACE_UNKNOWN_", UNNAMED

        def __init__(self, info: Any) -> None:
            self.endpoint_gid = info.endpoint_gid

    node, received = Node("test", ros2_domain), list[Received]()
    found = node._nodes[0].get_publishers_info_by_topic
    monkeypatch.setattr(node._nodes[0], "get_publishers_info_by_topic", lambda topic: list(map(Unnamed, found(topic))))
    try:
        node.subscribe("/header", ("std_msgs/Header",), received.append)
        publishers = itertools.cycle([client.node.create_publisher(Header, "/header", 1) for _ in range(2)])
        client.wait(lambda: next(publishers).publish(Header()) or len(received) > 20)
        first = {each.sender for each in received[10:]} - {UNKNOWN}
        assert len(first) == 2
        monkeypatch.undo()
        received.clear()
        client.wait(lambda: next(publishers).publish(Header()) or len(received) > 20)
        assert {each.sender for each in received} == first
    finally:
        node.close()


RANGE = "ROS_AUTOMATIC_DISCOVERY_RANGE"
THREADS = """
from pathlib import Path
from drivers.ros2.node import Node, write_profile
write_profile(shares_memory=False)
node = Node("test")
print([thread.read_text().strip() for thread in Path("/proc/self/task").glob("*/comm")])
node.close()
"""


@pytest.mark.parametrize(
    "environment",
    [{RANGE: "LOCALHOST"}, {"ROS_LOCALHOST_ONLY": "1"}, {RANGE: "SUBNET"}, {RANGE: "SUBNET", PROFILES: "the user's"}],
)
def test_a_node_keeps_out_of_shared_memory(ros2_domain: int, environment: dict[str, str]) -> None:
    given = {name: value for name, value in os.environ.items() if name not in (RANGE, PROFILES, TRANSPORTS)}
    given |= {name: os.environ[name] if name == PROFILES else value for name, value in environment.items()}
    if PROFILES not in environment:
        given[TRANSPORTS] = "DEFAULT"  # as if there were no such variable, as before Fast DDS 2.13
    given["ROS_DOMAIN_ID"] = str(ros2_domain)
    command = [sys.executable, "-c", THREADS]
    threads = subprocess.run(command, env=given, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "dds.udp" in threads
    assert "dds.shm" not in threads


@pytest.mark.parametrize("polls", [2, 1000])
def test_a_publisher_is_judged_when_its_name_is_known_or_stays_unknown(
    ros2_domain: int, monkeypatch: pytest.MonkeyPatch, polls: int
) -> None:
    names = itertools.chain(itertools.repeat(f"/{UNNAMED}", polls), itertools.repeat("/silent"))
    asked: list[str] = []

    def publishers(node: Node, topic: str) -> tuple[str, ...]:
        asked.append(next(names))
        return (asked[-1],)

    session = Session(NetworkOptions(domain_id=ros2_domain, monitor_period_s=0.05), RosClock(0.5, 5.0))
    session.open(names)
    monkeypatch.setattr(Node, "publishers", publishers)
    try:
        session._exclusive["/cmd_vel"] = frozenset(("/silent",))
        assert wait_until(lambda: session.fault is not None or asked[-3:] == ["/silent"] * 3, session.wait, 5.0, 0.02)
        assert isinstance(session.fault, SecondPublisher) == (polls == 1000)
        assert session.fault is None or len(asked) >= UNNAMED_S / 0.05 / 2
    finally:
        session.close(names)
