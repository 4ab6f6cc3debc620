"""The rule of when the Guard decides, and a base in the runtime's process on top of it."""

from __future__ import annotations

import math
import threading
from itertools import pairwise

import pytest

from robot_runtime.common.clock import SimulatedClock
from robot_runtime.errors import InvalidCommand, NotConnected
from robot_runtime.hal import BaseInfo, BaseState, Halt, Velocity, Zone
from robot_runtime.safety.guard import STILL, Feedback, GuardLimits
from robot_runtime.safety.guarded_base import GuardedBase
from robot_runtime.safety.guarded_wheels import GuardedWheels

LIMITS = GuardLimits(max_linear_m_s=0.7, max_angular_rad_s=3.0, max_linear_accel_m_s2=0.5, max_angular_accel_rad_s2=3.5)
MS = 1_000_000
FORWARD = Velocity(0.3, 0.0)
INTERVAL_S = 0.03


class Wheels(GuardedWheels):
    """Wheels with a record of what was sent, and a driver's own reason to stand still."""

    def __init__(self, interval_s: float = 0.0) -> None:
        self.sent: list[Velocity] = []
        self.hold = False
        super().__init__(LIMITS, 0, self.sent.append, lambda: self.hold, interval_s)

    def drive(self, from_ms: int, to_ms: int) -> None:
        """Repeat a command every 20 ms, with a report before each."""
        for t_ms in range(from_ms, to_ms, 20):
            self.feedback(Feedback(t_ms * MS))
            self.poll(t_ms * MS)
            self.command(FORWARD, t_ms * MS)


def moving(interval_s: float = 0.0) -> Wheels:
    """Wheels at speed at 980 ms."""
    wheels = Wheels(interval_s)
    wheels.drive(0, 1000)
    assert wheels.velocity == FORWARD
    return wheels


def test_before_the_first_report_nothing_moves() -> None:
    wheels = Wheels()
    assert wheels.command(FORWARD, 20 * MS) == STILL
    assert (wheels.halt, wheels.sent) == (Halt.NO_FEEDBACK, [STILL])


def test_a_command_decides_at_once_and_the_ramp_is_that_of_the_limits() -> None:
    wheels = moving(INTERVAL_S)
    steps = [after.linear_m_s - before.linear_m_s for before, after in pairwise(wheels.sent)]
    assert max(steps) <= LIMITS.max_linear_accel_m_s2 * 0.02 + 1e-12
    assert wheels.decided_ns == 980 * MS


@pytest.mark.parametrize("interval_s", [0.0, INTERVAL_S])
@pytest.mark.parametrize("act", ["stop", "emergency_stop", "release_emergency_stop"])
def test_a_stop_reaches_the_wheels_before_it_returns(interval_s: float, act: str) -> None:
    wheels = moving(interval_s)
    getattr(wheels, act)(981 * MS)
    assert (wheels.sent[-1], wheels.velocity) == (STILL, STILL)
    assert wheels.e_stop is (act == "emergency_stop")
    wheels.drive(1000, 1100)
    assert (wheels.velocity == STILL) is wheels.e_stop


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_is_refused_with_the_wheels_at_zero(bad: float) -> None:
    wheels = moving()
    with pytest.raises(InvalidCommand):
        wheels.command(Velocity(bad, 0.0), 981 * MS)
    assert (wheels.sent[-1], wheels.velocity) == (STILL, STILL)


@pytest.mark.parametrize("interval_s", [0.0, INTERVAL_S])
def test_a_poll_decides_as_soon_as_a_reason_comes_or_goes(interval_s: float) -> None:
    wheels = moving(interval_s)
    wheels.feedback(Feedback(985 * MS, bumper=Zone.CENTER))
    wheels.poll(985 * MS)
    assert (wheels.velocity, wheels.halt) == (STILL, Halt.CONTACT)
    wheels.feedback(Feedback(986 * MS))
    wheels.poll(986 * MS)
    assert wheels.halt is Halt.NONE


@pytest.mark.parametrize("interval_s", [0.0, INTERVAL_S])
@pytest.mark.parametrize(("silent", "halt", "at_ms"), [(True, Halt.NO_FEEDBACK, 1081), (False, Halt.EXPIRED, 1181)])
def test_polls_alone_stop_the_wheels_in_time(interval_s: float, silent: bool, halt: Halt, at_ms: int) -> None:
    """Without a report after 100 ms, without a command after 200 ms: at the first poll later."""
    wheels = moving(interval_s)
    for t_ms in range(981, at_ms + 1):
        assert wheels.velocity == FORWARD
        if not silent:
            wheels.feedback(Feedback(t_ms * MS))
        wheels.poll(t_ms * MS)
    assert (wheels.velocity, wheels.halt) == (STILL, halt)


