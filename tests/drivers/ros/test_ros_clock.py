"""ROS time: it never goes back, follows stamps and /clock, and says when two clocks disagree. No ROS needed."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from raising import raises_naming

from drivers.ros.connection.clock import RosClock
from drivers.ros.connection.errors import ClockSkew
from drivers.ros.connection.received import Received
from drivers.ros.connection.topic_cache import TopicCache
from robot_runtime.common.clock import NS_PER_S, SimulatedClock, unix_now_ns
from robot_runtime.errors import StaleData

S = NS_PER_S
MS = 1_000_000


def message(stamp_ns: int) -> Received:
    return Received(None, stamp_ns)


def simulated(now_ns: int = 10 * S, stall_s: float = 0.05) -> RosClock:
    clock = RosClock(max_skew_s=0.05, stall_s=stall_s)
    clock.start_simulated(now_ns)
    return clock


def test_it_is_unix_time_until_told_otherwise() -> None:
    clock = RosClock(0.05, 1.0)
    before_unix_ns = unix_now_ns()
    before_ns = clock.now_ns()
    assert before_unix_ns - 50 * MS < before_ns < unix_now_ns() + 50 * MS
    clock.sleep(0.01)
    assert clock.now_ns() - before_ns >= 10 * MS


def test_a_stamp_a_little_ahead_moves_the_clock_up_to_it() -> None:
    clock = RosClock(0.05, 1.0)
    stamp_ns = clock.now_ns() + 40 * MS
    assert clock.observe_stamp(stamp_ns, "/odom")
    assert clock.now_ns() >= stamp_ns
    clock.check()


def test_a_stamp_far_ahead_is_refused_and_told() -> None:
    clock = RosClock(0.05, 1.0)
    assert not clock.observe_stamp(clock.now_ns() + 3000 * S, "/odom")
    with pytest.raises(
        ClockSkew, match=r"/odom: stamped (2999|3000)\.\d+ s in the future, 0.05 s is allowed"
    ) as caught:
        clock.check()
    assert "chrony" in caught.value.remedy


def test_a_clock_that_runs_fast_is_found_out_although_each_step_is_small() -> None:
    clock = RosClock(0.05, 1.0)
    start_ns = clock.now_ns()
    # Beyond any pause that a busy computer makes meanwhile.
    usable = [clock.observe_stamp(start_ns + lead_ms * MS, "/odom") for lead_ms in range(20, 60_000, 20)]
    assert usable[0]
    assert not usable[-1]
    assert clock.now_ns() - start_ns < 60 * S


def test_a_pause_between_two_readings_is_no_clock_that_was_set(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = RosClock(0.05, 1.0)
    host, pauses_ns = SimulatedClock(MS), iter([700 * MS])

    def unix_now() -> int:
        now_ns = host.now_ns()
        host.sleep_until(now_ns + next(pauses_ns, 0))
        return now_ns

    monkeypatch.setattr(clock, "_host", host)
    monkeypatch.setattr(clock, "_unix_offset_ns", 0)
    monkeypatch.setattr("drivers.ros.connection.clock.unix_now_ns", unix_now)
    clock.check()
    assert host.now_ns() == 700 * MS


def test_a_new_connection_forgets_the_old_ones_trouble() -> None:
    clock = RosClock(0.05, 1.0)
    clock.observe_stamp(clock.now_ns() + 3 * S, "/odom")
    clock.restart()
    clock.check()


@given(st.lists(st.integers(-S, S), max_size=50))
def test_simulated_time_never_goes_back(steps_ns: list[int]) -> None:
    clock = simulated()
    seen = [clock.now_ns()]
    tick_ns = clock.now_ns()
    for step_ns in steps_ns:
        tick_ns += step_ns
        clock.advance(tick_ns)
        seen.append(clock.now_ns())
    assert seen == sorted(seen)


def test_a_simulator_that_starts_anew_is_told_apart() -> None:
    clock = simulated()
    clock.advance(1 * S)
    with raises_naming(ClockSkew, "/clock", "9.000 s"):
        clock.check()
    assert clock.now_ns() == 10 * S


def test_stamps_do_not_hide_how_far_a_process_is_behind_simulated_time() -> None:
    clock = simulated()
    usable = [clock.observe_stamp(10 * S + tick * 20 * MS, "/odom") for tick in range(75)]
    assert usable.index(False) == 51
    with raises_naming(ClockSkew, "/odom", "1.020 s") as caught:
        clock.check()
    assert "suspended" in caught.value.remedy
    assert clock.advance(int(11.5 * S)) == 1.5


def test_waiting_on_a_clock_that_stands_still_has_a_limit() -> None:
    with raises_naming(ClockSkew, "/clock", "0.05 s"):
        simulated().sleep_until(11 * S)


def test_waiting_ends_when_simulated_time_gets_there() -> None:
    clock = simulated(stall_s=30.0)
    ticking = threading.Thread(target=lambda: [clock.advance(10 * S + tick * 100 * MS) for tick in range(1, 20)])
    ticking.start()
    clock.sleep_until(11 * S)
    ticking.join()
    assert clock.now_ns() >= 11 * S


# --- channels -------------------------------------------------------------------------------------------------------


def test_nothing_received_names_the_topic() -> None:
    with raises_naming(StaleData, "/odom"):
        TopicCache("/odom", simulated()).read(0.1)


def test_silence_names_topic_and_age() -> None:
    clock = simulated()
    channel = TopicCache("/odom", clock)
    channel.receive(message(10 * S))
    assert channel.read(0.1).stamp_ns == 10 * S
    clock.advance(13 * S)
    with raises_naming(StaleData, "/odom", "3.000 s") as caught:
        channel.read(0.1)
    assert not isinstance(caught.value, ClockSkew)


def test_what_comes_while_the_clock_is_read_is_no_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = simulated()
    channel = TopicCache("/odom", clock)
    channel.receive(message(10 * S))
    read = clock.now_ns

    def paused() -> int:
        monkeypatch.undo()
        clock.advance(11 * S)
        channel.receive(message(11 * S))
        return read()

    monkeypatch.setattr(clock, "now_ns", paused)
    assert channel.read(0.1).stamp_ns == 11 * S


@pytest.mark.parametrize("busy_ms", [0, 500])
def test_old_stamps_that_keep_coming_are_a_skew_and_no_silence(busy_ms: int) -> None:
    """Also where this computer is too busy to take in the next one."""
    clock = simulated()
    channel = TopicCache("/odom", clock)
    channel.receive(message(7 * S))
    clock.advance(10 * S + busy_ms * MS)
    with raises_naming(ClockSkew, "/odom", "3.000 s"):
        channel.read(0.1)


def test_a_process_that_was_stopped_is_no_skew() -> None:
    """It finds late messages in its queue; those before it was stopped were in time."""
    clock = simulated()
    channel = TopicCache("/odom", clock)
    for tick in range(50):
        clock.advance(10 * S + tick * 20 * MS)
        channel.receive(message(10 * S + tick * 20 * MS))
    clock.advance(15 * S)
    for tick in range(50, 150):
        channel.receive(message(10 * S + tick * 20 * MS))
        with raises_naming(StaleData, "/odom", "s late") as caught:
            channel.read(0.1)
        assert not isinstance(caught.value, ClockSkew)
        assert "suspended" in caught.value.remedy
    channel.receive(message(15 * S))
    assert channel.read(0.1).stamp_ns == 15 * S


@pytest.mark.parametrize("work_ms", [1, 5, 9])
def test_a_process_that_works_through_its_queue_for_long_is_no_skew(work_ms: int) -> None:
    clock = simulated()
    channel = TopicCache("/odom", clock)
    for tick in range(300):
        clock.advance(15 * S + tick * work_ms * MS)
        channel.receive(message(10 * S + tick * 20 * MS))
        if tick == 0 or clock.now_ns() - (10 * S + tick * 20 * MS) <= 1050 * MS:
            continue  # one message tells nothing; and so late simulated time may be
        with raises_naming(StaleData, "/odom", "s late") as caught:
            channel.read(0.1)
        assert not isinstance(caught.value, ClockSkew)


def test_a_clock_that_is_set_back_is_a_skew_once_messages_have_been_late_for_a_while() -> None:
    clock = simulated()
    channel = TopicCache("/odom", clock)
    for tick in range(12):
        clock.advance(10 * S + tick * 20 * MS)
        channel.receive(message(10 * S + tick * 20 * MS - (0 if tick == 0 else 3 * S)))
    clock.advance(12 * S)
    channel.receive(message(9 * S))
    with raises_naming(ClockSkew, "/odom", "3.000 s"):
        channel.read(0.1)


@pytest.mark.parametrize("stamp_ns", [0, 20 * S])
def test_unusable_stamps_are_not_taken(stamp_ns: int) -> None:
    channel = TopicCache("/odom", simulated())
    assert channel.receive(message(stamp_ns)) is None
    assert channel.newest is None


def test_late_messages_do_not_replace_newer_ones() -> None:
    channel = TopicCache("/odom", simulated())
    channel.receive(message(9 * S))
    channel.receive(message(8 * S))
    assert channel.newest is not None
    assert channel.newest.stamp_ns == 9 * S


def test_a_message_without_a_stamp_is_as_old_as_its_arrival() -> None:
    channel = TopicCache("/battery/voltage", simulated())
    channel.receive(Received(SimpleNamespace(data=16.0)))
    assert channel.read(0.1).stamp_ns == 10 * S
