"""The barrier that holds simulated time until steady subscribers have processed the robot's messages.

On a busy computer messages queue unread, and the sensors would look silent. Real robots have no such barrier.
"""

import threading
from dataclasses import dataclass
from functools import partial
from typing import Any

from drivers.ros.protocol import ACKNOWLEDGE_TOPIC
from robot_runtime.common.clock import Stopwatch, seconds_to_ns
from sim_bridge.ros.faults import Faults
from sim_bridge.ros.network import Network

AHEAD_S = 0.04
"""Largest lead of simulated time over the newest acknowledged message: two periods of a base."""

STEADY_COUNT = 3
"""A subscriber is waited for after this many acknowledgements, each at most ``AHEAD_S`` after the one before. Messages
that come more rarely are not waited for."""

PATIENCE_S = 1.5
"""Host seconds of waiting; then a subscriber is ignored until it is steady again."""


@dataclass
class _Subscriber:
    steady_count: int = 0
    newest_ns: int = 0
    ended: bool = False

    def allows(self, stamp_ns: int) -> bool:
        return self.ended or self.newest_ns >= stamp_ns


class LockstepBarrier:
    """Waits for the subscribers that acknowledge messages; none at first.

    Args:
        faults: One of them is a skew of all stamps.
        network: The node.
        ahead_s: Largest lead of simulated time, and longest interval of a steady subscriber's messages.
    """

    def __init__(self, faults: Faults, network: Network, ahead_s: float = AHEAD_S) -> None:
        self._ahead_ns = seconds_to_ns(ahead_s)
        self._faults = faults
        self._changed = threading.Condition()
        self._subscribers: dict[tuple[str, str], _Subscriber] = {}
        network.subscribe_senders(ACKNOWLEDGE_TOPIC, "std_msgs/Header", self._on_acknowledge)

    def wait(self, now_ns: int) -> None:
        """Return when simulated time may pass ``now_ns``: at the latest after ``PATIENCE_S``, for all together."""
        oldest_ns = now_ns - self._ahead_ns
        timer = Stopwatch()
        with self._changed:
            for subscriber in tuple(self._subscribers.values()):
                if subscriber.steady_count < STEADY_COUNT:
                    continue
                remaining_s = max(0.0, PATIENCE_S - timer.elapsed_s())
                if not self._changed.wait_for(partial(subscriber.allows, oldest_ns), remaining_s):
                    subscriber.steady_count = 0

    def _on_acknowledge(self, sender: str, stamp_ns: int, message: Any) -> None:
        key = sender, message.frame_id
        with self._changed:
            if stamp_ns == 0:
                if (ended := self._subscribers.pop(key, None)) is not None:
                    ended.ended = True
            else:
                subscriber = self._subscribers.setdefault(key, _Subscriber())
                stamp_ns -= seconds_to_ns(self._faults.value("clock_skew_s"))
                if abs(stamp_ns - subscriber.newest_ns) <= self._ahead_ns:
                    subscriber.steady_count += 1
                subscriber.newest_ns = stamp_ns
            self._changed.notify_all()
