"""Clocks and waits. No other module reads the time or waits for it.

Stamps are integer nanoseconds on the robot's own monotonic time line; they order events and give ages, and are not
wall-clock time. Waiting on the simulated clock advances the world.
"""

from __future__ import annotations

import datetime as dt
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

host_now_ns = time.perf_counter_ns
"""Host time for a :class:`Stopwatch` that must cost nothing."""

NS_PER_S = 1_000_000_000

MAX_CATCH_UP_S = 0.25
"""Longest delay that a real-time simulation makes up for by running faster: a few frames that took long to draw.

Time lost beyond that (loading a model, a policy that computes for seconds) is not made up for, so that the robot does
not race."""

_READINGS = 3


def seconds_to_ns(seconds: float) -> int:
    """Seconds as integer nanoseconds, rounded to the nearest."""
    return round(seconds * NS_PER_S)


def ns_to_seconds(ns: int) -> float:
    """Integer nanoseconds as seconds."""
    return ns / NS_PER_S


class Clock(ABC):
    """The robot's monotonic time."""

    @abstractmethod
    def now_ns(self) -> int:
        """Nanoseconds since the clock's own epoch; never decreases."""

    @abstractmethod
    def sleep_until(self, deadline_ns: int) -> None:
        """Return once ``now_ns() >= deadline_ns``; at once if that is already so."""

    def sleep(self, seconds: float) -> None:
        """Wait for a duration in seconds."""
        self.sleep_until(self.now_ns() + seconds_to_ns(seconds))


class SystemClock(Clock):
    """The host's monotonic clock."""

    def now_ns(self) -> int:
        """Nanoseconds since an arbitrary origin."""
        return time.monotonic_ns()

    def sleep_until(self, deadline_ns: int) -> None:
        """Sleep, again where the sleep was cut short."""
        while (remaining_ns := deadline_ns - time.monotonic_ns()) > 0:
            time.sleep(remaining_ns / NS_PER_S)


class SimulatedClock(Clock):
    """A clock whose time passes only during a sleep on it, in steps of fixed length.

    Args:
        step_ns: length of a step; a sleep ends on the first step boundary at or after its deadline.
        pacer: when given, simulated time never runs ahead of this clock (real-time mode), nor faster than it except to
            make up for at most ``MAX_CATCH_UP_S``.
    """

    def __init__(self, step_ns: int, pacer: Clock | None = None) -> None:
        if step_ns <= 0:
            raise ValueError(f"step_ns must be positive, got {step_ns}")
        self.step_ns = step_ns
        self._now_ns = 0
        self._on_step: list[Callable[[int], None]] = []
        self._pacer = pacer
        self._pacer_epoch_ns = pacer.now_ns() if pacer is not None else 0

    def add_listener(self, on_step: Callable[[int], None]) -> None:
        """Have ``on_step(now_ns)`` called after every step, in the order in which listeners were added."""
        self._on_step.append(on_step)

    def remove_listener(self, on_step: Callable[[int], None]) -> None:
        """Call a listener no longer."""
        self._on_step = [listener for listener in self._on_step if listener != on_step]

    def now_ns(self) -> int:
        """Simulated nanoseconds since the start."""
        return self._now_ns

    def sleep_until(self, deadline_ns: int) -> None:
        """Let time pass in steps."""
        while (now_ns := self._now_ns) < deadline_ns:
            self._now_ns = now_ns = now_ns + self.step_ns
            for listener in self._on_step:
                listener(now_ns)
            if self._pacer is not None:
                self._keep_pace(self._pacer)

    def _keep_pace(self, pacer: Clock) -> None:
        behind_ns = pacer.now_ns() - self._pacer_epoch_ns - self._now_ns
        self._pacer_epoch_ns += max(0, behind_ns - seconds_to_ns(MAX_CATCH_UP_S))
        pacer.sleep_until(self._pacer_epoch_ns + self._now_ns)


def wait_for(clock: Clock, probe: Callable[[], T | None], timeout_s: float, poll_s: float) -> T | None:
    """The first result of ``probe`` that is not None, or None once ``timeout_s`` has passed without one.

    ``probe`` is called at once, then every ``poll_s`` and a last time at the deadline. What it raises ends the wait.

    Raises:
        ValueError: if ``timeout_s`` is negative, infinite or NaN, or ``poll_s`` is not positive: no wait is endless.
    """
    if not 0 <= timeout_s < float("inf"):
        raise ValueError(f"timeout_s must be finite and not negative, got {timeout_s}")
    if not poll_s > 0:
        raise ValueError(f"poll_s must be positive, got {poll_s}")
    deadline_ns = clock.now_ns() + seconds_to_ns(timeout_s)
    poll_ns = max(1, seconds_to_ns(poll_s))
    while True:
        now_ns = clock.now_ns()
        result = probe()
        if result is not None or now_ns >= deadline_ns:
            return result
        clock.sleep_until(min(deadline_ns, now_ns + poll_ns))


class Stopwatch:
    """Elapsed host time, for measuring the duration of the runtime's own code (never for controlling a robot)."""

    def __init__(self) -> None:
        self._start_ns = time.perf_counter_ns()

    def elapsed_s(self) -> float:
        """Seconds since construction or the last :meth:`restart`."""
        return (time.perf_counter_ns() - self._start_ns) / NS_PER_S

    def restart(self) -> float:
        """Return the elapsed seconds and start again from zero."""
        now_ns = time.perf_counter_ns()
        elapsed_s = (now_ns - self._start_ns) / NS_PER_S
        self._start_ns = now_ns
        return elapsed_s


def unix_now_ns() -> int:
    """Nanoseconds since 1970 UTC by the host's wall clock (it can be set), to compare with others' stamps."""
    return time.time_ns()


def ahead_ns(this: Callable[[], int], other: Callable[[], int]) -> int:
    """Offset between the ``now_ns`` of two clocks.

    They are read several times, and the quickest reading counts: a process may be stopped for a second between two.
    """
    readings = [(other(), this(), other()) for _ in range(_READINGS)]
    before_ns, here_ns, after_ns = min(readings, key=lambda reading: reading[2] - reading[0])
    return here_ns - (before_ns + after_ns) // 2


def utc_now_iso() -> str:
    """The wall-clock time as ISO 8601 in UTC, for headers and file names."""
    return dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds")
