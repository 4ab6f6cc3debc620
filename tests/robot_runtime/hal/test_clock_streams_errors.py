"""Time, ages and the errors that name them."""

from __future__ import annotations

import copy
import math
import pickle
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robot_runtime import errors
from robot_runtime.common.clock import (
    MAX_CATCH_UP_S,
    Clock,
    SimulatedClock,
    Stopwatch,
    SystemClock,
    ahead_ns,
    ns_to_seconds,
    seconds_to_ns,
    utc_now_iso,
    wait_for,
)
from robot_runtime.errors import RuntimeFault, StaleData
from robot_runtime.hal.streams import STREAMS, fresh

MS = 1_000_000


@given(st.integers(0, 10**15))
def test_seconds_and_nanoseconds_agree(ns: int) -> None:
    assert abs(seconds_to_ns(ns_to_seconds(ns)) - ns) <= 1


def test_simulated_time_passes_only_for_sleepers_and_in_steps() -> None:
    clock = SimulatedClock(20 * MS)
    seen: list[tuple[str, int]] = []
    clock.add_listener(lambda now_ns: seen.append(("first", now_ns)))
    clock.add_listener(lambda now_ns: seen.append(("second", now_ns)))
    clock.sleep_until(0)
    clock.sleep_until(-5)
    assert (clock.now_ns(), seen) == (0, [])
    clock.sleep(0.03)
    assert clock.now_ns() == 40 * MS
    assert seen == [("first", 20 * MS), ("second", 20 * MS), ("first", 40 * MS), ("second", 40 * MS)]


def test_a_listener_sees_the_clock_at_its_own_step() -> None:
    clock = SimulatedClock(MS)
    seen: list[bool] = []
    clock.add_listener(lambda now_ns: seen.append(now_ns == clock.now_ns()))
    clock.sleep(0.003)
    assert seen == [True] * 3


@pytest.mark.parametrize("step_ns", [0, -1])
def test_a_step_must_be_positive(step_ns: int) -> None:
    with pytest.raises(ValueError, match="step_ns must be positive"):
        SimulatedClock(step_ns)


def test_real_time_is_another_clock_that_is_waited_for() -> None:
    wall = SimulatedClock(7 * MS)
    wall.sleep_until(70 * MS)
    clock = SimulatedClock(10 * MS, pacer=wall)
    clock.sleep_until(50 * MS)
    assert clock.now_ns() == 50 * MS
    assert wall.now_ns() >= 70 * MS + 50 * MS, "simulated time never runs ahead of the pacer"


def test_real_time_makes_up_for_a_short_delay() -> None:
    wall = SimulatedClock(MS)
    clock = SimulatedClock(10 * MS, pacer=wall)
    wall.sleep(0.2)
    clock.sleep(0.1)
    assert wall.now_ns() == 200 * MS, "behind: no waiting"
    clock.sleep(0.2)
    assert wall.now_ns() == clock.now_ns() == 300 * MS, "and level again"


def test_real_time_does_not_race_after_a_long_delay() -> None:
    wall = SimulatedClock(MS)
    clock = SimulatedClock(10 * MS, pacer=wall)
    wall.sleep(60)  # a model was loaded
    clock.sleep(10)
    assert wall.now_ns() == pytest.approx(seconds_to_ns(60 + 10 - MAX_CATCH_UP_S), abs=10 * MS)


def test_the_system_clock_runs_forward_and_does_not_wait_for_the_past() -> None:
    clock = SystemClock()
    before_ns = clock.now_ns()
    clock.sleep_until(before_ns - 10**9)
    clock.sleep_until(before_ns + MS)
    assert clock.now_ns() >= before_ns + MS


def test_a_stopwatch_counts_up_and_restarts() -> None:
    watch = Stopwatch()
    assert watch.elapsed_s() <= watch.elapsed_s()
    assert watch.restart() >= 0
    assert watch.elapsed_s() >= 0


@pytest.mark.parametrize("pause", range(6))
def test_how_far_one_clock_is_ahead_does_not_depend_on_a_pause_between_readings(pause: int) -> None:
    host, number = SimulatedClock(MS), 0

    def reading(ahead_ms: int) -> int:
        nonlocal number
        now_ns = host.now_ns() + ahead_ms * MS
        if number == pause:
            host.sleep(1.0)
        number += 1
        return now_ns

    assert ahead_ns(lambda: reading(300), lambda: reading(0)) == 300 * MS


