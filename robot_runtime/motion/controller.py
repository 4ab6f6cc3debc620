"""A discrete action becomes closed-loop velocity commands, and comes back as an ``ActionResult``.

A motion follows a trapezoidal profile: at each tick of the base the wheels get the profile's mean velocity over the
coming tick (feed-forward: an ideal base needs nothing else) plus a correction proportional to how far the robot's own
odometry is from the profile. On a straight line the heading is held in the same way; on a turn the wheels' mean speed
is exactly zero, so that a pressed bumper does not forbid it.

Errors do not pile up. Each motion starts from where the robot is, but headings (and the head's angles) form one chain:
a turn that ended 0.1° short makes the next motion aim 0.1° further. A heading error would otherwise turn into a
position error that grows with the distance driven; the residual of a distance (below ``MotionProfile.position_m``) is
not carried, because it only adds up once. The chain starts anew whenever the robot is found more than
``carry_rad`` away from it: pushed, placed elsewhere, or stopped by a wall.

Ends of an action:

===========  =======================================================================================================
``reached``  within tolerance and at rest. A look past the head's limit ends at the limit, one past the task's limits
             moves nothing; ``detail`` states it.
``contact``  a bumper is or was pressed while driving forward; with the bumper pressed beforehand nothing moves.
``timed_out``  not within tolerance after the profile's duration x ``timeout_factor`` + ``timeout_margin_s``.
``stopped``  the Guard holds the wheels for an e-stop, a wheel drop or a cliff: a person has to help.
``fault``    a device failed or went silent; :attr:`MotionController.fault` is the error, ``measured`` is zero.
===========  =======================================================================================================

Whatever happens, an exception of any kind included, the wheels are at zero when ``execute`` is left.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from robot_runtime.actions.discrete import Displacement
from robot_runtime.common.clock import NS_PER_S, Clock, Stopwatch, ns_to_seconds, seconds_to_ns
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.errors import DeviceFault, StaleData
from robot_runtime.hal import Base, BaseState, Halt, Head, HeadState, Velocity, Zone
from robot_runtime.hal.motion_profile import MotionProfile
from robot_runtime.hal.streams import STREAMS
from robot_runtime.motion.look_limits import look_refusal
from robot_runtime.motion.trapezoid import Trapezoid
from robot_runtime.records import ActionResult, Outcome

ACCEL_SHARE = 0.95
"""Of what the base can do at most; the rest is for corrections, which its Guard would otherwise cut off."""

_HELD_BY_PERSON = (Halt.E_STOP, Halt.WHEEL_DROP, Halt.CLIFF)


class _Track:
    """Progress of one motion by odometry: along the intended heading, and in unwrapped heading."""

    __slots__ = ("_cos", "_sin", "_start", "_yaw_rad", "along_m", "turned_rad")

    def __init__(self, start: SE2, intended_yaw_rad: float) -> None:
        self._start = start
        self._cos = math.cos(intended_yaw_rad)
        self._sin = math.sin(intended_yaw_rad)
        self._yaw_rad = start.yaw_rad
        self.along_m = 0.0
        self.turned_rad = 0.0

    def update(self, odom: SE2) -> None:
        x_m, y_m, yaw_rad = odom.x_m, odom.y_m, odom.yaw_rad
        self.along_m = (x_m - self._start.x_m) * self._cos + (y_m - self._start.y_m) * self._sin
        self.turned_rad += wrap_angle(yaw_rad - self._yaw_rad)
        self._yaw_rad = yaw_rad


class MotionController:
    """Carries out displacements on a base and a head.

    ``robot_runtime.motion.continuous`` carries out continuous actions by the same means: it reads, rests, aims and
    ends as here.

    Args:
        clock: the robot's.
        base, head: connected devices.
        on_state: called with every base state that is read, in order; must return quickly.
        look_limits_rad: lowest and highest tilt that a look may lead to; None for the head's reach alone.
    """

    def __init__(
        self,
        clock: Clock,
        base: Base,
        head: Head,
        profile: MotionProfile | None = None,
        on_state: Callable[[BaseState], None] | None = None,
        look_limits_rad: tuple[float, float] | None = None,
    ) -> None:
        self.profile = profile or MotionProfile()
        self.fault: DeviceFault | None = None
        """The error behind the last action's outcome ``fault``; None after any other."""
        self.settle_s = 0.0
        """Host seconds of the last action from the end of its motion to rest; the head's motion includes its rest."""
        self.paused_ns = 0
        """Time of the present action during which the wheels stood still because the base's reports were late."""
        self._clock = clock
        self._base = base
        self._head = head
        self._on_state = on_state
        self._look_limits_rad = look_limits_rad
        info = base.info
        self._period_ns = seconds_to_ns(1 / info.rate_hz)
        # The limits of every motion, accelerations included.
        self.linear_m_s = min(self.profile.linear_m_s, info.max_linear_m_s)
        self.angular_rad_s = min(self.profile.angular_rad_s, info.max_angular_rad_s)
        self.linear_accel_m_s2 = min(self.profile.linear_accel_m_s2, ACCEL_SHARE * info.max_linear_accel_m_s2)
        self.angular_accel_rad_s2 = min(self.profile.angular_accel_rad_s2, ACCEL_SHARE * info.max_angular_accel_rad_s2)
        self.forget()

    def forget(self) -> None:
        """Start the chains of intended heading and head angles anew: the robot was placed."""
        self.intended_yaw_rad: float | None = None  # in odom; the next motion aims from it
        self.forget_head()

    def forget_head(self) -> None:
        """Start the chain of head angles anew: something else turned it."""
        self._intended_pan_rad: float | None = None
        self._intended_tilt_rad: float | None = None

    def stop(self) -> None:
        """Wheels to zero now."""
        self._base.stop()

    def execute(self, displacement: Displacement) -> ActionResult:
        """Move by ``displacement`` and come to rest. Device errors become the outcome ``fault``.

        Raises:
            ValueError: if more than one component is not zero: no discrete action asks for that.
        """
        if sum(map(bool, (displacement.forward_m, displacement.turn_rad, displacement.tilt_rad))) > 1:
            raise ValueError(f"one component at a time, got {displacement}")
        self.fault = None
        self.settle_s = 0.0
        self.begin()
        start_ns = self._clock.now_ns()
        try:
            if displacement.tilt_rad:
                return self._look(displacement, start_ns)
            if displacement.forward_m or displacement.turn_rad:
                return self._drive(displacement, start_ns)
            return self._result(Outcome.REACHED, displacement, Displacement(), start_ns)
        except DeviceFault as error:
            self.fault = error
            self.forget()
            return self._result(Outcome.FAULT, displacement, Displacement(), start_ns, detail=error.message)
        finally:
            self._base.stop()

    def rest(self) -> tuple[BaseState, HeadState]:
        """Wheels to zero; wait until base and head measure rest, and return those states.

        Raises:
            StaleData: if either goes silent.
            DeviceFault: if either still moves after its time: ``rest_timeout_s`` for the base, for the head what its
                whole range takes.
        """
        base = self.rest_base()
        limits = self._head.limits
        range_rad = max(limits.max_tilt_rad - limits.min_tilt_rad, limits.max_pan_rad - limits.min_pan_rad)
        nominal_s = range_rad / limits.max_speed_rad_s + limits.settle_s
        head = self.rest_head(self._clock.now_ns(), self.profile.timeout_s(nominal_s))
        if head.moving:
            raise DeviceFault("head: does not come to rest", "check the pan-tilt's servos and their load")
        return base, head

    # --- driving ----------------------------------------------------------------------------------------------------

    def _drive(self, displacement: Displacement, start_ns: int) -> ActionResult:
        state = self.read_base()
        start = state.odom
        aim_rad = carry(self.intended_yaw_rad, start.yaw_rad, self.profile.carry_rad) + displacement.turn_rad
        self.intended_yaw_rad = None  # set again only by an arrival
        track = _Track(start, aim_rad)
        outcome, zones, detail = self._follow(displacement, track, aim_rad - start.yaw_rad, state)
        timer = Stopwatch()
        state = self.rest_base()
        self.settle_s = timer.elapsed_s()
        track.update(state.odom)
        if outcome is Outcome.REACHED:
            self.intended_yaw_rad = aim_rad
        elif outcome is Outcome.CONTACT:
            zones |= state.bumper  # the tick that stopped the robot may have seen the first of two zones only
        forward_m = state.odom.relative_to(start).x_m
        measured = Displacement(forward_m=forward_m, turn_rad=track.turned_rad)
        detail = "; ".join(filter(None, (detail, self.paused_detail())))
        return self._result(outcome, displacement, measured, start_ns, zones, detail)

    def _follow(
        self, displacement: Displacement, track: _Track, turn_rad: float, state: BaseState
    ) -> tuple[Outcome, Zone, str]:
        """Track the profiles until arrival or until something ends the motion; leaves the wheels' halt to the caller.

        Args:
            displacement: of the action.
            track: of the motion so far.
            turn_rad: from the heading at the start to the aim: the turn itself, plus what is carried over.
            state: of the base at the start.
        """
        profile, clock, base = self.profile, self._clock, self._base
        forward_m = displacement.forward_m
        linear = Trapezoid.plan(forward_m, self.linear_m_s, self.linear_accel_m_s2)
        # A carried residual on a straight line is corrected from the first tick, not along a profile.
        angular = Trapezoid.plan(
            turn_rad if displacement.turn_rad else 0.0, self.angular_rad_s, self.angular_accel_rad_s2
        )
        hold_rad = turn_rad - angular.distance
        linear_gain, angular_gain = profile.linear_gain_1_s, profile.angular_gain_1_s
        duration_s = max(linear.duration_s, angular.duration_s)
        timeout_s = profile.timeout_s(duration_s)
        begin_ns = tick_ns = clock.now_ns()
        period_ns = self._period_ns
        period_s = period_ns / NS_PER_S
        paused_ns = self.paused_ns
        while True:
            if (ended := ending(state, forward_m)) is not None:
                return ended
            begin_ns, paused_ns = begin_ns + self.paused_ns - paused_ns, self.paused_ns
            track.update(state.odom)
            elapsed_s = (tick_ns - begin_ns) / NS_PER_S
            if elapsed_s >= duration_s:
                if self._has_arrived(forward_m - track.along_m, turn_rad - track.turned_rad, forward_m, state):
                    return Outcome.REACHED, Zone.NONE, ""
                if elapsed_s > timeout_s:
                    return Outcome.TIMED_OUT, Zone.NONE, _progress(displacement, track, elapsed_s)
            measured_s = (state.stamp_ns - begin_ns) / NS_PER_S
            linear_m_s = 0.0
            if forward_m:
                ahead_m = linear.position(elapsed_s + period_s) - linear.position(elapsed_s)
                linear_m_s = ahead_m / period_s + linear_gain * (linear.position(measured_s) - track.along_m)
            ahead_rad = angular.position(elapsed_s + period_s) - angular.position(elapsed_s)
            error_rad = hold_rad + angular.position(measured_s) - track.turned_rad
            base.command(
                Velocity(
                    clip(linear_m_s, self.linear_m_s),
                    clip(ahead_rad / period_s + angular_gain * error_rad, self.angular_rad_s),
                )
            )
            # After a stall of the host the next tick is now: a burst of late ticks would be useless.
            tick_ns = max(tick_ns + period_ns, clock.now_ns())
            clock.sleep_until(tick_ns)
            state = self.read_base()

    def _has_arrived(self, error_m: float, error_rad: float, forward_m: float, state: BaseState) -> bool:
        profile, velocity = self.profile, state.velocity
        return (
            abs(error_rad) <= profile.heading_rad
            and (not forward_m or abs(error_m) <= profile.position_m)
            and abs(velocity.linear_m_s) <= profile.still_m_s
            and abs(velocity.angular_rad_s) <= profile.still_rad_s
        )

    def read_base(self) -> BaseState:
        """The base's state, which listeners see too; every state that a controller drives by is read here.

        While the base's reports are late, the wheels are held at zero and the reports awaited for ``patience_s``.

        Raises:
            StaleData: the base stays silent.
            DeviceFault: the Guard gets no feedback for as long, or the state is not finite.
        """
        state = self._newest_state()
        if state is None:
            state = self._await_report()
        odom, velocity = state.odom, state.velocity
        # NaN would pass through min() and max() as a full-speed command.
        if not math.isfinite(odom.x_m + odom.y_m + odom.yaw_rad + velocity.linear_m_s + velocity.angular_rad_s):
            raise DeviceFault(
                f"base: odometry is not finite: {odom}, {velocity}",
                "check the base's driver and wiring; the wheels were stopped",
            )
        if touched := self._base.touched():
            state = replace(state, bumper=state.bumper | touched)
        if self._on_state is not None:
            self._on_state(state)
        return state

    def begin(self) -> None:
        """Forget contacts and pauses before an action."""
        self.paused_ns = 0
        self._base.touched()

    def paused_detail(self) -> str:
        """A sentence for the action's result if the base's reports were late; else an empty string."""
        if not self.paused_ns:
            return ""
        return f"paused for {ns_to_seconds(self.paused_ns):.2f} s, because the base's reports were late"

    def _newest_state(self) -> BaseState | None:
        """The newest state; None while it is too old to drive by, or the Guard lacks one."""
        try:
            state = self._base.state(self.profile.state_max_age_s)
        except StaleData:
            return None
        return None if state.halt is Halt.NO_FEEDBACK else state

    def _await_report(self) -> BaseState:
        self._base.stop()
        clock, begin_ns = self._clock, self._clock.now_ns()
        deadline_ns = begin_ns + seconds_to_ns(self.profile.patience_s)
        tick_ns = begin_ns
        while (state := self._newest_state()) is None:
            if clock.now_ns() >= deadline_ns:
                self._base.state(self.profile.state_max_age_s)  # raises StaleData with the base's own words
                raise DeviceFault(
                    "base: the Guard gets no feedback from the wheels", "check the base's power and cable"
                )
            tick_ns += self._period_ns
            clock.sleep_until(tick_ns)
        self.paused_ns += clock.now_ns() - begin_ns
        return state

    def rest_base(self) -> BaseState:
        """Wheels to zero, and the first state measured after that in which the base rests."""
        self._base.stop()
        profile, clock = self.profile, self._clock
        stopped_ns = tick_ns = clock.now_ns()
        deadline_ns = stopped_ns + seconds_to_ns(profile.rest_timeout_s)
        while True:
            tick_ns += self._period_ns
            clock.sleep_until(tick_ns)
            state = self.read_base()
            moving = (
                abs(state.velocity.linear_m_s) > profile.still_m_s
                or abs(state.velocity.angular_rad_s) > profile.still_rad_s
            )
            if state.stamp_ns > stopped_ns and not moving:
                return state
            if tick_ns >= deadline_ns:
                raise DeviceFault(
                    f"base: still measures {state.velocity} {profile.rest_timeout_s} s after it was stopped",
                    "check the base's driver and whether something pushes the robot",
                )

    # --- looking ----------------------------------------------------------------------------------------------------

    def _look(self, displacement: Displacement, start_ns: int) -> ActionResult:
        head, carry_rad = self._head, self.profile.carry_rad
        start = head.state(STREAMS["head"].max_age_s)
        pan_rad = carry(self._intended_pan_rad, start.pan_rad, carry_rad)
        requested_rad = carry(self._intended_tilt_rad, start.tilt_rad, carry_rad) + displacement.tilt_rad
        slack_rad = self.profile.heading_rad
        if refusal := look_refusal(requested_rad, displacement.tilt_rad, self._look_limits_rad, head.limits, slack_rad):
            return self._result(Outcome.REACHED, displacement, Displacement(), start_ns, detail=refusal)
        nominal_s = abs(displacement.tilt_rad) / head.limits.max_speed_rad_s + head.limits.settle_s
        self._intended_pan_rad, self._intended_tilt_rad = head.command(pan_rad, requested_rad)
        end = self.rest_head(self._clock.now_ns(), self.profile.timeout_s(nominal_s))
        detail = ""
        if abs(self._intended_tilt_rad - requested_rad) > self.profile.heading_rad:
            limit_deg = math.degrees(self._intended_tilt_rad)
            detail = f"the head's limit is {limit_deg:.1f}°; {math.degrees(requested_rad):.1f}° was asked for"
        outcome = Outcome.REACHED
        if end.moving:
            outcome, detail = Outcome.TIMED_OUT, f"head: still moving at tilt {math.degrees(end.tilt_rad):.1f}°"
        measured = Displacement(tilt_rad=end.tilt_rad - start.tilt_rad)
        return self._result(outcome, displacement, measured, start_ns, detail=detail)

    def rest_head(self, commanded_ns: int, timeout_s: float) -> HeadState:
        """The first state measured after ``commanded_ns`` in which the head rests, or the one at the timeout."""
        deadline_ns = commanded_ns + seconds_to_ns(timeout_s)
        tick_ns = commanded_ns
        while True:
            tick_ns += self._period_ns
            self._clock.sleep_until(tick_ns)
            state = self._head.state(STREAMS["head"].max_age_s)
            if tick_ns >= deadline_ns or (state.stamp_ns > commanded_ns and not state.moving):
                return state

    def _result(
        self,
        outcome: Outcome,
        commanded: Displacement,
        measured: Displacement,
        start_ns: int,
        contact: Zone = Zone.NONE,
        detail: str = "",
    ) -> ActionResult:
        duration_s = ns_to_seconds(self._clock.now_ns() - start_ns)
        return ActionResult(outcome, commanded, measured, contact, duration_s, detail)


