"""A discrete action becomes closed-loop velocity commands, and comes back as an ``ActionResult``.

A motion is a leg of :class:`~robot_runtime.motion.follower.LegFollower`. That one knows what the base's motors do with
commands, and which of them are still under way. On a turn the wheels' mean speed is exactly zero, so that a pressed
bumper does not forbid it, except in the last degrees: one wheel may turn them alone.

Errors do not pile up. Each motion starts from where the robot is, but headings (and the head's angles) form one chain:
a turn that ended 0.1° short makes the next motion aim 0.1° further. A heading error would otherwise turn into a
position error that grows with the distance driven; the residual of a distance (below ``MotionProfile.position_m``) is
not carried, because it only adds up once. The chain restarts whenever the robot is found more than
``carry_rad`` away from it: pushed, placed elsewhere, or stopped by a wall.

Ends of an action:

===========  =======================================================================================================
``reached``  within tolerance and at rest. A look past the head's reach or the task's limits moves nothing; ``detail``
             states it.
``contact``  a bumper is or was pressed while driving forward; with the bumper pressed beforehand nothing moves. Or
             walls have shortened the way of a simulated robot that slides, as habitat-sim counts collisions.
``timed_out``  something holds the robot: not within tolerance after the motion's duration x ``timeout_factor`` +
             ``timeout_margin_s``, and after the same for each of a few short legs that corrected the first.
``stopped``  the Guard holds the wheels for an e-stop, a wheel drop or a cliff: a person has to help.
``fault``    a device failed or went silent; :attr:`MotionController.fault` is the error, ``measured`` is the motion up
             to the last report.
===========  =======================================================================================================

Whatever happens, an exception of any kind included, the wheels are at zero when ``execute`` is left.
"""

import math
from collections.abc import Callable
from dataclasses import replace

from robot_runtime.actions.discrete import Displacement
from robot_runtime.common.clock import Clock, Stopwatch, ns_to_seconds, seconds_to_ns
from robot_runtime.common.geometry import wrap_angle
from robot_runtime.errors import DeviceFault
from robot_runtime.hal import STREAMS, Base, BaseState, Event, Head, HeadLimits, HeadState, Zone
from robot_runtime.hal.motion_profile import MotionProfile
from robot_runtime.hal.streams import across_gap
from robot_runtime.motion.follower import LegFollower
from robot_runtime.motion.leg import Leg
from robot_runtime.records import ActionResult, Outcome, SentCommand

ACCEL_SHARE = 0.95
"""Share of what the base can do at most; the rest is for corrections: its Guard would otherwise cut them off."""


