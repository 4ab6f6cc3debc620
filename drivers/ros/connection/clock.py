"""The robot's time over ROS: this computer's time, advanced to the robot's stamps, or a simulator's ``/clock``.

Stamps on a ROS network are Unix time of the computer that wrote them (or simulated time). Ages are correct only if both
computers' clocks agree, so their difference is measured with every received stamp (:meth:`RosClock.observe_stamp`):

* A stamp from the future, by no more than ``max_skew_s``, advances this clock to it.
* A stamp further ahead, or a step of this computer's clock while connected, is a :class:`ClockSkew`. Simulated time has
  one clock only: there, a process that was held up for so long is told by :meth:`RosClock.advance`.
* Stamps that are always late look like a slow network; ``topic_cache.TopicCache`` distinguishes the two.
"""

import threading

from drivers.ros.connection.errors import ClockSkew
from robot_runtime.common.clock import Clock, SystemClock, ahead_ns, ns_to_seconds, seconds_to_ns, unix_now_ns

CHRONY = "synchronise both computers' clocks (chrony; see drivers/ros_locobot/README.md), then connect again"
SIMULATED_SKEW_S = 1.0
"""``max_skew_s`` of simulated time with its single clock: how much earlier a message may be processed than its
``/clock``, on a busy computer with a fast simulator."""

HELD_UP = "this process, its computer or the network was held up: look for a suspended or overloaded computer"

RESTART = "the simulator was restarted or a bag was rewound: connect again"


class RosClock(Clock):
    """ROS time that never goes back.

    Before :meth:`start_simulated` it is Unix time, advancing with the host's monotonic clock.

    Args:
        max_skew_s: How far a stamp may be ahead of this clock.
        stall_s: Host seconds without progress of ``/clock`` after which a wait for simulated time fails.
    """

    def __init__(self, max_skew_s: float, stall_s: float) -> None:
        self.max_skew_s = max_skew_s
        self._max_skew_ns = seconds_to_ns(max_skew_s)
        self._stall_s = stall_s
        self._host = SystemClock()
        self._unix_offset_ns = ahead_ns(unix_now_ns, self._host.now_ns)
        self._lead_ns = 0
        self._simulated_ns: int | None = None
        self._ticked_ns = 0
        self._moved = threading.Condition()
        self._fault: ClockSkew | None = None

    @property
    def simulated(self) -> bool:
        """Whether time comes from ``/clock``."""
        return self._simulated_ns is not None

    @property
    def allowed_skew_s(self) -> float:
        """Seconds by which stamps may be ahead of this clock; more for simulated time with its single clock."""
        return self.max_skew_s if self._simulated_ns is None else SIMULATED_SKEW_S

    def now_ns(self) -> int:
        simulated_ns = self._simulated_ns
        if simulated_ns is not None:
            return simulated_ns
        return self._host.now_ns() + self._unix_offset_ns + self._lead_ns

    def sleep_until(self, deadline_ns: int) -> None:
        """Sleep until ``deadline_ns`` of this clock.

        Raises:
            ClockSkew: Simulated time stands still for ``stall_s`` of the host's time, or went back.
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
        """Raise the ``ClockSkew`` that was detected, if any."""
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
        """Start a new connection: current Unix time, no fault."""
        with self._moved:
            self._fault = None
            self._simulated_ns = None
            self._lead_ns = 0
            self._unix_offset_ns = ahead_ns(unix_now_ns, self._host.now_ns)

    def start_simulated(self, now_ns: int) -> None:
        """Switch to simulated time, set by :meth:`advance`."""
        with self._moved:
            self._simulated_ns = self._ticked_ns = now_ns

    def advance(self, now_ns: int) -> float:
        """Set simulated time. Going back by more than ``SIMULATED_SKEW_S`` is a fault and changes nothing.

        Returns:
            Seconds since the ``/clock`` before: this process is that far behind if messages were lost meanwhile.
        """
        with self._moved:
            passed_ns, self._ticked_ns = now_ns - self._ticked_ns, now_ns
            before_ns = self._simulated_ns if self._simulated_ns is not None else now_ns
            if now_ns < before_ns - seconds_to_ns(SIMULATED_SKEW_S):
                back_s = ns_to_seconds(before_ns - now_ns)
                self._fault = self._fault or ClockSkew(f"topic /clock: time went back by {back_s:.3f} s", RESTART)
            elif now_ns > before_ns:
                self._simulated_ns = now_ns
            self._moved.notify_all()
        return ns_to_seconds(passed_ns)

    def observe_stamp(self, stamp_ns: int, topic: str) -> bool:
        """Process the stamp of a received message; False if it is too far in the future to be used."""
        if stamp_ns <= self.now_ns():
            return True
        with self._moved:
            # Measured against this clock without its lead, so that a robot's clock that runs fast is detected.
            own_ns = self._host.now_ns() + self._unix_offset_ns if self._simulated_ns is None else self._ticked_ns
            ahead_ns = stamp_ns - own_ns
            allowed_s = self.allowed_skew_s
            if ahead_ns > seconds_to_ns(allowed_s):
                self._fault = self._fault or ClockSkew(
                    f"topic {topic}: stamped {ns_to_seconds(ahead_ns):.3f} s in the future, {allowed_s:g} s is allowed",
                    CHRONY if self._simulated_ns is None else f"{HELD_UP}; if it was not, {CHRONY}",
                )
                return False
            if self._simulated_ns is None:
                self._lead_ns = max(self._lead_ns, ahead_ns)
            else:
                self._simulated_ns = max(self._simulated_ns, stamp_ns)
                self._moved.notify_all()
        return True