def ending(state: BaseState, forward_m: float) -> tuple[Outcome, Zone, str] | None:
    """What in the base's state ends the motion, if anything.

    ``EXPIRED`` does not: it is over with the next command, and the timeout bounds it. Neither does contact on a turn
    or in reverse, which the Guard allows.
    """
    halt = state.halt
    if halt in _HELD_BY_PERSON:
        return Outcome.STOPPED, Zone.NONE, f"base: held by {halt.value}"
    if forward_m > 0 and (state.bumper or halt is Halt.CONTACT):
        return Outcome.CONTACT, state.bumper, ""
    return None


def _progress(displacement: Displacement, track: _Track, elapsed_s: float) -> str:
    if displacement.forward_m:
        return f"moved {track.along_m:.3f} of {displacement.forward_m:.3f} m in {elapsed_s:.1f} s"
    turned_deg, requested_deg = math.degrees(track.turned_rad), math.degrees(displacement.turn_rad)
    return f"turned {turned_deg:.1f} of {requested_deg:.1f}° in {elapsed_s:.1f} s"


def carry(intended_rad: float | None, measured_rad: float, limit_rad: float) -> float:
    """The angle to aim from: the intended one while the robot is near it, else the measured one."""
    if intended_rad is None:
        return measured_rad
    residual_rad = wrap_angle(intended_rad - measured_rad)
    return measured_rad + residual_rad if abs(residual_rad) <= limit_rad else measured_rad


def clip(value: float, limit: float) -> float:
    """``value``, at most ``limit`` from zero."""
    return max(-limit, min(limit, value))
