"""Simulated time waits for those who read the robot: on a busy computer no sensor is silent that is only unread."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import partial

import rospy
from std_msgs.msg import Header

from robot_runtime.common.clock import Stopwatch, seconds_to_ns
from sim_bridge.ros.faults import Faults

ACKNOWLEDGE_TOPIC = "/simulation/heard"
"""std_msgs/Header of whoever has taken in a report: its stamp, and its topic as ``frame_id``; without a stamp, of
whoever will take in no more of them."""

AHEAD_S = 0.04
"""How far simulated time may pass the newest report that somebody has taken in: two of a base's periods."""

STEADY = 3
"""Who has taken in so many reports, each at most ``AHEAD_S`` after the one before, is waited for; however late he is,
for that is when he needs it. Reports that come more rarely can be waited for by nobody."""

PATIENCE_S = 1.5
"""Host seconds of waiting; then he is left behind until he is steady again.

Less than what the guard node takes for a simulator that has died.
"""


@dataclass
class _Reader:
    steady: int = 0
    newest_ns: int = 0
    gone: bool = False

    def lets_pass(self, stamp_ns: int) -> bool:
        return self.gone or self.newest_ns >= stamp_ns


class LockstepBarrier:
    """Who reads what; nobody at first. Real robots have no such topic, and wait for nobody.

    Args:
        faults: one of which is a skew of all stamps.
    """

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._changed = threading.Condition()
        self._followers: dict[tuple[str, str], _Reader] = {}
        rospy.Subscriber(ACKNOWLEDGE_TOPIC, Header, self._on_heard, queue_size=100, tcp_nodelay=True)

    def wait(self, now_ns: int) -> None:
        """Return when simulated time may pass ``now_ns``: at the latest after ``PATIENCE_S``, for all together."""
        oldest_ns = now_ns - seconds_to_ns(AHEAD_S)
        watch = Stopwatch()
        with self._changed:
            for follower in tuple(self._followers.values()):
                if follower.steady < STEADY:
                    continue
                left_s = max(0.0, PATIENCE_S - watch.elapsed_s())
                if not self._changed.wait_for(partial(follower.lets_pass, oldest_ns), left_s):
                    follower.steady = 0

    def _on_heard(self, message: Header) -> None:
        reader = message._connection_header["callerid"], message.frame_id
        with self._changed:
            if message.stamp.is_zero():
                if (follower := self._followers.pop(reader, None)) is not None:
                    follower.gone = True
            else:
                follower = self._followers.setdefault(reader, _Reader())
                stamp_ns = message.stamp.to_nsec() - seconds_to_ns(self._faults.value("clock_skew_s"))
                if abs(stamp_ns - follower.newest_ns) <= seconds_to_ns(AHEAD_S):
                    follower.steady += 1
                follower.newest_ns = stamp_ns
            self._changed.notify_all()
