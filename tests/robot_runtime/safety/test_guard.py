"""No sequence of commands, sensor levels and clock readings gets past the Guard."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from robot_runtime.common.clock import seconds_to_ns
from robot_runtime.errors import InvalidCommand
from robot_runtime.hal import BaseInfo, Halt, Velocity, Zone
from robot_runtime.safety.guard import STILL, Feedback, Guard, GuardLimits, GuardState, step

LIMITS = GuardLimits(max_linear_m_s=0.7, max_angular_rad_s=3.0, max_linear_accel_m_s2=0.5, max_angular_accel_rad_s2=3.5)
MS = 1_000_000
FORWARD = Velocity(0.3, 0.0)
TURN = Velocity(0.0, 1.0)
REVERSE = Velocity(-0.3, 0.0)
PRESSED = (Zone.LEFT, Zone.CENTER, Zone.RIGHT, Zone.LEFT | Zone.CENTER)


def run(guard: Guard, wish: Velocity, from_ms: int, to_ms: int, **levels: Zone) -> list[Velocity]:
    """A healthy 50 Hz driver and a policy that repeats its wish: the velocities that reached the wheels."""
    sent = []
    for t_ms in range(from_ms, to_ms, 20):
        guard.feedback(Feedback(t_ms * MS, **levels))
        guard.command(wish, t_ms * MS)
        sent.append(guard.tick(t_ms * MS).velocity)
    return sent


def moving(wish: Velocity = FORWARD) -> Guard:
    """A guard at t = 2 s whose wheels turn as wished."""
    guard = Guard(LIMITS)
    assert run(guard, wish, 0, 2000)[-1] == wish
    return guard


# --- denial by default ----------------------------------------------------------------------------------------------


def test_nothing_moves_before_the_first_command() -> None:
    guard = Guard(LIMITS)
    guard.feedback(Feedback(0))
    decision = guard.tick(0)
    assert decision.velocity == STILL
    assert decision.halt is Halt.NONE


def test_a_command_without_any_feedback_is_refused() -> None:
    guard = Guard(LIMITS)
    guard.command(FORWARD, 0)
    decision = guard.tick(10 * MS)
    assert decision.velocity == STILL
    assert decision.halt is Halt.NO_FEEDBACK


@pytest.mark.parametrize(("age_ms", "halt"), [(0, Halt.NONE), (100, Halt.NONE), (101, Halt.NO_FEEDBACK)])
def test_feedback_counts_up_to_its_timeout(age_ms: int, halt: Halt) -> None:
    guard = moving()
    guard.feedback(Feedback(2000 * MS))
    guard.command(FORWARD, (2000 + age_ms) * MS)
    decision = guard.tick((2000 + age_ms) * MS)
    assert decision.halt is halt
    assert decision.velocity == (FORWARD if halt is Halt.NONE else STILL)


@pytest.mark.parametrize(("age_ms", "halt"), [(0, Halt.NONE), (200, Halt.NONE), (201, Halt.EXPIRED)])
def test_a_command_lives_up_to_its_timeout(age_ms: int, halt: Halt) -> None:
    guard = moving()
    guard.command(FORWARD, 2000 * MS)
    guard.feedback(Feedback((2000 + age_ms) * MS))
    decision = guard.tick((2000 + age_ms) * MS)
    assert decision.halt is halt
    assert decision.velocity == (FORWARD if halt is Halt.NONE else STILL)


def test_an_expired_command_stays_expired_and_says_so_until_the_next() -> None:
    guard = moving()
    for t_ms in (2300, 2320, 2100, 2000, 5000):  # also while the clock jumps back to when it was fresh
        guard.feedback(Feedback(t_ms * MS))
        assert guard.tick(t_ms * MS).velocity == STILL
    assert guard.tick(5000 * MS).halt is Halt.EXPIRED
    assert run(guard, FORWARD, 5020, 6500)[-1] == FORWARD


def test_standing_still_never_expires() -> None:
    guard = moving(STILL)
    guard.feedback(Feedback(9000 * MS))
    assert guard.tick(9000 * MS).halt is Halt.NONE


@pytest.mark.parametrize("offset_ms", [1, 50, 10**9])
def test_a_command_from_the_future_is_never_carried_out(offset_ms: int) -> None:
    guard = moving()
    guard.command(FORWARD, (2000 + offset_ms) * MS)
    guard.feedback(Feedback(2000 * MS))
    assert guard.tick(2000 * MS).velocity == STILL
    guard.feedback(Feedback((2000 + offset_ms) * MS))
    assert guard.tick((2000 + offset_ms) * MS).velocity == STILL


def test_feedback_from_the_future_is_no_feedback() -> None:
    guard = moving()
    guard.command(FORWARD, 2000 * MS)
    guard.feedback(Feedback(2001 * MS))
    assert guard.tick(2000 * MS).halt is Halt.NO_FEEDBACK
    guard.command(FORWARD, 2001 * MS)
    assert guard.tick(2001 * MS).halt is Halt.NO_FEEDBACK


def test_late_feedback_does_not_replace_newer() -> None:
    guard = moving()
    guard.feedback(Feedback(2010 * MS, bumper=Zone.CENTER))
    guard.feedback(Feedback(2005 * MS))
    guard.command(FORWARD, 2010 * MS)
    assert guard.tick(2010 * MS).halt is Halt.CONTACT


def test_feedback_of_the_same_stamp_replaces() -> None:
    guard = moving()
    guard.feedback(Feedback(2010 * MS))
    guard.feedback(Feedback(2010 * MS, bumper=Zone.CENTER))
    guard.command(FORWARD, 2010 * MS)
    assert guard.tick(2010 * MS).halt is Halt.CONTACT


# --- levels -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("zone", PRESSED)
@pytest.mark.parametrize(
    ("wish", "halt"),
    [
        (FORWARD, Halt.CONTACT),
        (Velocity(1e-12, 0.0), Halt.CONTACT),
        (Velocity(0.3, 1.0), Halt.CONTACT),
        (Velocity(0.3, -1.0), Halt.CONTACT),
        (TURN, Halt.NONE),
        (Velocity(0.0, -1.0), Halt.NONE),
        (REVERSE, Halt.NONE),
        (Velocity(-0.3, 1.0), Halt.NONE),
        (STILL, Halt.NONE),
    ],
)
def test_a_pressed_bumper_refuses_whatever_goes_forward(zone: Zone, wish: Velocity, halt: Halt) -> None:
    guard = Guard(LIMITS)
    sent = run(guard, wish, 0, 2000, bumper=zone)
    assert sent[-1] == (wish if halt is Halt.NONE else STILL)
    assert guard.tick(1980 * MS).halt is halt


@pytest.mark.parametrize("zone", PRESSED)
@pytest.mark.parametrize(
    ("wish", "halt"),
    [
        (FORWARD, Halt.CLIFF),
        (TURN, Halt.CLIFF),
        (Velocity(0.0, -1e-12), Halt.CLIFF),
        (Velocity(-0.3, 0.1), Halt.CLIFF),
        (REVERSE, Halt.NONE),
        (STILL, Halt.NONE),
    ],
)
def test_a_cliff_allows_straight_reverse_only(zone: Zone, wish: Velocity, halt: Halt) -> None:
    guard = Guard(LIMITS)
    sent = run(guard, wish, 0, 2000, cliff=zone)
    assert sent[-1] == (wish if halt is Halt.NONE else STILL)
    assert guard.tick(1980 * MS).halt is halt


@pytest.mark.parametrize("zone", [Zone.LEFT, Zone.RIGHT, Zone.LEFT | Zone.RIGHT])
@pytest.mark.parametrize("wish", [FORWARD, REVERSE, TURN, STILL])
def test_a_hanging_wheel_allows_nothing(zone: Zone, wish: Velocity) -> None:
    guard = Guard(LIMITS)
    assert set(run(guard, wish, 0, 500, wheel_drop=zone)) == {STILL}
    assert guard.tick(480 * MS).halt is Halt.WHEEL_DROP


@pytest.mark.parametrize("level", ["bumper", "cliff", "wheel_drop"])
def test_a_level_halts_at_once_past_the_ramp(level: str) -> None:
    guard = moving()
    assert run(guard, FORWARD, 2000, 2020, **{level: Zone.LEFT}) == [STILL]


def test_after_a_contact_is_gone_speed_builds_up_from_zero() -> None:
    guard = moving()
    run(guard, FORWARD, 2000, 2020, bumper=Zone.LEFT)
    (first,) = run(guard, FORWARD, 2020, 2040)
    assert first.linear_m_s == pytest.approx(0.5 * 0.02)


def test_precedence_is_the_order_of_halt() -> None:
    """Take away one reason after another, from an e-stop with no feedback down to an expired command."""
    left = Zone.LEFT
    states = [
        GuardState(command=FORWARD, e_stop=True),
        GuardState(command=FORWARD, feedback=None),
        GuardState(command=FORWARD, feedback=Feedback(0, bumper=left, cliff=left, wheel_drop=left)),
        GuardState(command=FORWARD, feedback=Feedback(0, bumper=left, cliff=left)),
        GuardState(command=FORWARD, feedback=Feedback(0, bumper=left)),
        GuardState(command=FORWARD, feedback=Feedback(0)),
    ]
    halts = [step(LIMITS, state, 0)[1].halt for state in states]
    assert halts == [halt for halt in Halt if halt is not Halt.NONE]


# --- stops ------------------------------------------------------------------------------------------------------------


def test_stop_is_immediate_and_forgets_the_command() -> None:
    guard = moving()
    guard.stop()
    guard.feedback(Feedback(2000 * MS))
    decision = guard.tick(2000 * MS)
    assert decision.velocity == STILL
    assert decision.halt is Halt.NONE
    (first,) = run(guard, FORWARD, 2020, 2040)
    assert first.linear_m_s == pytest.approx(0.5 * 0.02), "speed builds up from zero after a stop"


def test_a_command_right_after_a_stop_starts_from_zero() -> None:
    guard = moving()
    guard.stop()
    (first,) = run(guard, FORWARD, 2000, 2020)
    assert first.linear_m_s == pytest.approx(0.5 * 0.02)


def test_a_plain_stop_does_not_release_an_emergency_stop() -> None:
    guard = moving()
    guard.emergency_stop()
    guard.stop()
    assert set(run(guard, FORWARD, 2000, 3000)) == {STILL}


def test_emergency_stop_latches_until_released_and_release_moves_nothing() -> None:
    guard = moving()
    guard.emergency_stop()
    assert set(run(guard, FORWARD, 2000, 3000)) == {STILL}
    assert guard.tick(2980 * MS).halt is Halt.E_STOP
    guard.release_emergency_stop()
    guard.feedback(Feedback(3000 * MS))
    decision = guard.tick(3000 * MS)
    assert decision.velocity == STILL
    assert decision.halt is Halt.NONE
    assert run(guard, FORWARD, 3020, 5000)[-1] == FORWARD


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 10**400, None, "fast", np.float64("nan")])
@pytest.mark.parametrize("place", ["linear_m_s", "angular_rad_s"])
def test_what_is_no_finite_number_stops_the_wheels(bad: object, place: str) -> None:
    guard = moving()
    with pytest.raises(InvalidCommand, match="is not finite") as caught:
        guard.command(dataclasses.replace(FORWARD, **{place: bad}), 2000 * MS)
    assert "stopped" in caught.value.remedy
    assert len(caught.value.message) < 200
    guard.feedback(Feedback(2000 * MS))
    assert guard.tick(2000 * MS).velocity == STILL


def test_numpy_numbers_become_floats() -> None:
    guard = Guard(LIMITS)
    guard.command(Velocity(np.float32(0.25), 1), 0)  # type: ignore[arg-type]
    assert type(guard.state.command.linear_m_s) is float
    assert type(guard.state.command.angular_rad_s) is float


# --- ramps and limits -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wish", "reached"),
    [
        (Velocity(1e308, 0.0), Velocity(0.7, 0.0)),
        (Velocity(-1e308, 0.0), Velocity(-0.7, 0.0)),
        (Velocity(0.0, 99.0), Velocity(0.0, 3.0)),
        (Velocity(0.0, -99.0), Velocity(0.0, -3.0)),
        (Velocity(0.2, -0.4), Velocity(0.2, -0.4)),
    ],
)
def test_what_is_wished_is_reached_or_the_limit(wish: Velocity, reached: Velocity) -> None:
    assert run(Guard(LIMITS), wish, 0, 3000)[-1] == reached


def test_speeding_up_is_ramped_and_slowing_down_is_not() -> None:
    guard = Guard(LIMITS)
    sent = [v.linear_m_s for v in run(guard, FORWARD, 0, 100)]
    assert sent == pytest.approx([0.0, 0.01, 0.02, 0.03, 0.04])
    guard = moving()
    assert run(guard, Velocity(0.1, 0.0), 2000, 2020) == [Velocity(0.1, 0.0)]


def test_turning_round_passes_through_zero() -> None:
    (first,) = run(moving(), REVERSE, 2000, 2020)
    assert first.linear_m_s == pytest.approx(-0.5 * 0.02)


def test_a_pause_between_ticks_grants_no_more_than_the_feedback_timeout() -> None:
    guard = Guard(LIMITS)
    run(guard, STILL, 0, 20)
    (first,) = run(guard, Velocity(0.7, 0.0), 60_000, 60_020)
    assert first.linear_m_s == pytest.approx(0.5 * 0.1)


def test_a_clock_that_swings_grants_no_speed_until_it_passes_where_it_was() -> None:
    guard = Guard(LIMITS)
    run(guard, FORWARD, 0, 100)
    for _ in range(10):
        assert set(run(guard, FORWARD, 0, 80)) == {STILL}
        assert run(guard, FORWARD, 80, 100) == [STILL]
    (first,) = run(guard, FORWARD, 100, 120)
    assert first.linear_m_s == pytest.approx(0.5 * 0.02)


@pytest.mark.parametrize("name", [f.name for f in dataclasses.fields(GuardLimits)])
@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_limits_must_be_positive(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=name):
        dataclasses.replace(LIMITS, **{name: value})


@pytest.mark.parametrize("name", ["command_timeout_s", "feedback_timeout_s"])
def test_a_timeout_cannot_be_long(name: str) -> None:
    assert getattr(dataclasses.replace(LIMITS, **{name: 1.0}), name) == 1.0
    with pytest.raises(ValueError, match=f"{name} must be at most 1.0 s"):
        dataclasses.replace(LIMITS, **{name: 1.01})


def test_limits_of_a_base() -> None:
    info = BaseInfo("b", 0.18, 0.7, 3.0, 0.5, 3.5, 50.0)
    assert GuardLimits.of(info) == LIMITS
    assert LIMITS.command_timeout_s == 0.2
    assert LIMITS.feedback_timeout_s == 0.1


# --- any sequence -----------------------------------------------------------------------------------------------------

ANY_FLOAT = st.floats(allow_nan=True, allow_infinity=True)
SPEED = st.floats(-1, 1) | st.sampled_from([0.0, -0.0, 5e-324, -1e-300, 0.3, -0.3, 1e308, -1e308]) | ANY_FLOAT
ZONES = st.sampled_from([Zone.NONE, Zone.NONE, Zone.NONE, Zone.LEFT, Zone.CENTER, Zone.RIGHT, Zone(7)])
STEP_NS = st.sampled_from([0, 1, 20 * MS, 20 * MS, 20 * MS, 99 * MS, 100 * MS, 101 * MS, 201 * MS]) | st.integers(
    -500 * MS, 500 * MS
)
JUMP_NS = STEP_NS | st.integers(-(10**30), 10**30)
OFFSET_NS = st.sampled_from([0, 0, 0, -100 * MS, -101 * MS, -200 * MS, -201 * MS, 1]) | st.integers(-(10**12), 10**12)


class AnySequence(RuleBasedStateMachine):
    """Drives a Guard at random and keeps, independently and naively, what must hold."""

    def __init__(self) -> None:
        super().__init__()
        self.guard = Guard(LIMITS)
        self.now_ns = 0
        self.furthest_ns: int | None = None
        self.wish = STILL
        self.wished_ns: int | None = None
        self.feedback: Feedback | None = None
        self.e_stop = False
        self.last = STILL

    @initialize(start_ns=st.sampled_from([0, 10**18, -(10**18)]))
    def begin(self, start_ns: int) -> None:
        self.now_ns = start_ns

    @rule(by_ns=JUMP_NS)
    def time_passes(self, by_ns: int) -> None:
        self.now_ns += by_ns

    @rule(linear=SPEED, angular=SPEED, offset_ns=OFFSET_NS)
    def command(self, linear: float, angular: float, offset_ns: int) -> None:
        if math.isfinite(linear) and math.isfinite(angular):
            self.wish, self.wished_ns = Velocity(linear, angular), self.now_ns + offset_ns
            self.guard.command(self.wish, self.wished_ns)
            return
        with pytest.raises(InvalidCommand):
            self.guard.command(Velocity(linear, angular), self.now_ns + offset_ns)
        self.forget()

    @rule(bumper=ZONES, cliff=ZONES, wheel_drop=ZONES, offset_ns=OFFSET_NS)
    def sense(self, bumper: Zone, cliff: Zone, wheel_drop: Zone, offset_ns: int) -> None:
        feedback = Feedback(self.now_ns + offset_ns, bumper, cliff, wheel_drop)
        self.guard.feedback(feedback)
        if self.feedback is None or feedback.stamp_ns >= self.feedback.stamp_ns:
            self.feedback = feedback

    @rule()
    def stop(self) -> None:
        self.guard.stop()
        self.forget()

    @rule()
    def emergency_stop(self) -> None:
        self.guard.emergency_stop()
        self.forget()
        self.e_stop = True

    @precondition(lambda self: self.e_stop)
    @rule()
    def release(self) -> None:
        self.guard.release_emergency_stop()
        self.forget()
        self.e_stop = False

    @rule(by_ns=STEP_NS, healthy=st.booleans())
    def tick(self, by_ns: int, healthy: bool) -> None:
        self.now_ns += by_ns
        if healthy:  # otherwise most random runs would never move at all
            self.sense(Zone.NONE, Zone.NONE, Zone.NONE, 0)
            self.command(0.5, -0.5, 0)
        decision = self.guard.tick(self.now_ns)
        sent = decision.velocity
        self.check(sent, decision.halt)
        self.last = sent
        self.furthest_ns = self.now_ns if self.furthest_ns is None else max(self.furthest_ns, self.now_ns)
        if not self.is_fresh(self.wished_ns, LIMITS.command_timeout_s):
            self.wished_ns = None
        if self.feedback is not None and not self.is_fresh(self.feedback.stamp_ns, LIMITS.feedback_timeout_s):
            self.feedback = None

    def forget(self) -> None:
        self.wish, self.wished_ns, self.last = STILL, None, STILL

    def is_fresh(self, stamp_ns: int | None, timeout_s: float) -> bool:
        return stamp_ns is not None and stamp_ns <= self.now_ns <= stamp_ns + seconds_to_ns(timeout_s)

    def check(self, sent: Velocity, halt: Halt) -> None:
        linear, angular = sent.linear_m_s, sent.angular_rad_s
        assert abs(linear) <= LIMITS.max_linear_m_s
        assert abs(angular) <= LIMITS.max_angular_rad_s
        passed_s = 0.0 if self.furthest_ns is None else max(0.0, (self.now_ns - self.furthest_ns) / 1e9)
        gained = {
            "linear_m_s": LIMITS.max_linear_accel_m_s2 * min(passed_s, 0.1),
            "angular_rad_s": LIMITS.max_angular_accel_rad_s2 * min(passed_s, 0.1),
        }
        for axis, gain in gained.items():
            now, before, wish = getattr(sent, axis), getattr(self.last, axis), getattr(self.wish, axis)
            before = before if before * now > 0 else 0.0
            assert abs(now) <= abs(before) + gain + 1e-12, "the acceleration limit holds"
            assert abs(now) <= abs(wish), "never faster than wished"
            assert now == 0 or math.copysign(1, now) == math.copysign(1, wish), "never the other way"
        if halt is not Halt.NONE:
            assert sent == STILL, "a refusal is a stop"
        if sent == STILL:
            return
        assert not self.e_stop
        assert self.is_fresh(self.wished_ns, LIMITS.command_timeout_s), "an expired command never moves"
        assert self.feedback is not None
        assert self.is_fresh(self.feedback.stamp_ns, LIMITS.feedback_timeout_s), "nothing moves blindly"
        assert not self.feedback.wheel_drop
        assert not (self.feedback.bumper and linear > 0), "never into a pressed zone"
        assert not self.feedback.cliff or (linear < 0 and angular == 0), "at a cliff only straight back"

    @invariant()
    def output_is_what_was_sent(self) -> None:
        assert self.guard.state.output == self.last


TestAnySequence = pytest.mark.slow(AnySequence.TestCase)  # it counts more than 2 s of CPU while coverage is measured
TestAnySequence.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)


@given(
    state=st.builds(
        GuardState,
        command=st.builds(Velocity, st.floats(-2, 2), st.floats(-5, 5)),
        command_ns=st.none() | st.integers(0, 10**9),
        feedback=st.none() | st.builds(Feedback, st.integers(0, 10**9), ZONES, ZONES, ZONES),
        e_stop=st.booleans(),
        output=st.builds(Velocity, st.floats(-0.7, 0.7), st.floats(-3, 3)),
        tick_ns=st.none() | st.integers(0, 10**9),
    ),
    now_ns=st.integers(0, 10**9),
)
def test_step_is_a_function_and_repeating_it_changes_nothing(state: GuardState, now_ns: int) -> None:
    first_state, first = step(LIMITS, state, now_ns)
    assert step(LIMITS, state, now_ns) == (first_state, first)
    again_state, again = step(LIMITS, first_state, now_ns)
    assert again == first, "no time has passed"
    assert again_state == first_state
