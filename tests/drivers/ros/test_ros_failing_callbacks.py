"""What the threads of base and guard node do when something in them fails; no master."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from drivers.ros.base.driver import RosBase
from drivers.ros.guard.logic import Hold
from drivers.ros.guard.node import GuardNode


def test_the_watchdog_outlives_an_exception_and_stops_the_wheels(caplog: pytest.LogCaptureFixture) -> None:
    done: list[str] = []
    base = RosBase.__new__(RosBase)
    stopping = threading.Event()

    def sense() -> None:
        done.append("sense")
        if done.count("sense") == 1:
            raise ValueError("a level that is none")
        stopping.set()

    base.__dict__.update(
        _info=SimpleNamespace(rate_hz=1000.0),
        _clock=SimpleNamespace(now_ns=lambda: 0),
        _stopping=stopping,
        _updated=threading.Event(),
        _lock=threading.RLock(),
        _guard=SimpleNamespace(stop=lambda now_ns: done.append("stop")),
        _sense=sense,
    )
    base._watch()
    assert done == ["sense", "stop", "sense"]
    assert "a level that is none" in caplog.text


def test_the_wheels_are_sent_zero_before_their_motors_lose_power() -> None:
    order: list[str] = []

    def cut() -> str:
        order.append("cut")
        return "motor power is off until then"

    node = GuardNode.__new__(GuardNode)
    node.__dict__.update(
        _lock=threading.Lock(),
        _logic=SimpleNamespace(hold=lambda hold, text: order.append(f"hold {hold.name}: {text}")),
        _transport=SimpleNamespace(cut_power=cut),
        _send=lambda only_changes: order.append("send"),
    )
    node._on_publishers(("/teleop",))
    held = f"hold {Hold.FOREIGN_PUBLISHER.name}: /teleop"
    assert order == [held, "send", "cut", f"{held}; motor power is off until then"]
