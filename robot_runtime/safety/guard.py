"""The Guard: the last thing between any command and the wheels.

It runs in the driver, next to the wire, at the base's own rate, and outlives the policy. It is pure (no I/O, no clock
of its own, no threads) and denies by default: without a fresh command *and* fresh feedback the wheels are at zero.

Order of precedence, first match wins: e-stop, no feedback, wheel drop, cliff, contact, expired command, limits.

* A refusal is immediate: it bypasses every ramp. Slowing down is never limited either; only speeding up is.
* Contact refuses every command with a forward component, whole (an arc into a wall would slide along it);
  turning on the spot and reversing stay allowed.
* Cliff allows only straight reverse; wheel drop and e-stop allow nothing.
* A command or feedback found stale once, or stamped in the future, is dropped: no later jump of the clock revives it.
* A clock that runs backwards, or a pause between ticks, grants no acceleration.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from robot_runtime.common.clock import ns_to_seconds, seconds_to_ns
from robot_runtime.errors import InvalidCommand
from robot_runtime.hal.wheels import BaseInfo, Halt, Velocity, Zone

STILL = Velocity(0.0, 0.0)

_NO_ZONE = Zone.NONE
"""Compared by identity, which costs a tenth of a flag's truth."""

MAX_TIMEOUT_S = 1.0
"""A robot at walking speed covers a meter in this time: a longer timeout would not protect people."""


@dataclass(frozen=True)
class GuardLimits:
    """Limits that the Guard enforces. All positive; the timeouts at most ``MAX_TIMEOUT_S``.

    Attributes:
        command_timeout_s: age at which a command expires.
        feedback_timeout_s: age at which sensor levels no longer count; also the longest pause between two ticks
            for which acceleration is granted.
    """

    max_linear_m_s: float
    max_angular_rad_s: float
    max_linear_accel_m_s2: float
    max_angular_accel_rad_s2: float
    command_timeout_s: float = 0.2
    feedback_timeout_s: float = 0.1

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f"{name} must be a positive number, got {value}")
            if name.endswith("timeout_s") and value > MAX_TIMEOUT_S:
                raise ValueError(f"{name} must be at most {MAX_TIMEOUT_S} s, got {value}")

    @cached_property
    def command_timeout_ns(self) -> int:
        """``command_timeout_s`` in nanoseconds."""
        return seconds_to_ns(self.command_timeout_s)

    @cached_property
    def feedback_timeout_ns(self) -> int:
        """``feedback_timeout_s`` in nanoseconds."""
        return seconds_to_ns(self.feedback_timeout_s)

    @classmethod
    def of(cls, info: BaseInfo) -> GuardLimits:
        """The limits of a base; its sensors may miss four periods, and 0.1 s in any case."""
        return cls(
            info.max_linear_m_s,
            info.max_angular_rad_s,
            info.max_linear_accel_m_s2,
            info.max_angular_accel_rad_s2,
            feedback_timeout_s=max(cls.feedback_timeout_s, 5 / info.rate_hz),
        )


class Feedback(NamedTuple):
    """Levels of the base's safety sensors, and the time of their measurement."""

    stamp_ns: int
    bumper: Zone = Zone.NONE
    cliff: Zone = Zone.NONE
    wheel_drop: Zone = Zone.NONE


class GuardState(NamedTuple):
    """Memory of the Guard.

    Attributes:
        command: the velocity requested last.
        command_ns: time of that request; None once it has expired.
        feedback: the newest sensor levels; None once they are stale.
        e_stop: whether an emergency stop holds.
        output: the velocity sent to the wheels last.
        tick_ns: the latest time of a decision.
    """

    command: Velocity = STILL
    command_ns: int | None = None
    feedback: Feedback | None = None
    e_stop: bool = False
    output: Velocity = STILL
    tick_ns: int | None = None


class Decision(NamedTuple):
    """Velocity for the wheels, and the reason of a refusal (``Halt.NONE`` if nothing was refused)."""

    velocity: Velocity
    halt: Halt


def aged(limits: GuardLimits, state: GuardState, now_ns: int) -> GuardState:
    """Return the state without what is stale at ``now_ns``."""
    command_ns, feedback = state.command_ns, state.feedback
    if command_ns is not None and not 0 <= now_ns - command_ns <= limits.command_timeout_ns:
        state = state._replace(command_ns=None)
    if feedback is not None and not 0 <= now_ns - feedback.stamp_ns <= limits.feedback_timeout_ns:
        state = state._replace(feedback=None)
    return state