def test_wall_clock_time_is_iso_8601_in_utc() -> None:
    assert utc_now_iso().endswith("+00:00")


# --- waiting ----------------------------------------------------------------------------------------------------------


def after(clock: Clock, ready_ns: int) -> str | None:
    return "ready" if clock.now_ns() >= ready_ns else None


@pytest.mark.parametrize(
    ("ready_ms", "timeout_s", "result", "waited_ms"),
    [(0, 0.0, "ready", 0), (1, 0.0, None, 0), (35, 1.0, "ready", 40), (100, 0.1, "ready", 100), (101, 0.1, None, 100)],
)
def test_waiting_ends_with_the_result_or_at_the_deadline(
    ready_ms: int, timeout_s: float, result: str | None, waited_ms: int
) -> None:
    clock = SimulatedClock(MS)
    assert wait_for(clock, lambda: after(clock, ready_ms * MS), timeout_s, poll_s=0.02) == result
    assert clock.now_ns() == waited_ms * MS


@pytest.mark.parametrize("timeout_s", [-1.0, math.inf, math.nan])
def test_no_wait_is_endless(timeout_s: float) -> None:
    with pytest.raises(ValueError, match="timeout_s must be finite"):
        wait_for(SimulatedClock(MS), lambda: None, timeout_s, poll_s=0.02)


@pytest.mark.parametrize("poll_s", [0.0, -1.0, math.nan])
def test_polling_takes_time(poll_s: float) -> None:
    with pytest.raises(ValueError, match="poll_s must be positive"):
        wait_for(SimulatedClock(MS), lambda: None, 1.0, poll_s)


def test_what_the_probe_raises_ends_the_wait() -> None:
    clock = SimulatedClock(MS)

    def probe() -> None:
        raise StaleData("gone", "look")

    with pytest.raises(StaleData):
        wait_for(clock, probe, 1.0, poll_s=0.02)
    assert clock.now_ns() == 0


# --- streams ----------------------------------------------------------------------------------------------------------


@dataclass
class Reading:
    stamp_ns: int


@pytest.mark.parametrize("age_ms", [0, 50, 100])
def test_a_fresh_reading_passes(age_ms: int) -> None:
    reading = Reading(1000 * MS)
    assert fresh("base", reading, (1000 + age_ms) * MS, max_age_s=0.1) is reading


@pytest.mark.parametrize(
    ("reading", "max_age_s", "message"),
    [
        (None, 0.1, "stream 'base' has delivered nothing yet"),
        (Reading(0), 0.1, "stream 'base' is 1.000 s old, 0.1 s is allowed"),
        (Reading(0), math.nan, "stream 'base' is 1.000 s old"),
        (Reading(1000 * MS), -1.0, "stream 'base' is 0.000 s old, -1 s is allowed"),
        (Reading(1250 * MS), 0.1, "stream 'base' is stamped 0.250 s in the future"),
    ],
)
def test_anything_else_is_stale_and_says_why(reading: Reading | None, max_age_s: float, message: str) -> None:
    with pytest.raises(StaleData) as caught:
        fresh("base", reading, 1000 * MS, max_age_s)
    assert caught.value.message.startswith(message)
    assert caught.value.remedy


def test_the_table_of_streams_is_consistent() -> None:
    assert all(name == stream.name and stream.topic.startswith("/") for name, stream in STREAMS.items())
    assert len({stream.topic for stream in STREAMS.values()}) == len(STREAMS)
    for stream in STREAMS.values():
        if stream.rate_hz:
            assert stream.max_age_s >= 2 / stream.rate_hz, f"{stream.name}: one missed message must not be an error"
        assert stream.log_rate_hz <= stream.rate_hz


# --- errors -----------------------------------------------------------------------------------------------------------

ALL_ERRORS = [cls for cls in vars(errors).values() if isinstance(cls, type) and issubclass(cls, RuntimeFault)]


@pytest.mark.parametrize("cls", ALL_ERRORS)
def test_an_error_carries_message_and_remedy_through_copies(cls: type[RuntimeFault]) -> None:
    error = cls("the wheel is off", "put it on")
    assert str(error) == "the wheel is off\n  remedy: put it on"
    for same in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert type(same) is cls
        assert (same.message, same.remedy) == ("the wheel is off", "put it on")
    assert 0 < cls.exit_code < 64
    assert cls.__doc__
