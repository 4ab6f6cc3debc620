"""Simulated time: how fast it passes, its stamps, and what happens at a rate."""

from __future__ import annotations

from robot_runtime.common.clock import MAX_CATCH_UP_S, SystemClock, seconds_to_ns, unix_now_ns

MAX_LAG_S = 0.01
"""How far ``/clock`` may fall behind its pace and still make up for it: what a sleep of the host overshoots."""


class RatePacer:
    """Keeps simulated time from running ahead of the host's, and from hurrying after it.

    Args:
        rate: simulated seconds per second of the host.
        max_lag_s: what is made up for. In real time a stalled robot must catch up with the wall clock; ``/clock`` must
            not: whoever listens would see time race past messages that are still on their way.
    """

    def __init__(self, rate: float, max_lag_s: float) -> None:
        self._host = SystemClock()
        self._start_ns = self._host.now_ns()
        self._rate = rate
        self._max_lag_ns = seconds_to_ns(max_lag_s)

    def keep(self, now_ns: int) -> None:
        """Return when simulated time may be ``now_ns``."""
        due_ns = self._start_ns + round(now_ns / self._rate)
        lag_ns = self._host.now_ns() - due_ns
        if lag_ns > self._max_lag_ns:
            self._start_ns += lag_ns - self._max_lag_ns
        self._host.sleep_until(due_ns)


class StampClock:
    """Turns simulated time into stamps.

    With ``/clock`` a stamp is simulated time itself; in real time it is what the robot's wall clock showed then.

    Args:
        wall: whether stamps are of the wall clock.
    """

    def __init__(self, wall: bool) -> None:
        self._wall = wall
        self._offset_ns = unix_now_ns() if wall else 0

    def keep_pace(self, now_ns: int) -> None:
        """Follow the wall clock where simulated time has been lost, or the wall clock was set; call it every step.

        No stamp lies in the future: what hurries to catch up would get there when time was lost before.
        """
        if not self._wall:
            return
        behind_ns = unix_now_ns() - self._offset_ns - now_ns
        if not 0 <= behind_ns <= seconds_to_ns(MAX_CATCH_UP_S):
            self._offset_ns += behind_ns

    def stamp_ns(self, now_ns: int) -> int:
        """Nanoseconds for a message's header, of simulated time ``now_ns``."""
        return now_ns + self._offset_ns


class PeriodicTimer:
    """Says when it is time again, at multiples of a period since the clock's start.

    Args:
        step_ns: length of a step; on its grid the ticks fall.
    """

    def __init__(self, rate_hz: float, step_ns: int) -> None:
        self._rate_hz = rate_hz
        self._step_ns = step_ns
        self._number = 0
        self._next_ns = 0

    def due(self, now_ns: int) -> bool:
        """Whether a tick has come since the last call; several missed ones count as one."""
        if now_ns < self._next_ns:
            return False
        while self._next_ns <= now_ns:
            self._number += 1
            exact_ns = seconds_to_ns(self._number / self._rate_hz)
            # Up to the step on which it can happen.
            self._next_ns = -(-exact_ns // self._step_ns) * self._step_ns
        return True