def refusal(state: GuardState) -> Halt:
    """Return the reason for which the command of an :func:`aged` state is refused, or ``Halt.NONE``."""
    if state.e_stop:
        return Halt.E_STOP
    command, feedback = state.command, state.feedback
    if feedback is None:
        return Halt.NO_FEEDBACK
    if feedback.wheel_drop is not _NO_ZONE:
        return Halt.WHEEL_DROP
    moves = command.linear_m_s != 0 or command.angular_rad_s != 0
    if feedback.cliff is not _NO_ZONE and moves and not (command.linear_m_s < 0 and command.angular_rad_s == 0):
        return Halt.CLIFF
    if feedback.bumper is not _NO_ZONE and command.linear_m_s > 0:
        return Halt.CONTACT
    if moves and state.command_ns is None:
        return Halt.EXPIRED
    return Halt.NONE


def step(limits: GuardLimits, state: GuardState, now_ns: int) -> tuple[GuardState, Decision]:
    """Decide the wheels' velocity at ``now_ns``; the returned state goes into the next step."""
    state = aged(limits, state, now_ns)
    halt = refusal(state)
    last_ns = now_ns if state.tick_ns is None else state.tick_ns
    if halt is not Halt.NONE:
        velocity = STILL
    else:
        # Bounded on both sides as an integer: a backward step grants nothing, nor does a pause or an absurd stamp.
        granted_s = ns_to_seconds(min(max(0, now_ns - last_ns), limits.feedback_timeout_ns))
        command, output = state.command, state.output
        linear_m_s = _approach(
            output.linear_m_s, command.linear_m_s, limits.max_linear_m_s, limits.max_linear_accel_m_s2 * granted_s
        )
        angular_rad_s = _approach(
            output.angular_rad_s,
            command.angular_rad_s,
            limits.max_angular_rad_s,
            limits.max_angular_accel_rad_s2 * granted_s,
        )
        granted = linear_m_s == command.linear_m_s and angular_rad_s == command.angular_rad_s
        velocity = command if granted else Velocity(linear_m_s, angular_rad_s)
    # Spelled out, here and in Guard.command: _replace() costs as much as all the rest, at every tick of the base.
    after = GuardState(state.command, state.command_ns, state.feedback, state.e_stop, velocity, max(last_ns, now_ns))
    return after, Decision(velocity, halt)


class Guard:
    """:func:`step` with its memory.

    Not thread-safe: a driver calls it under its own lock and reads the clock inside that lock, because a command or
    feedback stamped after the ``now_ns`` of a tick counts as one from the future.
    """

    def __init__(self, limits: GuardLimits) -> None:
        self.limits = limits
        self.state = GuardState()

    def command(self, velocity: Velocity, now_ns: int) -> None:
        """Accept a velocity; it reaches the wheels at the next :meth:`tick`, if at all, and expires.

        Raises:
            InvalidCommand: unless both numbers are finite; the command becomes "stand still".
        """
        if not (_is_finite(velocity.linear_m_s) and _is_finite(velocity.angular_rad_s)):
            self.stop()
            raise InvalidCommand(
                f"velocity ({velocity.linear_m_s!s:.40} m/s, {velocity.angular_rad_s!s:.40} rad/s) is not finite",
                "check the controller or policy that computed it; the wheels were stopped",
            )
        if not (type(velocity.linear_m_s) is float and type(velocity.angular_rad_s) is float):
            velocity = Velocity(float(velocity.linear_m_s), float(velocity.angular_rad_s))
        state = self.state
        self.state = GuardState(velocity, now_ns, state.feedback, state.e_stop, state.output, state.tick_ns)

    def feedback(self, feedback: Feedback) -> None:
        """Accept sensor levels, unless newer ones are already there."""
        state = self.state
        if state.feedback is None or feedback.stamp_ns >= state.feedback.stamp_ns:
            self.state = GuardState(
                state.command, state.command_ns, feedback, state.e_stop, state.output, state.tick_ns
            )

    def stop(self) -> None:
        """Forget the command: zero at once, past every ramp."""
        self.state = self.state._replace(command=STILL, command_ns=None, output=STILL)

    def emergency_stop(self) -> None:
        """Zero and refuse everything until released."""
        self.stop()
        self.state = self.state._replace(e_stop=True)

    def release_emergency_stop(self) -> None:
        """Allow commands again; the one that was active is forgotten."""
        self.stop()
        self.state = self.state._replace(e_stop=False)

    def tick(self, now_ns: int) -> Decision:
        """Decide; call it at the base's own rate and send the result to the wheels."""
        self.state, decision = step(self.limits, self.state, now_ns)
        return decision


def _is_finite(value: object) -> bool:
    try:
        return math.isfinite(value)  # type: ignore[arg-type]
    except (TypeError, OverflowError):  # not a number at all, or an integer beyond every float
        return False


def _approach(present: float, requested: float, limit: float, max_increase: float) -> float:
    """Change a velocity: slow down at once, speed up by at most ``max_increase``, never past ``limit``."""
    if present == requested and -limit <= requested <= limit:
        return requested
    requested = max(-limit, min(limit, requested))
    if (present > 0) != (requested > 0):
        present = 0.0
    return math.copysign(min(abs(requested), abs(present) + max_increase), requested)
