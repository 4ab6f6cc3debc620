"""The guard's clock: this computer's monotonic clock, or ``/clock`` if ``/use_sim_time`` is set."""

from __future__ import annotations

import rospy

from robot_runtime.common.clock import SystemClock, seconds_to_ns

STALL_S = 2.0
"""Host seconds that simulated time may stand still before the wheels are stopped.

Without this limit, a robot with ``/use_sim_time`` left set would never see a command expire. It is longer than a
simulator waits for a busy computer.
"""

AHEAD_S = 1.0
"""Largest lead of a message's stamp over ``/clock``; beyond that, two clocks disagree."""


class GuardClock:
    """The clock; create it after ``rospy.init_node``, which selects the time source."""

    def __init__(self) -> None:
        self._host = SystemClock()
        self.simulated = not rospy.rostime.is_wallclock()
        self._newest_ns = -1
        self._stamp_ns = 0
        self._advanced_ns = self._host.now_ns() - seconds_to_ns(STALL_S)

    def now_ns(self) -> int:
        """Return the time in nanoseconds; its origin is arbitrary."""
        if not self.simulated:
            return self._host.now_ns()
        return max(self._ros_time_ns(), self._plausible_ns(self._stamp_ns))

    def observe_stamp(self, stamp_ns: int) -> None:
        """Advance to the stamp of a received message, which on a busy computer may arrive before its ``/clock``."""
        self._stamp_ns = max(self._plausible_ns(stamp_ns), self._plausible_ns(self._stamp_ns))

    def stalled(self) -> bool:
        """Whether simulated time has stood still for ``STALL_S``; call it more often than that."""
        if not self.simulated:
            return False
        now_ns, host_ns = self._ros_time_ns(), self._host.now_ns()
        if now_ns != self._newest_ns:
            if self._newest_ns >= 0 and now_ns > 0:
                self._advanced_ns = host_ns
            self._newest_ns = now_ns
        return host_ns - self._advanced_ns >= seconds_to_ns(STALL_S)

    def _plausible_ns(self, stamp_ns: int) -> int:
        """Return the stamp, or 0 where it is too far ahead of ``/clock``, as after a restart of the simulator."""
        return stamp_ns if stamp_ns <= self._ros_time_ns() + seconds_to_ns(AHEAD_S) else 0

    def _ros_time_ns(self) -> int:
        return int(rospy.get_rostime().to_nsec())
