"""Gaps in the link to the robot: what is waited out, what is repeated, and what is a fault; no master."""

from __future__ import annotations

import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from raising import raises_naming

from drivers.ros.connection.clock import RosClock
from drivers.ros.connection.errors import LinkLost, MasterGone, SecondPublisher
from drivers.ros_locobot.connection import master as master_module
from drivers.ros_locobot.connection.master import ATTEMPTS, Graph, Master, publisher_definition
from drivers.ros_locobot.connection.session import LEAST_UNANSWERED, Session
from drivers.ros_locobot.options import MasterOptions
from robot_runtime.common.clock import NS_PER_S
from robot_runtime.errors import DeviceFault

URI = "http://10.0.0.1:11311"


class Link:
    """A session whose master and clock are the test's."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.session = Session(MasterOptions(uri=URI, patience_s=5.0), RosClock(0.05, 1.0))
        self.now_ns = 0
        self.answer: Callable[[], str] = lambda: "1"
        self.publishers: dict[str, tuple[str, ...]] = {}
        monkeypatch.setattr(self.session, "_host", SimpleNamespace(now_ns=lambda: self.now_ns))
        self.master: Any = SimpleNamespace(
            uri=URI,
            identity=lambda: self.answer(),
            graph=lambda: Graph(self.publishers, {}),
            is_dead=lambda node: False,
        )

    def check(self, seconds: float, hears_topics: bool) -> None:
        """Let time pass with the monitor's calls, two a second."""
        for _ in range(round(seconds * 2)):
            self.now_ns += NS_PER_S // 2
            if hears_topics:
                self.session._heard_ns = self.now_ns
            if self.session.fault is None:
                self.session._check_network(self.master, "1")


@pytest.fixture
def link(monkeypatch: pytest.MonkeyPatch) -> Link:
    return Link(monkeypatch)


def silent() -> str:
    try:
        raise TimeoutError("timed out")
    except TimeoutError as error:
        raise MasterGone(f"ROS master {URI} does not answer within 2 s", "start it") from error


def refused() -> str:
    try:
        raise ConnectionRefusedError("refused")
    except ConnectionRefusedError as error:
        raise MasterGone(f"ROS master {URI} does not answer within 2 s: refused", "start it") from error


@pytest.mark.parametrize("gap_s", [0.5, 1.3, 3.0, 4.5])
def test_a_session_survives_a_gap_of_master_and_topics(link: Link, gap_s: float, caplog: Any) -> None:
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            link.answer = silent
            link.check(gap_s, hears_topics=False)
            link.answer = lambda: "1"
            link.check(1.0, hears_topics=True)
    assert link.session.fault is None
    assert all("link" in record.getMessage() for record in caplog.records)


def test_a_master_that_does_not_answer_is_no_fault_while_topics_are_heard(link: Link) -> None:
    link.answer = silent
    link.check(60.0, hears_topics=True)
    assert link.session.fault is None


def test_a_link_that_stays_silent_is_lost_and_named(link: Link) -> None:
    link.answer = silent
    link.check(5.0, hears_topics=False)
    assert link.session.fault is None
    link.check(2.0, hears_topics=False)
    assert isinstance(link.session.fault, LinkLost)
    assert "link to the robot" in link.session.fault.message
    assert "5." in link.session.fault.message
    assert "network" in link.session.fault.remedy


def test_a_computer_that_says_that_there_is_no_master_is_believed_after_some_calls(link: Link) -> None:
    link.answer = refused
    link.check((LEAST_UNANSWERED - 1) / 2, hears_topics=True)
    assert link.session.fault is None
    link.check(0.5, hears_topics=True)
    assert type(link.session.fault) is MasterGone


def test_what_the_master_answers_counts_at_once(link: Link) -> None:
    link.answer = lambda: "2"
    link.check(0.5, hears_topics=True)
    assert "restarted" in str(link.session.fault)


def test_another_publisher_counts_at_once_also_after_a_gap(link: Link) -> None:
    link.answer = silent
    link.check(3.0, hears_topics=False)
    link.session._exclusive["/velocity"] = frozenset({"/guard"})
    link.publishers = {"/velocity": ("/guard", "/teleop")}
    link.answer = lambda: "1"
    link.check(0.5, hears_topics=True)
    assert isinstance(link.session.fault, SecondPublisher)


class LostCalls:
    """``call_api`` on a link that loses the first calls."""

    def __init__(self, lost: int, error: Exception) -> None:
        self.calls, self._lost, self._error = 0, lost, error

    def __call__(self, uri: str, method: str, *arguments: Any, timeout_s: float, caller_id: str = "") -> Any:
        self.calls += 1
        if self.calls <= self._lost:
            raise self._error
        return 1, "", {"getPid": 7, "getParam": "run", "requestTopic": []}[method]


@pytest.mark.parametrize("lost", range(ATTEMPTS))
def test_calls_are_repeated_while_connecting(lost: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(master_module, "call_api", LostCalls(lost, TimeoutError("timed out")))
    assert Master(URI, 2.0, ATTEMPTS).identity() == "7 run"


def test_a_call_that_is_never_answered_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = LostCalls(100, TimeoutError("timed out"))
    monkeypatch.setattr(master_module, "call_api", calls)
    with raises_naming(MasterGone, URI, "2 s"):
        Master(URI, 2.0, ATTEMPTS).identity()
    assert calls.calls == ATTEMPTS


def test_a_refusal_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = LostCalls(100, ConnectionRefusedError("refused"))
    monkeypatch.setattr(master_module, "call_api", calls)
    with raises_naming(MasterGone, URI):
        Master(URI, 2.0, ATTEMPTS).identity()
    with raises_naming(DeviceFault, "/odom"):
        publisher_definition("http://10.0.0.1:4000", "/odom", 2.0)
    assert calls.calls == 2


def test_a_publishers_definition_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = LostCalls(100, OSError("no route to host"))
    monkeypatch.setattr(master_module, "call_api", calls)
    with raises_naming(DeviceFault, "/odom"):
        publisher_definition("http://10.0.0.1:4000", "/odom", 2.0)
    assert calls.calls == ATTEMPTS
