"""The guard's time and acknowledgements beside a simulated robot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import rospy
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, Header

from sim_bridge.ros import simulated_guard
from sim_bridge.ros.simulated_guard import Lockstep

SECOND_NS = 10**9


class Simulator:
    """``/clock``, and what the simulated robot hears of a node.

    Attributes:
        clock_s: simulated time.
        heard: what happened, in order.
        receivers: callbacks of the node's subscriptions by topic.
    """

    def __init__(self) -> None:
        self.clock_s = 10.0
        self.heard: list[str] = []
        self.receivers: dict[str, Callable[[Any], None]] = {}

    def acknowledge(self, topic: str, message: Any) -> None:
        self.heard.append(f"{topic} acknowledged")

    def end(self, topic: str) -> None:
        self.heard.append(f"{topic} ended")

    def subscribe(self, topic: str, message: Any, receive: Callable[[Any], None], **options: Any) -> None:
        self.receivers[topic] = receive


@pytest.fixture
def simulator(monkeypatch: pytest.MonkeyPatch) -> Simulator:
    made = Simulator()
    monkeypatch.setattr(rospy, "get_rostime", lambda: rospy.Time.from_sec(made.clock_s))
    monkeypatch.setattr(rospy, "Subscriber", made.subscribe)
    monkeypatch.setattr(simulated_guard, "AcknowledgePublisher", lambda: made)
    return made


def test_a_message_that_arrives_before_its_clock_is_not_old_afterwards(simulator: Simulator) -> None:
    lockstep = Lockstep()
    lockstep.observe_stamp(10 * SECOND_NS + SECOND_NS // 4)
    assert lockstep.now_ns() == 10 * SECOND_NS + SECOND_NS // 4
    lockstep.observe_stamp(10 * SECOND_NS)
    assert lockstep.now_ns() == 10 * SECOND_NS + SECOND_NS // 4, "an older message does not set it back"
    simulator.clock_s = 10.5
    assert lockstep.now_ns() == 10 * SECOND_NS + SECOND_NS // 2
    lockstep.observe_stamp(13 * SECOND_NS)
    assert lockstep.now_ns() == 10 * SECOND_NS + SECOND_NS // 2, "a clock that disagrees"
    simulator.clock_s = 12.5
    assert lockstep.now_ns() == 12 * SECOND_NS + SECOND_NS // 2, "which is not believed later, either"
    lockstep.observe_stamp(13 * SECOND_NS)
    simulator.clock_s = 1.0
    assert lockstep.now_ns() == SECOND_NS, "a simulator that was started anew"


def test_a_message_is_acknowledged_after_it_was_processed_in_its_own_time(simulator: Simulator) -> None:
    lockstep = Lockstep()

    def receive(message: Any) -> None:
        simulator.heard.append(f"processed at {lockstep.now_ns() / SECOND_NS:g} s")

    lockstep.subscribe("/joints", JointState, receive, tcp_nodelay=True)
    lockstep.subscribe("/stop", Bool, receive)
    simulator.receivers["/joints"](JointState(header=Header(stamp=rospy.Time.from_sec(10.25))))
    simulator.receivers["/stop"](Bool())
    lockstep.end()
    assert simulator.heard == [
        "processed at 10.25 s",
        "/joints acknowledged",
        "processed at 10.25 s",
        "/joints ended",
    ], "a message without a header has no time that the simulator could wait for"
