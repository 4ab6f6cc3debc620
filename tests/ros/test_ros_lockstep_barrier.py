"""Simulated time waits for those who read the robot steadily, and for nobody for long."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
import rospy
from ros_processes import LIMIT_S, eventually, is_subscribed
from std_msgs.msg import Header

from drivers.ros.protocol import ACKNOWLEDGE_TOPIC
from drivers.ros_locobot.connection.acknowledge import AcknowledgePublisher
from robot_runtime.common.clock import NS_PER_S, seconds_to_ns
from sim_bridge.ros import lockstep_barrier
from sim_bridge.ros.faults import Faults
from sim_bridge.ros.lockstep_barrier import AHEAD_S, PATIENCE_S, STEADY_COUNT, LockstepBarrier
from sim_bridge.ros.rospy_network import RospyNetwork

PERIOD_S = 0.02
BEGIN_S = 5.0


class Report:
    """A message of the base."""

    def __init__(self, at_s: float) -> None:
        self.header = Header(stamp=rospy.Time(*divmod(seconds_to_ns(at_s), NS_PER_S)))


class World:
    """Time, and a reader of the base."""

    def __init__(self, acknowledge: AcknowledgePublisher) -> None:
        self.barrier = LockstepBarrier(Faults(), RospyNetwork())
        self.acknowledge = acknowledge
        self._told: list[int] = []
        self._ear = rospy.Subscriber(ACKNOWLEDGE_TOPIC, Header, self._listen)

    def read(self, at_s: float, topic: str = "/odom") -> None:
        """A report of that time is taken in, and the simulator knows."""
        known = len(self._told)
        self.acknowledge.acknowledge(topic, Report(at_s))
        assert eventually(lambda: len(self._told) > known)

    def end(self) -> None:
        """No more is taken in."""
        known = len(self._told)
        self.acknowledge.end("/odom")
        assert eventually(lambda: len(self._told) > known)

    def _listen(self, message: Header) -> None:
        self._told.append(message.stamp.to_nsec())  # the followers' own subscriber was called first

    def pass_to(self, now_s: float) -> threading.Thread:
        thread = threading.Thread(target=self.barrier.wait, args=(seconds_to_ns(now_s),), daemon=True)
        thread.start()
        return thread

    def follow(self, *topics: str, late_s: float = 0.0) -> float:
        """Every report is read, until the reader is waited for; when the last one was."""
        topics = topics or ("/odom",)
        for number in range(STEADY_COUNT + 1):
            self.barrier.wait(seconds_to_ns(BEGIN_S + number * PERIOD_S + late_s))
            for topic in topics:
                self.read(BEGIN_S + number * PERIOD_S, topic)
        return BEGIN_S + STEADY_COUNT * PERIOD_S

    def close(self) -> None:
        self._ear.unregister()


@pytest.fixture(scope="module")
def acknowledge(ros_node: str) -> Iterator[AcknowledgePublisher]:
    """One for all tests: rospy may leave a subscriber alone whose publisher leaves and comes back in one breath."""
    made, ear = AcknowledgePublisher(), rospy.Subscriber(ACKNOWLEDGE_TOPIC, Header)
    assert eventually(lambda: is_subscribed(made.publisher, ros_node))
    yield made
    made.publisher.unregister()
    ear.unregister()


@pytest.fixture
def world(acknowledge: AcknowledgePublisher) -> Iterator[World]:
    made = World(acknowledge)
    yield made
    made.close()


def test_nobody_is_not_waited_for(world: World) -> None:
    world.barrier.wait(seconds_to_ns(1.0))
    world.read(0.5)  # late, and only once
    world.barrier.wait(seconds_to_ns(2.0))


@pytest.fixture
def for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is waited for is waited for longer than any test takes: then no stall of this computer ends it."""
    monkeypatch.setattr(lockstep_barrier, "PATIENCE_S", 10 * LIMIT_S)


@pytest.mark.usefixtures("for_ever")
@pytest.mark.parametrize("late_s", [0.0, 0.3])
def test_a_reader_that_is_late_is_waited_for(world: World, late_s: float) -> None:
    """Also one that was never in time: on a busy computer nobody is."""
    now_s = world.follow(late_s=late_s)
    world.barrier.wait(seconds_to_ns(now_s + AHEAD_S))
    waiting = world.pass_to(now_s + AHEAD_S + PERIOD_S)
    waiting.join(0.1)
    assert waiting.is_alive()
    world.read(now_s + PERIOD_S)
    waiting.join(LIMIT_S)
    assert not waiting.is_alive()


@pytest.mark.usefixtures("for_ever")
def test_a_reader_of_reports_that_come_rarely_is_not_waited_for(world: World) -> None:
    for number in range(3 * STEADY_COUNT):
        world.read(BEGIN_S + number * 0.1)
    world.barrier.wait(seconds_to_ns(BEGIN_S + 100.0))


@pytest.mark.usefixtures("for_ever")
def test_a_reader_that_leaves_is_waited_for_no_more(world: World) -> None:
    now_s = world.follow()
    waiting = world.pass_to(now_s + 1.0)
    waiting.join(0.1)
    assert waiting.is_alive()
    world.end()
    waiting.join(LIMIT_S)
    assert not waiting.is_alive()
    world.barrier.wait(seconds_to_ns(now_s + 2.0))


def test_readers_that_are_gone_are_waited_for_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = world.follow("/odom", "/core")
    began_s = time.monotonic()
    waiting = world.pass_to(now_s + 1.0)
    waiting.join(LIMIT_S)
    assert not waiting.is_alive()
    assert PATIENCE_S <= time.monotonic() - began_s < 2 * PATIENCE_S, "for both of them together"
    monkeypatch.setattr(lockstep_barrier, "PATIENCE_S", 10 * LIMIT_S)
    again = world.pass_to(now_s + 2.0)
    again.join(LIMIT_S)
    assert not again.is_alive(), "nobody is waited for"
