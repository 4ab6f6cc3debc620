"""The guard's time: this computer's monotonic clock, or ``/clock`` if the master says that time is simulated."""

from __future__ import annotations

import rospy

from robot_runtime.common.clock import SystemClock, seconds_to_ns

STALL_S = 2.0
"""How long, by this computer's clock, simulated time may stand still before the wheels do.

Without this a robot on which somebody left ``/use_sim_time`` set would never see a command expire. Less, and a
simulator that waits for a busy computer would look like one that has died.
"""

AHEAD_S = 1.0
"""How much sooner a report may be heard than its ``/clock``; beyond that, two clocks disagree."""


class GuardClock:
    """Create it after ``rospy.init_node``, which is when rospy chooses between the two."""

    def __init__(self) -> None:
        self._host = SystemClock()
        self.simulated = not rospy.rostime.is_wallclock()
        self._newest_ns = -1
        self._heard_ns = 0
        self._moved_ns = self._host.now_ns() - seconds_to_ns(STALL_S)

    def now_ns(self) -> int:
        """Nanoseconds; comparable with each other only."""
        if not self.simulated:
            return self._host.now_ns()
        return max(self._ticked_ns(), self._credible_ns(self._heard_ns))

    def observe_stamp(self, stamp_ns: int) -> None:
        """A report of that time has come: on a busy computer before ``/clock``, and it must not look old afterwards."""
        self._heard_ns = max(self._credible_ns(stamp_ns), self._credible_ns(self._heard_ns))

    def stalled(self) -> bool:
        """Whether simulated time has stood still too long; to be asked more often than that."""
        if not self.simulated:
            return False
        now_ns, host_ns = self._ticked_ns(), self._host.now_ns()
        if now_ns != self._newest_ns:
            if self._newest_ns >= 0 and now_ns > 0:
                self._moved_ns = host_ns
            self._newest_ns = now_ns
        return host_ns - self._moved_ns >= seconds_to_ns(STALL_S)

    def _credible_ns(self, heard_ns: int) -> int:
        """The time of a report, or 0 where ``/clock`` is too far behind it, as after it began anew."""
        return heard_ns if heard_ns <= self._ticked_ns() + seconds_to_ns(AHEAD_S) else 0

    def _ticked_ns(self) -> int:
        """What ``/clock`` said last."""
        return int(rospy.get_rostime().to_nsec())