def test_between_commands_a_poll_leaves_the_acceleration_to_the_next_command_until_the_interval_is_over() -> None:
    wheels = moving(INTERVAL_S)
    decided = len(wheels.sent)
    for t_ms in range(981, 1011):
        wheels.poll(t_ms * MS)
    assert len(wheels.sent) == decided
    wheels.poll(1011 * MS)
    assert len(wheels.sent) == decided + 1


def test_a_clock_that_ran_backwards_makes_a_decision_due() -> None:
    wheels = moving(INTERVAL_S)
    wheels.poll(5 * MS)
    assert (wheels.velocity, wheels.decided_ns) == (STILL, 5 * MS)


def test_a_reason_of_the_driver_holds_and_leaves_no_command_behind() -> None:
    wheels = moving(INTERVAL_S)
    wheels.hold = True
    wheels.poll(981 * MS)
    assert wheels.velocity == STILL
    assert wheels.command(FORWARD, 982 * MS) == STILL
    wheels.hold = False
    wheels.poll(1020 * MS)
    assert wheels.velocity == STILL
    wheels.drive(1040, 1200)
    assert wheels.velocity.linear_m_s > 0


@pytest.mark.parametrize("engaged", [False, True])
def test_a_restart_forgets_everything_but_an_emergency_stop(engaged: bool) -> None:
    wheels = moving()
    if engaged:
        wheels.emergency_stop(981 * MS)
    wheels.restart()
    assert (wheels.velocity, wheels.e_stop) == (STILL, engaged)
    wheels.drive(0, 200)  # by a clock with another origin
    assert (wheels.velocity == STILL) is engaged


def test_wheels_without_a_consumer_are_read() -> None:
    wheels = GuardedWheels(LIMITS, 0)
    wheels.feedback(Feedback(0))
    wheels.command(FORWARD, 0)
    wheels.poll(20 * MS)
    assert wheels.velocity.linear_m_s == pytest.approx(0.01)


class Cart(GuardedBase):
    """A base of which only the Guard is there."""

    def __init__(self) -> None:
        self.clock = SimulatedClock(10 * MS)
        self.connected, self.told = False, 0
        super().__init__(BaseInfo("cart", 0.2, 0.7, 3.0, 0.5, 3.5, 50.0), self.clock)

    def connect(self) -> None:
        self.connected = True

    def close(self) -> None:
        self.connected = False

    def state(self, max_age_s: float) -> BaseState:
        raise NotImplementedError

    def _require_connected(self) -> None:
        if not self.connected:
            raise NotConnected("cart: not connected", "connect it")


class ToldCart(Cart):
    """A base that tells its readers of an emergency stop, and which lock is held then."""

    def _emergency_stop_changed(self) -> None:
        self.told += 1
        taken: list[bool] = []
        other = threading.Thread(target=lambda: taken.append(self._lock.acquire(blocking=False)))
        other.start()
        other.join()
        assert taken == [False]


@pytest.mark.parametrize("act", ["command", "stop", "emergency_stop", "release_emergency_stop"])
def test_a_base_that_is_not_connected_says_so(act: str) -> None:
    cart = Cart()
    assert cart.info.name == "cart"
    with pytest.raises(NotConnected):
        getattr(cart, act)(*([FORWARD] if act == "command" else []))


@pytest.mark.parametrize("kind", [Cart, ToldCart])
def test_a_base_drives_and_stops(kind: type[Cart]) -> None:
    cart = kind()
    cart.connect()
    for _ in range(4):
        cart._guard.feedback(Feedback(cart.clock.now_ns()))
        cart._guard.poll(cart.clock.now_ns())
        let_through = cart.command(FORWARD)
        cart.clock.sleep(0.02)
    assert let_through.linear_m_s == pytest.approx(0.03)
    cart.stop()
    assert cart._guard.velocity == STILL
    cart.emergency_stop()
    assert cart.command(FORWARD) == STILL
    cart.release_emergency_stop()
    assert cart.command(FORWARD) == STILL, "no time has passed"
    assert cart.told == (2 if kind is ToldCart else 0)