class MotionController:
    """Carries out displacements on a base and a head.

    ``robot_runtime.motion.steering`` carries out continuous actions by the same :attr:`follower`.

    Callbacks get every state that is read, and every command that is sent, in order; they must return quickly. Looks
    are limited by ``look_limits_rad``, lowest and highest tilt, and the head's reach.
    """

    def __init__(
        self,
        clock: Clock,
        base: Base,
        head: Head,
        profile: MotionProfile | None = None,
        on_state: Callable[[BaseState], None] | None = None,
        on_command: Callable[[SentCommand], None] | None = None,
        look_limits_rad: tuple[float, float] | None = None,
        on_event: Callable[[Event], None] | None = None,
    ) -> None:
        self.profile = profile or MotionProfile()
        self.fault: DeviceFault | None = None
        """The error behind the last action's outcome ``fault``; None after any other."""
        self.settle_s = 0.0
        """Host seconds of the last action from the end of its motion to rest; the head's motion includes its rest."""
        self.follower = LegFollower(clock, base, self.profile, on_state, on_command, on_event)
        """Drives the base, also for continuous actions."""
        self.end_beside: Callable[[bool], object] = bool
        """Ends what drives the base beside this (``robot_runtime.motion.pursuit``), at rest if it is given True."""
        self._clock = clock
        self._base = base
        self._head = head
        self._look_limits_rad = look_limits_rad
        self._first_tilt_rad: float | None = None
        self._tilt_rad = 0.0
        info = base.info
        self._period_ns = seconds_to_ns(1 / info.rate_hz)
        # The limits of every motion, accelerations included.
        self.angular_rad_s = min(self.profile.angular_rad_s, info.max_angular_rad_s)
        self.linear_accel_m_s2 = min(self.profile.linear_accel_m_s2, ACCEL_SHARE * info.max_linear_accel_m_s2)
        self.angular_accel_rad_s2 = min(self.profile.angular_accel_rad_s2, ACCEL_SHARE * info.max_angular_accel_rad_s2)
        self.forget()

    @property
    def linear_m_s(self) -> float:
        """Cruise speed of steps, from which a contact stops the robot within ``contact_travel_m``."""
        return self.profile.forward_m_s(self._base.info, self.follower.predictor.model)

    def begin_episode(self) -> None:
        """Come to rest where the robot was placed, and forget what was driven before. Raises as :meth:`rest`."""
        self.forget()
        self.rest()
        self.follower.forget()

    def forget(self) -> None:
        """Restart the chains of intended heading and head angles: the robot was placed."""
        self.intended_yaw_rad: float | None = None  # in odom; the next motion aims from it
        self.forget_head()

    def forget_head(self) -> None:
        """Restart the chain of head angles: something else turned it."""
        self._intended_pan_rad: float | None = None
        self._intended_tilt_rad: float | None = None

    def stop(self) -> None:
        """Wheels to zero now."""
        try:
            self.end_beside(False)
        finally:
            self._base.stop()

    def execute(self, displacement: Displacement) -> ActionResult:
        """Move by ``displacement`` and come to rest. Device errors become the outcome ``fault``.

        Raises:
            ValueError: if more than one component is not zero: no discrete action asks for that.
        """
        if sum(map(bool, (displacement.forward_m, displacement.turn_rad, displacement.tilt_rad))) > 1:
            raise ValueError(f"one component at a time, got {displacement}")
        self.begin_action()
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
            return self._result(Outcome.FAULT, displacement, self.moved(), start_ns, detail=error.message)
        finally:
            self._base.stop()

    def begin_action(self) -> None:
        """Come to rest, if something still drives; forget error, contacts, pauses and motion of the action before."""
        self.end_beside(True)
        self.fault = None
        self.settle_s = 0.0
        self._first_tilt_rad = None
        self.follower.begin_action()

    def note_tilt(self, tilt_rad: float) -> None:
        """Take note of the head's tilt during an action."""
        if self._first_tilt_rad is None:
            self._first_tilt_rad = tilt_rad
        self._tilt_rad = tilt_rad

    def moved(self) -> Displacement:
        """The motion since the beginning of the action, as far as it was reported."""
        tilt_rad = 0.0 if self._first_tilt_rad is None else self._tilt_rad - self._first_tilt_rad
        return replace(self.follower.moved(), tilt_rad=tilt_rad)

    def rest(self) -> tuple[BaseState, HeadState]:
        """Wheels to zero; wait until base and head measure rest, and return those states.

        Raises:
            StaleData: if either goes silent.
            DeviceFault: if either still moves after its time: ``rest_timeout_s`` for the base, for the head what its
                complete range takes.
        """
        self.end_beside(True)
        base = self.follower.rest()
        limits = self._head.limits
        range_rad = max(limits.max_tilt_rad - limits.min_tilt_rad, limits.max_pan_rad - limits.min_pan_rad)
        nominal_s = range_rad / limits.max_speed_rad_s + limits.settle_s
        head = self.rest_head(self._clock.now_ns(), self.profile.timeout_s(nominal_s))
        if head.moving:
            raise DeviceFault("head: does not come to rest", "check the pan-tilt's servos and their load")
        return base, head

    # --- driving ----------------------------------------------------------------------------------------------------

    def leg(self, forward_m: float, turn_rad: float) -> Leg:
        """A leg with the limits of the profile and the base."""
        return Leg(
            forward_m, turn_rad, self.linear_m_s, self.angular_rad_s, self.linear_accel_m_s2, self.angular_accel_rad_s2
        )

    def aim_rad(self, state: BaseState) -> float:
        """The heading in odom from which the next motion aims: the intended one while the robot is near it."""
        return carry(self.intended_yaw_rad, state.odom.yaw_rad, self.profile.carry_rad)

    def _drive(self, displacement: Displacement, start_ns: int) -> ActionResult:
        follower = self.follower
        state = follower.read()
        aim_rad = self.aim_rad(state)
        self.intended_yaw_rad = None  # set again only by an arrival
        ended = follower.follow(self.leg(displacement.forward_m, displacement.turn_rad), state, aim_rad)
        timer = Stopwatch()
        end = ended.state or follower.rest()
        self.settle_s = timer.elapsed_s()
        if ended.outcome is Outcome.REACHED:
            self.intended_yaw_rad = aim_rad + displacement.turn_rad
        ended = follower.with_obstruction(ended)
        zones = ended.contact
        if ended.outcome is Outcome.CONTACT:
            zones |= end.bumper  # the tick that stopped the robot may have seen the first of two zones only
        measured = follower.moved()
        detail = ended.detail
        if ended.outcome is Outcome.TIMED_OUT:
            detail = _progress(displacement, measured, detail)
        detail = "; ".join(filter(None, (detail, follower.paused_detail())))
        return self._result(ended.outcome, displacement, measured, start_ns, zones, detail)

    # --- looking ----------------------------------------------------------------------------------------------------

    def _look(self, displacement: Displacement, start_ns: int) -> ActionResult:
        head, carry_rad = self._head, self.profile.carry_rad
        start = self.head_state()
        self.note_tilt(start.tilt_rad)
        pan_rad = carry(self._intended_pan_rad, start.pan_rad, carry_rad)
        requested_rad = carry(self._intended_tilt_rad, start.tilt_rad, carry_rad) + displacement.tilt_rad
        slack_rad = self.profile.heading_rad
        if refusal := look_refusal(requested_rad, displacement.tilt_rad, self._look_limits_rad, head.limits, slack_rad):
            return self._result(Outcome.REACHED, displacement, Displacement(), start_ns, detail=refusal)
        nominal_s = abs(displacement.tilt_rad) / head.limits.max_speed_rad_s + head.limits.settle_s
        self._intended_pan_rad, self._intended_tilt_rad = head.command(pan_rad, requested_rad)
        end = self.rest_head(self._clock.now_ns(), self.profile.timeout_s(nominal_s))
        outcome, detail = Outcome.REACHED, ""
        if end.moving:
            outcome, detail = Outcome.TIMED_OUT, not_at_rest_message(end.tilt_rad, self._intended_tilt_rad)
        return self._result(outcome, displacement, self.moved(), start_ns, detail=detail)

    def head_state(self) -> HeadState:
        """The head's state; a gap of its link is waited out. Raises ``DeviceFault``."""
        return across_gap(self._clock, lambda: self._head.state(STREAMS["head"].max_age_s), self.profile.patience_s)

    def rest_head(self, commanded_ns: int, timeout_s: float) -> HeadState:
        """The first state measured after ``commanded_ns`` in which the head rests, or the one at the timeout."""
        deadline_ns = commanded_ns + seconds_to_ns(timeout_s)
        tick_ns = commanded_ns
        while True:
            tick_ns += self._period_ns
            self._clock.sleep_until(tick_ns)
            state = self.head_state()
            self.note_tilt(state.tilt_rad)
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


