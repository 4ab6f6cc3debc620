"""Simulated time: its pace, its stamps, and periodic timers."""

from robot_runtime.common.clock import MAX_CATCH_UP_S, SystemClock, seconds_to_ns, unix_now_ns

MAX_LAG_S = 0.01
"""Largest lag of ``/clock`` that is caught up: the overshoot of the host's sleep."""


class RatePacer:
    """Keeps simulated time at a rate of the host's time.

    Args:
        rate: Simulated seconds per second of the host.
        max_lag_s: The lag that is caught up. In real time a stalled robot must catch up with the wall clock; ``/clock``
            must not, or its subscribers would see time pass messages that are still in transit.
    """

    def __init__(self, rate: float, max_lag_s: float) -> None:
        self._host = SystemClock()
        self._start_ns = self._host.now_ns()
        self._rate = rate
        self._max_lag_ns = seconds_to_ns(max_lag_s)

    def wait(self, now_ns: int) -> None:
        """Return when simulated time may be ``now_ns``."""
        due_ns = self._start_ns + round(now_ns / self._rate)
        lag_ns = self._host.now_ns() - due_ns
        if lag_ns > self._max_lag_ns:
            self._start_ns += lag_ns - self._max_lag_ns
        self._host.sleep_until(due_ns)


class StampClock:
    """Converts simulated time to stamps.

    Args:
        wall: Whether stamps are the robot's wall clock; else, with ``/clock``, they are simulated time itself.
    """

    def __init__(self, wall: bool) -> None:
        self._wall = wall
        self._offset_ns = unix_now_ns() if wall else 0

    def update(self, now_ns: int) -> None:
        """Follow the wall clock where simulated time has been lost, or the wall clock was set; call it every step.

        No stamp lies in the future: catching up would lead there after a loss of time.
        """
        if not self._wall:
            return
        behind_ns = unix_now_ns() - self._offset_ns - now_ns
        if not 0 <= behind_ns <= seconds_to_ns(MAX_CATCH_UP_S):
            self._offset_ns += behind_ns

    def stamp_ns(self, now_ns: int) -> int:
        """Return the stamp of simulated time ``now_ns``."""
        return now_ns + self._offset_ns


class PeriodicTimer:
    """Fires at multiples of a period since the clock's start.

    Args:
        rate_hz: How often it fires.
        step_ns: Length of a physics step; the timer fires on that grid.
    """

    def __init__(self, rate_hz: float, step_ns: int) -> None:
        self._rate_hz = rate_hz
        self._step_ns = step_ns
        self._count = 0
        self._next_ns = 0

    def due(self, now_ns: int) -> bool:
        """Whether the timer has fired since the last call; several missed periods count as one."""
        if now_ns < self._next_ns:
            return False
        while self._next_ns <= now_ns:
            self._count += 1
            exact_ns = seconds_to_ns(self._count / self._rate_hz)
            self._next_ns = -(-exact_ns // self._step_ns) * self._step_ns  # rounded up to the grid of steps
        return True
