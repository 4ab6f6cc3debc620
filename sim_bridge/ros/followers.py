"""Simulated time waits for those who read the base: on a busy computer no sensor is silent that is only unread."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import partial

import rospy
from std_msgs.msg import Header

from robot_runtime.clock import seconds_to_ns
from sim_bridge.ros.faults import Faults

HEARD_TOPIC = "/simulation/heard"
"""std_msgs/Header of whoever has taken in a report of the base: its stamp, and its topic as ``frame_id``."""

AHEAD_S = 0.04
"""How far simulated time may pass the newest report that somebody has taken in: two of a base's periods."""

STEADY = 10
"""Who has taken in so many reports in time is waited for."""

PATIENCE_S = 1.5
"""Host seconds of waiting; then he is left behind until he is steady again.

Less than what the guard node takes for a simulator that has died.
"""


@dataclass
class _Follower:
    in_time: int = 0
    newest_ns: int = 0

    def has_heard(self, stamp_ns: int) -> bool:
        return self.newest_ns >= stamp_ns


class Followers:
    """Who reads what; nobody at first. Real robots have no such topic, and wait for nobody.

    Args:
        faults: one of which is a skew of all stamps.
    """

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._changed = threading.Condition()
        self._now_ns = 0
        self._followers: dict[tuple[str, str], _Follower] = {}
        rospy.Subscriber(HEARD_TOPIC, Header, self._on_heard, queue_size=100, tcp_nodelay=True)

    def keep(self, now_ns: int) -> None:
        """Return when simulated time may pass ``now_ns``, for each follower at the latest after ``PATIENCE_S``."""
        with self._changed:
            self._now_ns = now_ns
            oldest_ns = now_ns - seconds_to_ns(AHEAD_S)
            for follower in tuple(self._followers.values()):
                waited_for = follower.in_time >= STEADY
                if waited_for and not self._changed.wait_for(partial(follower.has_heard, oldest_ns), PATIENCE_S):
                    follower.in_time = 0

    def _on_heard(self, message: Header) -> None:
        reader = message._connection_header["callerid"], message.frame_id
        with self._changed:
            follower = self._followers.setdefault(reader, _Follower())
            follower.newest_ns = message.stamp.to_nsec() - seconds_to_ns(self._faults.value("clock_skew_s"))
            if self._now_ns - follower.newest_ns <= seconds_to_ns(AHEAD_S):
                follower.in_time += 1
            self._changed.notify_all()