def _progress(displacement: Displacement, measured: Displacement, detail: str) -> str:
    if displacement.forward_m:
        return f"moved {measured.forward_m:.3f} of {displacement.forward_m:.3f} m {detail}"
    turned_deg, requested_deg = math.degrees(measured.turn_rad), math.degrees(displacement.turn_rad)
    return f"turned {turned_deg:.1f} of {requested_deg:.1f}° {detail}"


def carry(intended_rad: float | None, measured_rad: float, limit_rad: float) -> float:
    """The angle to aim from: the intended one while the robot is near it, else the measured one."""
    if intended_rad is None:
        return measured_rad
    residual_rad = wrap_angle(intended_rad - measured_rad)
    return measured_rad + residual_rad if abs(residual_rad) <= limit_rad else measured_rad


def look_refusal(
    requested_rad: float, step_rad: float, limits_rad: tuple[float, float] | None, head: HeadLimits, slack_rad: float
) -> str:
    """Reason to leave the head where it is; empty if the look is to be carried out.

    The camera of a simulator stays on a grid of looks. A robot's head is off that grid by its servo's error, so looks
    are allowed up to half a step beyond the task's limits. A look that the head cannot finish would leave the grid, and
    every later image would be off it, too.

    Args:
        requested_rad: tilt to which the look leads, up positive.
        step_rad: change of the tilt by the look.
        limits_rad: the task's lowest and highest tilt; None if the task has none.
        head: reach of the robot's head.
        slack_rad: difference from the head's reach that does not matter.
    """
    lowest_rad, highest_rad = head.min_tilt_rad - slack_rad, head.max_tilt_rad + slack_rad
    limits = f"the head's {math.degrees(head.min_tilt_rad):.0f}° to {math.degrees(head.max_tilt_rad):.0f}°"
    if limits_rad is not None:
        low_rad, high_rad = limits_rad
        half_rad = abs(step_rad) / 2
        lowest_rad, highest_rad = max(low_rad - half_rad, lowest_rad), min(high_rad + half_rad, highest_rad)
        limits = f"the task's are {math.degrees(low_rad):.0f}° to {math.degrees(high_rad):.0f}°, {limits}"
    if lowest_rad <= requested_rad <= highest_rad:
        return ""
    return f"a look to {math.degrees(requested_rad):.1f}° is beyond the limits: {limits}"


def not_at_rest_message(tilt_rad: float, goal_rad: float) -> str:
    """Description of a head that is not at rest at its goal when its time is over: its angle, and what is left."""
    error_deg = math.degrees(tilt_rad - goal_rad)
    return f"head: not at rest, at tilt {math.degrees(tilt_rad):.1f}° it is {error_deg:+.1f}° from its goal"
