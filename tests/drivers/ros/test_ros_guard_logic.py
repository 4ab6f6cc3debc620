"""The guard's decisions and statuses, without a network."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from raising import raises_naming

from drivers.ros.connection.received import UNKNOWN
from drivers.ros.guard.e_stop_latch import LEFT_ENGAGED, EStopLatch
from drivers.ros.guard.logic import TEXTS, Hold, WheelGuard
from drivers.ros.guard.safety_levels import Levels, LevelTracker, SafetySensor
from robot_runtime.common.clock import NS_PER_S
from robot_runtime.errors import ConfigError
from robot_runtime.hal import Halt, Velocity, Zone
from robot_runtime.safety.guard import STILL, GuardLimits

LIMITS = GuardLimits(0.7, 2.0, 1.0, 7.0)
PERIOD_NS = NS_PER_S // 50
FORWARD = Velocity(0.2, 0.0)


def driving(ticks: int = 50) -> tuple[WheelGuard, int]:
    """A guard that has let a command through for a second, and the time."""
    guard, now_ns = WheelGuard(LIMITS, LevelTracker(("/core",), ("/events",))), 0
    for _ in range(ticks):
        now_ns += PERIOD_NS
        guard.tracker.levels(Levels(), now_ns, "/core")
        guard.command(FORWARD, now_ns, "/runtime")
        guard.decide(now_ns)
    return guard, now_ns


def test_it_starts_without_feedback_and_says_so() -> None:
    guard = WheelGuard(LIMITS, LevelTracker(("/core",), ("/events",)))
    assert guard.status(0).reason == "no_feedback"
    guard.command(FORWARD, 0, "/runtime")
    output = guard.decide(0)
    assert (output.velocity, output.reason) == (STILL, Halt.NO_FEEDBACK)


def test_commands_pass() -> None:
    guard, now_ns = driving()
    assert guard.decide(now_ns).velocity == FORWARD
    assert guard.status(now_ns).reason == "none"


@pytest.mark.parametrize("hold", Hold)
def test_a_hold_stops_at_once_and_leaves_no_command_behind(hold: Hold) -> None:
    guard, now_ns = driving()
    guard.hold(hold, "/culprit")
    output = guard.decide(now_ns)
    assert (output.velocity, output.reason) == (STILL, hold)
    status = guard.status(now_ns)
    assert status.reason == hold.value
    assert "/culprit" in status.text
    guard.command(FORWARD, now_ns, "/runtime")
    guard.decide(now_ns)
    guard.release(hold)
    assert guard.decide(now_ns).velocity == STILL


def test_an_emergency_stop_is_told_before_any_hold() -> None:
    guard, now_ns = driving()
    guard.hold(Hold.FOREIGN_PUBLISHER, "/teleop")
    guard.emergency_stop(True, now_ns)
    assert guard.decide(now_ns).reason is Halt.E_STOP
    guard.emergency_stop(False, now_ns)
    assert guard.decide(now_ns).reason is Hold.FOREIGN_PUBLISHER


@given(st.sets(st.sampled_from(Hold), min_size=1))
def test_the_first_hold_is_told(holds: set[Hold]) -> None:
    guard, now_ns = driving(2)
    for hold in holds:
        guard.hold(hold, "")
    assert guard.decide(now_ns).reason is next(hold for hold in Hold if hold in holds)


def test_a_velocity_that_is_no_number_stops_and_is_told_until_the_next_good_one() -> None:
    guard, now_ns = driving()
    guard.command(Velocity(math.inf, 0.0), now_ns, "/runtime")
    assert guard.decide(now_ns).velocity == STILL
    assert "not finite" in guard.status(now_ns, ["the master is gone"]).notes
    assert "the master is gone" in guard.status(now_ns, ["the master is gone"]).notes
    guard.command(FORWARD, now_ns, "/runtime")
    assert guard.status(now_ns).notes == ""


def test_a_second_commander_is_refused_until_the_first_is_silent() -> None:
    guard, now_ns = driving()
    guard.command(Velocity(0.0, 1.0), now_ns, "/teleop")
    assert guard.decide(now_ns).velocity == FORWARD
    assert guard.status(now_ns).notes == "commands of /teleop are refused, because /runtime commands the robot"
    now_ns += NS_PER_S // 5 + 1
    guard.tracker.levels(Levels(), now_ns, "/core")
    assert guard.decide(now_ns).reason is Halt.EXPIRED
    guard.command(Velocity(0.0, 1.0), now_ns, "/teleop")
    guard.command(FORWARD, now_ns, "/runtime")
    assert guard.decide(now_ns).velocity.linear_m_s == 0
    assert "/runtime are refused, because /teleop" in guard.status(now_ns).notes
    assert guard.status(now_ns + 2 * NS_PER_S).notes == ""


def test_a_commander_goes_on_when_the_network_has_told_its_name() -> None:
    guard, now_ns = driving()
    now_ns += NS_PER_S // 5 + 1
    guard.tracker.levels(Levels(), now_ns, "/core")
    guard.command(FORWARD, now_ns, UNKNOWN)
    guard.command(Velocity(0.0, 1.0), now_ns, "/teleop")
    assert guard.status(now_ns).notes == ""
    now_ns += NS_PER_S // 10
    assert guard.decide(now_ns).velocity.angular_rad_s > 0.0
    guard.command(FORWARD, now_ns, "/runtime")
    assert "/runtime are refused, because /teleop" in guard.status(now_ns).notes


def test_zones_are_words() -> None:
    guard, now_ns = driving()
    guard.tracker.levels(Levels(bumper=Zone.LEFT | Zone.CENTER, wheel_drop=Zone.RIGHT), now_ns, "/core")
    guard.decide(now_ns)
    status = guard.status(now_ns)
    assert (status.bumper, status.cliff, status.wheel_drop) == ("left+center", "", "right")
    assert status.reason == "wheel_drop"


def test_ages_are_told() -> None:
    guard, now_ns = driving()
    now_ns += 3 * NS_PER_S
    guard.decide(now_ns)
    assert "3.0 s old" in guard.status(now_ns).text


def test_a_pulse_stops_as_a_level_does() -> None:
    guard, now_ns = driving()
    guard.tracker.pulse(SafetySensor.CLIFF, now_ns)
    assert guard.decide(now_ns).reason is Halt.CLIFF


def test_every_reason_has_its_line() -> None:
    assert set(TEXTS) == {*Halt, *Hold}


def test_the_status_says_why_an_emergency_stop_holds_until_it_is_released() -> None:
    guard, now_ns = driving()
    guard.emergency_stop(True, now_ns, LEFT_ENGAGED)
    guard.decide(now_ns)
    status = guard.status(now_ns)
    assert (status.reason, status.e_stop) == ("e_stop", True)
    assert LEFT_ENGAGED in status.text
    guard.emergency_stop(False, now_ns)
    guard.emergency_stop(True, now_ns)
    guard.decide(now_ns)
    assert LEFT_ENGAGED not in guard.status(now_ns).text


@pytest.mark.parametrize(("engaged", "stays"), [(True, True), (False, False)])
def test_a_run_that_ends_in_order_leaves_the_emergency_stop_as_it_was(
    tmp_path: Path, engaged: bool, stays: bool
) -> None:
    path = tmp_path / "robot" / "e_stop"
    first = EStopLatch(path)
    assert first.begin() is False, "the first run ever"
    first.end(engaged)
    assert EStopLatch(path).begin() is stays


def test_a_run_without_an_end_leaves_the_emergency_stop_engaged(tmp_path: Path) -> None:
    path = tmp_path / "e_stop"
    EStopLatch(path).begin()
    second = EStopLatch(path)
    assert second.begin() is True
    second.end(engaged=False)
    assert EStopLatch(path).begin() is False, "it was released"


def test_a_guard_that_cannot_remember_its_emergency_stop_does_not_start(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with raises_naming(ConfigError, "e_stop_file", str(tmp_path / "file" / "e_stop")):
        EStopLatch(tmp_path / "file" / "e_stop").begin()


@pytest.mark.parametrize("offset_ms", [1, 7, 13, 19])
def test_what_the_sensors_report_between_commands_shortens_no_move(offset_ms: int) -> None:
    guard, commanded_m, driven_m, wish_m_s, velocity = driving()[0], 0.0, 0.0, 0.0, STILL
    guard.command(STILL, NS_PER_S, "/runtime")
    for ms in range(1, 1000):
        now_ns = NS_PER_S + ms * NS_PER_S // 1000
        if ms % 20 == 0:
            ramp_m_s = 0.3 * min(1.0, ms / 375)  # four fifths of the limit
            wish_m_s = ramp_m_s if ms < 700 else 0.0
            guard.command(Velocity(wish_m_s, 0.0), now_ns, "/runtime")
            velocity = guard.decide(now_ns).velocity
        if ms % 20 in (offset_ms, (offset_ms + 6) % 20):
            guard.tracker.levels(Levels(), now_ns, "/core")
            velocity = guard.decide(now_ns).velocity
        commanded_m += wish_m_s / 1000
        driven_m += velocity.linear_m_s / 1000
    assert driven_m == pytest.approx(commanded_m, rel=0.005)
