"""Another clock's stamps on the robot's clock."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robot_runtime.common.clock import seconds_to_ns
from robot_runtime.hal.clock_sync import ClockSync

PERIOD_S = 1 / 30
OFFSET_S = 4321.0


def device_ns(at_s: float, drift_ppm: float) -> int:
    """Time of a clock that is slower by that much."""
    return seconds_to_ns((at_s - OFFSET_S) / (1 + drift_ppm * 1e-6))


def listen(sync: ClockSync, delays_s: list[float], drift_ppm: float, begin_s: float = 5000.0) -> list[float]:
    """Messages that arrive so late, one per frame; when they were sent."""
    sent = [begin_s + number * PERIOD_S for number in range(len(delays_s))]
    for at_s, delay_s in zip(sent, delays_s, strict=True):
        sync.add(device_ns(at_s, drift_ppm), seconds_to_ns(at_s + delay_s))
    return sent


@given(drift_ppm=st.floats(-100, 100), seed=st.integers(0, 10_000))
@settings(max_examples=25)
def test_late_messages_do_not_shift_the_clock(drift_ppm: float, seed: int) -> None:
    delays_s = 0.03 + np.random.default_rng(seed).exponential(0.005, 1800)
    sync = ClockSync(least_delay_s=0.03)
    sent = listen(sync, delays_s.tolist(), drift_ppm)
    errors_s = [sync.to_clock_ns(device_ns(at_s, drift_ppm)) / 1e9 - at_s for at_s in sent[900:]]
    assert np.abs(errors_s).max() < 0.0015
    assert sync.drift_ppm == pytest.approx(drift_ppm, abs=40)


@given(drift_ppm=st.floats(-150, 150), delay_s=st.floats(0, 0.2), count=st.integers(1, 200))
@settings(max_examples=40)
def test_messages_that_are_equally_late_give_the_clock_exactly(drift_ppm: float, delay_s: float, count: int) -> None:
    sync = ClockSync(delay_s)
    sent = listen(sync, [delay_s] * count, drift_ppm)
    found_ns = sync.to_clock_ns(device_ns(sent[-1], drift_ppm))
    # Up to a bucket of messages is told by one of them, with a drift that is not known yet.
    assert found_ns == pytest.approx(seconds_to_ns(sent[-1]), abs=0.2e6)


@given(delays=st.lists(st.floats(0, 1.0), min_size=1, max_size=300), drift_ppm=st.floats(-100, 100))
@settings(max_examples=40)
def test_nothing_is_taken_to_have_been_later_than_it_arrived(delays: list[float], drift_ppm: float) -> None:
    sync = ClockSync()
    sent = listen(sync, delays, drift_ppm)
    for at_s, delay_s in zip(sent, delays, strict=True):
        # Of each second the least late message is kept; the others lie above the line but for a second's drift.
        assert sync.to_clock_ns(device_ns(at_s, drift_ppm)) <= seconds_to_ns(at_s + delay_s) + 400_000


def test_a_device_that_was_restarted_starts_anew() -> None:
    sync = ClockSync()
    listen(sync, [0.01] * 60, 0.0)
    sync.add(0, seconds_to_ns(6000.0))
    assert sync.to_clock_ns(1_000_000) == seconds_to_ns(6000.0) + 1_000_000


def test_a_device_whose_clock_was_set_forward_starts_anew() -> None:
    sync = ClockSync()
    listen(sync, [0.01] * 60, 0.0)
    sync.add(device_ns(9000.0, 0.0), seconds_to_ns(5010.0))
    assert sync.to_clock_ns(device_ns(9000.0, 0.0)) == seconds_to_ns(5010.0)


def test_nothing_is_known_before_the_first_message() -> None:
    with pytest.raises(ValueError, match="no message"):
        ClockSync().to_clock_ns(5)


def test_a_slow_change_of_drift_is_followed() -> None:
    sync = ClockSync()
    listen(sync, [0.0] * 30 * 60, 0.0)
    # Two minutes later, all that is kept is of the new drift.
    sent = listen(sync, [0.0] * 30 * 180, 50.0, begin_s=5060.0)
    assert sync.drift_ppm == pytest.approx(50, abs=1)
    assert sync.to_clock_ns(device_ns(sent[-1], 50.0)) == pytest.approx(seconds_to_ns(sent[-1]), abs=1e5)
