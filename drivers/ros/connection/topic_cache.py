"""The newest message of a topic, with its age and the reason if there is none."""

from collections import deque
from dataclasses import dataclass
from typing import Any

from drivers.ros.connection.clock import CHRONY, HELD_UP, RosClock
from drivers.ros.connection.errors import ClockSkew
from drivers.ros.connection.quantities import Sources
from drivers.ros.connection.received import UNKNOWN, Received
from robot_runtime.common.clock import ns_to_seconds, seconds_to_ns
from robot_runtime.errors import StaleData

RECENT_S = 1.0
"""A topic that has delivered a message within this time is not silent; a busy computer may process it late."""


LATE_S = 0.05
"""Duration for which all messages must have been late until two clocks count as different, if others were in time.

A process that was stopped finds late messages in its queue, too. It takes them in within less, or their lag shrinks.
"""

RECENT_COUNT = 256
"""Messages whose lags are kept: five seconds at a base's rate."""


@dataclass(frozen=True, slots=True)
class StampedMessage:
    """A received message.

    Attributes:
        stamp_ns: The header's stamp, or the arrival of a message without one.
        arrival_ns: When it arrived.
        message: The message.
    """

    stamp_ns: int
    arrival_ns: int
    message: Any


class TopicCache:
    """The newest message of a topic. Written by the session's thread, read by any other.

    Messages whose stamps are all older on arrival than the clock's ``allowed_skew_s``, for ``LATE_S``, show that two
    clocks disagree, or that the network delays them that long, which is as bad.

    Args:
        topic: Full name, for messages.
        clock: Stamps are compared with it.
    """

    def __init__(self, topic: str, clock: RosClock) -> None:
        self.topic = topic
        self._clock = clock
        self._newest: StampedMessage | None = None
        self._last: StampedMessage | None = None
        self._recent: deque[tuple[int, int]] = deque(maxlen=RECENT_COUNT)  # arrival and lag
        self._sources = Sources()
        self._unusable: tuple[int, str] | None = None  # arrival and reason

    @property
    def newest(self) -> StampedMessage | None:
        """The newest message, of any age; None before the first."""
        return self._newest

    def receive(self, received: Received, stamped: bool = True) -> StampedMessage | None:
        """Store a message; None if its stamp is unusable: zero, or too far in the future.

        Args:
            received: The message.
            stamped: Whether to use its header's stamp, if it has a header; else the arrival is its stamp.

        Raises:
            TwoSources: Another node publishes the topic as well.
        """
        if received.sender != UNKNOWN:
            self._sources.check(f"topic {self.topic}", received.sender)
        arrival_ns = self._clock.now_ns()
        if received.stamp_ns is None or not stamped:
            stamp_ns = arrival_ns
        else:
            stamp_ns = received.stamp_ns
            if stamp_ns == 0 or not self._clock.observe_stamp(stamp_ns, self.topic):
                return None
        taken = StampedMessage(stamp_ns, max(arrival_ns, stamp_ns), received.message)
        self._recent.append((taken.arrival_ns, taken.arrival_ns - stamp_ns))
        self._last = taken
        if self._newest is None or stamp_ns >= self._newest.stamp_ns:
            self._newest = taken
        return taken

    def lose(self, reason: str) -> None:
        """Note that a message is unusable; :meth:`read` says why if no usable one follows in time."""
        self._unusable = self._clock.now_ns(), reason

    def clear(self) -> None:
        """Discard the messages of a connection that has ended."""
        self._newest = self._last = self._unusable = None
        self._sources.clear()
        self._recent.clear()

    def read(self, max_age_s: float) -> StampedMessage:
        """Return the newest message.

        Raises:
            ClockSkew: Messages arrive with old stamps: the clocks disagree.
            StaleData: Names the topic and its age.
        """
        while True:
            newest, last, now_ns = self._newest, self._last, self._clock.now_ns()
            if newest is self._newest:
                break  # Else a message came meanwhile, and on a busy computer fresh data would look old.
        if newest is not None and ns_to_seconds(now_ns - newest.stamp_ns) <= max_age_s:
            return newest
        self._clock.check()
        unusable = self._unusable
        if unusable is not None and ns_to_seconds(now_ns - unusable[0]) <= max(max_age_s, RECENT_S):
            raise StaleData(f"topic {self.topic}: its messages are unusable: {unusable[1]}", "check its node's log")
        if newest is None or last is None:
            raise StaleData(
                f"topic {self.topic} has delivered nothing yet",
                "check that its node runs and stamps its messages (`rostopic hz`, `ros2 topic hz`)",
            )
        age_s = ns_to_seconds(now_ns - newest.stamp_ns)
        allowed_s = self._clock.allowed_skew_s
        limit_s = max(allowed_s, max_age_s)
        lag_s = ns_to_seconds(last.arrival_ns - last.stamp_ns)
        if lag_s > limit_s and ns_to_seconds(now_ns - last.arrival_ns) <= max(max_age_s, RECENT_S):
            least_s = self._least_lag_s()
            if least_s > limit_s:
                raise ClockSkew(
                    f"topic {self.topic}: messages arrive with stamps {least_s:.3f} s old, {allowed_s:g} s is allowed",
                    CHRONY,
                )
            raise StaleData(
                f"topic {self.topic}: its newest message arrived {lag_s:.3f} s late, {limit_s:g} s is allowed; "
                "the lag varies, so the clocks agree",
                HELD_UP,
            )
        raise StaleData(
            f"topic {self.topic} is silent: its newest message is {age_s:.3f} s old, {max_age_s:g} s is allowed",
            "check that its node runs (`rosnode ping`, `ros2 node list`), and the network between the computers",
        )

    def _least_lag_s(self) -> float:
        """Return the smallest lag of the last messages, back to one that arrived ``LATE_S`` before the newest.

        It is 0 while a queue is taken in: stamps advance more than twice as fast as time.
        """
        recent = tuple(self._recent)
        newest_ns, newest_lag_ns = recent[-1]
        least_ns = newest_lag_ns
        for arrival_ns, lag_ns in reversed(recent):
            least_ns = min(least_ns, lag_ns)
            if lag_ns - newest_lag_ns > newest_ns - arrival_ns:
                return 0.0
            if newest_ns - arrival_ns >= seconds_to_ns(LATE_S):
                break
        return ns_to_seconds(least_ns)
