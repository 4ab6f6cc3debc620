"""The robot's time over ROS: this computer's, kept in step with the robot's stamps, or a simulator's ``/clock``.

Stamps on a ROS network are Unix time of the computer that wrote them (or simulated time). Ages are only true if both
computers agree, so disagreement is measured on every stamp that arrives (:meth:`RosClock.observe_stamp`):

* a stamp from the future, by no more than ``max_skew_s``, moves this clock up to it: nothing is younger than now;
* one further ahead, or a clock of this computer that was set while we run, is a :class:`ClockSkew`;
* stamps that are always late look like a slow network; ``channel.TopicCache`` tells the two apart.
"""

from __future__ import annotations

import threading

from drivers.ros_locobot.connection.errors import ClockSkew
from robot_runtime.common.clock import Clock, SystemClock, ahead_ns, ns_to_seconds, seconds_to_ns, unix_now_ns

CHRONY = "synchronise both computers' clocks (chrony; see drivers/ros_locobot/README.md), then connect again"
SIMULATED_SKEW_S = 1.0
"""As ``max_skew_s``, where there is one clock only: how much sooner a message may be heard than its ``/clock``, on a
computer that is busy while a simulator hurries."""

RESTART = "the simulator was started anew or a bag was rewound: connect again"


class RosClock(Clock):
    """ROS time that never goes back.

    Before :meth:`start_simulated` it is Unix time, advancing with the host's monotonic clock.

    Args:
        max_skew_s: how far ahead of this clock a stamp may lie.
        stall_s: host seconds without progress of ``/clock`` after which waiting on simulated time gives up.
    """

    def __init__(self, max_skew_s: float, stall_s: float) -> None:
        self.max_skew_s = max_skew_s
        self._max_skew_ns = seconds_to_ns(max_skew_s)
        self._stall_s = stall_s
        self._host = SystemClock()
        self._unix_offset_ns = ahead_ns(unix_now_ns, self._host.now_ns)
        self._lead_ns = 0
        self._simulated_ns: int | None = None
        self._moved = threading.Condition()
        self._fault: ClockSkew | None = None

    @property
    def simulated(self) -> bool:
        """Whether time comes from ``/clock``."""
        return self._simulated_ns is not None

    @property
    def allowed_skew_s(self) -> float:
        """How far stamps and this clock may disagree: of one and the same simulated clock, more."""
        return self.max_skew_s if self._simulated_ns is None else SIMULATED_SKEW_S

    def now_ns(self) -> int:
        simulated_ns = self._simulated_ns
        if simulated_ns is not None:
            return simulated_ns
        return self._host.now_ns() + self._unix_offset_ns + self._lead_ns

    def sleep_until(self, deadline_ns: int) -> None:
        """As ``Clock``.

        Raises:
            ClockSkew: if simulated time stands still for ``stall_s`` of the host's, or went back.
        """
        if self._simulated_ns is None:
            while (remaining_ns := deadline_ns - self.now_ns()) > 0:
                self._host.sleep_until(self._host.now_ns() + remaining_ns)
            return
        with self._moved:
            while self._simulated_ns < deadline_ns:
                if not self._moved.wait(self._stall_s):
                    raise ClockSkew(
                        f"topic /clock: simulated time has stood still for {self._stall_s:g} s",
                        "check that the simulator runs and is not paused",
                    )
                self.check()

    def check(self) -> None:
        """Raise the ``ClockSkew`` that was found, if any."""
        if self._fault is None and self._simulated_ns is None:
            step_ns = ahead_ns(unix_now_ns, self._host.now_ns) - self._unix_offset_ns
            if abs(step_ns) > self._max_skew_ns:
                self._fault = ClockSkew(
                    f"this computer's clock was set by {ns_to_seconds(step_ns):+.3f} s while the robot was connected",
                    CHRONY,
                )
        if self._fault is not None:
            raise self._fault

    def restart(self) -> None:
        """A new connection: Unix time as it is now, nothing found yet."""
        with self._moved:
            self._fault = None
            self._simulated_ns = None
            self._lead_ns = 0
            self._unix_offset_ns = ahead_ns(unix_now_ns, self._host.now_ns)

    def start_simulated(self, now_ns: int) -> None:
        """From now on time is what :meth:`advance` says."""
        with self._moved:
            self._simulated_ns = now_ns

    def advance(self, now_ns: int) -> None:
        """``/clock`` says ``now_ns``. Going back by more than ``SIMULATED_SKEW_S`` is a fault and changes nothing."""
        with self._moved:
            before_ns = self._simulated_ns if self._simulated_ns is not None else now_ns
            if now_ns < before_ns - seconds_to_ns(SIMULATED_SKEW_S):
                back_s = ns_to_seconds(before_ns - now_ns)
                self._fault = self._fault or ClockSkew(f"topic /clock: time went back by {back_s:.3f} s", RESTART)
            elif now_ns > before_ns:
                self._simulated_ns = now_ns
            self._moved.notify_all()

    def observe_stamp(self, stamp_ns: int, topic: str) -> bool:
        """Take note of a stamp that has just arrived; False if it lies too far in the future to be used."""
        if stamp_ns <= self.now_ns():
            return True
        with self._moved:
            # Measured against the clock as it was without help, so that a robot's clock that runs fast is found out.
            own_ns = self._host.now_ns() + self._unix_offset_ns if self._simulated_ns is None else self._simulated_ns
            ahead_ns = stamp_ns - own_ns
            allowed_s = self.allowed_skew_s
            if ahead_ns > seconds_to_ns(allowed_s):
                self._fault = self._fault or ClockSkew(
                    f"topic {topic}: stamped {ns_to_seconds(ahead_ns):.3f} s in the future, {allowed_s:g} s is allowed",
                    CHRONY,
                )
                return False
            if self._simulated_ns is None:
                self._lead_ns = max(self._lead_ns, ahead_ns)
            else:
                self._simulated_ns = max(self._simulated_ns, stamp_ns)
                self._moved.notify_all()
        return True
