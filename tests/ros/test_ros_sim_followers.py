"""Simulated time waits for those who read the base in time, and for nobody for long."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import rospy
from ros_processes import LIMIT_S, eventually
from std_msgs.msg import Header

from drivers.ros_locobot.heard import TOPIC, Heard
from robot_runtime.clock import seconds_to_ns
from sim_bridge.ros.faults import Faults
from sim_bridge.ros.followers import AHEAD_S, HEARD_TOPIC, STEADY, Followers

PERIOD_S = 0.02


class Report:
    """A message of the base."""

    def __init__(self, at_s: float) -> None:
        self.header = Header(stamp=rospy.Time.from_sec(at_s))


class World:
    """Time, and a reader of the base."""

    def __init__(self) -> None:
        self.followers = Followers(Faults())
        self.heard = Heard()
        self._told: list[int] = []
        self._ear = rospy.Subscriber(TOPIC, Header, self._listen)
        assert eventually(lambda: self.heard.publisher.get_num_connections() > 0)

    def read(self, at_s: float) -> None:
        """A report of that time is taken in, and the simulator knows."""
        known = len(self._told)
        self.heard("/odom", Report(at_s))
        assert eventually(lambda: len(self._told) > known)

    def _listen(self, message: Header) -> None:
        self._told.append(message.stamp.to_nsec())  # the followers' own subscriber was called first

    def pass_to(self, now_s: float) -> threading.Thread:
        thread = threading.Thread(target=self.followers.keep, args=(seconds_to_ns(now_s),), daemon=True)
        thread.start()
        return thread

    def follow(self) -> float:
        """Every report is read in time, until the reader is waited for; when that is."""
        for number in range(1, STEADY + 1):
            self.followers.keep(seconds_to_ns(number * PERIOD_S))
            self.read(number * PERIOD_S)
        return STEADY * PERIOD_S

    def close(self) -> None:
        self._ear.unregister()
        self.heard.publisher.unregister()


@pytest.fixture
def world(ros_node: str) -> Iterator[World]:
    made = World()
    yield made
    made.close()


def test_driver_and_simulator_mean_the_same_topic() -> None:
    assert TOPIC == HEARD_TOPIC


def test_nobody_is_not_waited_for(world: World) -> None:
    world.followers.keep(seconds_to_ns(1.0))
    world.read(0.5)  # late, and only once
    world.followers.keep(seconds_to_ns(2.0))


def test_a_reader_that_is_late_is_waited_for(world: World) -> None:
    now_s = world.follow()
    world.followers.keep(seconds_to_ns(now_s + AHEAD_S))
    waiting = world.pass_to(now_s + AHEAD_S + PERIOD_S)
    waiting.join(0.1)
    assert waiting.is_alive()
    world.read(now_s + PERIOD_S)
    waiting.join(LIMIT_S)
    assert not waiting.is_alive()


def test_a_reader_that_is_gone_is_waited_for_once(world: World) -> None:
    now_s = world.follow()
    waiting = world.pass_to(now_s + 1.0)
    waiting.join(0.1)
    assert waiting.is_alive()
    waiting.join(LIMIT_S)
    assert not waiting.is_alive()
    again = world.pass_to(now_s + 2.0)
    again.join(0.3)
    assert not again.is_alive()
